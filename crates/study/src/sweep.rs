//! Sweep: measures a workload over a grid of options.
//!
//! An [`Axis`] is an option and its values. A curve is all depths of one combination of the other
//! axes. An exhaustive sweep measures all cells equally long. An adaptive sweep searches each curve
//! for its maximum and its knee ([`crate::saturation`]), and predicts the other cells with their
//! uncertainty. The random order turns drift into noise. With the working set as an axis, cells are
//! measured with warm caches, and the caches are inferred. Each run is recorded, so that a stopped
//! sweep can resume. `docs/sweep.md` is the description for users.

mod adaptive;
mod advice;
mod announce;
mod axis;
mod cache;
mod cached_reads;
mod changed_cells;
mod compared_parts;
mod consent;
mod curve_result;
mod effect;
mod exhaustive;
mod grid;
mod job_extent;
mod order;
mod predict;
mod sweep_options;
mod sweep_result;
mod sweep_study;
mod sweep_times;
mod target_end;
mod time_left;

pub use crate::announcement::SweepAnnouncement;
pub use crate::ceiling::LARGE_BYTES;
pub use crate::figures::curve_plan::CurvePlan;
pub use crate::relocation_error::RelocationError;
pub use crate::sweep_axis::Axis;
pub use crate::sweep_target::{JobExtent, SweepTarget};
pub use advice::{
    Advice, AdvisedCell, BlockSizeMaximum, BlocksAdvice, BoundBy, Parallel, ParallelAdvice,
    WorkloadAdvice,
};
pub use announce::{QUIET_WAIT_CELL_MAX, announcement, planned_time, quiet_wait_max};
pub use axis::given_twice;
pub use axis::{TARGET, WORKING_SET, parse_axes, size_name};
pub use cache::{Between, CacheAnswer, CacheFinding};
pub use compared_parts::{CellBoundsLookup, ComparedPart, compared};
pub use consent::consent;
pub use curve_result::{CellBasis, CellRate, CurveResult, CurveState, SweepCell};
pub use grid::{Base, SweepGrid};
pub use grid::{combinations, ordered, with_options};
pub use sweep_options::{LEAST_BUDGET_NS, SweepOptions};
pub use sweep_result::{FORMAT, SweepDocument, SweepResult, schema};
pub use sweep_study::{run_sweep, sweep};
