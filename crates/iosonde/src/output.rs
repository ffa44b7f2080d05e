//! Where results go: standard output, or the file that `--output` names; and what is said on standard error.
//!
//! Texts of others pass through here on their way out, and lose their control characters ([`iosonde_job::control_characters`]).

use crate::failure::Failure;
use iosonde_job::escape_control_characters;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Links that lead to a file, at most, as in the kernel.
const MOST_LINKS: usize = 40;
/// Names that are tried for a file beside another one.
const MOST_NAMES: u32 = 1000;

/// Set when something written to standard output found no reader.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Whether something written to standard output found no reader.
pub(crate) fn is_reader_gone() -> bool {
    READER_GONE.load(Relaxed)
}

/// Where results go.
pub(crate) enum Output {
    /// Standard output.
    Standard,
    /// A file that is written to at once: a FIFO, a device, a descriptor, or the reports of a run that goes on.
    Stream(PathBuf, BufWriter<File>),
    /// A regular file that [`Output::finish`] replaces.
    Replaced(ReplacedFile),
}

impl Output {
    /// Checks before anything is run that the file can be written, if one is named. A regular file stays as it is until
    /// [`Output::finish`].
    pub(crate) fn open(path: Option<&Path>) -> Result<Output, Failure> {
        let Some(path) = path else {
            return Ok(Output::Standard);
        };
        let failed = |error| Failure::Output(path.to_owned(), error);
        let Some(target) = without_links(path).map_err(failed)? else {
            // A descriptor of this process: what it has written there already stays.
            let file = File::options().append(true).open(path).map_err(failed)?;
            return Ok(Output::Stream(path.to_owned(), BufWriter::new(file)));
        };
        match File::options().write(true).open(&target) {
            Ok(file) if !file.metadata().map_err(failed)?.is_file() => {
                return Ok(Output::Stream(path.to_owned(), BufWriter::new(file)));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (name, _) = create_beside(&target).map_err(failed)?;
                std::fs::remove_file(name).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(Output::Replaced(ReplacedFile {
            path: path.to_owned(),
            target,
            document: Vec::new(),
        }))
    }

    /// From now on a regular file is written to at once, for those who read it while the run goes on.
    pub(crate) fn stream(&mut self) -> Result<(), Failure> {
        if let Output::Replaced(replaced) = self {
            let failed = |error| Failure::Output(replaced.path.clone(), error);
            let mut file = BufWriter::new(File::create(&replaced.target).map_err(failed)?);
            file.write_all(&replaced.document)
                .and_then(|()| file.flush())
                .map_err(failed)?;
            *self = Output::Stream(replaced.path.clone(), file);
        }
        Ok(())
    }

    /// Writes a part of a document, control characters as escapes. A reader that has gone away (`| head`) is no error: see
    /// [`is_reader_gone`].
    pub(crate) fn write(&mut self, part: &str) -> Result<(), Failure> {
        self.write_bytes(escape_control_characters(part).as_bytes())
    }

    /// Writes a part of a document as it is, for programs to which each byte matters: fio's own formats, scripts, manifests. A
    /// terminal is spared control characters here, too.
    pub(crate) fn write_unchanged(&mut self, part: &[u8]) -> Result<(), Failure> {
        if self.is_terminal() {
            return self.write(&String::from_utf8_lossy(part));
        }
        self.write_bytes(part)
    }

    fn is_terminal(&self) -> bool {
        match self {
            Output::Standard => io::stdout().is_terminal(),
            Output::Stream(_, file) => file.get_ref().is_terminal(),
            Output::Replaced(_) => false,
        }
    }

    fn write_bytes(&mut self, part: &[u8]) -> Result<(), Failure> {
        match self {
            Output::Standard => {
                let mut stdout = io::stdout().lock();
                match stdout.write_all(part).and_then(|()| stdout.flush()) {
                    Ok(()) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        READER_GONE.store(true, Relaxed);
                        Ok(())
                    }
                    Err(error) => Err(Failure::Output(PathBuf::from("standard output"), error)),
                }
            }
            Output::Stream(path, file) => file
                .write_all(part)
                .and_then(|()| file.flush())
                .map_err(|error| Failure::Output(path.clone(), error)),
            Output::Replaced(replaced) => {
                replaced.document.extend_from_slice(part);
                Ok(())
            }
        }
    }

    /// Puts the document in the place of the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Output::Standard | Output::Stream(..) => Ok(()),
            Output::Replaced(replaced) => replaced
                .put()
                .map_err(|error| Failure::Output(replaced.path.clone(), error)),
        }
    }

    /// Writes a whole document with [`Output::write`], and puts it in the place of the file.
    pub(crate) fn save(mut self, document: &str) -> Result<(), Failure> {
        self.write(document)?;
        self.finish()
    }

    /// Writes a whole document with [`Output::write_unchanged`], and puts it in the place of the file.
    pub(crate) fn save_unchanged(mut self, document: &[u8]) -> Result<(), Failure> {
        self.write_unchanged(document)?;
        self.finish()
    }
}

/// A regular file, or one that is not there yet, and what is going to be in it.
pub(crate) struct ReplacedFile {
    /// As the user named it, for error messages.
    path: PathBuf,
    /// The same without links in its last component.
    target: PathBuf,
    document: Vec<u8>,
}

impl ReplacedFile {
    /// Writes the document beside the file and renames it, so that a reader finds the old file or the new one. Where no file can
    /// be made beside it, or the owner could not be kept, or it is a mount of its own, the file is overwritten.
    fn put(&self) -> io::Result<()> {
        let Ok((name, mut file)) = create_beside(&self.target) else {
            return self.overwrite();
        };
        let written = match keep_owner_and_mode(&self.target, &file) {
            Ok(()) => file
                .write_all(&self.document)
                .and_then(|()| file.sync_all())
                .map(|()| std::fs::rename(&name, &self.target).is_ok()),
            Err(_) => Ok(false),
        };
        match written {
            Ok(true) => return Ok(()),
            // What could not be renamed or written is of no use to anybody.
            Ok(false) | Err(_) => drop(std::fs::remove_file(&name)),
        }
        written.and_then(|_| self.overwrite())
    }

    fn overwrite(&self) -> io::Result<()> {
        let mut file = File::create(&self.target)?;
        file.write_all(&self.document)
    }
}

/// Gives a new file the owner, group and mode of the one that it replaces.
fn keep_owner_and_mode(replaced: &Path, file: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let old = match std::fs::metadata(replaced) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let new = file.metadata()?;
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

/// Makes a file in the same directory under a name that nothing has yet.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let pid = std::process::id();
    let mut last = io::ErrorKind::AlreadyExists.into();
    for number in 0..MOST_NAMES {
        let name = path.with_file_name(format!(".iosonde-output-{pid}-{number}"));
        match File::create_new(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The path that its links lead to, whether something is there or not. `None`: a descriptor of a process, such as `/dev/stdout`.
fn without_links(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if directory.canonicalize()?.starts_with("/proc") {
            return Ok(None);
        }
        match std::fs::read_link(&path) {
            Ok(target) => path = directory.join(target),
            // No link, or nothing at all.
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(io::Error::from_raw_os_error(
        rustix::io::Errno::LOOP.raw_os_error(),
    ))
}

/// Writes a text to standard error, control characters as escapes. That nobody reads it is no error.
pub(crate) fn write_to_stderr(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let _ = io::stderr().write_all(escape_control_characters(&text).as_bytes());
}

/// Whether standard error is a terminal that can be drawn on.
pub(crate) fn is_live_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests;
