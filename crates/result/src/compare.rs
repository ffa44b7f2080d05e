//! Two results, or two groups of results, held against each other: the ratio of each figure with its interval.
//!
//! A run is first reduced to [`Part`]s, one for each pattern that it measured, with its [`Figure`]s: see [`parts`]. fio's
//! JSON is reduced to the same by [`crate::fio::import`]. [`compare`] then pairs the parts of two sides and says of each
//! figure whether a difference is shown.
//!
//! Where the uncertainty comes from, the best that there is:
//! * several machines on a side: the spread of their means. Where both sides ran on the same machines, each machine is
//!   compared with itself;
//! * several runs on one machine: the spread of the runs;
//! * one run with its series: the spread from interval to interval, with their correlation; and the spread of earlier runs of the
//!   same plan on the same target, where that is wider;
//! * one result with only moments of its samples (fio's JSON): those, with a correlation that is assumed.

mod closed_loop;
mod earlier_runs;
mod figure;
mod group;
mod interval;
mod matching;
mod reduce;
mod sides;

pub use earlier_runs::{
    BetweenRuns, EARLIER_RUNS_MAX, EARLIER_RUNS_MIN, compare_with_earlier_runs,
    is_same_plan_and_target,
};
pub use figure::{Basis, Bounds, Figure, Measure, Part, Pattern, Subject, telling_interval};
pub use group::{Measured, Spread};
pub(crate) use interval::bounds_of_samples;
pub use interval::{EachHistogram, LEVEL, Ratio, bounds_of_percentile, bounds_of_rates};
pub use reduce::parts;
pub(crate) use reduce::{is_telling, tell_apart};
pub use sides::{Comparison, Row, Side, Verdict, compare, figure_of, together};

#[cfg(test)]
mod tests;
