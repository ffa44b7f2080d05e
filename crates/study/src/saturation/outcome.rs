//! What a search found.

use super::{Cell, Curve, Rules};
use crate::probe::{Estimate, Latency};
use crate::words;
use iosonde_result::run::IoFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a pattern saturates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saturation {
    /// How much was to be done.
    pub rules: Rules,
    /// Every cell measured, by jobs and depth.
    pub cells: Vec<Cell>,
    /// Jobs at once: the fewest that reach the maximum. `knee` and what follows are of this number.
    pub jobs: u32,
    /// The highest rate of any depth, in I/Os per second.
    pub maximum: Estimate,
    /// The same in bytes per second.
    pub maximum_bytes_per_s: Estimate,
    /// The lowest depth that reaches it.
    pub knee: Point,
    /// From here on deeper queues only add latency: the lowest depth past which the rate grows by less than 1 %. `None`
    /// where it still grew at the deepest that was asked for.
    pub latency_only: Option<Point>,
    /// The curve through the cells of this number of jobs, over depth.
    pub curve: Option<Curve>,
    /// Time of all runs together, ramps and the ends of the last I/Os included.
    pub spent_ns: u64,
    /// Why it ended.
    pub ended: Ended,
    /// The I/O error that ended it, if one did.
    pub failure: Option<IoFailure>,
}

/// A depth and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// I/Os per second of all jobs.
    pub iops: f64,
    /// Latency.
    pub latency: Latency,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All that was asked is as sure as was asked.
    Sure,
    /// The time was spent.
    OutOfTime,
    /// The user wanted it.
    Interrupted,
    /// An I/O failed.
    Failed,
}

impl Saturation {
    /// What it means, in one sentence without a subject; `large` blocks are counted by bandwidth.
    pub fn sentence(&self, large: bool) -> String {
        let most = if large {
            words::bandwidth(self.maximum_bytes_per_s.mean)
        } else {
            format!("{} IOPS", words::iops(self.maximum.mean))
        };
        let depth = self.knee.iodepth;
        let at = match self.jobs {
            1 => format!("depth {depth}"),
            jobs => format!("depth {depth} in each of {jobs} jobs"),
        };
        match self.latency_only {
            None => format!("still rises at {at}, with {most}"),
            Some(point) if point.iodepth <= depth => {
                format!("reaches its maximum of {most} at {at}; deeper only adds latency")
            }
            Some(point) => format!(
                "reaches its maximum of {most} at {at}; past {} deeper only adds latency",
                point.iodepth
            ),
        }
    }
}
