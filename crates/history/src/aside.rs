//! Renames a damaged history, so that a new one can take its place.

use super::history_path::with_suffix;
use super::{HistoryPath, StoreError};
use jiff::Zoned;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// SQLite's files beside the main one, with data that the main file lacks.
const JOURNALS: [&str; 2] = ["-wal", "-journal"];
/// SQLite's index of the log, which SQLite creates again.
const INDEX: &str = "-shm";

/// Renames the damaged file and returns its new name. `None`: another program has just done so.
pub(super) fn put_aside(
    place: &HistoryPath,
    is_still_damaged: impl FnOnce() -> bool,
) -> Result<Option<PathBuf>, StoreError> {
    let io = |error| StoreError::Io(place.path.clone(), error);
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(with_suffix(&place.path, ".lock"))
        .map_err(io)?;
    // No deadline: another program holds the lock only while it renames the files.
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
    if !is_still_damaged() {
        return Ok(None);
    }
    let aside = free_name(&place.path);
    for step in steps(&place.path, &aside) {
        step.take().map_err(io)?;
    }
    Ok(Some(aside))
}

/// One step of the rename.
#[derive(Debug)]
enum RenameStep {
    /// Gives a file a second name.
    Link(PathBuf, PathBuf),
    /// Writes the directory entries to the disk.
    SyncDirectory(PathBuf),
    Remove(PathBuf),
}

/// Links every file before the first unlink: a kill after any step leaves all files together under
/// one of both names. The main file is unlinked before its journals, because SQLite ignores a
/// journal without a main file, but would use a main file without its journal.
fn steps(path: &Path, aside: &Path) -> Vec<RenameStep> {
    let of_both = |suffix: &str| (with_suffix(path, suffix), with_suffix(aside, suffix));
    let there: Vec<_> = [""]
        .into_iter()
        .chain(JOURNALS)
        .map(of_both)
        .filter(|(from, _)| from.exists())
        .collect();
    let links = there
        .iter()
        .map(|(from, to)| RenameStep::Link(from.clone(), to.clone()));
    let mut steps: Vec<RenameStep> = links.collect();
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    steps.push(RenameStep::SyncDirectory(directory.to_owned()));
    let removed = there.into_iter().map(|(from, _)| from);
    steps.extend(removed.map(RenameStep::Remove));
    steps.push(RenameStep::Remove(with_suffix(path, INDEX)));
    steps
}

impl RenameStep {
    fn take(&self) -> io::Result<()> {
        match self {
            // Some file systems have no hard links.
            RenameStep::Link(from, to) => std::fs::hard_link(from, to).or_else(|_| {
                let mut copy = File::create_new(to)?;
                io::copy(&mut File::open(from)?, &mut copy)?;
                copy.sync_all()
            }),
            RenameStep::SyncDirectory(directory) => File::open(directory)?.sync_all(),
            RenameStep::Remove(path) => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }
}

/// Returns a name that no file has.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::study;
    use crate::{Filter, Store};

    fn place(path: &Path) -> HistoryPath {
        HistoryPath {
            path: path.to_owned(),
            is_named: true,
            shared: None,
        }
    }

    fn starts(path: &Path) -> Vec<u64> {
        let found = Store::open(&place(path)).and_then(|store| store.list(&Filter::default()));
        let found = found.unwrap_or_default();
        found.iter().map(|study| study.started_at_ms).collect()
    }

    /// A kill after any step, then a program that opens the history for writing.
    #[test]
    fn kill_during_rename_loses_no_row() {
        let directory = std::env::temp_dir().join(format!("iosonde-aside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let live = directory.join("live.db");
        // The last results are in the log alone while the store is open.
        let mut store = Store::open_or_make(&place(&live)).unwrap().store;
        for start in 1..=3 {
            store.import(&[(study(start), "f".to_owned())]).unwrap();
        }
        assert!(with_suffix(&live, "-wal").metadata().unwrap().len() > 0);
        let count = steps(&live, &directory.join("aside")).len();
        assert_eq!(count, 6, "two links, their directory, three removals");
        for killed_after in 0..=count {
            let below = directory.join(killed_after.to_string());
            std::fs::create_dir(&below).unwrap();
            let (path, aside) = (below.join("history.db"), below.join("aside.db"));
            for suffix in ["", "-wal", "-shm"] {
                std::fs::copy(with_suffix(&live, suffix), with_suffix(&path, suffix)).unwrap();
            }
            for step in steps(&path, &aside).iter().take(killed_after) {
                step.take().unwrap();
            }
            let opened = Store::open_or_make(&place(&path)).unwrap();
            drop(opened);
            let (here, there) = (starts(&path), starts(&aside));
            assert!(
                here == [1, 2, 3] || there == [1, 2, 3],
                "after {killed_after} steps: {here:?}, {there:?}"
            );
        }
        drop(store);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn copy_instead_of_link_overwrites_no_file() {
        let directory = std::env::temp_dir().join(format!("iosonde-link-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (from, to) = (directory.join("from"), directory.join("to"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        assert!(RenameStep::Link(from.clone(), to.clone()).take().is_err());
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "old");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
