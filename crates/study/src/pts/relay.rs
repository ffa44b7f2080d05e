//! What a run tells goes to whoever watches the test.

use super::study::PtsWatcher;
use super::times::{Ahead, Pace};
use crate::TimeRange;
use crate::saturation::Watcher;
use iosonde_result::observer::{Control, Observer, Progress};

/// After so much of a fill the target has shown how fast it is.
const FILL_SHOWN_NS: u64 = 1_000_000_000;

/// Between runs and whoever watches the test.
pub(super) struct Relay<'a> {
    pub(super) watcher: &'a mut dyn PtsWatcher,
}

impl Observer for Relay<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.watcher.progress(progress);
        match self.watcher.is_interrupted() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}

impl Watcher for Relay<'_> {
    fn progress(&mut self, progress: &Progress<'_>) {
        self.watcher.progress(progress);
    }

    fn is_interrupted(&self) -> bool {
        self.watcher.is_interrupted()
    }
}

/// Between a fill and whoever watches the test.
pub(super) struct FillRelay<'a> {
    pub(super) relay: Relay<'a>,
    /// What the fill writes.
    pub(super) bytes: u64,
    /// What follows it.
    pub(super) ahead: Ahead,
    /// Whether the time left has been told.
    pub(super) is_told: bool,
}

impl Observer for FillRelay<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        if let Some(left_ns) = progress.left_ns
            && progress.at_ns >= FILL_SHOWN_NS
            && !self.is_told
        {
            self.is_told = true;
            let mut pace = Pace::default();
            pace.take_fill(self.bytes, progress.at_ns + left_ns);
            if let Some(ahead) = self.ahead.time(&pace) {
                self.relay.watcher.left(TimeRange::exactly(left_ns) + ahead);
            }
        }
        Observer::progress(&mut self.relay, progress)
    }
}
