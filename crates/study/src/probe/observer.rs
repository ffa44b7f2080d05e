//! One phase while it runs: passes on what happens, and ends it when its rate is sure.

use super::phase::{Budget, Phase};
use super::sure::Stopping;
use super::watcher::Watcher;
use iosonde_job::plan::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, Progress};

/// Watches the run of one phase.
pub(super) struct PhaseObserver<'a> {
    phase: Phase,
    interval_ns: u64,
    stopping: Stopping,
    /// Whether a run in which the process was stopped ends, as it is measured again.
    ends_at_stop: bool,
    watcher: &'a mut dyn Watcher,
}

impl<'a> PhaseObserver<'a> {
    /// The phase has not begun.
    pub(super) fn new(
        phase: Phase,
        budget: &Budget,
        ends_at_stop: bool,
        watcher: &'a mut dyn Watcher,
    ) -> Self {
        PhaseObserver {
            phase,
            interval_ns: budget.interval_ns(),
            // Layout is work to be done, not a rate to be known.
            stopping: Stopping::at(match phase {
                Phase::Layout => 0.0,
                _ => budget.width,
            }),
            ends_at_stop,
            watcher,
        }
    }

    fn control(&self) -> Control {
        if self.watcher.is_interrupted() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

impl Observer for PhaseObserver<'_> {
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        self.interval_ns
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.watcher.progress(self.phase, progress);
        self.control()
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.watcher.interval(self.phase, interval);
        if self.ends_at_stop && interval.stopped_ns > 0 {
            return Control::Stop;
        }
        if interval.ramp || self.phase == Phase::Layout {
            return self.control();
        }
        let moved = interval.directions[self.phase.direction()];
        let rate = moved.ios as f64 * 1e9 / interval.length_ns.max(1) as f64;
        let sure = self.stopping.is_sure_with(rate, moved.ios);
        if let Some(error) = self.stopping.relative_error() {
            self.watcher.confidence(self.phase, error);
        }
        if sure { Control::Stop } else { self.control() }
    }
}
