//! Compares two results, or two groups of results: the ratio of each figure with its interval.
//!
//! A run is first reduced to [`Part`]s, one per pattern that it measured, with their [`Figure`]s:
//! see [`parts`]. [`crate::fio::import`] reduces fio's JSON to the same form. [`compare`] pairs the
//! parts of both sides and decides for each figure whether a difference is shown.
//!
//! The uncertainty comes from the best source available:
//! * several machines on a side: the spread of their means. If both sides ran on the same machines,
//!   each machine is compared with itself;
//! * several runs on one machine: the spread of the runs;
//! * one run with a time series: the variance between its intervals, with their autocorrelation, or
//!   the spread of earlier runs of the same plan on the same target, if that is wider;
//! * one result with only moments of samples (fio's JSON): these, with an assumed correlation.

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
