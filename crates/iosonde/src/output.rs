//! Destination of results: standard output or the file of `--output`; and text on standard error.
//!
//! Texts from outside are escaped here: see [`iosonde_job::control_characters`].

use crate::failure::CommandError;
use crate::terminal_text;
use iosonde_job::escape_control_characters;
use iosonde_report::text_style::TextStyle;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Maximum number of symbolic links followed to a file, as in the kernel.
const MOST_LINKS: usize = 40;
/// Maximum number of names tried for a temporary file.
const MOST_NAMES: u32 = 1000;

/// Set when a write to standard output fails with EPIPE.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Returns whether the reader of standard output has closed it.
pub(crate) fn is_reader_gone() -> bool {
    READER_GONE.load(Relaxed)
}

/// Destination of results.
pub(crate) enum Output {
    /// Standard output.
    Standard,
    /// A file written at once: a FIFO, a device, a descriptor, or the reports during a run.
    Stream(PathBuf, BufWriter<File>),
    /// A regular file that [`Output::finish`] replaces.
    Replaced(ReplacedFile),
}

/// Whether an environment variable has a value.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Characters of the locale: those of the first of its variables that is set.
pub(crate) fn locale_style(color: bool) -> TextStyle {
    let mut names = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = names.find(|name| is_set(name));
    let locale = locale.and_then(std::env::var_os).unwrap_or_default();
    TextStyle::for_locale(&locale.to_string_lossy(), color)
}

impl Output {
    /// Opens the destination of a report that is written from now on. In a file, it has its usual
    /// width, however narrow the terminal on standard output is.
    pub(crate) fn open_report(path: Option<&Path>) -> Result<Output, CommandError> {
        let output = Output::open(path)?;
        if path.is_some() && !output.is_terminal() {
            let columns = terminal_text::file_columns(std::env::var_os("COLUMNS"));
            iosonde_report::text_table::set_columns(columns);
        }
        Ok(output)
    }

    /// Checks that the destination is writable. A regular file stays until [`Output::finish`].
    pub(crate) fn open(path: Option<&Path>) -> Result<Output, CommandError> {
        let Some(path) = path else {
            return Ok(Output::Standard);
        };
        let failed = |error| CommandError::Output(path.to_owned(), error);
        let Some(target) = without_links(path).map_err(failed)? else {
            // A descriptor of this process. Append mode keeps earlier data.
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

    /// Writes a regular file at once from now on, for programs that read it during the run.
    pub(crate) fn stream(&mut self) -> Result<(), CommandError> {
        if let Output::Replaced(replaced) = self {
            let failed = |error| CommandError::Output(replaced.path.clone(), error);
            let mut file = BufWriter::new(File::create(&replaced.target).map_err(failed)?);
            file.write_all(&replaced.document)
                .and_then(|()| file.flush())
                .map_err(failed)?;
            *self = Output::Stream(replaced.path.clone(), file);
        }
        Ok(())
    }

    /// Writes a part of a document with control characters escaped. See [`is_reader_gone`] on
    /// EPIPE.
    pub(crate) fn write(&mut self, part: &str) -> Result<(), CommandError> {
        self.write_bytes(escape_control_characters(part).as_bytes())
    }

    /// Writes a part of a document unchanged, for programs that need each byte: fio's formats,
    /// scripts, manifests. Control characters are still escaped on a terminal.
    pub(crate) fn write_unchanged(&mut self, part: &[u8]) -> Result<(), CommandError> {
        if self.is_terminal() {
            return self.write(&String::from_utf8_lossy(part));
        }
        self.write_bytes(part)
    }

    /// Writes a part that holds colours, and whose texts from outside are escaped already.
    pub(crate) fn write_styled(&mut self, part: &str) -> Result<(), CommandError> {
        self.write_bytes(part.as_bytes())
    }

    /// Characters of the locale, and colours on a terminal that has them, unless `NO_COLOR` is set.
    pub(crate) fn style(&self) -> TextStyle {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        locale_style(self.is_terminal() && !is_dumb && !is_set("NO_COLOR"))
    }

    fn is_terminal(&self) -> bool {
        match self {
            Output::Standard => io::stdout().is_terminal(),
            Output::Stream(_, file) => file.get_ref().is_terminal(),
            Output::Replaced(_) => false,
        }
    }

    fn write_bytes(&mut self, part: &[u8]) -> Result<(), CommandError> {
        match self {
            Output::Standard => {
                let mut stdout = io::stdout().lock();
                match stdout.write_all(part).and_then(|()| stdout.flush()) {
                    Ok(()) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        READER_GONE.store(true, Relaxed);
                        Ok(())
                    }
                    Err(error) => Err(CommandError::StandardOutput(error)),
                }
            }
            Output::Stream(path, file) => file
                .write_all(part)
                .and_then(|()| file.flush())
                .map_err(|error| CommandError::Output(path.clone(), error)),
            Output::Replaced(replaced) => {
                replaced.document.extend_from_slice(part);
                Ok(())
            }
        }
    }

    /// Replaces the file with the document.
    pub(crate) fn finish(self) -> Result<(), CommandError> {
        match self {
            Output::Standard | Output::Stream(..) => Ok(()),
            Output::Replaced(replaced) => replaced
                .put()
                .map_err(|error| CommandError::Output(replaced.path.clone(), error)),
        }
    }

    /// Writes a whole document with [`Output::write`], and replaces the file with it.
    pub(crate) fn save(mut self, document: &str) -> Result<(), CommandError> {
        self.write(document)?;
        self.finish()
    }

    /// Writes a whole document with [`Output::write_unchanged`], and replaces the file.
    pub(crate) fn save_unchanged(mut self, document: &[u8]) -> Result<(), CommandError> {
        self.write_unchanged(document)?;
        self.finish()
    }
}

/// A regular file, which may not exist yet, and its new content.
pub(crate) struct ReplacedFile {
    /// Path as the user gave it, for error messages.
    path: PathBuf,
    /// The same path with the links of its last component resolved.
    target: PathBuf,
    document: Vec<u8>,
}

impl ReplacedFile {
    /// Writes a temporary file and renames it, so readers find the old or the new file. Overwrites
    /// the file if none can be created beside it, its owner cannot be kept, or it is a mount point.
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
            // A file that could not be written or renamed is of no use.
            Ok(false) | Err(_) => drop(std::fs::remove_file(&name)),
        }
        written.and_then(|_| self.overwrite())
    }

    fn overwrite(&self) -> io::Result<()> {
        let mut file = File::create(&self.target)?;
        file.write_all(&self.document)
    }
}

/// Gives a new file the owner, group and mode of the file that it replaces.
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

/// Creates a file under an unused name in the same directory.
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

/// Resolves links of the last component. `None`: a descriptor of a process (`/dev/stdout`).
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
            // No link, or no such file.
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(io::Error::from_raw_os_error(
        rustix::io::Errno::LOOP.raw_os_error(),
    ))
}

/// Names a file that a command has written, on standard error.
pub(crate) fn print_written(path: &Path) {
    write_to_stderr(format_args!("wrote {}\n", path.display()));
}

/// Writes text to standard error, with control characters escaped. Messages are wrapped to the
/// width of a terminal. Errors are ignored.
pub(crate) fn write_to_stderr(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let mut text = escape_control_characters(&text);
    if let Some(columns) = terminal_text::columns(io::stderr()) {
        text = terminal_text::wrapped_messages(&text, columns).into();
    }
    crate::drawn_view::write_above(|| {
        let _ = io::stderr().write_all(text.as_bytes());
    });
}

/// Whether standard error is a terminal that can be redrawn.
pub(crate) fn is_live_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests;
