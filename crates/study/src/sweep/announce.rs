//! [`SweepAnnouncement`]: cells, time and bytes written of a sweep, for its start and for
//! `--dry-run`.

use super::consent::{consent, writes};
use super::grid::SweepGrid;
use super::sweep_options::SweepOptions;
use super::sweep_times::{cell_time, curve_time, within};
use crate::announcement::SweepAnnouncement;
use crate::figures::curve_plan::CurvePlan;
use crate::study_target::StudyTargetKind;
use crate::sweep_target::SweepTarget;
use crate::{StudyError, TimeRange};
use std::time::Duration;

/// Limit on the wait for a quiet device before one cell.
pub const QUIET_WAIT_CELL_MAX: Duration = Duration::from_secs(10);

/// Limit on all waits of a sweep: a quarter of the planned time of its runs, but at least the limit
/// for one cell.
pub fn quiet_wait_max(planned_ns: u64) -> Duration {
    Duration::from_nanos(planned_ns / 4).max(QUIET_WAIT_CELL_MAX)
}

/// Returns the announcement of a new sweep.
///
/// # Errors
/// If a pattern writes to a target that must not be overwritten.
pub fn announcement<'a>(
    targets: &'a [SweepTarget],
    grid: &'a SweepGrid,
    options: &SweepOptions,
) -> Result<SweepAnnouncement<'a>, StudyError> {
    consent(targets, grid)?;
    Ok(extent(targets, grid, options))
}

/// Returns the announcement of a new sweep with consent to write.
pub(super) fn extent<'a>(
    targets: &'a [SweepTarget],
    grid: &'a SweepGrid,
    options: &SweepOptions,
) -> SweepAnnouncement<'a> {
    let writing = grid.curves.iter().filter(|plan| writes(plan));
    SweepAnnouncement {
        targets,
        axes: &grid.axes,
        curves: grid.curves.len(),
        cells: grid.cells(),
        planned: planned_time(grid, options),
        known_cells: 0,
        layout_bytes: layout_bytes(targets),
        writing_ns: planned_of(writing, grid, options).most_ns,
    }
}

/// Returns the time of all runs, without the layout.
pub fn planned_time(grid: &SweepGrid, options: &SweepOptions) -> TimeRange {
    planned_of(&grid.curves, grid, options)
}

fn planned_of<'a>(
    curves: impl IntoIterator<Item = &'a CurvePlan>,
    grid: &SweepGrid,
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

/// Returns the bytes of the layout on all targets.
pub(super) fn layout_bytes(targets: &[SweepTarget]) -> u64 {
    let laid_out = targets.iter().filter(|target| is_laid_out(target));
    laid_out.map(|target| target.bytes).sum()
}

/// Whether a target is laid out before the first cell. A simulated device has no holes to fill.
pub(super) fn is_laid_out(target: &SweepTarget) -> bool {
    target.kind.is_writable() && !matches!(target.kind, StudyTargetKind::Simulated { .. })
}
