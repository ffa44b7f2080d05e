//! What a sweep will do: cells, time, and what it writes. The same before it begins and with `--dry-run`.

use super::grid::{CurvePlan, Grid};
use super::study::{SweepError, SweepOptions, consent};
use super::target::SweepTarget;
use super::times::{cell_time, curve_time, within};
use crate::TimeRange;
use crate::probe::TargetKind;
use iosonde_job::plan::Direction;

/// What a sweep will do.
#[derive(Debug, Clone, Copy)]
pub struct Announcement<'a> {
    /// Targets whose working set is written first, or that are overwritten.
    pub targets: &'a [SweepTarget],
    /// Curves.
    pub curves: usize,
    /// Cells.
    pub cells: usize,
    /// Time of all runs, beside layout and what an earlier sweep has measured.
    pub planned: TimeRange,
    /// Cells that an earlier sweep has measured.
    pub known_cells: usize,
    /// Bytes that are written before the first cell.
    pub layout_bytes: u64,
    /// Time of the runs that write, at most.
    pub writing_ns: u64,
}

/// What a sweep will do that knows nothing yet.
///
/// # Errors
/// Where a pattern writes to a target that must not be overwritten.
pub fn announcement<'a>(
    targets: &'a [SweepTarget],
    grid: &Grid,
    options: &SweepOptions,
) -> Result<Announcement<'a>, SweepError> {
    consent(targets, grid)?;
    let writing = grid.curves.iter().filter(|plan| writes(plan));
    Ok(Announcement {
        targets,
        curves: grid.curves.len(),
        cells: grid.cells(),
        planned: planned_time(grid, options),
        known_cells: 0,
        layout_bytes: layout_bytes(targets),
        writing_ns: planned_of(writing, grid, options).most_ns,
    })
}

/// The time of all runs, beside layout.
pub fn planned_time(grid: &Grid, options: &SweepOptions) -> TimeRange {
    planned_of(&grid.curves, grid, options)
}

fn planned_of<'a>(
    curves: impl IntoIterator<Item = &'a CurvePlan>,
    grid: &Grid,
    options: &SweepOptions,
) -> TimeRange {
    let each = curves
        .into_iter()
        .map(|plan| match options.is_exhaustive() {
            true => cell_time(options).times(grid.depths_of(plan).len() as u64),
            false => curve_time(grid, plan, options),
        });
    let all = each.fold(TimeRange::default(), |sum, each| sum + each);
    options
        .budget_ns
        .map_or(all, |budget_ns| within(all, budget_ns))
}

/// Whether a curve writes to its target.
pub(super) fn writes(plan: &CurvePlan) -> bool {
    let rw = &plan.job.workload.rw;
    rw.has(Direction::Write) || rw.has(Direction::Trim)
}

/// Bytes that are laid out on all targets.
pub(super) fn layout_bytes(targets: &[SweepTarget]) -> u64 {
    let laid_out = targets.iter().filter(|target| is_laid_out(target));
    laid_out.map(|target| target.bytes).sum()
}

/// Whether the working set of a target is written before the first cell. A simulated device has no holes to read.
pub(super) fn is_laid_out(target: &SweepTarget) -> bool {
    target.kind.is_writable() && !matches!(target.kind, TargetKind::Simulated { .. })
}
