//! Knee search: the lowest depth and number of jobs that reach a pattern's maximum, and the depth
//! beyond which only latency grows.
//!
//! The search measures fewer cells than a grid, each until its interval is narrow enough. Depths
//! double, or grow fourfold while the rate is linear, until the rate stops growing. Then the
//! deepest cell is measured once, the range that contains the knee is halved, and the remaining
//! time goes to the least certain cells. `docs/saturation.md` has the method and its sources.

mod curve_log;
mod knee_search;
mod known_curve;
mod measure;
#[cfg(test)]
mod saturation_tests;
mod search_progress;
mod search_result;
mod search_tuning;
mod warm;

pub use crate::figures::cell::{CellRecord, CurveCell, Warmup};
pub use crate::figures::curve::Curve;
pub use crate::figures::saturation_result::{Claims, DepthPoint, LongerRun, Saturation};
pub use crate::figures::search_rules::{Ended, SearchRules};
pub use curve_log::CurveLog;
pub(crate) use knee_search::resume_search;
pub(crate) use measure::record_option;
pub use measure::{CellRun, measure_cell, recorded};
pub use search_progress::SearchProgress;
pub(crate) use warm::{WarmTimes, measure_warm_cell};

use iosonde_job::plan::Job;

/// Query of a knee search.
#[derive(Debug, Clone)]
pub(crate) struct KneeQuery<'a> {
    /// The workload. The search sets its depth, number of jobs, runtime and ramp.
    pub(crate) job: &'a Job,
    /// Depths that may be measured, ascending. `rules.between` allows other depths between them.
    pub(crate) depths: &'a [u32],
    /// Numbers of jobs that may be measured, ascending.
    pub(crate) jobs: &'a [u32],
    /// Budget and required precision.
    pub(crate) rules: SearchRules,
    /// Most measured time of a cell in nanoseconds, as in a grid. If set, runs are few and long.
    pub(crate) most_cell_ns: Option<u64>,
    /// Whether sequential runs of a cell continue where the last one ended. The region must exist.
    pub(crate) continues_region: bool,
}

/// Returns the powers of two from 1 to at most `most`.
pub(crate) fn doubling(most: u32) -> Vec<u32> {
    std::iter::successors(Some(1u32), |depth| depth.checked_mul(2))
        .take_while(|depth| *depth <= most)
        .collect()
}
