//! Where results go: standard output, or the file that `--output` names.

use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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
    /// A file, and its path for error messages.
    File(PathBuf, BufWriter<File>),
}

impl Output {
    /// Opens the file, if one is named, before anything is run: not to find out afterwards that it cannot be written.
    pub(crate) fn open(path: Option<&Path>, append: bool) -> Result<Output, Failure> {
        let Some(path) = path else {
            return Ok(Output::Standard);
        };
        let file = File::options()
            .write(true)
            .create(true)
            .append(append)
            .truncate(!append)
            .open(path)
            .map_err(|error| Failure::Output(path.to_owned(), error))?;
        Ok(Output::File(path.to_owned(), BufWriter::new(file)))
    }

    /// Writes a whole document. A reader that has gone away (`| head`) is no error: see [`is_reader_gone`].
    pub(crate) fn write(&mut self, document: &[u8]) -> Result<(), Failure> {
        match self {
            Output::Standard => {
                let mut stdout = io::stdout().lock();
                match stdout.write_all(document).and_then(|()| stdout.flush()) {
                    Ok(()) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        READER_GONE.store(true, Relaxed);
                        Ok(())
                    }
                    Err(error) => Err(Failure::Output(PathBuf::from("standard output"), error)),
                }
            }
            Output::File(path, file) => file
                .write_all(document)
                .and_then(|()| file.flush())
                .map_err(|error| Failure::Output(path.clone(), error)),
        }
    }
}

/// Whether standard error is a terminal that can be drawn on.
pub(crate) fn is_live_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
