//! [`SearchRules`]: budget and required precision of a knee search, and why it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;

/// Budget and stopping rules of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRules {
    /// Time of all runs together, in nanoseconds, including ramps and the drain at the end.
    pub budget_ns: u64,
    /// Shortest ramp of a run, in nanoseconds. Queues that turn over slowly need longer ramps.
    pub ramp_ns: u64,
    /// Shortest measured time of a cell, in nanoseconds.
    pub look_ns: u64,
    /// Shortest measured time behind the maximum, in nanoseconds.
    pub least_ns: u64,
    /// Relative half-width of the maximum's 95 % interval at which the search ends.
    pub precision: f64,
    /// A depth reaches the maximum if its rate is lower by at most this share.
    pub tolerance: f64,
    /// Whether depths between the given ones are tried, to locate the knee more exactly.
    pub between: bool,
}

impl SearchRules {
    /// One minute per curve: a tenth of a grid of ten cells of one minute each.
    pub(crate) const THOROUGH: SearchRules = SearchRules {
        budget_ns: 60 * SECOND_NS,
        ramp_ns: SECOND_NS / 5,
        look_ns: 3 * SECOND_NS / 5,
        least_ns: 8 * SECOND_NS,
        precision: 0.005,
        tolerance: 0.03,
        between: true,
    };
}

/// Reason for the end of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All results are as precise as required.
    Sure,
    /// The time budget was used up.
    OutOfTime,
    /// The user interrupted the search.
    Interrupted,
    /// An I/O failed.
    Failed,
}
