//! Compares two results, or two groups of results: the ratio of each figure with its interval.
//!
//! A run is first reduced to [`ResultPart`]s, one per pattern that it measured, with their
//! [`Figure`]s: see [`parts`]. [`crate::fio::import`] reduces fio's JSON to the same form.
//! [`compare`] pairs the parts of both sides and decides for each figure whether a difference is
//! shown.
//!
//! The uncertainty comes from the best source available:
//! * several machines on a side: the spread of their means. If both sides ran on the same machines,
//!   each machine is compared with itself;
//! * several runs on one machine: the spread of the runs;
//! * one run with a time series: the variance between its intervals, with their autocorrelation, or
//!   the spread of earlier runs of the same plan on the same target, if that is wider;
//! * one result with only moments of samples (fio's JSON): these, with an assumed correlation.

mod between_runs;
mod closed_loop;
mod comparison;
mod comparison_note;
mod confidence_interval;
mod earlier_runs;
mod figure;
mod group;
mod matching;
mod reduce;
mod sides;

pub use between_runs::BetweenRuns;
pub use comparison::{ComparedSide, Comparison, ComparisonRow, ComparisonVerdict};
pub use comparison_note::ComparisonNote;
pub(crate) use confidence_interval::bounds_of_samples;
pub use confidence_interval::{EachHistogram, LEVEL, Ratio, bounds_of_percentile, bounds_of_rates};
pub use earlier_runs::{
    EARLIER_RUNS_MAX, WORKING_FILES, compare_with_earlier_runs, is_same_plan_and_target,
};
pub use figure::{
    Bounds, Figure, IntervalBasis, IoPattern, Measure, PartRole, ResultPart, Subject,
    informative_interval,
};
pub use group::{MeasuredResult, ResultSpread};
pub(crate) use reduce::{has_enough_samples, number_equal_names, pattern};
pub use reduce::{name_beside, parts, without_neighbours};
pub use sides::{combine_figures, compare, figure_of};

#[cfg(test)]
mod tests;
