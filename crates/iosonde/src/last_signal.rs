//! The last signal that asked the process to end.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The number of the last signal; 0: none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Records a signal that asks the process to end.
pub(crate) fn record(signal: i32) {
    SIGNAL.store(signal, Relaxed);
}

/// Returns the last signal that asked the process to end.
pub(crate) fn received_signal() -> Option<i32> {
    match SIGNAL.load(Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}
