//! Clean-up of leftovers: working files and scratch directories of killed runs. The crate cluster
//! removes those in clusters, `rados/killed.rs` those in pools.
//!
//! A live run locks its files (flock(2)), which works across containers. Unlocked files of this
//! boot are leftovers. Locks of other hosts may be invisible, so files of other boots are removed
//! only in directories that the user names. A file that cannot be locked stays.

pub(in crate::commands) mod lock;
pub(in crate::commands) mod name;

use iosonde_history::{Filter, HistoryPath};
use iosonde_job::quote_shell_word;
use iosonde_result::doctor::{ExaminedLeftover, LeftoverUser, MadeBy};
use iosonde_result::host::TargetInfo;
use iosonde_result::words;
use name::{PROBE_PREFIX, SUITE_LOCK, SUITE_PREFIX};
use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Directories to search: targets, their parents and mount points; current, home and temporary
/// directories; targets of interrupted runs in the history.
pub(super) fn search_directories<'a>(
    targets: impl Iterator<Item = (&'a PathBuf, &'a TargetInfo)>,
) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for (path, info) in targets {
        places.push(path.clone());
        places.extend(path.parent().map(Path::to_owned));
        // Other mount points are skipped: their servers may not answer.
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

/// Targets of studies in the history that did not finish.
fn cut_off() -> Vec<PathBuf> {
    let store = HistoryPath::find(None).and_then(|place| crate::commands::open_history(&place));
    let studies = store.and_then(|store| store.list(&Filter::default()));
    let cut_off = studies.unwrap_or_default().into_iter();
    cut_off
        .filter(|study| study.finished_at_ms.is_none())
        .map(|study| PathBuf::from(study.target))
        .filter(|path| path.is_absolute())
        .collect()
}

/// Leftovers and files in use in these directories, sorted by path.
pub(super) fn find_leftovers(places: &[PathBuf]) -> Vec<ExaminedLeftover> {
    let entries = places.iter().filter_map(|place| fs::read_dir(place).ok());
    let mut found: Vec<ExaminedLeftover> = entries
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| leftover(&entry))
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Whether `doctor` reports the file. A file in use matters only in a target directory.
pub(super) fn concerns(left: &ExaminedLeftover, targets: &[PathBuf]) -> bool {
    let is_there = |target: &PathBuf| target.canonicalize().ok().as_deref() == left.path.parent();
    left.holder != LeftoverUser::Process || targets.iter().any(is_there)
}

/// Removes unlocked files of this boot, and any unlocked ones in directories that the user named.
/// Returns a line for each removal or failure.
pub(super) fn remove(found: &[ExaminedLeftover], named: &[PathBuf]) -> Vec<String> {
    let named: Vec<PathBuf> = (named.iter())
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let is_named = |left: &ExaminedLeftover| {
        let mut named = named.iter().map(PathBuf::as_path);
        named.any(|named| named == left.path || left.path.parent() == Some(named))
    };
    let free = found.iter().filter(|each| {
        each.holder == LeftoverUser::NoProcess
            && (each.made_by == MadeBy::ThisBoot || is_named(each))
    });
    let removed = free.map(|each| {
        let shown = each.path.display();
        match remove_one(&each.path) {
            Ok(true) => format!("removed {shown}"),
            Ok(false) => format!("{shown} is in use now and was not removed"),
            Err(error) => format!(
                "{shown} cannot be removed: {}",
                iosonde_job::errno::describe(&error)
            ),
        }
    });
    removed.collect()
}

/// Note on a leftover that another host may use.
pub(in crate::commands) fn kept_leftover_note(path: &Path) -> String {
    let age = match usage(path).age_s() {
        Some(seconds) => format!(", changed {} ago", words::duration(seconds as f64)),
        None => String::new(),
    };
    let directory = path.parent().unwrap_or(path).to_string_lossy();
    let directory = quote_shell_word(&directory);
    format!(
        "{} may be in use on another host{age}; if not, remove it with \
         `iosonde doctor --clean {directory}`",
        path.display()
    )
}

/// Removes a leftover if its lock is free. The lock is held, so that no run starts to use it.
fn remove_one(path: &Path) -> io::Result<bool> {
    let is_directory = path.symlink_metadata()?.is_dir();
    let (holder, _lock) = holder(path, is_directory);
    if holder != LeftoverUser::NoProcess {
        return Ok(false);
    }
    match is_directory {
        true => fs::remove_dir_all(path)?,
        false => fs::remove_file(path)?,
    }
    Ok(true)
}

fn leftover(entry: &DirEntry) -> Option<ExaminedLeftover> {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let kind = entry.file_type().ok()?;
    let prefix = match (kind.is_file(), kind.is_dir()) {
        (true, _) => PROBE_PREFIX,
        (_, true) => SUITE_PREFIX,
        _ => return None,
    };
    if !name.starts_with(prefix) {
        return None;
    }
    let path = entry.path();
    let (holder, _) = holder(&path, kind.is_dir());
    let usage = usage(&path);
    Some(ExaminedLeftover {
        bytes: usage.bytes,
        made_by: name::made_by(&name, prefix),
        age_s: usage.age_s(),
        path,
        holder,
    })
}

/// The holder of the lock. If the lock was free, it is held until the returned file is closed.
fn holder(path: &Path, is_directory: bool) -> (LeftoverUser, Option<File>) {
    let taken = match is_directory {
        true => lock::take_lock_within(path, SUITE_LOCK),
        false => lock::take_lock(path),
    };
    match taken {
        Ok(Some(file)) => (LeftoverUser::NoProcess, Some(file)),
        Ok(None) => (LeftoverUser::Process, None),
        Err(_) => (LeftoverUser::Unknown, None),
    }
}

/// Disk usage and last change of a file, or of a directory with its contents.
#[derive(Default)]
struct Usage {
    bytes: u64,
    /// The last change.
    changed: Option<SystemTime>,
}

impl Usage {
    fn age_s(&self) -> Option<u64> {
        // The clock of another host may be ahead.
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
    fn unlocked_leftovers_are_found_and_removed() {
        let name = format!("iosonde-leftovers-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let at = |name: &str| directory.join(name);
        fs::write(at(".iosonde-probe-1-0"), [1; 9000]).unwrap();
        let used = File::create_new(at(".iosonde-probe-2-0")).unwrap();
        used.try_lock().unwrap();
        let suite = at(&format!("{SUITE_PREFIX}3-0"));
        fs::create_dir(&suite).unwrap();
        fs::write(suite.join(SUITE_LOCK), "").unwrap();
        fs::write(suite.join("data"), [1; 9000]).unwrap();
        // Not found: another name, a directory named like a file. Unknown: no lock file.
        fs::write(at("iosonde-probe-4"), "x").unwrap();
        fs::create_dir(at(".iosonde-probe-5-0")).unwrap();
        let unlocked = at(&format!("{SUITE_PREFIX}6-0"));
        fs::create_dir(&unlocked).unwrap();
        let found = find_leftovers(std::slice::from_ref(&directory));
        let holders: Vec<(&Path, LeftoverUser)> = found
            .iter()
            .map(|each| (each.path.as_path(), each.holder))
            .collect();
        let mut expected = [
            (at(".iosonde-probe-1-0"), LeftoverUser::NoProcess),
            (at(".iosonde-probe-2-0"), LeftoverUser::Process),
            (suite.clone(), LeftoverUser::NoProcess),
            (unlocked.clone(), LeftoverUser::Unknown),
        ];
        expected.sort();
        let expected: Vec<(&Path, LeftoverUser)> = expected
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
        let here = directory.join(name::new_names(PROBE_PREFIX).unwrap().nth(7).unwrap());
        fs::write(&here, "x").unwrap();
        let places = [directory.clone()];
        assert_eq!(
            remove(&find_leftovers(&places), &[]).len(),
            1,
            "unnamed: what this boot made"
        );
        assert!(!here.exists());
        assert_eq!(remove(&find_leftovers(&places), &places).len(), 2);
        assert!(!at(".iosonde-probe-1-0").exists() && !suite.exists());
        assert!(at(".iosonde-probe-2-0").exists() && unlocked.exists());
        assert!(at("iosonde-probe-4").exists() && at(".iosonde-probe-5-0").exists());
        drop(used);
        fs::remove_dir_all(&directory).unwrap();
    }
}
