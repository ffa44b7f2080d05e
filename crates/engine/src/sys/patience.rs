//! How long iosonde waits for a cluster that does not answer, after the user requested a stop.

use crate::interrupt::Interrupt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks for a stop request.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// After a stop request, I/Os in flight are abandoned once nothing has completed for this long.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The stop request, and the time since when nothing has completed despite it.
pub(crate) struct Patience {
    wish: Arc<Interrupt>,
    silent_since: Option<Instant>,
}

impl Patience {
    /// Waits without a limit until a stop is requested.
    pub(crate) fn until(wish: &Arc<Interrupt>) -> Patience {
        Patience {
            wish: wish.clone(),
            silent_since: None,
        }
    }

    /// Whether a stop was requested.
    pub(crate) fn is_wished(&self) -> bool {
        self.wish.is_requested()
    }

    /// Whether the wait expired. `something_came`: whether an I/O completed since the last call.
    pub(crate) fn is_over(&mut self, something_came: bool) -> bool {
        if something_came || !self.wish.is_requested() {
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
    fn it_ends_a_while_after_the_wish_and_the_last_answer() {
        let wish = Arc::new(Interrupt::default());
        let mut patience = Patience::until(&wish);
        assert!(!patience.is_over(false));
        wish.request();
        let begun = Instant::now();
        while !patience.is_over(false) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(begun.elapsed() >= GRACE);
        assert!(!patience.is_over(true), "an answer begins it anew");
    }
}
