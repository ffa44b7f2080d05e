//! Marks running studies by a file lock, which the kernel releases when the process ends.

use super::HistoryPath;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// A study that this process is measuring. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct RunningStudy {
    path: PathBuf,
    _locked: File,
}

impl RunningStudy {
    /// Marks a study as running. `None`: that failed, and the study looks cut off.
    pub(super) fn mark(place: &HistoryPath, id: &str) -> Option<RunningStudy> {
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
        // A leftover file is not locked, so it marks nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether a process is measuring a study.
pub(super) fn is_running(place: &HistoryPath, id: &str) -> bool {
    let file = lock_path(&place.path, id).and_then(|path| File::open(path).ok());
    file.is_some_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn lock_path(history: &Path, id: &str) -> Option<PathBuf> {
    Some(history.parent()?.join("running").join(id))
}
