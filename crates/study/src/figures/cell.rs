//! [`CurveCell`]: the measurements of one depth and number of jobs.

use super::estimate::{LatencySummary, RateEstimate};
use super::series::RateSamples;
use iosonde_result::littles_law::SlotTime;
use iosonde_result::stats::LatencyStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative error assumed for a cell of one sample, whose error is unknown.
const UNKNOWN_ERROR: f64 = 1.0;

/// Measured results of one depth and number of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveCell {
    /// Number of jobs that run at once.
    pub jobs: u32,
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// I/Os per second of all jobs.
    pub iops: RateEstimate,
    /// Bytes per second of all jobs.
    pub bytes_per_s: RateEstimate,
    /// Latency of one I/O, submission included.
    pub latency: LatencySummary,
    /// Measured time in nanoseconds, over all runs.
    pub measured_ns: u64,
    /// Warm-up that was left out. `None` if the measurement did not search for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
}

/// Start of a run that differs from the rest because a cache was filling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warmup {
    /// Length of the warm-up in nanoseconds. It is not counted in the results.
    pub length_ns: u64,
    /// Whether the warm-up ended. If not, the second half of the run counts and is unreliable.
    pub complete: bool,
}

/// Measurements of one run of a cell, or sums over runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellTotals {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    pub(crate) measured_ns: u64,
    pub(crate) latency: LatencyStats,
    #[serde(default)]
    pub(crate) slots: SlotTime,
    /// Whether a page cache served reads of a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_cached_reads: bool,
}

/// All measurements of a cell, serialised to resume a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    pub(crate) jobs: u32,
    pub(crate) iodepth: u32,
    pub(crate) samples: RateSamples,
    pub(crate) found: CellTotals,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warmup: Option<Warmup>,
}

impl CellRecord {
    pub(crate) fn new(jobs: u32, iodepth: u32) -> CellRecord {
        CellRecord {
            jobs,
            iodepth,
            samples: RateSamples::default(),
            found: CellTotals::default(),
            warmup: None,
        }
    }

    pub(crate) fn take(&mut self, found: &CellTotals) {
        self.found.ios += found.ios;
        self.found.bytes += found.bytes;
        self.found.measured_ns += found.measured_ns;
        self.found.latency.merge(&found.latency);
        self.found.slots.add(&found.slots);
        self.found.has_cached_reads |= found.has_cached_reads;
        self.samples.next_run();
    }

    /// Measured time of all runs.
    pub(crate) fn measured_ns(&self) -> u64 {
        self.found.measured_ns
    }

    /// Whether a page cache served reads of a run that counts.
    pub(crate) fn has_cached_reads(&self) -> bool {
        self.found.has_cached_reads
    }

    /// Rate in I/Os per second.
    pub(crate) fn rate(&self) -> f64 {
        match self.found.measured_ns {
            0 => 0.0,
            ns => self.found.ios as f64 * 1e9 / ns as f64,
        }
    }

    /// Relative half-width of the 95 % interval. `None` if there are too few samples.
    ///
    /// The rate counts I/Os by their start, the samples by their completion. Bursts of a throttle
    /// make the two differ at the ends of a run. The error is at least this difference.
    fn sampled_error(&self) -> Option<f64> {
        let samples = &self.samples;
        let few = || samples.error_of_few().map(|few| few.max(samples.edges()));
        let error = samples.relative_error().or_else(few)?;
        let differs = samples.differs_from(self.rate());
        // The error is at least the disagreement between rate and latency (Little's law).
        Some(error.max(differs).max(self.unexplained_share()))
    }

    /// Disagreement between rate and latency, as a share of the depth. See [`SlotTime`].
    pub(crate) fn unexplained_share(&self) -> f64 {
        self.found.slots.unexplained_share()
    }

    /// Relative half-width of the 95 % interval, or [`UNKNOWN_ERROR`] if unknown.
    pub(crate) fn error(&self) -> f64 {
        self.sampled_error().unwrap_or(UNKNOWN_ERROR)
    }

    /// Upper end of the 95 % interval.
    pub(crate) fn upper(&self) -> f64 {
        self.rate() * (1.0 + self.error())
    }

    /// Lower end of the 95 % interval.
    pub(crate) fn lower(&self) -> f64 {
        self.rate() * (1.0 - self.error())
    }

    /// Whether both records have the same depth and number of jobs.
    pub fn is_of_same_cell(&self, other: &CellRecord) -> bool {
        (self.jobs, self.iodepth) == (other.jobs, other.iodepth)
    }

    /// I/Os in flight of each job.
    pub fn iodepth(&self) -> u32 {
        self.iodepth
    }

    /// Returns the results of all runs together.
    pub fn cell(&self) -> CurveCell {
        let error = self.sampled_error();
        let spread = self.samples.spread();
        let estimate = |mean: f64| RateEstimate {
            mean,
            error: error.map(|share| share * mean),
            spread,
        };
        let block = self.found.bytes as f64 / (self.found.ios as f64).max(1.0);
        CurveCell {
            jobs: self.jobs,
            iodepth: self.iodepth,
            iops: estimate(self.rate()),
            bytes_per_s: estimate(self.rate() * block),
            latency: LatencySummary::from_stats(&self.found.latency),
            measured_ns: self.found.measured_ns,
            warmup: self.warmup,
        }
    }
}
