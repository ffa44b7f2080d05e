//! Reads of external files and streams with a size limit, because they may exceed the memory.

use crate::{host::memory_to_take, proc_root::System};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// Size limit of a text that people write (job file, include, suite, limits), and of any device.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Size limit of a document if the memory of the machine is unknown.
const DOCUMENT_BYTES_MAX: u64 = 4 << 30;

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
/// Fails if the file cannot be read, or with [`ErrorKind::FileTooLarge`] above `bytes_max`.
pub fn file(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    opened(&File::open(path)?, bytes_max)
}

/// Reads a text that people write: UTF-8 of at most [`TEXT_BYTES_MAX`]. Fails as [`file()`] does.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = file(path, TEXT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Reads standard input to its end. Fails as [`file()`] does.
pub fn standard_input(bytes_max: u64) -> io::Result<Vec<u8>> {
    // Without the buffer of [`io::stdin`]: nothing else reads standard input.
    opened(
        &File::from(io::stdin().as_fd().try_clone_to_owned()?),
        bytes_max,
    )
}

/// Reads a stream to its end. Fails as [`file()`] does.
pub fn stream(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "it has more than {} MiB, the most that is read of it",
                bytes_max >> 20
            ),
        ));
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
        true => stream(file, bytes_max.min(TEXT_BYTES_MAX)).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => {
                io::Error::new(ErrorKind::FileTooLarge, "it is a device, not a file")
            }
            _ => error,
        }),
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
        let (fits, short) = (file(&path, 5), file(&path, 4));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fits.unwrap(), b"12345");
        assert_eq!(short.unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn device_without_end_is_an_error() {
        let error = file("/dev/zero", u64::MAX).unwrap_err();
        assert_eq!(error.to_string(), "it is a device, not a file");
        assert_eq!(file("/dev/null", 0).unwrap(), b"");
    }

    #[test]
    fn stream_without_end_is_an_error_that_names_the_bound() {
        let error = stream(io::repeat(b'y'), 3 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("more than 3 MiB"), "{error}");
    }
}
