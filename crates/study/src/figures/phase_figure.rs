//! The figure of each phase: rate, bandwidth and latency, with their confidence intervals.

use super::estimate::{LatencySummary, RateEstimate};
use crate::probe_phase::ProbePhase;
use iosonde_job::plan::{Direction, Engine};
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, IntervalCounts, Intervals};
use iosonde_result::littles_law::SlotTime;
use iosonde_result::run::{IoFailure, RunResult, VerdictKind};
use iosonde_result::series_statistics::is_rate_steady;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The figure of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseFigure {
    /// The phase.
    pub phase: ProbePhase,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// I/Os in flight (iodepth).
    pub iodepth: u32,
    /// The I/O engine.
    pub engine: Engine,
    /// Whether O_DIRECT was in force.
    pub direct: bool,
    /// I/Os per second.
    pub iops: RateEstimate,
    /// Bytes per second.
    pub bytes_per_s: RateEstimate,
    /// Latency of reads or writes as the program sees it: submission plus completion latency.
    pub latency: LatencySummary,
    /// Latency of fdatasync(2), if the phase calls it.
    pub sync_latency: Option<LatencySummary>,
    /// Measured time: less than the budget if the phase stopped early.
    #[serde(default)]
    pub measured_ns: u64,
    /// Whether the confidence interval of the rate is as narrow as requested; `None` if no width
    /// was requested.
    #[serde(default)]
    pub sure: Option<bool>,
    /// Whether the rate was steady; `None` when the phase was too short to decide.
    pub settled: Option<bool>,
    /// The error that ended the phase early.
    pub failure: Option<IoFailure>,
}

impl PhaseFigure {
    /// The figure of one phase's run; `None` when nothing was measured. `width` is the relative
    /// error at which the rate counts as sure.
    pub(crate) fn from_result(
        phase: ProbePhase,
        result: &RunResult,
        width: f64,
    ) -> Option<PhaseFigure> {
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
        let slots = SlotTime::from_run(result);
        let iops = RateEstimate::from_rates(ios, &rates, stats.total_ios, &slots);
        let complete = || complete_intervals(&result.intervals);
        let latencies = |see: &mut dyn FnMut(&Histogram)| {
            complete().for_each(|each| see(&each.latency));
        };
        let syncs = |see: &mut dyn FnMut(&Histogram)| {
            complete().for_each(|each| each.sync_latency.iter().for_each(&mut *see));
        };
        Some(PhaseFigure {
            phase,
            block_bytes: phase.block_bytes(),
            iodepth: result.plan.jobs.first()?.io.iodepth,
            engine: worker.backend.engine,
            direct: worker.backend.direct,
            iops,
            bytes_per_s: RateEstimate::from_rates(
                bytes,
                &self::rates(&result.intervals, direction, |c| c.bytes),
                stats.total_ios,
                &slots,
            ),
            latency: LatencySummary::from_stats(&stats.lat).with_intervals(&stats.lat, &latencies),
            sync_latency: (worker.sync.total_ios > 0).then(|| {
                LatencySummary::from_stats(&worker.sync.lat)
                    .with_intervals(&worker.sync.lat, &syncs)
            }),
            measured_ns: worker.runtime_ns,
            sure: (width > 0.0).then(|| iops.relative_error().is_some_and(|error| error <= width)),
            settled: is_rate_steady(&rates).map(|settled| settled && !unsteady),
            failure: worker.error.clone(),
        })
    }
}

/// Measured intervals, without the ramp and without a last one that was cut short.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_budget::ProbeBudget;
    use crate::test_targets::probe_simulated;
    use iosonde_result::compare::{Measure, parts};

    /// The runs of a quick probe of a simulated device, without layout.
    fn probed_runs() -> Vec<RunResult> {
        let device = "read_us=400,write_us=300,parallel=4,read_dist=exp,noise=0.02";
        let probed = probe_simulated(device, ProbeBudget::QUICK, Some(1 << 30));
        let runs = probed.runs.into_iter();
        runs.filter(|run| run.phase != ProbePhase::Layout)
            .map(|run| run.result)
            .collect()
    }

    fn random_read(runs: &mut [RunResult]) -> &mut RunResult {
        let is_it = |run: &&mut RunResult| run.plan.jobs[0].name == ProbePhase::RandomRead.key();
        runs.iter_mut().find(is_it).unwrap()
    }

    /// Half the interval of a run's rate: of the probe's figure and of the part of `compare` and
    /// `list`. Both have the same rate.
    fn rate_errors(result: &RunResult) -> [Option<f64>; 2] {
        let phase = ProbePhase::from_key(&result.plan.jobs[0].name).unwrap();
        let figure = PhaseFigure::from_result(phase, result, 0.0).unwrap();
        let part = parts(result).remove(0);
        let compared = part
            .figure(phase.direction().into(), Measure::Iops)
            .unwrap();
        assert_eq!(figure.iops.mean, compared.value);
        let bounds = compared.bounds;
        [
            figure.iops.error,
            bounds.map(|bounds| bounds.high - compared.value),
        ]
    }

    #[test]
    fn rate_interval_equals_that_of_compare() {
        let runs = probed_runs();
        assert!(runs.len() >= 5, "{}", runs.len());
        for run in &runs {
            let [probe, compare] = rate_errors(run);
            assert!(probe.is_some());
            assert_eq!(probe, compare, "{}", run.plan.jobs[0].name);
        }
    }

    /// Half of the slot time is missing, so the interval of the rate is as wide as that.
    #[test]
    fn rate_that_disagrees_with_latency_has_wide_interval() {
        let mut runs = probed_runs();
        let run = random_read(&mut runs);
        let rate = PhaseFigure::from_result(ProbePhase::RandomRead, run, 0.0)
            .unwrap()
            .iops
            .mean;
        run.workers[0].directions[Direction::Read].lat.moments.mean /= 2.0;
        let [probe, compare] = rate_errors(run);
        assert!(probe > Some(0.4 * rate), "{probe:?} of {rate}");
        assert_eq!(probe, compare);
    }

    /// Rates so uneven that their interval reaches zero; the run has samples of half a second.
    #[test]
    fn unknown_rate_has_no_interval_in_probe_and_compare() {
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
}
