//! [`StopRule`]: ends a run before its time is over.

use iosonde_job::plan::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, RunProgress, usual_interval_ns};

/// Decides when a run ends. It is not asked any more once the run is ending.
pub trait StopRule {
    /// Returns the length of the run's intervals in nanoseconds.
    fn interval_ns(&self, plan: &Plan) -> u64 {
        usual_interval_ns(plan)
    }

    /// Called several times a second.
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        let _ = progress;
        Control::Continue
    }

    /// Called with each completed interval.
    fn interval(&mut self, interval: &Interval) -> Control {
        let _ = interval;
        Control::Continue
    }

    /// Returns half the 95 % confidence interval of the rate so far, as a share of the rate.
    fn relative_error(&self) -> Option<f64> {
        None
    }
}

/// Never ends a run early.
impl StopRule for () {}

/// Never ends a run early, and sets the length of its intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedIntervals {
    pub(crate) interval_ns: u64,
}

impl StopRule for FixedIntervals {
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        self.interval_ns
    }
}
