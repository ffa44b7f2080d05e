//! One cell: a depth and a number of jobs, and all that was measured of them.

use super::series::Samples;
use crate::probe::{Estimate, Latency};
use iosonde_result::littles_law::SlotTime;
use iosonde_result::stats::LatencyStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Error that a search takes for a cell of a single sample, as a share of its rate: nothing is known of it, and the search
/// goes on as if it were this.
const UNKNOWN_ERROR: f64 = 1.0;

/// What was measured of one depth and number of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Jobs at once.
    pub jobs: u32,
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// I/Os per second of all jobs.
    pub iops: Estimate,
    /// Bytes per second of all jobs.
    pub bytes_per_s: Estimate,
    /// Latency of one I/O, submission included.
    pub latency: Latency,
    /// Measured time in nanoseconds, over all runs.
    pub measured_ns: u64,
    /// What was left out at the start, where it was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
}

/// The start of a run, which is not like the rest because a cache was filling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warmup {
    /// Its length in nanoseconds; none of it counts.
    pub length_ns: u64,
    /// Whether it came to its end. If not, the second half of the run counts, and is not to be relied on.
    pub complete: bool,
}

/// What one run of a cell found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) measured_ns: u64,
    pub(super) latency: LatencyStats,
    #[serde(default)]
    pub(super) slots: SlotTime,
}

/// All that is known of a cell: what it takes to go on measuring it later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub(super) jobs: u32,
    pub(super) iodepth: u32,
    pub(super) samples: Samples,
    pub(super) found: Found,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warmup: Option<Warmup>,
}

impl Record {
    pub(super) fn new(jobs: u32, iodepth: u32) -> Record {
        Record {
            jobs,
            iodepth,
            samples: Samples::default(),
            found: Found::default(),
            warmup: None,
        }
    }

    pub(super) fn take(&mut self, found: &Found) {
        self.found.ios += found.ios;
        self.found.bytes += found.bytes;
        self.found.measured_ns += found.measured_ns;
        self.found.latency.merge(&found.latency);
        self.found.slots.add(&found.slots);
        self.samples.next_run();
    }

    /// Measured time, over all runs.
    pub(super) fn measured_ns(&self) -> u64 {
        self.found.measured_ns
    }

    /// I/Os per second.
    pub(super) fn rate(&self) -> f64 {
        match self.found.measured_ns {
            0 => 0.0,
            ns => self.found.ios as f64 * 1e9 / ns as f64,
        }
    }

    /// Half the width of the 95 % interval as a share of the rate, where there are samples enough.
    ///
    /// A run's I/Os are counted twice: by their start, for the rate, and by their end, for the samples. What lets I/Os
    /// through in lumps makes the two differ where a lump falls to one side of an edge: no rate is known better than they agree.
    fn sampled_error(&self) -> Option<f64> {
        let samples = &self.samples;
        let few = || samples.error_of_few().map(|few| few.max(samples.edges()));
        let error = samples.relative_error().or_else(few)?;
        let differs = samples.differs_from(self.rate());
        // No rate is known better than it agrees with its latency.
        Some(error.max(differs).max(self.unexplained_share()))
    }

    /// By how much rate and latency disagree, as a share of the depth: see [`SlotTime`].
    pub(super) fn unexplained_share(&self) -> f64 {
        self.found.slots.unexplained_share()
    }

    /// Half the width of the 95 % interval as a share of the rate; [`UNKNOWN_ERROR`] where it is not known.
    pub(super) fn error(&self) -> f64 {
        self.sampled_error().unwrap_or(UNKNOWN_ERROR)
    }

    /// The upper end of the interval.
    pub(super) fn upper(&self) -> f64 {
        self.rate() * (1.0 + self.error())
    }

    /// The lower end of the interval.
    pub(super) fn lower(&self) -> f64 {
        self.rate() * (1.0 - self.error())
    }

    /// Whether both are of the same depth and number of jobs.
    pub fn is_of_same_cell(&self, other: &Record) -> bool {
        (self.jobs, self.iodepth) == (other.jobs, other.iodepth)
    }

    /// I/Os in flight of each job.
    pub fn iodepth(&self) -> u32 {
        self.iodepth
    }

    /// What it comes to.
    pub fn cell(&self) -> Cell {
        let error = self.sampled_error();
        let spread = self.samples.spread();
        let estimate = |mean: f64| Estimate {
            mean,
            error: error.map(|share| share * mean),
            spread,
        };
        let block = self.found.bytes as f64 / (self.found.ios as f64).max(1.0);
        Cell {
            jobs: self.jobs,
            iodepth: self.iodepth,
            iops: estimate(self.rate()),
            bytes_per_s: estimate(self.rate() * block),
            latency: Latency::of(&self.found.latency),
            measured_ns: self.found.measured_ns,
            warmup: self.warmup,
        }
    }
}
