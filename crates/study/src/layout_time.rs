//! Time left of a study while it lays out its working set, which shows the target's speed.

use crate::TimeRange;
use iosonde_result::observer::RunProgress;

/// Time after which the progress of a layout predicts its rate.
const SHOWN_NS: u64 = 1_000_000_000;

/// Reports the time left once, as soon as it can be estimated.
#[derive(Debug)]
pub(crate) struct LayoutTime {
    /// Bytes that the run writes.
    bytes: u64,
    /// Bytes written after the run, at the same rate.
    bytes_after: u64,
    /// Time of the steps that follow. `None` if unknown.
    rest: Option<TimeRange>,
    is_reported: bool,
}

impl LayoutTime {
    pub(crate) fn new(bytes: u64, bytes_after: u64, rest: Option<TimeRange>) -> LayoutTime {
        LayoutTime {
            bytes,
            bytes_after,
            rest,
            is_reported: false,
        }
    }

    /// Returns the total time left, layout included. `None` if unknown or already returned.
    pub(crate) fn left(&mut self, progress: &RunProgress<'_>) -> Option<TimeRange> {
        let left_ns = progress.left_ns?;
        if self.is_reported || progress.at_ns < SHOWN_NS {
            return None;
        }
        self.is_reported = true;
        let run_ns = (progress.at_ns + left_ns) as f64;
        let after_ns = run_ns * self.bytes_after as f64 / self.bytes.max(1) as f64;
        Some(TimeRange::exactly(left_ns) + TimeRange::exactly(after_ns as u64) + self.rest?)
    }
}
