//! Connects until the user requests a stop: a client that connects cannot be cancelled, and an
//! unreachable cluster is waited for up to 20 s.

use crate::error::CephError;
use crate::sys::rados::RadosCluster;
use iosonde_engine::interrupt::Interrupt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Interval between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Stop requests that end a connect.
static STOPS: Mutex<Vec<Weak<Interrupt>>> = Mutex::new(Vec::new());

/// Ends connects of this process, from now on, on each new stop request.
pub fn stop_connects_on(interrupt: &Arc<Interrupt>) {
    let mut stops = STOPS.lock().unwrap_or_else(PoisonError::into_inner);
    stops.retain(|known| known.strong_count() > 0);
    stops.push(Arc::downgrade(interrupt));
}

/// Number of stop requests so far.
pub(crate) fn stop_requests() -> u64 {
    let stops = STOPS.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = stops.iter().filter_map(Weak::upgrade);
    counts.map(|interrupt| u64::from(interrupt.count())).sum()
}

/// Connects a client. After a stop request it goes on connecting on its own, without effect.
///
/// Requests before the call do not count: results are stored and objects are removed after them.
pub(crate) fn connect_until_stop(client: &RadosCluster) -> Result<(), CephError> {
    let requests_before = stop_requests();
    let (send, connected) = channel();
    let connecting = client.clone();
    let thread = std::thread::Builder::new().name("connect".to_owned());
    let started = thread.spawn(move || {
        let outcome = connecting.connect();
        // The caller holds the client that it goes on with.
        drop(connecting);
        // After a stop request the receiver is gone.
        let _ = send.send(outcome);
    });
    match started {
        Ok(_) => wait_for_outcome(&connected, || stop_requests() > requests_before),
        Err(_) => client.connect(),
    }
}

/// Waits until an outcome arrives, or the wait is stopped.
pub(crate) fn wait_for_outcome(
    outcomes: &Receiver<Result<(), CephError>>,
    is_stopped: impl Fn() -> bool,
) -> Result<(), CephError> {
    loop {
        match outcomes.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) if !is_stopped() => {}
            Err(_) => return Err(CephError::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_request_ends_the_wait_for_a_connect() {
        let (send, outcomes) = channel();
        let interrupted = wait_for_outcome(&outcomes, || true);
        assert_eq!(interrupted, Err(CephError::Interrupted));
        send.send(Ok(())).unwrap();
        assert_eq!(wait_for_outcome(&outcomes, || true), Ok(()));
    }

    #[test]
    fn stop_requests_are_counted() {
        let interrupt = Arc::new(Interrupt::default());
        stop_connects_on(&interrupt);
        let before = stop_requests();
        interrupt.request();
        assert_eq!(stop_requests(), before + 1);
    }
}
