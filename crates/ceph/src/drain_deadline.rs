//! How long iosonde waits for a cluster that does not answer, after the user requested a stop.

use iosonde_engine::interrupt::Interrupt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks for a stop request.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// After a stop request, I/Os in flight are abandoned once nothing has completed for this long.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The stop request, and the time since when nothing has completed despite it.
pub(crate) struct DrainDeadline {
    interrupt: Arc<Interrupt>,
    silent_since: Option<Instant>,
}

impl DrainDeadline {
    /// Waits without a limit until a stop is requested.
    pub(crate) fn until(interrupt: &Arc<Interrupt>) -> DrainDeadline {
        DrainDeadline {
            interrupt: interrupt.clone(),
            silent_since: None,
        }
    }

    /// Whether a stop was requested.
    pub(crate) fn is_requested(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// Whether the wait expired. `has_completed`: whether an I/O completed since the last call.
    pub(crate) fn check_expired(&mut self, has_completed: bool) -> bool {
        if has_completed || !self.interrupt.is_requested() {
            self.silent_since = None;
            return false;
        }
        self.silent_since.get_or_insert_with(Instant::now).elapsed() >= GRACE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drain_deadline_expires_after_stop_request_and_silence() {
        let interrupt = Arc::new(Interrupt::default());
        let mut deadline = DrainDeadline::until(&interrupt);
        assert!(!deadline.check_expired(false));
        interrupt.request();
        let begun = Instant::now();
        while !deadline.check_expired(false) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(begun.elapsed() >= GRACE);
        assert!(
            !deadline.check_expired(true),
            "an answer restarts the grace period"
        );
    }
}
