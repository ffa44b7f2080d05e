//! Refuses sweeps that would overwrite existing data without consent.

use super::grid::SweepGrid;
use crate::error::{StudyError, WritingStudy};
use crate::figures::curve_plan::CurvePlan;
use crate::sweep_target::SweepTarget;
use iosonde_job::plan::Direction;

/// Refuses patterns that write to a target without consent, before any run.
///
/// # Errors
/// [`StudyError::WriteRefused`] with all such targets.
pub fn consent(targets: &[SweepTarget], grid: &SweepGrid) -> Result<(), StudyError> {
    let is_kept = |plan: &&CurvePlan| {
        let kind = targets.get(plan.target).map(|target| &target.kind);
        kind.is_some_and(|kind| !kind.is_writable()) && writes(plan)
    };
    let mut refused: Vec<&CurvePlan> = grid.curves.iter().filter(is_kept).collect();
    refused.sort_by_key(|plan| plan.target);
    let Some(first) = refused.first() else {
        return Ok(());
    };
    let mut names: Vec<String> = refused
        .iter()
        .map(|p| targets[p.target].name.clone())
        .collect();
    names.dedup();
    Err(StudyError::WriteRefused {
        targets: names,
        writer: WritingStudy::Sweep {
            rw: first.job.workload.rw.name().to_owned(),
        },
    })
}

/// Whether a curve writes to its target.
pub(super) fn writes(plan: &CurvePlan) -> bool {
    let rw = &plan.job.workload.rw;
    rw.has(Direction::Write) || rw.has(Direction::Trim)
}
