//! How long a cluster that is silent is waited for once the user wants to stop.

use crate::interrupt::Interrupt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether the user wants to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// After the user's wish to stop, what is under way is given up when nothing was answered for so long.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The user's wish to stop, and since when nothing was answered despite it.
pub(crate) struct Patience {
    wish: Arc<Interrupt>,
    silent_since: Option<Instant>,
}

impl Patience {
    /// Waits for as long as this wish has not come.
    pub(crate) fn until(wish: &Arc<Interrupt>) -> Patience {
        Patience {
            wish: wish.clone(),
            silent_since: None,
        }
    }

    /// Whether the wish has come.
    pub(crate) fn is_wished(&self) -> bool {
        self.wish.is_requested()
    }

    /// Whether it is at an end, after a look that took something home or did not.
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
