//! Measurement of one offered load.

use iosonde_job::plan::{Direction, Plan};
use iosonde_result::compare::bounds_of_percentile;
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::run::{IoFailure, RunResult, VerdictKind};
use iosonde_result::stats::LatencyStats;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Share of the offered rate from which it counts as sustained, apart from chance.
const KEEPING_UP: f64 = 0.98;
/// Number of I/Os above a percentile that make it stable against a single outlier.
pub(crate) const ENOUGH: f64 = 10.0;
/// Percentiles whose intervals a measurement has.
const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];
/// Standard deviations of a Poisson count that chance may explain.
const CHANCE: f64 = 3.0;

/// An offered load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
}

impl Offered {
    /// Returns the rate of one direction.
    pub(crate) fn rate_per_s(self, direction: Direction) -> f64 {
        match direction {
            Direction::Read => self.reads_per_s,
            Direction::Write => self.writes_per_s,
            Direction::Trim => 0.0,
        }
    }

    /// Returns the sum of both directions.
    pub fn total(self) -> f64 {
        self.reads_per_s + self.writes_per_s
    }
}

/// Latencies in nanoseconds, from the intended start of each I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct LoadLatency {
    /// Number of I/Os.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Maximum.
    pub max_ns: f64,
    /// Histogram of all latencies.
    pub histogram: Histogram,
}

impl LoadLatency {
    fn from_stats(stats: &LatencyStats) -> LoadLatency {
        LoadLatency {
            count: stats.moments.count,
            mean_ns: stats.moments.mean,
            max_ns: stats.moments.max,
            histogram: stats.histogram.clone().unwrap_or_default(),
        }
    }

    /// Returns a percentile, at most the maximum: the middle of its bucket may exceed that.
    pub fn at_ns(&self, percent: f64) -> f64 {
        match self.histogram.percentile(percent) {
            Some(ns) if percent < 100.0 => (ns as f64).min(self.max_ns),
            _ => self.max_ns,
        }
    }

    /// Returns a percentile, if at least ten I/Os were slower.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        let slower = self.count as f64 * (100.0 - percent) / 100.0;
        (slower + 1e-6 >= ENOUGH).then(|| self.at_ns(percent))
    }
}

/// One direction of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectionLoad {
    /// Offered I/Os per second.
    pub offered_per_s: f64,
    /// Completed I/Os per second.
    pub achieved_per_s: f64,
    /// Latencies of the I/Os.
    pub latency: LoadLatency,
}

fn default_runs() -> u32 {
    1
}

/// One offered load and its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasurement {
    /// The offered load.
    pub offered: Offered,
    /// Reads, if some were offered.
    pub read: Option<DirectionLoad>,
    /// Writes, if some were offered.
    pub write: Option<DirectionLoad>,
    /// Number of runs at this load, which are merged.
    #[serde(default = "default_runs")]
    pub runs: u32,
    /// Whether the target sustained the offered rate, apart from chance. Otherwise latencies grow
    /// with the runtime, and are valid for this runtime only.
    pub kept_up: bool,
    /// Whether the user stopped the run. Its figures are shown, but no decision uses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Evidence that limits the validity of the figures, each in one sentence.
    pub verdicts: Vec<String>,
    /// Kinds of the verdicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<VerdictKind>,
    /// I/O error that ended the run early.
    pub failure: Option<IoFailure>,
    /// 95 % confidence intervals of the percentiles 50, 95, 99 and 99.9 in nanoseconds, each `None`
    /// if unknown. Empty if reads and writes were offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentile_intervals_ns: Vec<Option<(f64, f64)>>,
}

impl LoadMeasurement {
    /// Returns the directions that were offered.
    pub fn sides(&self) -> impl Iterator<Item = &DirectionLoad> {
        self.read.iter().chain(&self.write)
    }

    /// Returns the completed I/Os per second of both directions.
    pub fn achieved_per_s(&self) -> f64 {
        self.sides().map(|side| side.achieved_per_s).sum()
    }

