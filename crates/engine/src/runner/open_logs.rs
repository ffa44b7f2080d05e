//! The log files of a run, which several workers may share, and the limit of their size.

use super::permissions::Permissions;
use crate::files::target_error;
use iosonde_result::run_error::{PathAction, RunError};
use iosonde_result::words;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// First line of a trace.
const TRACE_HEADER: &str = "fio version 3 iolog";

/// A log file, which several workers may write.
pub(super) type SharedLogFile = Arc<Mutex<BufWriter<LimitedLog>>>;

/// All open logs of a run. With `per_job_logs=0` workers share files; the first truncates them.
#[derive(Debug)]
pub(super) struct OpenLogs {
    files: Mutex<BTreeMap<PathBuf, SharedLogFile>>,
    limit: Arc<LogLimit>,
}

/// The limit of all logs of a run together.
#[derive(Debug)]
struct LogLimit {
    most_bytes: u64,
    left_bytes: AtomicU64,
    /// Logs that were cut.
    cut: Mutex<BTreeSet<PathBuf>>,
}

/// A log that ends with a whole line once the limit is reached or a write fails. Later lines are
/// dropped.
#[derive(Debug)]
pub(super) struct LimitedLog {
    file: File,
    path: PathBuf,
    limit: Arc<LogLimit>,
    /// Bytes of the last line, if it goes on in the next write.
    open_line_bytes: u64,
    /// Whether later lines are dropped.
    is_cut: bool,
}

impl OpenLogs {
    /// The permissions of the session may limit the logs.
    pub(super) fn new(permissions: Option<&Permissions>) -> OpenLogs {
        let most_bytes = permissions.and_then(|permissions| permissions.log_bytes_max);
        OpenLogs::limited_to(most_bytes.unwrap_or(u64::MAX))
    }

    fn limited_to(most_bytes: u64) -> OpenLogs {
        OpenLogs {
            files: Mutex::default(),
            limit: Arc::new(LogLimit {
                most_bytes,
                left_bytes: AtomicU64::new(most_bytes),
                cut: Mutex::default(),
            }),
        }
    }

    /// Opens and truncates a log file.
    pub(super) fn open_log(&self, path: &Path) -> Result<SharedLogFile, RunError> {
        self.open_shared(path, |path| File::create(path))
    }

    /// Opens the file of a trace. As in fio, an existing file is appended to.
    pub(super) fn open_trace(&self, path: &Path) -> Result<SharedLogFile, RunError> {
        self.open_shared(path, |path| {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            writeln!(file, "{TRACE_HEADER}")?;
            Ok(file)
        })
    }

    /// Returns a note that names the logs which were cut, if there are any.
    pub(super) fn cut_note(&self) -> Option<String> {
        let cut = self.limit.cut.lock();
        let cut = cut.unwrap_or_else(PoisonError::into_inner);
        let names: Vec<String> = cut
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let most = words::bytes(self.limit.most_bytes);
        (!names.is_empty()).then(|| {
            format!(
                "the logs of the run are limited to {most} on its machine, and were cut: {}",
                names.join(", ")
            )
        })
    }

    fn open_shared(
        &self,
        path: &Path,
        open: impl FnOnce(&Path) -> io::Result<File>,
    ) -> Result<SharedLogFile, RunError> {
        let mut logs = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = logs.get(path) {
            return Ok(known.clone());
        }
        let file = open(path).map_err(|error| target_error(path, PathAction::Write, &error))?;
        let file = LimitedLog {
            file,
            path: path.to_owned(),
            limit: self.limit.clone(),
            open_line_bytes: 0,
            is_cut: false,
        };
        let file = Arc::new(Mutex::new(BufWriter::new(file)));
        logs.insert(path.to_owned(), file.clone());
        Ok(file)
    }
}

impl LogLimit {
    /// Takes up to this many bytes of those that are left.
    fn take(&self, wanted: u64) -> u64 {
        let less = |left: u64| Some(left.saturating_sub(wanted));
        let before = self.left_bytes.fetch_update(Relaxed, Relaxed, less);
        before.unwrap_or_else(|left| left).min(wanted)
    }

    fn record_cut(&self, path: &Path) {
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.insert(path.to_owned());
    }
}

impl LimitedLog {
    /// Returns how many bytes are written: all if the limit allows it, else up to the end of the
    /// line at which the limit is reached.
    fn bytes_to_write(&mut self, bytes: &[u8]) -> usize {
        let granted = self.limit.take(bytes.len() as u64) as usize;
        debug_assert!(granted <= bytes.len());
        if granted == bytes.len() {
            return granted;
        }
        let is_whole = match granted.checked_sub(1) {
            Some(last) => bytes[last] == b'\n',
            None => self.open_line_bytes == 0,
        };
        let line_end = bytes[granted..].iter().position(|byte| *byte == b'\n');
        let end = match (is_whole, line_end) {
            (true, _) => granted,
            (false, Some(rest)) => granted + rest + 1,
            // The line goes on in the next write.
            (false, None) => return bytes.len(),
        };
        self.is_cut = true;
        self.limit.record_cut(&self.path);
        end
    }

