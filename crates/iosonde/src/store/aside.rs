//! Putting a damaged history aside.

use super::{Place, StoreError};
use jiff::Zoned;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};

/// SQLite's files beside the main one; they are of no use without it, nor it without them.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Gives the damaged file another name, unless `is_still_damaged` finds that somebody else just has: the new name, if so.
pub(super) fn put_aside(
    place: &Place,
    is_still_damaged: impl FnOnce() -> bool,
) -> Result<Option<PathBuf>, StoreError> {
    let io = |error| StoreError::Io(place.path.clone(), error);
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(with_suffix(&place.path, ".lock"))
        .map_err(io)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
    if !is_still_damaged() {
        return Ok(None);
    }
    let aside = free_name(&place.path);
    for companion in COMPANIONS {
        let beside = with_suffix(&place.path, companion);
        if beside.exists() {
            std::fs::rename(beside, with_suffix(&aside, companion)).map_err(io)?;
        }
    }
    std::fs::rename(&place.path, &aside).map_err(io)?;
    Ok(Some(aside))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A name that nothing has yet.
fn free_name(path: &Path) -> PathBuf {
    let now = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let numbered = |number: u32| match number {
        1 => with_suffix(path, &format!(".damaged-{now}")),
        _ => with_suffix(path, &format!(".damaged-{now}-{number}")),
    };
    let mut number = 1;
    while numbered(number).exists() {
        number += 1;
    }
    numbered(number)
}
