//! What was measured at one offered load.

use super::step::loaded;
use iosonde_job::plan::{Direction, Plan};
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::Intervals;
use iosonde_result::run::{IoFailure, RunResult, VerdictKind};
use iosonde_result::stats::LatencyStats;
use serde::{Deserialize, Serialize};

/// Least share of the offered rate that counts as kept up with, beside what chance explains.
const KEEPING_UP: f64 = 0.98;
/// I/Os that must have been slower than a percentile for it to be told: else one outlier decides it.
pub(super) const ENOUGH: f64 = 10.0;
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
    /// The rate of one direction.
    pub fn of(self, direction: Direction) -> f64 {
        match direction {
            Direction::Read => self.reads_per_s,
            Direction::Write => self.writes_per_s,
            Direction::Trim => 0.0,
        }
    }

    /// Both together.
    pub fn total(self) -> f64 {
        self.reads_per_s + self.writes_per_s
    }
}

/// Latencies in nanoseconds, from the moment at which an I/O was meant to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct LoadLatency {
    /// How many were measured.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// All of them.
    pub histogram: Histogram,
}

impl LoadLatency {
    fn of(stats: &LatencyStats) -> LoadLatency {
        LoadLatency {
            count: stats.moments.count,
            mean_ns: stats.moments.mean,
            max_ns: stats.moments.max,
            histogram: stats.histogram.clone().unwrap_or_default(),
        }
    }

    /// A percentile; 100 is the longest, which none exceeds though the middle of its bucket may.
    pub fn at_ns(&self, percent: f64) -> f64 {
        match self.histogram.percentile(percent) {
            Some(ns) if percent < 100.0 => (ns as f64).min(self.max_ns),
            _ => self.max_ns,
        }
    }

    /// A percentile, if at least ten I/Os were slower.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        let slower = self.count as f64 * (100.0 - percent) / 100.0;
        (slower + 1e-6 >= ENOUGH).then(|| self.at_ns(percent))
    }
}

/// One direction of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// I/Os per second that were to be started.
    pub offered_per_s: f64,
    /// I/Os per second that were completed.
    pub achieved_per_s: f64,
    /// How long they took.
    pub latency: LoadLatency,
}

fn one() -> u32 {
    1
}

/// One offered load and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The load.
    pub offered: Offered,
    /// Reads, where some were offered.
    pub read: Option<Side>,
    /// Writes, where some were offered.
    pub write: Option<Side>,
    /// Runs at this load that were put together.
    #[serde(default = "one")]
    pub runs: u32,
    /// Whether as much was completed as was offered, but for what chance explains. Where not, latencies grow for as long as
    /// the load lasts, and stand for that length only.
    pub kept_up: bool,
    /// Whether the user ended it early: what is known of it is shown, but nothing is judged by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What the run says against its own figures, each in one sentence.
    pub verdicts: Vec<String>,
    /// The kind of each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<VerdictKind>,
    /// The error that ended it early.
    pub failure: Option<IoFailure>,
}

impl Point {
    /// The directions that were offered.
    pub fn sides(&self) -> impl Iterator<Item = &Side> {
        self.read.iter().chain(&self.write)
    }

    /// I/Os per second that were completed.
    pub fn achieved_per_s(&self) -> f64 {
        self.sides().map(|side| side.achieved_per_s).sum()
    }

    /// The worst of the directions' percentiles.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        let all: Option<Vec<f64>> = self
            .sides()
            .map(|side| side.latency.percentile_ns(percent))
            .collect();
        all?.into_iter().reduce(f64::max)
    }

    /// Whether both were made to offer the same rates.
    pub(super) fn is_alike(&self, other: &Point) -> bool {
        let rate = |side: &Option<Side>| side.as_ref().map(|side| side.offered_per_s);
        let rates = |point: &Point| (rate(&point.read), rate(&point.write));
        rates(self) == rates(other)
    }

    /// Whether a plan offers the load that was measured here.
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

    /// The longest I/O.
    pub fn max_ns(&self) -> f64 {
        self.sides()
            .map(|side| side.latency.max_ns)
            .fold(0.0, f64::max)
    }

    /// What a run of [`super::plan::Ground::open`] says. Several who share a load cannot share it to the last I/O: what they were
    /// told to offer is the load then. It was offered for so many `seconds`.
    pub(super) fn of(offered: Offered, parties: u32, seconds: f64, result: &RunResult) -> Point {
        let side = |direction: Direction| {
            let offered_per_s = planned_rate(&result.plan, direction) * f64::from(parties.max(1));
            (offered_per_s > 0.0).then(|| side(offered_per_s, direction, result))
        };
        let (read, write) = (side(Direction::Read), side(Direction::Write));
        let failure = result
            .workers
            .iter()
            .find_map(|worker| worker.error.clone());
        let keeps_up = |side: &Side| keeps_up(side, seconds);
        let kept_up = failure.is_none() && [&read, &write].into_iter().flatten().all(keeps_up);
        let verdicts = result.verdicts.iter();
        let verdicts = verdicts.filter(|verdict| concerns_a_load(verdict.kind));
        let verdicts = verdicts.map(|verdict| (verdict.kind, verdict.evidence.clone()));
        let (kinds, verdicts) = verdicts.unzip();
        let told = |side: &Option<Side>| side.as_ref().map_or(0.0, |side| side.offered_per_s);
        let offered = match parties {
            ..=1 => offered,
            _ => Offered {
                reads_per_s: told(&read),
                writes_per_s: told(&write),
            },
        };
        Point {
            offered,
            read,
            write,
            runs: 1,
            kept_up,
            interrupted: false,
            verdicts,
            kinds,
            failure,
        }
    }
}

/// Whether a finding says something of I/O that comes at a rate of its own. What held such a run back is that rate, and past
/// saturation the backlog is ours: neither is news.
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

/// The rate that was really asked for: whole numbers of I/Os for each thread.
fn planned_rate(plan: &Plan, direction: Direction) -> f64 {
    plan.jobs
        .iter()
        .map(|job| job.schedule.rate_iops[direction].unwrap_or(0) as f64 * f64::from(job.numjobs))
        .sum()
}

fn side(offered_per_s: f64, direction: Direction, result: &RunResult) -> Side {
    let mut latency = LatencyStats::default();
    for worker in &result.workers {
        latency.merge(&worker.directions[direction].lat);
    }
    Side {
        offered_per_s,
        achieved_per_s: completed_per_s(direction, &result.intervals),
        latency: LoadLatency::of(&latency),
    }
}

/// I/Os completed per second while the load was offered. The workers' own counts go by the start of an I/O, so with a
/// backlog they hold what was completed only after the end.
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

/// Chance is that of the I/Os that were offered: of those that were completed there may be too few to tell just because they were not
/// kept up with.
pub(super) fn keeps_up(side: &Side, seconds: f64) -> bool {
    let chance = CHANCE / (side.offered_per_s * seconds).max(1.0).sqrt();
    side.achieved_per_s >= side.offered_per_s * (KEEPING_UP - chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_of_a_wide_bucket_does_not_exceed_the_longest() {
        // Just above the lower end of its bucket, whose middle lies above it.
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
        let latency = LoadLatency::of(&stats);
        assert_eq!(latency.percentile_ns(99.9), Some(latency.max_ns));
        assert_eq!(stats.percentile(99.9), Some(longest_ns));
    }
}
