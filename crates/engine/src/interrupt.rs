//! Stop requests of the user, set by a signal handler.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts stop requests. [`Interrupt::request`] is safe in a signal handler.
#[derive(Debug, Default)]
pub struct Interrupt {
    requests: AtomicU32,
}

impl Interrupt {
    /// Adds one stop request.
    pub fn request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.count() > 0
    }

    /// Number of requests. The first ends the run as its runtime does, the second ends it at once.
    pub fn count(&self) -> u32 {
        self.requests.load(Relaxed)
    }
}
