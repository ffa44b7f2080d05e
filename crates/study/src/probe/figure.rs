//! One figure for each phase: rate, bandwidth and latency, with what is known about their error.

use super::phase::Phase;
use iosonde_job::plan::{Direction, Engine};
use iosonde_result::compare::{EachHistogram, bounds_of_percentile, bounds_of_rates};
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, IntervalCounts, Intervals};
use iosonde_result::littles_law::SlotTime;
use iosonde_result::run::{IoFailure, RunResult, VerdictKind};
use iosonde_result::series::held_still;
use iosonde_result::stats::{LatencyStats, Moments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What one phase found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The phase.
    pub phase: Phase,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// I/Os kept in flight.
    pub iodepth: u32,
    /// What issued the I/O.
    pub engine: Engine,
    /// Whether O_DIRECT was in force.
    pub direct: bool,
    /// I/Os per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub bytes_per_s: Estimate,
    /// Latency of the reads or writes as the program that asks for them feels it: submission included.
    pub latency: Latency,
    /// Latency of fdatasync(2), where the phase calls it.
    pub sync_latency: Option<Latency>,
    /// Measured time: less than the budget where the rate was sure before.
    #[serde(default)]
    pub measured_ns: u64,
    /// Whether the confidence interval of the rate is known to be as narrow as was asked for; `None` when nothing was
    /// asked.
    #[serde(default)]
    pub sure: Option<bool>,
    /// Whether the rate held still: `None` when the phase was too short to tell.
    pub settled: Option<bool>,
    /// The error that ended the phase early.
    pub failure: Option<IoFailure>,
}

/// A mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Estimate {
    /// The mean over the whole phase.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` where the mean is not known: too few intervals, or an
    /// interval that reaches zero.
    pub error: Option<f64>,
    /// Standard deviation from interval to interval, as a share of the mean; `None` as above.
    pub spread: Option<f64>,
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median; percentiles are `None` where too few were measured for them to mean anything.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// The longest.
    pub max_ns: f64,
    /// 95 % confidence interval of the median; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_between_ns: Option<(u64, u64)>,
    /// That of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_between_ns: Option<(u64, u64)>,
    /// That of the 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_between_ns: Option<(u64, u64)>,
}

impl Latency {
    /// Summary of what was recorded.
    pub fn of(stats: &LatencyStats) -> Latency {
        let count = stats.moments.count;
        // A percentile needs at least ten values beyond it, or one outlier decides it.
        let percentile = |percent: f64| {
            let beyond = count as f64 * (100.0 - percent) / 100.0;
            if beyond + 1e-6 < 10.0 {
                return None;
            }
            stats.percentile(percent)
        };
        Latency {
            count,
            mean_ns: stats.moments.mean,
            p50_ns: percentile(50.0),
            p99_ns: percentile(99.0),
            p99_9_ns: percentile(99.9),
            max_ns: stats.moments.max,
            ..Latency::default()
        }
    }

    /// The same with the confidence intervals of percentiles, from the latencies of each interval of the run.
    fn with_intervals(self, stats: &LatencyStats, slices: EachHistogram<'_>) -> Latency {
        if stats.histogram.is_none() {
            return self;
        }
        let between = |percent, known: Option<u64>| {
            let bounds = bounds_of_percentile(known? as f64, percent, slices)?;
            Some((bounds.low as u64, bounds.high as u64))
        };
        Latency {
            p50_between_ns: between(50.0, self.p50_ns),
            p99_between_ns: between(99.0, self.p99_ns),
            p99_9_between_ns: between(99.9, self.p99_9_ns),
            ..self
        }
    }
}

