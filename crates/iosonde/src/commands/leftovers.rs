//! Working files and directories that killed runs have left, in the places where runs put them.
//!
//! A run holds a lock (flock(2)) on what it made for as long as it lives, also across containers, where process ids say
//! nothing. What this boot made and nobody holds is left over. The lock of another host may not be seen here, so what another
//! boot made is only removed where the user names its directory. What cannot be asked for a lock is left alone.

pub(in crate::commands) mod lock;
pub(in crate::commands) mod name;

use super::run::place as suite;
use super::target::working_file as probe;
use crate::store::{Filter, Place, Store};
use iosonde_result::doctor::{Holder, Leftover, MadeBy};
use iosonde_result::host::TargetInfo;
use iosonde_result::words;
use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where leftovers are looked for: at the targets, on their file systems' roots, in this directory, at home, where temporary
/// files are, and where the history says that a run was cut off.
pub(super) fn places<'a>(
    targets: impl Iterator<Item = (&'a PathBuf, &'a TargetInfo)>,
) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for (path, info) in targets {
        places.push(path.clone());
        places.extend(path.parent().map(Path::to_owned));
        // Not of servers that may not answer: only what is looked at anyway.
        places.extend(info.mount.as_ref().map(|mount| mount.mount_point.clone()));
    }
    places.extend(std::env::current_dir());
    places.extend(std::env::home_dir());
    places.extend(["/tmp", "/var/tmp"].map(PathBuf::from));
    places.push(std::env::temp_dir());
    places.extend(cut_off());
    let real = places.iter().filter_map(|path| path.canonicalize().ok());
    let each: BTreeSet<PathBuf> = real.filter(|path| path.is_dir()).collect();
    each.into_iter().collect()
}

/// Targets of runs that did not come to their end.
fn cut_off() -> Vec<PathBuf> {
    let store = Place::find(None).and_then(|place| Store::open(&place));
    let studies = store.and_then(|store| store.list(&Filter::default()));
    let cut_off = studies.unwrap_or_default().into_iter();
    cut_off
        .filter(|study| study.finished_at_ms.is_none())
        .map(|study| PathBuf::from(study.target))
        .filter(|path| path.is_absolute())
        .collect()
}

/// What is left in these directories, by path.
pub(super) fn find(places: &[PathBuf]) -> Vec<Leftover> {
    let entries = places.iter().filter_map(|place| fs::read_dir(place).ok());
    let mut found: Vec<Leftover> = entries
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| leftover(&entry))
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Whether it is to be told to who wants to measure these targets: a run that goes on elsewhere is nobody's business.
pub(super) fn concerns(left: &Leftover, targets: &[PathBuf]) -> bool {
    let is_there = |target: &PathBuf| target.canonicalize().ok().as_deref() == left.path.parent();
    left.holder != Holder::Process || targets.iter().any(is_there)
}

/// Removes those that no live process holds: what this boot made, and in the directories that the user has named also what may be
/// another host's. One line for each that was removed, or could not be.
pub(super) fn remove(found: &[Leftover], named: &[PathBuf]) -> Vec<String> {
    let named: Vec<PathBuf> = (named.iter())
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let is_named = |left: &Leftover| {
        let mut named = named.iter().map(PathBuf::as_path);
        named.any(|named| named == left.path || left.path.parent() == Some(named))
    };
    let free = found.iter().filter(|each| {
        each.holder == Holder::Nobody && (each.made_by == MadeBy::ThisBoot || is_named(each))
    });
    let removed = free.map(|each| {
        let shown = each.path.display();
        match remove_one(&each.path) {
            Ok(true) => format!("removed {shown}"),
            Ok(false) => format!("{shown} is in use by now, and stays"),
            Err(error) => format!("{shown} cannot be removed: {error}"),
        }
    });
    removed.collect()
}

/// What a run says of a leftover that may be another host's.
pub(in crate::commands) fn kept(path: &Path) -> String {
    let age = match usage(path).age_s() {
        Some(seconds) => format!(", changed {} ago", words::duration(seconds as f64)),
        None => String::new(),
    };
    let directory = path.parent().unwrap_or(path).display();
    format!(
        "{} may be in use on another host{age}; `iosonde doctor --clean {directory}` removes it",
        path.display()
    )
}

/// Whether it was removed: the lock is held meanwhile, so that nobody begins to use it.
fn remove_one(path: &Path) -> io::Result<bool> {
    let is_directory = path.symlink_metadata()?.is_dir();
    let (holder, _lock) = holder(path, is_directory);
    if holder != Holder::Nobody {
        return Ok(false);
    }
    match is_directory {
        true => fs::remove_dir_all(path)?,
        false => fs::remove_file(path)?,
    }
    Ok(true)
}

