//! The barrier where a group of workers waits for its common start.

use std::sync::{Condvar, Mutex};

/// Start barrier of a group of workers.
#[derive(Default)]
pub(super) struct StartBarrier {
    /// The start on the run's clock, or [`NEVER`].
    start_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

/// Start time of a group that does not run.
pub(super) const NEVER: u64 = u64::MAX;

impl StartBarrier {
    /// Releases the waiting workers, to start at `start_ns`.
    pub(super) fn open(&self, start_ns: u64) {
        *self
            .start_ns
            .lock()
            .unwrap_or_else(|poison| poison.into_inner()) = Some(start_ns);
        self.opened.notify_all();
    }

    /// Cancels the start: the workers that wait return without I/O.
    pub(super) fn cancel_start(&self) {
        self.start_ns
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .get_or_insert(NEVER);
        self.opened.notify_all();
    }

    /// Waits until the barrier opens. A layout before it may take hours, so there is no deadline:
    /// the coordinator opens or cancels the barrier, also when it fails.
    pub(super) fn wait(&self) -> u64 {
        let mut start_ns = self
            .start_ns
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        loop {
            match *start_ns {
                Some(start_ns) => return start_ns,
                None => {
                    start_ns = self
                        .opened
                        .wait(start_ns)
                        .unwrap_or_else(|poison| poison.into_inner())
                }
            }
        }
    }
}
