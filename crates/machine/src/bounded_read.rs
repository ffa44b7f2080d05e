//! Reads of external files and streams with a size limit, because they may exceed the memory.

use crate::{host::memory_to_take, proc_root::System};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// Size limit of a text that people write (job file, include, suite, limits), and of any device.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Size limit of a document if the memory of the machine is unknown.
const DOCUMENT_BYTES_MAX: u64 = 4 << 30;

/// Reason why a file is too large to be read. It is the source of an [`io::Error`] of the kind
/// [`ErrorKind::FileTooLarge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// The file or stream exceeds the limit.
    Bytes(u64),
    /// A device has more data than [`TEXT_BYTES_MAX`], or has no end.
    Device,
}

impl ReadLimit {
    /// Returns the limit that a read of this module exceeded. `None` for other errors.
    pub fn exceeded_in(error: &io::Error) -> Option<ReadLimit> {
        error.get_ref()?.downcast_ref::<ReadLimit>().copied()
    }
}

impl fmt::Display for ReadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadLimit::Bytes(limit) => write!(
                f,
                "it is larger than {} MiB, the maximum that iosonde reads",
                limit >> 20
            ),
            ReadLimit::Device => f.write_str("it is a device, not a regular file"),
        }
    }
}

impl std::error::Error for ReadLimit {}

impl From<ReadLimit> for io::Error {
    fn from(limit: ReadLimit) -> io::Error {
        io::Error::new(ErrorKind::FileTooLarge, limit)
    }
}

/// Size limit of a document that programs write and iosonde reads into memory, such as a result or
/// a trace: half of the available memory.
pub fn document_bytes_max() -> u64 {
    match memory_to_take(&System::live()) {
        Some(available) => (available / 2).max(TEXT_BYTES_MAX),
        None => DOCUMENT_BYTES_MAX,
    }
}

/// Reads a whole file.
///
/// # Errors
/// Fails if the file cannot be read, or with a [`ReadLimit`] above `bytes_max`.
pub fn read_file(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    opened(&File::open(path)?, bytes_max)
}

/// Reads a text that people write: UTF-8 of at most [`TEXT_BYTES_MAX`]. Fails as [`read_file()`]
/// does.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read_file(path, TEXT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Reads standard input to its end. Fails as [`read_file()`] does.
pub fn standard_input(bytes_max: u64) -> io::Result<Vec<u8>> {
    // Without the buffer of [`io::stdin`]: nothing else reads standard input.
    opened(
        &File::from(io::stdin().as_fd().try_clone_to_owned()?),
        bytes_max,
    )
}

/// Reads a stream to its end, without a deadline: a person may type it. Fails as [`read_file()`]
/// does.
pub fn stream(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(ReadLimit::Bytes(bytes_max).into());
    }
    Ok(bytes)
}

/// Reads an open file. A device has no size and may have no end, so it has the limit of a text. A
/// terminal or /dev/null is allowed.
fn opened(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileTypeExt;
    let kind = file.metadata()?.file_type();
    let is_device = kind.is_char_device() || kind.is_block_device();
    match is_device {
        true => {
            stream(file, bytes_max.min(TEXT_BYTES_MAX)).map_err(
                |error| match ReadLimit::exceeded_in(&error) {
                    Some(_) => io::Error::from(ReadLimit::Device),
                    None => error,
                },
            )
        }
        false => stream(file, bytes_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_within_the_bound_is_read_whole() {
        let path = std::env::temp_dir().join(format!("iosonde-bounded-{}", std::process::id()));
        std::fs::write(&path, b"12345").unwrap();
        let (fits, short) = (read_file(&path, 5), read_file(&path, 4));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fits.unwrap(), b"12345");
        let error = short.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(ReadLimit::exceeded_in(&error), Some(ReadLimit::Bytes(4)));
        let missing = read_file(&path, 5).unwrap_err();
        assert_eq!(ReadLimit::exceeded_in(&missing), None);
    }

    #[test]
    fn device_without_end_is_an_error() {
        let error = read_file("/dev/zero", u64::MAX).unwrap_err();
        assert_eq!(error.to_string(), "it is a device, not a regular file");
        assert_eq!(ReadLimit::exceeded_in(&error), Some(ReadLimit::Device));
        assert_eq!(read_file("/dev/null", 0).unwrap(), b"");
    }

    #[test]
    fn stream_without_end_is_an_error_that_names_the_bound() {
        let error = stream(io::repeat(b'y'), 3 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        let limit = ReadLimit::Bytes(3 << 20);
        assert_eq!(ReadLimit::exceeded_in(&error), Some(limit));
    }
}
