//! Putting a damaged history aside.

use super::{Place, StoreError};
use jiff::Zoned;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// SQLite's files beside the main one that hold what is not in it yet.
const JOURNALS: [&str; 2] = ["-wal", "-journal"];
/// What SQLite makes again.
const INDEX: &str = "-shm";

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
    for step in steps(&place.path, &aside) {
        step.take().map_err(io)?;
    }
    Ok(Some(aside))
}

/// A step of putting a file aside.
#[derive(Debug)]
enum Step {
    /// Gives a file a second name.
    Link(PathBuf, PathBuf),
    /// Writes the names of a directory to its disk.
    SyncDirectory(PathBuf),
    Remove(PathBuf),
}

/// Everything has its second name before the first one goes: a kill after any step leaves all files together under one of
/// both. The main file goes before its journals, because SQLite ignores a journal without a main file, and would use a main
/// file without its journal.
fn steps(path: &Path, aside: &Path) -> Vec<Step> {
    let of_both = |suffix: &str| (with_suffix(path, suffix), with_suffix(aside, suffix));
    let there: Vec<_> = [""]
        .into_iter()
        .chain(JOURNALS)
        .map(of_both)
        .filter(|(from, _)| from.exists())
        .collect();
    let links = there
        .iter()
        .map(|(from, to)| Step::Link(from.clone(), to.clone()));
    let mut steps: Vec<Step> = links.collect();
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    steps.push(Step::SyncDirectory(directory.to_owned()));
    let removed = there.into_iter().map(|(from, _)| from);
    steps.extend(removed.map(Step::Remove));
    steps.push(Step::Remove(with_suffix(path, INDEX)));
    steps
}

impl Step {
    fn take(&self) -> io::Result<()> {
        match self {
            // Some file systems have no links.
            Step::Link(from, to) => std::fs::hard_link(from, to).or_else(|_| {
                let mut copy = File::create_new(to)?;
                io::copy(&mut File::open(from)?, &mut copy)?;
                copy.sync_all()
            }),
            Step::SyncDirectory(directory) => File::open(directory)?.sync_all(),
            Step::Remove(path) => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Filter, KeptStudy, Store, read_documents};

    fn study(started_at_ms: u64) -> KeptStudy {
        let text = include_str!("../../../result/tests/fio-json/two-jobs.json");
        let mut study = read_documents(text).unwrap().remove(0);
        study.started_at_ms = started_at_ms;
        study.runs[0].started_at_ms = started_at_ms;
        study
    }

    fn place(path: &Path) -> Place {
        Place {
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

    /// A kill after any step, then a program that opens the history to write to it.
    #[test]
    fn kill_while_it_is_put_aside_loses_no_row() {
        let directory = std::env::temp_dir().join(format!("iosonde-aside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let live = directory.join("live.db");
        // Of three results the last ones are in the log alone while the store is open.
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
    fn copy_in_the_place_of_a_link_overwrites_nothing() {
        let directory = std::env::temp_dir().join(format!("iosonde-link-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (from, to) = (directory.join("from"), directory.join("to"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        assert!(Step::Link(from.clone(), to.clone()).take().is_err());
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "old");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
