//! Measurements at one offered load: the merged runs of one step of the curve.

use crate::figures::load_measurement::{
    DirectionLoad, LoadLatency, LoadMeasurement, Offered, keeps_up, loaded,
};
use iosonde_result::histogram::{Histogram, middle};
use iosonde_result::run::RunResult;

/// Batches of a run, whose slow I/Os are counted separately to estimate their clumping.
const BATCHES: usize = 10;

/// One run at one offered load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoadRun {
    /// Point of this run alone.
    pub(super) point: LoadMeasurement,
    /// Duration of the offered load in seconds.
    pub(super) seconds: f64,
    /// Latencies of all I/Os, by batch.
    pub(super) batches: Vec<Histogram>,
}

impl LoadRun {
    /// Returns the run of a session's result.
    pub(super) fn from_result(offered: Offered, parties: u32, result: &RunResult) -> LoadRun {
        let count = loaded(&result.intervals).count();
        let each = count.div_ceil(BATCHES).max(1);
        let mut length_ns = 0;
        let mut batches: Vec<Histogram> = Vec::with_capacity(BATCHES);
        for (index, interval) in loaded(&result.intervals).enumerate() {
            length_ns += interval.length_ns;
            if index.is_multiple_of(each) {
                batches.push(Histogram::default());
            }
            if let Some(batch) = batches.last_mut() {
                batch.merge(&interval.latency);
            }
        }
        let seconds = length_ns as f64 / 1e9;
        let mut point = LoadMeasurement::from_result(offered, parties, seconds, result);
        point.set_percentile_intervals(&batches.iter().collect::<Vec<_>>());
        LoadRun {
            point,
            seconds,
            batches,
        }
    }
}

/// The runs at one offered load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoadStep {
    /// Point of all runs together, as it is displayed.
    pub(super) point: LoadMeasurement,
    seconds: f64,
    /// Batches of each run.
    runs: Vec<Vec<Histogram>>,
}

impl LoadStep {
    /// Returns the offered I/Os per second.
    pub(super) fn rate(&self) -> f64 {
        self.point.offered.total()
    }

    /// Adds a run to the step of the same load, whose index is returned. An interrupted run gets a
    /// step of its own.
    pub(super) fn add(steps: &mut Vec<LoadStep>, run: LoadRun) -> usize {
        let is_same = |step: &LoadStep| {
            let is_whole = !step.point.interrupted && !run.point.interrupted;
            is_whole && step.point.is_alike(&run.point)
        };
        if let Some(index) = steps.iter().position(is_same) {
            steps[index].merge(run);
            return index;
        }
        steps.push(LoadStep {
            point: run.point,
            seconds: run.seconds,
            runs: vec![run.batches],
        });
        steps.len() - 1
    }

    fn merge(&mut self, run: LoadRun) {
        let seconds = (self.seconds, run.seconds);
        self.seconds += run.seconds;
        self.runs.push(run.batches);
        let LoadMeasurement {
            read,
            write,
            verdicts,
            kinds,
            failure,
            ..
        } = run.point;
        let point = &mut self.point;
        merge_sides(&mut point.read, read, seconds);
        merge_sides(&mut point.write, write, seconds);
        point.runs += 1;
        for (index, verdict) in verdicts.into_iter().enumerate() {
            let kind = kinds.get(index).copied();
            let is_known = match kind {
                Some(kind) => point.kinds.contains(&kind),
                None => point.verdicts.contains(&verdict),
            };
            if !is_known {
                point.verdicts.push(verdict);
                point.kinds.extend(kind);
            }
        }
        point.failure = point.failure.take().or(failure);
        let keeps_up = |side: &DirectionLoad| keeps_up(side, self.seconds);
        point.kept_up = point.failure.is_none() && point.sides().all(keeps_up);
        let batches: Vec<&Histogram> = self.runs.iter().flatten().collect();
        self.point.set_percentile_intervals(&batches);
    }

    /// Returns the clumping factor (1 or more): the variance of the number of I/Os slower than
    /// `limit_ns` over that of independent I/Os. I/Os in one queue wait for each other.
    ///
    /// If few I/Os are slower than the limit, the slowest tenth has enough to estimate the factor.
    pub(super) fn clumping(&self, limit_ns: f64) -> f64 {
        let mut all = Histogram::default();
        self.batches().for_each(|batch| all.merge(batch));
        let tenth = all.percentile(90.0).unwrap_or_default() as f64;
        let clumping = |limit_ns: f64| self.clumping_at(limit_ns);
        clumping(limit_ns).max(clumping(tenth.min(limit_ns)))
    }