    /// Counts bytes that the file has got.
    fn count_written(&mut self, written: &[u8]) {
        match written.iter().rposition(|byte| *byte == b'\n') {
            Some(line_end) => self.open_line_bytes = (written.len() - line_end - 1) as u64,
            None => self.open_line_bytes += written.len() as u64,
        }
    }

    /// Removes the part of the last line after a write failed, e.g. of a full file system.
    fn remove_open_line(&mut self) {
        self.is_cut = true;
        let open_bytes = std::mem::take(&mut self.open_line_bytes);
        let shortened = self.file.metadata().and_then(|metadata| {
            let length = metadata.len().saturating_sub(open_bytes);
            self.file.set_len(length)
        });
        // The caller reports the error of the write. A pipe cannot be shortened.
        let _ = shortened;
    }
}

impl Write for LimitedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_cut && !bytes.is_empty() {
            let end = self.bytes_to_write(bytes);
            let (count, written) = write_counted(&mut self.file, &bytes[..end]);
            self.count_written(&bytes[..count]);
            if written.is_err() {
                self.remove_open_line();
            }
            written?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes bytes until an error. Returns how many were written, also in the case of an error.
fn write_counted(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut count = 0;
    while count < bytes.len() {
        match file.write(&bytes[count..]) {
            Ok(0) => return (count, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (count, Err(error)),
        }
    }
    (count, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on a file system with this much space.
    struct SmallFile<'a> {
        file: &'a mut File,
        left_bytes: usize,
    }

    impl Write for SmallFile<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.left_bytes == 0 {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
            let end = bytes.len().min(self.left_bytes);
            self.left_bytes -= end;
            self.file.write(&bytes[..end])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn partial_write_of_a_full_file_system_leaves_whole_lines() {
        let scratch = tempfile::tempdir().unwrap();
        // The open line is in this write, or began in the one before.
        for (before, bytes, left_bytes, expected) in [
            ("1, 2\n", "3, 4\n5, 6\n", 7, "1, 2\n3, 4\n"),
            ("1, 2\n3, ", "400000\n", 2, "1, 2\n"),
            ("1, 2\n3, ", "400000\n", 0, "1, 2\n"),
            ("1, 2\n", "3, 4\n5, 6\n", 5, "1, 2\n3, 4\n"),
        ] {
            let path = scratch.path().join("a_bw.log");
            let mut log = LimitedLog {
                file: File::create(&path).unwrap(),
                path: path.clone(),
                limit: OpenLogs::new(None).limit,
                open_line_bytes: 0,
                is_cut: false,
            };
            log.write_all(before.as_bytes()).unwrap();
            let mut file = SmallFile {
                file: &mut log.file,
                left_bytes,
            };
            let (count, written) = write_counted(&mut file, bytes.as_bytes());
            assert_eq!(count, left_bytes);
            assert_eq!(written.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
            log.count_written(&bytes.as_bytes()[..count]);
            log.remove_open_line();
            // A buffer tries again when it is dropped.
            log.write_all(bytes.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        }
    }

    #[test]
    fn log_on_a_full_device_reports_the_error_once() {
        let logs = OpenLogs::new(None);
        let file = logs.open_log(Path::new("/dev/full")).unwrap();
        let mut file = file.lock().unwrap();
        file.write_all(b"1, 2\n").unwrap();
        let error = file.flush().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        file.flush().unwrap();
    }

    #[test]
    fn logs_above_the_limit_end_with_a_whole_line_and_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        let logs = OpenLogs::limited_to(25);
        let write = |name: &str, texts: &[&str]| {
            let file = logs.open_log(&path(name)).unwrap();
            let mut file = file.lock().unwrap();
            for text in texts {
                file.write_all(text.as_bytes()).unwrap();
                // Each text is one write.
                file.flush().unwrap();
            }
            std::fs::read_to_string(path(name)).unwrap()
        };
        assert_eq!(write("a_bw.log", &["1, 2\n3, 4\n"]), "1, 2\n3, 4\n");
        assert_eq!(logs.cut_note(), None);
        // The limit is reached within the second line, which is continued in the next write.
        let texts = ["10, 20\n30, ", "400000", "00\n50, 60\n", "70\n"];
        let cut = write("b_bw.log", &texts);
        assert_eq!(cut, "10, 20\n30, 40000000\n");
        assert_eq!(write("c_bw.log", &["1, 2\n"]), "");
        let note = logs.cut_note().unwrap();
        assert!(note.ends_with("were cut: b_bw.log, c_bw.log"), "{note}");
        let unlimited = OpenLogs::new(None);
        let file = unlimited.open_log(&path("d")).unwrap();
        file.lock().unwrap().write_all(&[b'x'; 1 << 16]).unwrap();
        assert_eq!(unlimited.cut_note(), None);
    }
}
