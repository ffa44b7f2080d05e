//! [`CurveCell`]: the measurements of one depth and number of jobs.

use super::estimate::{LatencySummary, RateEstimate};
use super::series::RateSamples;
use iosonde_result::littles_law::SlotTime;
use iosonde_result::stats::LatencyStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative error assumed for a cell of one sample, whose error is unknown.
const UNKNOWN_ERROR: f64 = 1.0;
/// Smallest ratio of the rates of two runs of a cell that shows a change of the target.
pub(crate) const CHANGE_RATIO_MIN: f64 = 2.0;
/// Smallest half-width of a run's interval, in standard deviations of the number of independent
/// I/Os. A sweep compares many runs: the 95 % intervals of two of them may be apart by chance.
const CHANGE_DEVIATIONS_MIN: f64 = 3.0;

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

/// Rate of one run of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct CellRunRate {
    /// I/Os per second.
    rate: f64,
    /// Relative half-width of its 95 % interval, at least that of [`CHANGE_DEVIATIONS_MIN`].
    error: f64,
}

/// Slowest and fastest run of a cell, among those with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct CellRunRates {
    slowest: CellRunRate,
    fastest: CellRunRate,
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
    /// `None` if no run has an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_rates: Option<CellRunRates>,
}

impl CellRecord {
    pub(crate) fn new(jobs: u32, iodepth: u32) -> CellRecord {
        CellRecord {
            jobs,
            iodepth,
            samples: RateSamples::default(),
            found: CellTotals::default(),
            warmup: None,
            run_rates: None,
        }
    }

    /// Adds a run, whose samples are the last ones.
    pub(crate) fn take(&mut self, found: &CellTotals) {
        self.take_run_rate(found);
        self.found.ios += found.ios;
        self.found.bytes += found.bytes;
        self.found.measured_ns += found.measured_ns;
        self.found.latency.merge(&found.latency);
        self.found.slots.add(&found.slots);
        self.found.has_cached_reads |= found.has_cached_reads;
        self.samples.next_run();
    }

    /// Compares the rate of a run with those of the runs before. The few samples of a short run may
    /// agree by chance, so that its error is at least that of independent I/Os.
    fn take_run_rate(&mut self, found: &CellTotals) {
        let Some(error) = self.samples.run_error().filter(|_| found.measured_ns > 0) else {
            return;
        };
        let independent = CHANGE_DEVIATIONS_MIN / (found.ios as f64).max(1.0).sqrt();
        let run = CellRunRate {
            rate: found.ios as f64 * 1e9 / found.measured_ns as f64,
            error: error.max(independent),
        };
        let known = self.run_rates.unwrap_or(CellRunRates {
            slowest: run,
            fastest: run,
        });
        let slower = |a: CellRunRate, b: CellRunRate| if b.rate < a.rate { b } else { a };
        let faster = |a: CellRunRate, b: CellRunRate| if b.rate > a.rate { b } else { a };
        self.run_rates = Some(CellRunRates {
            slowest: slower(known.slowest, run),
            fastest: faster(known.fastest, run),
        });
    }

    /// Returns the rates of the slowest and the fastest run if they show that the target changed:
    /// they differ by [`CHANGE_RATIO_MIN`] or more, and their intervals do not overlap.
    pub(crate) fn changed_rates(&self) -> Option<(f64, f64)> {
        let CellRunRates { slowest, fastest } = self.run_rates?;
        debug_assert!(slowest.rate <= fastest.rate, "{slowest:?}, {fastest:?}");
        let is_apart = fastest.rate * (1.0 - fastest.error) > slowest.rate * (1.0 + slowest.error);
        let is_large = fastest.rate >= CHANGE_RATIO_MIN * slowest.rate;
        (is_apart && is_large).then_some((slowest.rate, fastest.rate))
    }

    /// Number of runs.
    pub(crate) fn runs(&self) -> u32 {
        self.samples.runs()
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
        let error = samples.mean_error()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of runs with these samples, which take a tenth of a second each.
    fn record(runs: &[[f64; 4]]) -> CellRecord {
        let mut record = CellRecord::new(1, 4);
        for samples in runs {
            samples.iter().for_each(|rate| record.samples.push(*rate));
            record.take(&CellTotals {
                ios: (samples.iter().sum::<f64>() / 10.0) as u64,
                measured_ns: 400_000_000,
                ..CellTotals::default()
            });
        }
        record
    }

    const SLOW: [f64; 4] = [70.0, 66.0, 68.0, 68.0];
    const FAST: [f64; 4] = [510.0, 514.0, 518.0, 514.0];

    #[test]
    fn runs_whose_rates_are_apart_show_a_change() {
        let expected = Some((67.5, 512.5));
        for runs in [[SLOW, SLOW, FAST], [FAST, SLOW, FAST], [FAST, FAST, SLOW]] {
            let record = record(&runs);
            assert_eq!((record.changed_rates(), record.runs()), (expected, 3));
        }
        assert_eq!(record(&[SLOW]).changed_rates(), None);
        assert_eq!(record(&[SLOW, SLOW]).changed_rates(), None);
    }

    #[test]
    fn runs_within_their_intervals_show_no_change() {
        let noisy = [[20.0, 180.0, 60.0, 40.0], [200.0, 150.0, 250.0, 200.0]];
        assert_eq!(record(&noisy).changed_rates(), None);
        let similar = [[100.0, 101.0, 99.0, 100.0], [190.0, 191.0, 189.0, 190.0]];
        assert_eq!(record(&similar).changed_rates(), None);
        // A dozen I/Os, whose samples agree by chance.
        assert_eq!(record(&[[30.0; 4], [70.0; 4]]).changed_rates(), None);
        assert_eq!(record(&[[50.0; 4], [110.0; 4]]).changed_rates(), None);
        assert!(record(&[[300.0; 4], [700.0; 4]]).changed_rates().is_some());
    }

    #[test]
    fn record_keeps_rates_of_its_runs_in_the_journal() {
        let known = record(&[SLOW, FAST]);
        let mut json = serde_json::to_value(&known).unwrap();
        let read: CellRecord = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(read, known);
        // A journal without them can be resumed.
        json.as_object_mut().unwrap().remove("run_rates");
        json["samples"].as_object_mut().unwrap().remove("run_start");
        let read: CellRecord = serde_json::from_value(json).unwrap();
        assert_eq!((read.changed_rates(), read.rate()), (None, known.rate()));
    }
}
