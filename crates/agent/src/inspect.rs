//! Inspects paths for clients.

use iosonde_machine::consent::Consent;
use iosonde_machine::node_storage::node_storage;
use iosonde_machine::proc_root::System;
use iosonde_machine::write_obstacles::{self, Obstacle, Refusal, WriteTerms};
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem};
use iosonde_result::wire::{AgentMessage, PathInfo};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Inspects a directory, file or block device.
pub(crate) fn inspect_target(path: &str) -> Result<PathInfo, RunError> {
    inspect_path(path).map_err(|error| {
        RunError::unusable_target(
            path.to_owned(),
            TargetProblem::NotAccessible {
                failure: (&error).into(),
                purpose: AccessPurpose::Volume,
            },
        )
    })
}

/// Lists disks and mounts of the node whose root directory is at `root`. With `near`, also the
/// directories in the nearest existing parent of this path of the node.
pub(crate) fn inspect_node(root: &str, near: Option<&str>) -> AgentMessage {
    let found = node_storage(&System::live(), Path::new(root), near.map(Path::new));
    AgentMessage::Node(Box::new(found))
}

fn inspect_path(path: &str) -> io::Result<PathInfo> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        let free_bytes = iosonde_machine::space::space(path.as_ref())?.available_bytes;
        return Ok(PathInfo::Directory { free_bytes });
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
    Ok(PathInfo::Existing {
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
    let question = WriteTerms {
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
    use iosonde_result::run_error::SystemFailure;

    #[test]
    fn inspection_reports_free_space_or_file_size() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_str().unwrap();
        assert!(matches!(
            inspect_target(path),
            Ok(PathInfo::Directory { free_bytes: 1.. })
        ));
        let file = format!("{path}/file");
        std::fs::write(&file, [0; 4096]).unwrap();
        let expected = PathInfo::Existing {
            bytes: 4096,
            device: false,
            carries: None,
            used: None,
        };
        assert_eq!(inspect_target(&file), Ok(expected));
        let Err(RunError::UnusableTarget { path, cause }) = inspect_target("/dev/null") else {
            panic!("a character device is no volume");
        };
        assert_eq!(path, "/dev/null");
        assert!(
            matches!(
                *cause,
                TargetProblem::NotAccessible {
                    failure: SystemFailure::Text(_),
                    purpose: AccessPurpose::Volume,
                }
            ),
            "{cause:?}"
        );
    }
}
