//! Passes the events of a run to the observer of the test.

use super::study::PtsWatcher;
use crate::layout_time::LayoutTime;
use crate::saturation::Watcher;
use iosonde_result::observer::{Control, Observer, Progress};

/// Passes the progress of runs to the observer of the test.
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

/// Passes the progress of a fill to the observer of the test.
pub(super) struct FillRelay<'a> {
    pub(super) relay: Relay<'a>,
    pub(super) time: LayoutTime,
}

impl Observer for FillRelay<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        if let Some(left) = self.time.left(progress) {
            self.relay.watcher.left(left);
        }
        Observer::progress(&mut self.relay, progress)
    }
}
