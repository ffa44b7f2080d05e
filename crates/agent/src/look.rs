//! What is at a path.

use iosonde_engine::device::signature;
use iosonde_result::session::RunError;
use iosonde_result::wire::Place;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;

/// Looks at a directory, file or block device.
pub(crate) fn look(path: &str) -> Result<Place, RunError> {
    place(path).map_err(|error| RunError::Target {
        path: path.to_owned(),
        problem: error.to_string(),
        remedy: "check that the volume is mounted there, and that the pod's user may write to it"
            .to_owned(),
    })
}

fn place(path: &str) -> io::Result<Place> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        let free_bytes = iosonde_engine::device::space::space(path.as_ref())?.available_bytes;
        return Ok(Place::Directory { free_bytes });
    }
    if !kind.is_file() && !kind.is_block_device() {
        return Err(io::Error::other(
            "neither a directory, a file nor a block device",
        ));
    }
    let mut file = File::open(path)?;
    let bytes = file.seek(SeekFrom::End(0))?;
    let device = kind.is_block_device();
    let found = match device {
        true => signature::probe(&file, bytes)?,
        false => Vec::new(),
    };
    Ok(Place::Existing {
        bytes,
        device,
        carries: found.first().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_room_and_files_a_length() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_str().unwrap();
        assert!(matches!(
            look(path),
            Ok(Place::Directory { free_bytes: 1.. })
        ));
        let file = format!("{path}/file");
        std::fs::write(&file, [0; 4096]).unwrap();
        let expected = Place::Existing {
            bytes: 4096,
            device: false,
            carries: None,
        };
        assert_eq!(look(&file), Ok(expected));
        let error = look("/dev/null").unwrap_err();
        assert!(error.to_string().contains("/dev/null: neither"), "{error}");
    }
}
