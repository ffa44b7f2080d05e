//! Events of a session while it is opened or closed, and the waits that a user can interrupt.

use iosonde_result::run_error::RunError;
use std::time::Duration;

/// Interval at which the interrupts of the user are polled.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// Timeout for an answer of the agent to any request but a run.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

const _: () = assert!(TICK.as_millis() < ANSWER_TIMEOUT.as_millis());

/// Event while a session is opened or closed.
#[derive(Debug, Clone, Copy)]
pub enum SetupEvent<'a> {
    /// Text on what the session waits for. It replaces the previous one.
    Waiting(&'a str),
    /// Note for the user.
    Note(&'a str),
    /// The wait has ended.
    Over,
}

/// Callbacks to the user while a session is open.
pub struct SetupObserver<'a> {
    /// Reports an event.
    pub tell: &'a mut dyn FnMut(SetupEvent<'_>),
    /// Returns the number of interrupts (Ctrl-C) so far.
    pub interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
}

/// Awaits `work`, or returns [`RunError::Interrupted`] on an interrupt.
pub(crate) async fn unless_interrupted<T>(
    interrupts: &dyn Fn() -> u32,
    work: impl Future<Output = Result<T, RunError>>,
) -> Result<T, RunError> {
    let interrupted = async {
        while interrupts() == 0 {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = interrupted => Err(RunError::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn interrupt_ends_a_wait_that_never_completes() {
        let asked_for = AtomicU32::new(0);
        let asked = || asked_for.fetch_add(1, Relaxed) / 3;
        let work = std::future::pending::<Result<(), RunError>>();
        let outcome = crate::connect::runtime()
            .unwrap()
            .block_on(unless_interrupted(&asked, work));
        assert_eq!(outcome, Err(RunError::Interrupted));
        let work = async { Ok(7) };
        let outcome = crate::connect::runtime()
            .unwrap()
            .block_on(unless_interrupted(&|| 0, work));
        assert_eq!(outcome, Ok(7));
    }
}
