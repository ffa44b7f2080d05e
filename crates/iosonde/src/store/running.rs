//! Whether a study goes on: the process that measures it holds a lock, which the kernel releases when the process ends.

use super::Place;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// A study of the history that this process is measuring. The lock goes when it is dropped.
#[derive(Debug)]
pub(super) struct RunningStudy {
    path: PathBuf,
    _locked: File,
}

impl RunningStudy {
    /// Marks a study as going on. `None`: it cannot be marked, and is taken for one that was cut off.
    pub(super) fn mark(place: &Place, id: &str) -> Option<RunningStudy> {
        let path = lock_path(&place.path, id)?;
        std::fs::create_dir_all(path.parent()?).ok()?;
        let locked = File::create(&path).ok()?;
        locked.try_lock().ok()?;
        Some(RunningStudy {
            path,
            _locked: locked,
        })
    }
}

impl Drop for RunningStudy {
    fn drop(&mut self) {
        // A file that stays is locked by nobody, and says nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether some process is measuring a study.
pub(super) fn is_running(place: &Place, id: &str) -> bool {
    let file = lock_path(&place.path, id).and_then(|path| File::open(path).ok());
    file.is_some_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn lock_path(history: &Path, id: &str) -> Option<PathBuf> {
    Some(history.parent()?.join("running").join(id))
}