    fn clumping_at(&self, limit_ns: f64) -> f64 {
        let runs = self.runs.iter();
        let runs = runs.map(|run| {
            run.iter()
                .map(|batch| SlowIoCounts::from_histogram(batch, limit_ns))
                .collect()
        });
        let runs: Vec<Vec<SlowIoCounts>> = runs.collect();
        let sum = SlowIoCounts::sum(runs.iter().flatten());
        let share = sum.share();
        let if_independent = sum.all * share * (1.0 - share);
        if if_independent <= 0.0 {
            return 1.0;
        }
        let sums: Vec<SlowIoCounts> = runs
            .iter()
            .map(|run| SlowIoCounts::sum(run.iter()))
            .collect();
        let within = variance(runs.iter().flatten(), share);
        // Two runs are too few for a variance between runs.
        let between = match sums.len() {
            ..=2 => 0.0,
            _ => variance(sums.iter(), share),
        };
        (within.max(between) / if_independent).max(1.0)
    }

    /// Returns the number of runs with an I/O slower than `limit_ns`.
    pub(super) fn runs_slower(&self, limit_ns: f64) -> usize {
        let is_slow = |run: &&Vec<Histogram>| run.iter().any(|batch| slower(batch, limit_ns) > 0);
        self.runs.iter().filter(is_slow).count()
    }

    /// Returns the batches of all runs.
    pub(super) fn batches(&self) -> impl Iterator<Item = &Histogram> {
        self.runs.iter().flatten()
    }
}

/// Numbers of slow I/Os and of all I/Os.
#[derive(Debug, Clone, Copy, Default)]
struct SlowIoCounts {
    slow: f64,
    all: f64,
}

impl SlowIoCounts {
    fn from_histogram(latency: &Histogram, limit_ns: f64) -> SlowIoCounts {
        SlowIoCounts {
            slow: slower(latency, limit_ns) as f64,
            all: latency.total() as f64,
        }
    }

    fn sum<'a>(all: impl Iterator<Item = &'a SlowIoCounts>) -> SlowIoCounts {
        all.fold(SlowIoCounts::default(), |sum, one| SlowIoCounts {
            slow: sum.slow + one.slow,
            all: sum.all + one.all,
        })
    }

    fn share(self) -> f64 {
        self.slow / self.all.max(1.0)
    }
}

/// Variance of the sum of slow I/Os, by the parts' deviations from the common share.
fn variance<'a>(parts: impl Iterator<Item = &'a SlowIoCounts>, share: f64) -> f64 {
    let (mut squares, mut count) = (0.0, 0.0);
    for part in parts {
        squares += (part.slow - share * part.all).powi(2);
        count += 1.0;
    }
    match count > 1.0 {
        true => squares * count / (count - 1.0),
        false => 0.0,
    }
}

/// Counts I/Os slower than `limit_ns` by the middles of their buckets, as percentiles do.
fn slower(latency: &Histogram, limit_ns: f64) -> u64 {
    let buckets = latency.buckets();
    let above = buckets.filter(|(bucket, _)| middle(*bucket) as f64 > limit_ns);
    above.map(|(_, count)| count).sum()
}

fn merge_sides(
    mine: &mut Option<DirectionLoad>,
    theirs: Option<DirectionLoad>,
    seconds: (f64, f64),
) {
    let (Some(mine), Some(theirs)) = (mine.as_mut(), theirs) else {
        return;
    };
    let all = (seconds.0 + seconds.1).max(f64::MIN_POSITIVE);
    let sum = mine.achieved_per_s * seconds.0 + theirs.achieved_per_s * seconds.1;
    mine.achieved_per_s = sum / all;
    mine.latency.merge(&theirs.latency);
}

impl LoadLatency {
    /// Returns the number of I/Os slower than `limit_ns`.
    pub(super) fn slower(&self, limit_ns: f64) -> u64 {
        match self.max_ns <= limit_ns {
            true => 0,
            false => slower(&self.histogram, limit_ns),
        }
    }