    /// Returns the higher of the directions' percentiles.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        let all: Option<Vec<f64>> = self
            .sides()
            .map(|side| side.latency.percentile_ns(percent))
            .collect();
        all?.into_iter().reduce(f64::max)
    }

    /// Returns whether both points offer the same rates.
    pub(crate) fn is_alike(&self, other: &LoadMeasurement) -> bool {
        let rate = |side: &Option<DirectionLoad>| side.as_ref().map(|side| side.offered_per_s);
        let rates = |point: &LoadMeasurement| (rate(&point.read), rate(&point.write));
        rates(self) == rates(other)
    }

    /// Returns whether a plan offers the load of this point.
    pub fn is_of(&self, plan: &Plan, parties: u32) -> bool {
        let sides = [
            (Direction::Read, &self.read),
            (Direction::Write, &self.write),
        ];
        sides.into_iter().all(|(direction, side)| {
            let offered_per_s = side.as_ref().map_or(0.0, |side| side.offered_per_s);
            planned_rate(plan, direction) * f64::from(parties.max(1)) == offered_per_s
        })
    }

    /// Returns the maximum latency.
    pub fn max_ns(&self) -> f64 {
        self.sides()
            .map(|side| side.latency.max_ns)
            .fold(0.0, f64::max)
    }

    /// Returns the point of a run of `LoadJobs::open`, which offered the load
    /// for `seconds`. Several parties round their shares, so their planned rates are the load.
    pub(crate) fn from_result(
        offered: Offered,
        parties: u32,
        seconds: f64,
        result: &RunResult,
    ) -> LoadMeasurement {
        let side = |direction: Direction| {
            let offered_per_s = planned_rate(&result.plan, direction) * f64::from(parties.max(1));
            (offered_per_s > 0.0).then(|| direction_load(offered_per_s, direction, result))
        };
        let (read, write) = (side(Direction::Read), side(Direction::Write));
        let failure = result
            .workers
            .iter()
            .find_map(|worker| worker.error.clone());
        let keeps_up = |side: &DirectionLoad| keeps_up(side, seconds);
        let kept_up = failure.is_none() && [&read, &write].into_iter().flatten().all(keeps_up);
        let verdicts = result.verdicts.iter();
        let verdicts = verdicts.filter(|verdict| concerns_a_load(verdict.kind));
        let verdicts = verdicts.map(|verdict| (verdict.kind, verdict.evidence.clone()));
        let (kinds, verdicts) = verdicts.unzip();
        let offered_per_s_of =
            |side: &Option<DirectionLoad>| side.as_ref().map_or(0.0, |side| side.offered_per_s);
        let offered = match parties {
            ..=1 => offered,
            _ => Offered {
                reads_per_s: offered_per_s_of(&read),
                writes_per_s: offered_per_s_of(&write),
            },
        };
        LoadMeasurement {
            offered,
            read,
            write,
            runs: 1,
            kept_up,
            interrupted: false,
            verdicts,
            kinds,
            failure,
            percentile_intervals_ns: Vec::new(),
        }
    }

    /// Sets the intervals of the percentiles from the latencies of consecutive parts of the run.
    pub(crate) fn set_percentile_intervals(&mut self, parts: &[&Histogram]) {
        self.percentile_intervals_ns = self.percentile_intervals(parts);
    }

    /// Intervals of the percentiles. The parts contain all I/Os, so that the intervals of two
    /// directions stay unknown.
    fn percentile_intervals(&self, parts: &[&Histogram]) -> Vec<Option<(f64, f64)>> {
        let sides: Vec<&DirectionLoad> = self.sides().collect();
        let [side] = sides.as_slice() else {
            return Vec::new();
        };
        let each = |see: &mut dyn FnMut(&Histogram)| parts.iter().for_each(|part| see(part));
        let interval = |percent: f64| {
            let ns = side.latency.percentile_ns(percent)?;
            let bounds = bounds_of_percentile(ns, percent, &each)?;
            Some((bounds.low, bounds.high))
        };
        PERCENTILES.map(interval).to_vec()
    }

    /// Returns the 95 % confidence interval of a percentile in nanoseconds. `None` if unknown.
    #[must_use]
    pub fn percentile_interval_ns(&self, percent: f64) -> Option<(f64, f64)> {
        let mut percents = PERCENTILES.iter();
        let index = percents.position(|known| known.total_cmp(&percent).is_eq())?;
        self.percentile_intervals_ns.get(index).copied().flatten()
    }
}