impl Figure {
    /// The figure of a run of one phase; `None` when nothing was measured. `width` is the relative error that is small
    /// enough.
    pub(super) fn of(phase: Phase, result: &RunResult, width: f64) -> Option<Figure> {
        let direction = phase.direction();
        let worker = result.workers.first()?;
        let stats = &worker.directions[direction];
        if stats.total_ios == 0 || worker.runtime_ns == 0 {
            return None;
        }
        let seconds = worker.runtime_ns as f64 / 1e9;
        let unsteady = result
            .verdicts
            .iter()
            .any(|verdict| verdict.kind == VerdictKind::Unsteady);
        let rates = rates(&result.intervals, direction, |counts| counts.ios);
        let ios = stats.total_ios as f64 / seconds;
        let bytes = stats.io_bytes as f64 / seconds;
        let slots = SlotTime::of(result);
        let iops = Estimate::of(ios, &rates, stats.total_ios, &slots);
        let complete = || complete_intervals(&result.intervals);
        let latencies = |see: &mut dyn FnMut(&Histogram)| {
            complete().for_each(|each| see(&each.latency));
        };
        let syncs = |see: &mut dyn FnMut(&Histogram)| {
            complete().for_each(|each| each.sync_latency.iter().for_each(&mut *see));
        };
        Some(Figure {
            phase,
            block_bytes: phase.block_bytes(),
            iodepth: result.plan.jobs.first()?.io.iodepth,
            engine: worker.backend.engine,
            direct: worker.backend.direct,
            iops,
            bytes_per_s: Estimate::of(
                bytes,
                &self::rates(&result.intervals, direction, |c| c.bytes),
                stats.total_ios,
                &slots,
            ),
            latency: Latency::of(&stats.lat).with_intervals(&stats.lat, &latencies),
            sync_latency: (worker.sync.total_ios > 0)
                .then(|| Latency::of(&worker.sync.lat).with_intervals(&worker.sync.lat, &syncs)),
            measured_ns: worker.runtime_ns,
            sure: (width > 0.0).then(|| iops.relative_error().is_some_and(|error| error <= width)),
            settled: held_still(&rates).map(|settled| settled && !unsteady),
            failure: worker.error.clone(),
        })
    }
}

/// Intervals of the measured part that are not the cut-off last one.
fn complete_intervals(intervals: &Intervals) -> impl Iterator<Item = Cow<'_, Interval>> {
    let longest = intervals.iter().map(|i| i.length_ns).max().unwrap_or(0);
    intervals
        .iter()
        .filter(move |interval| !interval.ramp && interval.length_ns > longest / 2)
}

fn rates(
    intervals: &Intervals,
    direction: Direction,
    count: impl Fn(&IntervalCounts) -> u64,
) -> Vec<f64> {
    complete_intervals(intervals)
        .map(|interval| {
            count(&interval.directions[direction]) as f64 * 1e9 / interval.length_ns as f64
        })
        .collect()
}

impl Estimate {
    /// A mean, the rates of the intervals it is the mean of, and the I/Os and slot time of all of them.
    pub fn of(mean: f64, rates: &[f64], ios: u64, slots: &SlotTime) -> Estimate {
        let error = bounds_of_rates(mean, rates, ios, slots).map(|bounds| bounds.high - mean);
        let mut moments = Moments::default();
        rates.iter().for_each(|rate| moments.record(*rate));
        Estimate {
            mean,
            error,
            spread: error.map(|_| moments.stddev() / mean),
        }
    }

    /// The same without an error that reaches the mean: the mean is not known then.
    pub fn if_telling(self) -> Estimate {
        let is_telling = |error: &f64| *error < self.mean;
        Estimate {
            error: self.error.filter(is_telling),
            ..self
        }
    }

