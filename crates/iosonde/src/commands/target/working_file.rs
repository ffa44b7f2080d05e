//! The working file of a probe: created, locked, and removed even after a panic.
//!
//! The file is locked (flock(2)) until its probe ends. So a later probe can distinguish a leftover
//! from a file in use, also across containers, unlike with process ids.

use crate::commands::leftovers::kept_leftover_note;
use crate::commands::leftovers::lock::{claim, is_still, take_lock};
use crate::commands::leftovers::name::{
    PROBE_PREFIX, is_of_this_process, made_by, new_names, working_file_beside,
};
use iosonde_job::errno::describe;
use iosonde_result::doctor::MadeBy;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A working file. Removed when dropped.
#[derive(Debug)]
pub(super) struct WorkingFile {
    path: PathBuf,
    /// The open file, which holds the lock.
    file: Arc<File>,
}

impl WorkingFile {
    /// Creates an empty working file in a directory.
    pub(super) fn create(directory: &Path) -> io::Result<WorkingFile> {
        for name in new_names(PROBE_PREFIX)? {
            let path = directory.join(name);
            match File::create_new(&path) {
                Ok(file) if claim(&file)? => {
                    let file = Arc::new(file);
                    return Ok(WorkingFile { path, file });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("names do not end")
    }

    /// The open file, even if its path was replaced.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkingFile {
    fn drop(&mut self) {
        // The kernel may keep the files of a closed io_uring. Truncation frees the space at once.
        let _ = self.file.set_len(0);
        let shown = self.path.display();
        match is_still(&self.path, &self.file) {
            Ok(false) => eprintln!(
                "warning: another program removed or replaced {shown} during the run, so its \
                 lock was lost"
            ),
            _ => {
                if let Err(error) = fs::remove_file(&self.path) {
                    eprintln!("warning: cannot remove {shown}: {}", describe(&error));
                }
            }
        }
    }
}

/// Whether a directory has working files, which may be leftovers of killed probes.
pub(super) fn are_there(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with(PROBE_PREFIX))
}

/// Removes leftovers of killed probes in a directory. Returns notes for the user.
pub(super) fn sweep(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with(PROBE_PREFIX)
        })
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| remove_leftover(&entry.path()))
        .collect()
}

fn remove_leftover(path: &Path) -> Option<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let shown = path.display();
    Some(match take_lock(path) {
        // Probes of one process take turns.
        Ok(None) if is_of_this_process(&name, PROBE_PREFIX) => return None,
        // The working file beside it has the note.
        Ok(None) if working_file_beside(path).is_some() => return None,
        Ok(None) => format!("{shown}: another probe is running here, so both get lower figures"),
        Ok(Some(_lock)) if made_by(&name, PROBE_PREFIX) == MadeBy::ThisBoot => {
            match fs::remove_file(path) {
                Ok(()) => format!("removed {shown}, a leftover of a killed probe"),
                Err(error) => {
                    let error = describe(&error);
                    format!("cannot remove {shown}, a leftover of a killed probe: {error}")
                }
            }
        }
        Ok(Some(_lock)) => kept_leftover_note(path),
        Err(error) => {
            let error = describe(&error);
            format!("{shown} belongs to another probe, which may still be running ({error})")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("iosonde-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn working_file_is_removed_after_panic() {
        let directory = directory("drop");
        let panicked = std::panic::catch_unwind(|| {
            let file = WorkingFile::create(&directory).unwrap();
            assert!(file.path().exists());
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn file_replacing_working_file_is_not_removed() {
        let directory = directory("replaced");
        let file = WorkingFile::create(&directory).unwrap();
        let (path, other) = (file.path().to_owned(), directory.join("other"));
        fs::write(&other, "precious").unwrap();
        fs::rename(&other, &path).unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn file_taken_for_leftover_is_not_used() {
        let directory = directory("claim");
        let path = directory.join(".iosonde-probe-0-0");
        let made = File::create_new(&path).unwrap();
        let other = File::open(&path).unwrap();
        other.try_lock().unwrap();
        assert!(!claim(&made).unwrap(), "about to be removed");
        fs::remove_file(&path).unwrap();
        drop(other);
        assert!(!claim(&made).unwrap(), "removed");
        let made = File::create_new(&path).unwrap();
        assert!(claim(&made).unwrap());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn leftovers_are_removed_and_files_in_use_stay() {
        let directory = directory("sweep");
        let used = WorkingFile::create(&directory).unwrap();
        let other = directory.join(".iosonde-probe-2-0");
        let lock = File::create_new(&other).unwrap();
        lock.try_lock().unwrap();
        let left = directory.join(new_names(PROBE_PREFIX).unwrap().nth(9).unwrap());
        let beside = |path: &Path| PathBuf::from(format!("{}.neighbour", path.display()));
        let beside_used = beside(&other);
        fs::write(&beside_used, "x").unwrap();
        let beside_left = beside(&directory.join(new_names(PROBE_PREFIX).unwrap().nth(8).unwrap()));
        fs::write(&beside_left, "x").unwrap();
        let old = directory.join(".iosonde-probe-1-0");
        let elsewhere = directory.join(".iosonde-probe-db-1-0123456789ab-0123456789abcdef-0");
        let foreign = directory.join("iosonde-probe-1");
        for path in [&left, &old, &elsewhere, &foreign] {
            fs::write(path, "x").unwrap();
        }
        let notes = sweep(&directory);
        assert_eq!(notes.len(), 5, "{notes:?}");
        let kept = notes
            .iter()
            .filter(|note| note.contains("iosonde doctor --clean"));
        assert_eq!(kept.count(), 2, "{notes:?}");
        assert!(old.exists() && elsewhere.exists());
        assert_eq!(
            notes
                .iter()
                .filter(|note| note.contains("another probe is running"))
                .count(),
            1
        );
        assert!(!left.exists() && foreign.exists());
        assert!(!beside_left.exists() && beside_used.exists());
        assert!(used.path().exists() && other.exists());
        drop((used, lock));
        fs::remove_dir_all(&directory).unwrap();
    }
}
