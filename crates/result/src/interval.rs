//! The run second by second.

use crate::histogram::Histogram;
use iosonde_job::plan::PerDirection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One slice of the measured time, all workers together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Interval {
    /// Start, since the start of the run.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// What was moved in it.
    pub directions: PerDirection<IntervalCounts>,
    /// Total (or else completion) latencies of the I/Os completed in it, all directions.
    pub latency: Histogram,
    /// Whether a ramp was still on: such intervals are shown, not summed.
    pub ramp: bool,
}

/// What was moved in one direction during one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IntervalCounts {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
}
