//! The run second by second.

use crate::histogram::Histogram;
use iosonde_job::plan::{Direction, PerDirection};
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
    /// Latencies of fsync and its kin that ended in it; `None` where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_latency: Option<Histogram>,
    /// Whether a ramp was still on: such intervals are shown, not summed.
    pub ramp: bool,
    /// How long the process was stopped in it, where that is no part of its length.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_ns: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Interval {
    /// With the buckets in use of its histograms alone: see [`Histogram::compact`].
    pub fn compacted(mut self) -> Interval {
        self.latency.compact();
        if let Some(latency) = &mut self.sync_latency {
            latency.compact();
        }
        self
    }

    /// Adds what was counted in another one. Times stay as they are.
    pub fn add(&mut self, other: &Interval) {
        self.latency.merge(&other.latency);
        if let Some(theirs) = &other.sync_latency {
            let mine = self.sync_latency.get_or_insert_default();
            mine.merge(theirs);
        }
        for direction in Direction::ALL {
            self.directions[direction].ios += other.directions[direction].ios;
            self.directions[direction].bytes += other.directions[direction].bytes;
        }
    }
}

/// What was moved in one direction during one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IntervalCounts {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
}
