//! "How does it depend on ...?": a workload measured over a grid of options.
//!
//! An [`Axis`] is an option and its values; a curve is all depths of one combination of the others. Exhaustively every cell
//! is measured alike. Adaptively each curve is searched for its maximum and its knee ([`crate::saturation`]), which takes few
//! cells; the others are predicted, and marked so, with their uncertainty. Curves, or cells, come in an order that makes no
//! trend of a drift. Where the working set is an axis every cell is measured once its caches are warm, and what they hold
//! is inferred. What is known is handed out after every run, so that a sweep that was ended goes on where it was.
//! `docs/sweep.md` is the same for users.

mod adaptive;
mod advice;
mod announce;
mod axis;
mod cache;
mod compared;
mod effect;
mod exhaustive;
mod grid;
mod order;
mod outcome;
mod place;
mod predict;
mod relay;
mod study;
mod target;
mod times;
mod watch;

pub use advice::{Advice, Blocks, BlocksAdvice, BoundBy, Choice, Parallel, ParallelAdvice, Spot};
pub use announce::{Announcement, announcement, planned_time};
pub(crate) use axis::given_twice;
pub use axis::{Axis, TARGET, parse_axes, size_name};
pub use cache::{Between, CacheAnswer, CacheFinding, WORKING_SET};
pub use compared::{ComparedPart, Known, compared};
pub use grid::{Base, CurvePlan, Grid};
pub(crate) use grid::{combinations, ordered, with_options};
pub use outcome::{
    Basis, CurveResult, CurveState, FORMAT, SweepCell, SweepDocument, SweepResult, Value, schema,
};
pub use place::Misplaced;
pub use study::{LEAST_BUDGET_NS, SweepError, SweepOptions, consent, sweep};
pub use target::{Reach, SweepTarget};
pub use watch::{Found, SweepWatcher};

/// Blocks of this size and more are counted by bandwidth, smaller ones by I/Os.
pub const LARGE_BYTES: u64 = 64 << 10;