    /// The error as a share of the mean.
    pub fn relative_error(&self) -> Option<f64> {
        self.error
            .filter(|_| self.mean > 0.0)
            .map(|error| error / self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Budget, ProbeOptions, ProbeTarget, TargetKind, probe};
    use iosonde_engine::runner::LocalRunner;
    use iosonde_result::compare::{Measure, parts};

    #[test]
    fn estimate_with_an_error_that_reaches_the_mean_is_not_known() {
        let known = Estimate {
            mean: 10.0,
            error: Some(1.0),
            spread: None,
        };
        assert_eq!(known.if_telling().error, Some(1.0));
        let unknown = Estimate {
            error: Some(10.0),
            ..known
        };
        assert_eq!(unknown.if_telling().error, None);
    }

    #[test]
    fn too_few_intervals_give_no_error() {
        let of = |rates: &[f64]| Estimate::of(10.0, rates, 1000, &SlotTime::default());
        assert_eq!(of(&[9.0, 11.0]).error, None);
        let even = of(&[10.0; 8]);
        // To one I/O of a thousand.
        assert!((even.error.unwrap() - 0.01).abs() < 1e-9, "{even:?}");
        assert_eq!(even.spread, Some(0.0));
        assert!(of(&[9.0, 10.0, 11.0, 10.0, 9.0, 11.0, 10.0, 10.0]).error > Some(0.1));
        assert_eq!(of(&[0.0, 1.0, 90.0, 0.0, 20.0]).error, None);
    }

    /// The runs of a quick probe of a simulated device, and the figure and interval that `compare` has of the rate of each.
    fn probed_runs() -> Vec<RunResult> {
        let target = ProbeTarget {
            name: "sim".into(),
            path: "sim".into(),
            kind: TargetKind::Simulated {
                options: "read_us=400,write_us=300,parallel=4,read_dist=exp,noise=0.02".into(),
            },
        };
        let options = ProbeOptions {
            budget: Budget::QUICK,
            size_bytes: Some(1 << 30),
            direct: true,
            seed: 1,
        };
        let mut session = LocalRunner::default().open();
        let probed = probe(&mut session, &target, &options, &mut ()).unwrap();
        let runs = probed.runs.into_iter();
        runs.filter(|run| run.phase != Phase::Layout)
            .map(|run| run.result)
            .collect()
    }

    fn random_read(runs: &mut [RunResult]) -> &mut RunResult {
        let is_it = |run: &&mut RunResult| run.plan.jobs[0].name == Phase::RandomRead.key();
        runs.iter_mut().find(is_it).unwrap()
    }

    /// Half of the interval of the rate of a run: of a probe's figure, and of the part that `compare` makes of the run.
    fn rate_errors(result: &RunResult) -> [Option<f64>; 2] {
        let phase = Phase::of_key(&result.plan.jobs[0].name).unwrap();
        let figure = Figure::of(phase, result, 0.0).unwrap();
        let part = parts(result).remove(0);
        let compared = part
            .figure(phase.direction().into(), Measure::Iops)
            .unwrap();
        let bounds = compared.bounds;
        [
            figure.iops.error,
            bounds.map(|bounds| bounds.high - compared.value),
        ]
    }

    #[test]
    fn rate_has_the_interval_that_compare_gives_it() {
        let runs = probed_runs();
        assert!(runs.len() >= 5, "{}", runs.len());
        for run in &runs {
            let [probe, compare] = rate_errors(run);
            assert!(probe.is_some());
            assert_eq!(probe, compare, "{}", run.plan.jobs[0].name);
        }
    }

    /// Half of the slot time is missing: the rate is known no better than that.
    #[test]
    fn rate_that_disagrees_with_its_latency_has_one_wide_interval() {
        let mut runs = probed_runs();
        let run = random_read(&mut runs);
        let rate = Figure::of(Phase::RandomRead, run, 0.0).unwrap().iops.mean;
        run.workers[0].directions[Direction::Read].lat.moments.mean /= 2.0;
        let [probe, compare] = rate_errors(run);
        assert!(probe > Some(0.4 * rate), "{probe:?} of {rate}");
        assert_eq!(probe, compare);
    }

    /// Rates so uneven that their interval reaches zero: neither view has one, though the run has samples of half a second.
    #[test]
    fn rate_that_is_not_known_has_no_interval_in_either_view() {
        let mut runs = probed_runs();
        let run = random_read(&mut runs);
        let middle = run.intervals.len() / 2;
        run.intervals.change_each(|index, interval| {
            let ios = if index == middle { 10_000 } else { 1 };
            interval.directions[Direction::Read].ios = ios;
        });
        run.workers[0].directions[Direction::Read].iops.count = 20;
        assert_eq!(rate_errors(run), [None, None]);
    }

    #[test]
    fn percentiles_need_values_beyond_them() {
        let mut stats = LatencyStats {
            histogram: Some(Histogram::default()),
            ..LatencyStats::default()
        };
        for value in 1..=1000u32 {
            stats.moments.record(f64::from(value));
            if let Some(histogram) = &mut stats.histogram {
                histogram.record(u64::from(value));
            }
        }
        let latency = Latency::of(&stats);
        assert!(latency.p50_ns.is_some() && latency.p99_ns.is_some());
        assert_eq!(latency.p99_9_ns, None);
    }
}
