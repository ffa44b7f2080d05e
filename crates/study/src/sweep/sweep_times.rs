//! Durations of curves and cells, for the announcement and for the time left.

use super::grid::SweepGrid;
use super::sweep_options::{LEAST_CURVE_NS, SweepOptions};
use crate::TimeRange;
use crate::figures::curve_plan::CurvePlan;

const SECOND_NS: u64 = 1_000_000_000;
/// A search gets one part in this many of the time of its curve's cells.
const SHARE: u64 = 10;

/// Share of its time that a search takes if the first runs are precise enough.
const SURE_AT_ONCE: f64 = 0.25;

/// Returns the longest time of a curve's search.
pub(super) fn curve_ns(grid: &SweepGrid, plan: &CurvePlan, options: &SweepOptions) -> u64 {
    let cells_ns = grid.depths_of(plan).len() as u64 * options.runtime_ns;
    (cells_ns / SHARE).max(LEAST_CURVE_NS)
}

/// Returns the time of a curve's search.
pub(super) fn curve_time(grid: &SweepGrid, plan: &CurvePlan, options: &SweepOptions) -> TimeRange {
    let most_ns = curve_ns(grid, plan, options);
    TimeRange {
        least_ns: (SURE_AT_ONCE * most_ns as f64) as u64,
        most_ns,
    }
}

/// Returns the longest time of a cell, without the drain of its last I/Os.
pub(super) fn cell_ns(options: &SweepOptions) -> u64 {
    cell_time(options).most_ns
}

/// Returns the time of a cell, without the drain of its last I/Os.
pub(super) fn cell_time(options: &SweepOptions) -> TimeRange {
    let runtime_ns = options.runtime_ns;
    match options.most_warmup_ns {
        Some(most_warmup_ns) => TimeRange {
            least_ns: runtime_ns,
            most_ns: runtime_ns + most_warmup_ns,
        },
        None => TimeRange::exactly(runtime_ns + ramp_ns(options)),
    }
}

/// Returns the ramp before a cell, which is not measured.
pub(super) fn ramp_ns(options: &SweepOptions) -> u64 {
    (options.runtime_ns / 20).clamp(SECOND_NS / 5, 3 * SECOND_NS)
}

/// Limits a time to the budget.
pub(super) fn within(time: TimeRange, budget_ns: u64) -> TimeRange {
    TimeRange {
        least_ns: time.least_ns.min(budget_ns),
        most_ns: time.most_ns.min(budget_ns),
    }
}