    fn merge(&mut self, other: &LoadLatency) {
        let count = self.count + other.count;
        let sum = self.mean_ns * self.count as f64 + other.mean_ns * other.count as f64;
        self.mean_ns = sum / count.max(1) as f64;
        self.count = count;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.histogram.merge(&other.histogram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 4 s at 100 reads per second, with this rate of completions, all of one latency.
    fn run(achieved_per_s: f64, ns: u64) -> LoadRun {
        let count = (4.0 * achieved_per_s) as u64;
        let mut histogram = Histogram::default();
        histogram.record_n(ns, count);
        let latency = LoadLatency {
            count,
            mean_ns: ns as f64,
            max_ns: ns as f64,
            histogram: histogram.clone(),
        };
        let read = DirectionLoad {
            offered_per_s: 100.0,
            achieved_per_s,
            latency,
        };
        let offered = Offered {
            reads_per_s: 100.0,
            writes_per_s: 0.0,
        };
        LoadRun {
            point: LoadMeasurement {
                offered,
                read: Some(read),
                write: None,
                runs: 1,
                kept_up: true,
                interrupted: false,
                verdicts: vec!["other programs used the device".to_owned()],
                kinds: vec![iosonde_result::run::VerdictKind::Interference],
                failure: None,
                percentile_intervals_ns: Vec::new(),
            },
            seconds: 4.0,
            batches: vec![histogram],
        }
    }

    #[test]
    fn runs_at_one_rate_are_merged_into_one_step() {
        let mut steps = Vec::new();
        let first = LoadStep::add(&mut steps, run(100.0, 1_000_000));
        let second = LoadStep::add(&mut steps, run(50.0, 4_000_000));
        assert_eq!((first, second, steps.len()), (0, 0, 1));
        let point = &steps[0].point;
        let latency = &point.read.as_ref().unwrap().latency;
        assert_eq!((point.runs, point.achieved_per_s()), (2, 75.0));
        assert_eq!((latency.count, latency.max_ns), (600, 4e6));
        assert!((latency.mean_ns - 2e6).abs() < 1e-6, "{latency:?}");
        assert_eq!(latency.histogram.total(), 600);
        // Together the runs did not sustain the rate. Their equal verdicts are merged.
        assert!(!point.kept_up);
        assert_eq!(point.verdicts.len(), 1);
    }

    #[test]
    fn percentiles_of_one_direction_have_intervals_from_batches() {
        let mut batch = Histogram::default();
        batch.record_n(1_000_000, 400);
        batch.record_n(3_000_000, 20);
        let batches = vec![batch; 10];
        let mut all = Histogram::default();
        batches.iter().for_each(|batch| all.merge(batch));
        let mut point = run(100.0, 1_000_000).point;
        let side = point.read.as_mut().unwrap();
        side.latency = LoadLatency {
            count: all.total(),
            mean_ns: 1.1e6,
            max_ns: 4e6,
            histogram: all,
        };
        let parts: Vec<&Histogram> = batches.iter().collect();
        point.set_percentile_intervals(&parts);
        let p50 = point.percentile_ns(50.0).unwrap();
        let (low, high) = point.percentile_interval_ns(50.0).unwrap();
        assert!(
            low <= p50 && p50 <= high && low < high,
            "{low} {p50} {high}"
        );
        // Too few I/Os were slower.
        assert_eq!(point.percentile_interval_ns(99.9), None);
        assert_eq!(point.percentile_interval_ns(42.0), None);
        let mut mixed = run(100.0, 1_000_000).point;
        mixed.write.clone_from(&mixed.read);
        mixed.set_percentile_intervals(&parts);
        assert_eq!(mixed.percentile_interval_ns(50.0), None);
    }

    #[test]
    fn interrupted_run_gets_separate_step() {
        let mut steps = Vec::new();
        LoadStep::add(&mut steps, run(100.0, 1_000_000));
        let mut cut = run(100.0, 1_000_000);
        cut.point.interrupted = true;
        assert_eq!(LoadStep::add(&mut steps, cut), 1);
        LoadStep::add(&mut steps, run(100.0, 1_000_000));
        let runs: Vec<u32> = steps.iter().map(|step| step.point.runs).collect();
        assert_eq!(runs, [2, 1]);
    }

    #[test]
    fn clustered_slow_ios_increase_clumping() {
        let batch = |slow: u64| {
            let mut latency = Histogram::default();
            latency.record_n(1_000_000, 400);
            latency.record_n(10_000_000, slow);
            latency
        };
        let with = |slow: [u64; 10]| {
            let mut run = run(100.0, 1_000_000);
            run.batches = slow.map(batch).into();
            let mut steps = Vec::new();
            LoadStep::add(&mut steps, run);
            steps[0].clumping(2e6)
        };
        assert_eq!(with([1; 10]), 1.0);
        assert!(with([0, 0, 40, 0, 0, 0, 40, 0, 0, 0]) > 20.0);
    }
}
