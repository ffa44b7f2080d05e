//! The user's wish to stop, as a signal handler can leave it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts the wishes to stop. Setting it is safe in a signal handler.
#[derive(Debug, Default)]
pub struct Interrupt {
    requests: AtomicU32,
}

impl Interrupt {
    /// One more wish.
    pub fn request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// Whether there was one.
    pub fn is_requested(&self) -> bool {
        self.count() > 0
    }

    /// How many there were: after the first the run ends as if its time were over, after the second at once.
    pub fn count(&self) -> u32 {
        self.requests.load(Relaxed)
    }
}
