//! Inspects paths for clients.

use iosonde_machine::consent::Consent;
use iosonde_machine::write_obstacles::{self, Obstacle, Question, Refusal};
use iosonde_result::session::RunError;
use iosonde_result::wire::Place;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Inspects a directory, file or block device.
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
        let free_bytes = iosonde_machine::space::space(path.as_ref())?.available_bytes;
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
    // The check opens the device with `O_EXCL`, so it must be closed.
    drop(file);
    let found = obstacles(path.as_ref())?;
    let uses: Vec<String> = found
        .iter()
        .filter(|obstacle| obstacle.is_use())
        .map(ToString::to_string)
        .collect();
    Ok(Place::Existing {
        bytes,
        device,
        carries: found.iter().find_map(|obstacle| match obstacle {
            Obstacle::Carries(signature) => Some(signature.to_string()),
            _ => None,
        }),
        used: (!uses.is_empty()).then(|| uses.join("; ")),
    })
}

/// Returns the obstacles to writing to a file or block device without any consent.
fn obstacles(path: &Path) -> io::Result<Vec<Obstacle>> {
    let question = Question {
        consent: &Consent::default(),
        is_mounted_allowed: false,
        is_claimed: false,
    };
    match write_obstacles::check(path, &question) {
        Ok(checked) => Ok(checked.overridden),
        Err(Refusal::Obstacles { obstacles, .. }) => Ok(obstacles),
        Err(Refusal::Unreadable { source, .. }) => Err(source),
        Err(other @ Refusal::OtherDisk { .. }) => Err(io::Error::other(other.found())),
    }
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
            used: None,
        };
        assert_eq!(look(&file), Ok(expected));
        let error = look("/dev/null").unwrap_err();
        assert!(error.to_string().contains("/dev/null: neither"), "{error}");
    }
}
