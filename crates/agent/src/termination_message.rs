//! Writes the error that ends an agent before it has a client. The kubelet adds it to the status of
//! the container, where the client reads it, even without the right to read logs.

use iosonde_result::run_error::RunError;
use iosonde_result::wire::json_line;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// File that the kubelet reads when the container ends.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// Longest message that the kubelet keeps.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Writes the error as a document. Outside of a pod there is no such file, and nothing is written.
pub(crate) fn write(error: &RunError) {
    let _ = write_to(Path::new(TERMINATION_LOG), error);
}

fn write_to(path: &Path, error: &RunError) -> io::Result<()> {
    let text = json_line(error);
    if text.len() > MESSAGE_BYTES_MAX {
        return Ok(());
    }
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::creation_error;
    use iosonde_job::read_json;

    #[test]
    fn termination_message_is_the_error_as_a_document() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let denied = io::Error::from_raw_os_error(13);
        let error = creation_error(Path::new("/data/.iosonde-1a2b"), &denied);
        assert!(
            write_to(&path, &error).is_err(),
            "the file is never created"
        );
        std::fs::write(&path, "").unwrap();
        write_to(&path, &error).unwrap();
        let read: RunError = read_json(std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((read.errno(), &read), (Some(13), &error));
    }
}
