//! Requests for a report during a run: SIGUSR1, and fio's file `fio-dump-status` in `$TMPDIR`.

use signal_hook::consts::SIGUSR1;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two checks for the file.
const FILE_INTERVAL: Duration = Duration::from_millis(250);

/// Collects requests for a report.
pub(super) struct StatusRequests {
    signalled: Arc<AtomicBool>,
    file: PathBuf,
    looked: Option<Instant>,
}

impl StatusRequests {
    /// Starts to listen. If the handler cannot be installed, SIGUSR1 keeps its previous action.
    pub(super) fn listen() -> StatusRequests {
        let signalled = Arc::new(AtomicBool::new(false));
        let _ = signal_hook::flag::register(SIGUSR1, signalled.clone());
        // fio uses the same directory.
        let directory = std::env::var_os("TMPDIR").or_else(|| std::env::var_os("TEMP"));
        let directory = directory.unwrap_or_else(|| "/tmp".into());
        StatusRequests {
            signalled,
            file: Path::new(&directory).join("fio-dump-status"),
            looked: None,
        }
    }

    /// Returns whether a report was requested since the last call. Removes the file, as fio does.
    pub(super) fn take(&mut self) -> bool {
        let by_signal = self.signalled.swap(false, Relaxed);
        let waits = self.looked.is_some_and(|at| at.elapsed() < FILE_INTERVAL);
        if waits {
            return by_signal;
        }
        self.looked = Some(Instant::now());
        by_signal | std::fs::remove_file(&self.file).is_ok()
    }
}