/// Returns whether a verdict matters in open loop. The offered rate limits such a run, and above
/// saturation the program's own backlog does, so verdicts about limits say nothing new.
fn concerns_a_load(kind: VerdictKind) -> bool {
    !matches!(
        kind,
        VerdictKind::JobLimit
            | VerdictKind::QueueDepth
            | VerdictKind::Device
            | VerdictKind::Throttled
            | VerdictKind::Allowance
            | VerdictKind::Network
            | VerdictKind::LockContention
            | VerdictKind::Unclear
    )
}

/// Returns the planned rate: each thread has a whole number of I/Os per second.
fn planned_rate(plan: &Plan, direction: Direction) -> f64 {
    plan.jobs
        .iter()
        .filter(|job| !job.schedule.neighbour)
        .map(|job| job.schedule.rate_iops[direction].unwrap_or(0) as f64 * f64::from(job.numjobs))
        .sum()
}

fn direction_load(offered_per_s: f64, direction: Direction, result: &RunResult) -> DirectionLoad {
    let mut latency = LatencyStats::default();
    for worker in &result.workers {
        latency.merge(&worker.directions[direction].lat);
    }
    DirectionLoad {
        offered_per_s,
        achieved_per_s: completed_per_s(direction, &result.intervals),
        latency: LoadLatency::from_stats(&latency),
    }
}

/// Returns the measured intervals during which the load was offered throughout.
pub(crate) fn loaded(intervals: &Intervals) -> impl Iterator<Item = Cow<'_, Interval>> {
    let measured = || intervals.iter().filter(|interval| !interval.ramp);
    let whole_ns = measured().map(|interval| interval.length_ns).max();
    let whole_ns = whole_ns.unwrap_or_default();
    measured().filter(move |interval| interval.length_ns * 10 >= whole_ns * 9)
}

/// Returns the I/Os completed per second during the load. The workers count by start time, so with
/// a backlog they include I/Os that complete after the end.
fn completed_per_s(direction: Direction, intervals: &Intervals) -> f64 {
    let (ios, ns) = loaded(intervals).fold((0, 0), |(ios, ns), interval| {
        (
            ios + interval.directions[direction].ios,
            ns + interval.length_ns,
        )
    });
    if ns == 0 {
        return 0.0;
    }
    ios as f64 * 1e9 / ns as f64
}

/// Returns whether the offered rate was sustained. Chance is that of the offered I/Os: too few may
/// complete for an estimate, just because the rate was not sustained.
pub(crate) fn keeps_up(side: &DirectionLoad, seconds: f64) -> bool {
    let chance = CHANCE / (side.offered_per_s * seconds).max(1.0).sqrt();
    side.achieved_per_s >= side.offered_per_s * (KEEPING_UP - chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_of_wide_bucket_does_not_exceed_max() {
        // Just above the lower end of a bucket, whose middle is therefore higher.
        let longest_ns = (1u64 << 30) + 1;
        let mut stats = LatencyStats::default();
        let mut histogram = Histogram::default();
        for _ in 0..20_000 {
            stats.moments.record(longest_ns as f64);
            histogram.record(longest_ns);
        }
        assert!(
            histogram.percentile(99.9) > Some(longest_ns),
            "nothing is tested"
        );
        stats.histogram = Some(histogram);
        let latency = LoadLatency::from_stats(&stats);
        assert_eq!(latency.percentile_ns(99.9), Some(latency.max_ns));
        assert_eq!(stats.percentile(99.9), Some(longest_ns));
    }
}