fn leftover(entry: &DirEntry) -> Option<Leftover> {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let kind = entry.file_type().ok()?;
    let prefix = match (kind.is_file(), kind.is_dir()) {
        (true, _) => probe::PREFIX,
        (_, true) => suite::PREFIX,
        _ => return None,
    };
    if !name.starts_with(prefix) {
        return None;
    }
    let path = entry.path();
    let (holder, _) = holder(&path, kind.is_dir());
    let usage = usage(&path);
    Some(Leftover {
        bytes: usage.bytes,
        made_by: name::made_by(&name, prefix),
        age_s: usage.age_s(),
        path,
        holder,
    })
}

/// Who holds the lock; it is ours as long as the file lives, if nobody did.
fn holder(path: &Path, is_directory: bool) -> (Holder, Option<File>) {
    let taken = match is_directory {
        true => lock::take_lock_within(path, suite::LOCK),
        false => lock::take_lock(path),
    };
    match taken {
        Ok(Some(file)) => (Holder::Nobody, Some(file)),
        Ok(None) => (Holder::Process, None),
        Err(_) => (Holder::Unknown, None),
    }
}

/// What a file or directory takes, with all that is in it.
#[derive(Default)]
struct Usage {
    bytes: u64,
    /// The last change.
    changed: Option<SystemTime>,
}

impl Usage {
    fn age_s(&self) -> Option<u64> {
        // A clock that is behind another host's makes it new.
        let age = self.changed?.elapsed().unwrap_or_default();
        Some(age.as_secs())
    }
}

fn usage(path: &Path) -> Usage {
    let Ok(meta) = path.symlink_metadata() else {
        return Usage::default();
    };
    let own = Usage {
        bytes: meta.blocks() * 512,
        changed: meta.modified().ok(),
    };
    let inside = meta.is_dir().then(|| fs::read_dir(path).ok()).flatten();
    let inside = inside.into_iter().flat_map(|entries| entries.flatten());
    inside.fold(own, |sum, entry| {
        let each = usage(&entry.path());
        Usage {
            bytes: sum.bytes + each.bytes,
            changed: sum.changed.max(each.changed),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_left_and_goes() {
        let name = format!("iosonde-leftovers-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let at = |name: &str| directory.join(name);
        fs::write(at(".iosonde-probe-1-0"), [1; 9000]).unwrap();
        let used = File::create_new(at(".iosonde-probe-2-0")).unwrap();
        used.try_lock().unwrap();
        let suite = at(&format!("{}3-0", suite::PREFIX));
        fs::create_dir(&suite).unwrap();
        fs::write(suite.join(suite::LOCK), "").unwrap();
        fs::write(suite.join("data"), [1; 9000]).unwrap();
        // Not ours: no such name, a directory of such a name, a suite's directory without its lock.
        fs::write(at("iosonde-probe-4"), "x").unwrap();
        fs::create_dir(at(".iosonde-probe-5-0")).unwrap();
        let unlocked = at(&format!("{}6-0", suite::PREFIX));
        fs::create_dir(&unlocked).unwrap();
        let found = find(std::slice::from_ref(&directory));
        let holders: Vec<(&Path, Holder)> = found
            .iter()
            .map(|each| (each.path.as_path(), each.holder))
            .collect();
        let mut expected = [
            (at(".iosonde-probe-1-0"), Holder::Nobody),
            (at(".iosonde-probe-2-0"), Holder::Process),
            (suite.clone(), Holder::Nobody),
            (unlocked.clone(), Holder::Unknown),
        ];
        expected.sort();
        let expected: Vec<(&Path, Holder)> = expected
            .iter()
            .map(|(path, holder)| (path.as_path(), *holder))
            .collect();
        assert_eq!(holders, expected);
        assert!(found[0].bytes >= 9000);
        assert!(
            found
                .iter()
                .all(|each| each.age_s.is_some_and(|age| age < 3600))
        );
        assert!(found.iter().all(|each| each.made_by == MadeBy::Unknown));
        let here = directory.join(name::new_names(probe::PREFIX).unwrap().nth(7).unwrap());
        fs::write(&here, "x").unwrap();
        let places = [directory.clone()];
        assert_eq!(
            remove(&find(&places), &[]).len(),
            1,
            "unnamed: what this boot made"
        );
        assert!(!here.exists());
        assert_eq!(remove(&find(&places), &places).len(), 2);
        assert!(!at(".iosonde-probe-1-0").exists() && !suite.exists());
        assert!(at(".iosonde-probe-2-0").exists() && unlocked.exists());
        assert!(at("iosonde-probe-4").exists() && at(".iosonde-probe-5-0").exists());
        drop(used);
        fs::remove_dir_all(&directory).unwrap();
    }
}
