//! The time left while a working set is written: before that nobody knows how fast the target is.

use crate::TimeRange;
use iosonde_result::observer::Progress;

/// After so much of a layout the target has shown how fast it is.
const SHOWN_NS: u64 = 1_000_000_000;

/// Tells the time left once, as soon as it can be told.
#[derive(Debug)]
pub(crate) struct LayoutTime {
    /// What the run writes.
    bytes: u64,
    /// What is written after it, at the same pace.
    bytes_after: u64,
    /// Time of what follows; `None` where it cannot be told.
    rest: Option<TimeRange>,
    is_told: bool,
}

impl LayoutTime {
    pub(crate) fn new(bytes: u64, bytes_after: u64, rest: Option<TimeRange>) -> LayoutTime {
        LayoutTime {
            bytes,
            bytes_after,
            rest,
            is_told: false,
        }
    }

    /// Time left of all, the layout included.
    pub(crate) fn left(&mut self, progress: &Progress<'_>) -> Option<TimeRange> {
        let left_ns = progress.left_ns?;
        if self.is_told || progress.at_ns < SHOWN_NS {
            return None;
        }
        self.is_told = true;
        let run_ns = (progress.at_ns + left_ns) as f64;
        let after_ns = run_ns * self.bytes_after as f64 / self.bytes.max(1) as f64;
        Some(TimeRange::exactly(left_ns) + TimeRange::exactly(after_ns as u64) + self.rest?)
    }
}
