//! [`EventSignal`]: wakes a session when any of its connections has an event.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A flag that connections set and their session waits for. The session then reads all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventSignal(Arc<(Mutex<bool>, Condvar)>);

impl EventSignal {
    fn flag(&self) -> MutexGuard<'_, bool> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a connection has an event.
    pub(crate) fn set(&self) {
        *self.flag() = true;
        self.0.1.notify_all();
    }

    /// Waits up to `longest` for an event, and clears the flag.
    pub(crate) fn wait(&self, longest: Duration) {
        let is_unset = |is_set: &mut bool| !*is_set;
        let waited = self.0.1.wait_timeout_while(self.flag(), longest, is_unset);
        let (mut flag, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *flag = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn signal_set_before_or_during_a_wait_ends_it_once() {
        const LONG: Duration = Duration::from_secs(30);
        let signal = EventSignal::default();
        let begun = Instant::now();
        signal.set();
        signal.wait(LONG);
        let setter = signal.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            setter.set();
        });
        signal.wait(LONG);
        thread.join().unwrap();
        assert!(begun.elapsed() < LONG);
        let begun = Instant::now();
        signal.wait(Duration::from_millis(50));
        assert!(
            begun.elapsed() >= Duration::from_millis(50),
            "it was cleared"
        );
    }
}
