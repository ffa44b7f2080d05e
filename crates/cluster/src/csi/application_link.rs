//! Signals and messages between the application and the services that are measured beside it.

use iosonde_result::data_service::ServiceRecord;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Signals between the application and the services.
#[derive(Debug, Clone, Default)]
pub(super) struct ServiceSwitches {
    is_running: Arc<AtomicBool>,
    is_stopped: Arc<AtomicBool>,
}

impl ServiceSwitches {
    /// Reports that the application is measured.
    pub(super) fn set_running(&self) {
        self.is_running.store(true, Relaxed);
    }

    /// Whether the application is measured.
    pub(super) fn is_running(&self) -> bool {
        self.is_running.load(Relaxed)
    }

    /// Ends the services.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
    }

    /// Whether the services are to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }
}

/// A message to the observer of the application.
pub(super) enum ServiceMessage {
    /// The current step, for the user.
    Step(String),
    /// A note for the user.
    Note(String),
    /// A service was used.
    Record {
        record: Box<ServiceRecord>,
        begun: Instant,
        ended: Instant,
    },
    /// All rounds are over.
    Complete,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_shared_by_their_clones() {
        let switches = ServiceSwitches::default();
        let other = switches.clone();
        other.set_running();
        assert!(switches.is_running() && !switches.is_stopped());
        other.stop();
        assert!(switches.is_stopped());
    }
}
