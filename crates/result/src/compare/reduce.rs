//! Reduces a run to its parts and their figures.

use super::confidence_interval::{
    EachHistogram, bounds_of_mean, bounds_of_percentile, bounds_of_rates, bounds_of_samples,
};
use super::figure::{Figure, IoPattern, Measure, PartRole, ResultPart, Subject};
use crate::histogram::Histogram;
use crate::interval::{Interval, IntervalCounts, Intervals};
use crate::littles_law::SlotTime;
use crate::run::{DirectionStats, RunResult, SyncStats, VerdictKind, WorkerResult};
use crate::series_statistics::{FEWEST_SAMPLES, is_rate_steady};
use crate::stats::{LatencyStats, Moments};
use iosonde_job::plan::{BlockSize, Direction, Job, PerDirection, UnifiedReporting};
use std::borrow::Cow;

/// Returns the parts of a run: one per job name within a reporting group, in plan order. Jobs with
/// `stats=0` and jobs that moved no data are left out.
///
/// The intervals of a run are sums over all workers. They are used for a part if no other part ran
/// at the same time. Otherwise the uncertainty of the part comes from the moments of its samples.
///
/// The roles and the names of parts that ran beside a neighbour say so, and the neighbour is a part
/// of its own.
pub fn parts(result: &RunResult) -> Vec<ResultPart> {
    let mut members: Vec<(u32, &str, Vec<&WorkerResult>)> = Vec::new();
    for worker in &result.workers {
        let job = &result.plan.jobs[worker.job];
        if !job.measure.stats {
            continue;
        }
        match members
            .iter_mut()
            .find(|(group, name, _)| *group == worker.groupid && *name == job.name)
        {
            Some((_, _, workers)) => workers.push(worker),
            None => members.push((worker.groupid, &job.name, vec![worker])),
        }
    }
    let spans: Vec<PartTimeRange> = members
        .iter()
        .map(|(_, _, workers)| PartTimeRange::from_workers(result, workers))
        .collect();
    let longest_ns = result.intervals.iter().map(|each| each.length_ns).max();
    let longest_ns = longest_ns.unwrap_or(0);
    let parts = members.iter().enumerate().map(|(index, (_, _, workers))| {
        let intervals = OwnIntervals::from_run(result, &spans, index, longest_ns);
        result_part(result, workers, &intervals)
    });
    let mut parts: Vec<ResultPart> = parts.filter(|part| !part.figures.is_empty()).collect();
    number_equal_names(&mut parts);
    add_neighbour(result, longest_ns, &mut parts);
    parts
}

/// Returns the name of a part that was measured beside a neighbour.
pub fn name_beside(part: &str) -> String {
    format!("{part} beside")
}

/// Leaves out the parts of neighbours. Of the others, returns those that were measured alone, or
/// all if there are none.
#[must_use]
pub fn without_neighbours(parts: &[ResultPart]) -> Vec<&ResultPart> {
    let own = parts.iter().filter(|part| part.role != PartRole::Neighbour);
    let (alone, others): (Vec<_>, Vec<_>) = own.partition(|part| part.role.is_alone());
    if alone.is_empty() { others } else { alone }
}

/// Marks the parts of a run with a neighbour, and adds the neighbour's own part.
fn add_neighbour(result: &RunResult, longest_ns: u64, parts: &mut Vec<ResultPart>) {
    let Some(job) = result.plan.neighbour() else {
        return;
    };
    let of = parts
        .first()
        .map_or(String::new(), |part| part.name.clone());
    for part in parts.iter_mut() {
        part.name = name_beside(&part.name);
        part.role = PartRole::BesideNeighbour;
    }
    let workers: Vec<&WorkerResult> = result.neighbours.iter().collect();
    if workers.is_empty() {
        return;
    }
    let intervals = OwnIntervals {
        all: None,
        longest_ns,
        span: None,
    };
    let mut own = result_part(result, &workers, &intervals);
    own.name = format!("{} of {of}", job.name);
    own.role = PartRole::Neighbour;
    parts.extend(Some(own).filter(|own| !own.figures.is_empty()));
}

/// Numbers parts with equal names, which come from different reporting groups.
pub(crate) fn number_equal_names(parts: &mut [ResultPart]) {
    for index in 1..parts.len() {
        let (before, rest) = parts.split_at_mut(index);
        let name = rest[0].name.clone();
        let mut number = 1;
        while before.iter().any(|part| part.name == rest[0].name) {
            number += 1;
            rest[0].name = format!("{name} #{number}");
        }
    }
    debug_assert!(
        (1..parts.len()).all(|at| parts[..at].iter().all(|part| part.name != parts[at].name)),
        "a name identifies a part"
    );
}

/// Time of a part's measurement, in nanoseconds since the start of the run.
struct PartTimeRange {
    from_ns: u64,
    to_ns: u64,
}

impl PartTimeRange {
    /// Resolution of points in time, which are rounded to milliseconds.
    const BLUR_NS: u64 = 2_000_000;

    fn from_workers(result: &RunResult, workers: &[&WorkerResult]) -> PartTimeRange {
        let from = |worker: &&WorkerResult| {
            let ms = worker.started_at_ms.saturating_sub(result.started_at_ms);
            ms.saturating_mul(1_000_000)
        };
        let to = |worker: &&WorkerResult| from(worker).saturating_add(worker.runtime_ns);
        PartTimeRange {
            from_ns: workers.iter().map(from).min().unwrap_or(0),
            to_ns: workers.iter().map(to).max().unwrap_or(0),
        }
    }

    fn meets(&self, other: &PartTimeRange) -> bool {
        self.from_ns + Self::BLUR_NS < other.to_ns && other.from_ns + Self::BLUR_NS < self.to_ns
    }

    fn holds(&self, interval: &Interval) -> bool {
        interval.start_ns + Self::BLUR_NS >= self.from_ns
            && interval.start_ns + interval.length_ns <= self.to_ns + Self::BLUR_NS
    }
}

/// Complete measured intervals in which only one part ran, read each time, not held in memory.
struct OwnIntervals<'a> {
    /// Intervals of the run. `None` if other parts ran at the same time, or if there are too few.
    all: Option<&'a Intervals>,
    longest_ns: u64,
    /// Time of the part. `None` if it is the only part.
    span: Option<&'a PartTimeRange>,
}

impl<'a> OwnIntervals<'a> {
    fn from_run(
        result: &'a RunResult,
        spans: &'a [PartTimeRange],
        index: usize,
        longest_ns: u64,
    ) -> Self {
        let others = spans.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != index);
        let is_alone = !others.any(|(_, other)| spans[index].meets(other));
        let mut own = OwnIntervals {
            all: is_alone.then_some(&result.intervals),
            longest_ns,
            span: (spans.len() > 1).then(|| &spans[index]),
        };
        if own.iter().take(FEWEST_SAMPLES).count() < FEWEST_SAMPLES {
            own.all = None;
        }
        own
    }

    fn iter(&self) -> impl Iterator<Item = Cow<'a, Interval>> {
        let all = self.all.into_iter().flat_map(Intervals::iter);
        // The last interval may be truncated.
        all.filter(|each| !each.ramp && each.length_ns > self.longest_ns / 2)
            .filter(|each| self.span.is_none_or(|span| span.holds(each)))
    }
}

fn result_part(
    result: &RunResult,
    workers: &[&WorkerResult],
    intervals: &OwnIntervals<'_>,
) -> ResultPart {
    let job = &result.plan.jobs[workers[0].job];
    let unsteady = result
        .verdicts
        .iter()
        .any(|verdict| verdict.kind == VerdictKind::Unsteady);
    let context = ReduceContext {
        intervals,
        slots: SlotTime::from_workers(&result.plan, workers.iter().copied()),
        unsteady,
    };
    let sums = PerDirection::from_fn(|direction| {
        let each = workers.iter().map(|worker| &worker.directions[direction]);
        Sum::from_stats(each)
    });
    let mut figures = Vec::new();
    if job.measure.unified == UnifiedReporting::Mixed {
        let all = workers.iter().flat_map(|worker| {
            let directions = worker.directions.iter();
            directions.map(|(_, stats)| stats)
        });
        context.figures_of(
            Subject::Mixed,
            &Sum::from_stats(all),
            &Direction::ALL,
            true,
            &mut figures,
        );
    } else {
        let moved = sums.iter().filter(|(_, sum)| sum.stats.total_ios > 0);
        let alone = moved.count() == 1;
        for (direction, sum) in sums.iter() {
            context.figures_of(direction.into(), sum, &[direction], alone, &mut figures);
        }
    }
    let mut sync = SyncStats::default();
    for worker in workers {
        sync.total_ios += worker.sync.total_ios;
        sync.other_than_fsync += worker.sync.other_than_fsync;
        sync.lat.merge(&worker.sync.lat);
    }
    let syncs = |see: &mut dyn FnMut(&Histogram)| {
        for interval in intervals.iter() {
            interval.sync_latency.iter().for_each(&mut *see);
        }
    };
    latencies(Subject::Sync, &sync.lat, TOTAL, &syncs, &mut figures);
    ResultPart {
        name: job.name.clone(),
        pattern: pattern(job),
        figures,
        role: PartRole::Alone,
    }
}

/// Sum of one direction over all workers of a part.
struct Sum {
    stats: DirectionStats,
    /// Samples of the sum, under the assumption that the workers' rates are fully correlated.
    samples: Moments,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum::from_stats(std::iter::empty())
    }
}

impl Sum {
    fn from_stats<'a>(members: impl Iterator<Item = &'a DirectionStats>) -> Sum {
        let mut sum = Sum {
            stats: DirectionStats::default(),
            samples: Moments::default(),
        };
        let mut deviation = 0.0;
        for member in members.filter(|member| member.total_ios > 0) {
            sum.stats.io_bytes += member.io_bytes;
            sum.stats.total_ios += member.total_ios;
            sum.stats.runtime_ns = sum.stats.runtime_ns.max(member.runtime_ns);
            sum.stats.lat.merge(&member.lat);
            sum.stats.clat.merge(&member.clat);
            sum.samples.mean += member.iops.mean;
            sum.samples.count = match sum.samples.count {
                0 => member.iops.count,
                count => count.min(member.iops.count),
            };
            deviation += member.iops.stddev();
        }
        sum.samples.m2 = deviation.powi(2) * sum.samples.count.saturating_sub(1) as f64;
        sum
    }
}

/// Selects the count of an interval that is used.
type Count = fn(&IntervalCounts) -> u64;

struct ReduceContext<'a> {
    intervals: &'a OwnIntervals<'a>,
    slots: SlotTime,
    unsteady: bool,
}

impl ReduceContext<'_> {
    /// Adds rates and latencies of one subject. `alone`: the intervals have no other latencies.
    fn figures_of(
        &self,
        subject: Subject,
        sum: &Sum,
        directions: &[Direction],
        alone: bool,
        figures: &mut Vec<Figure>,
    ) {
        let stats = &sum.stats;
        if stats.total_ios == 0 || stats.runtime_ns == 0 {
            return;
        }
        let seconds = stats.runtime_ns as f64 / 1e9;
        let measures: [(Measure, u64, Count); 2] = [
            (Measure::Iops, stats.total_ios, |counts| counts.ios),
            (Measure::BytesPerS, stats.io_bytes, |counts| counts.bytes),
        ];
        for (measure, amount, count) in measures {
            if amount == 0 {
                continue;
            }
            let value = amount as f64 / seconds;
            let rates = rates(self.intervals, directions, count);
            // Samples of the same run do not replace a series that gives no interval.
            let bounds = match rates.is_empty() {
                true => bounds_of_samples(value, &sum.samples, &self.slots),
                false => bounds_of_rates(value, &rates, stats.total_ios, &self.slots),
            };
            figures.push(Figure {
                subject,
                measure,
                value,
                bounds,
                settled: self.settled(&rates),
            });
        }
        let slices = |is_of_it: bool| {
            move |see: &mut dyn FnMut(&Histogram)| {
                let own = self.intervals.iter().take_while(|_| alone && is_of_it);
                own.for_each(|each| see(&each.latency));
            }
        };
        // The intervals contain total latencies if those were recorded.
        let recorded = stats.lat.moments.count > 0;
        latencies(subject, &stats.lat, TOTAL, &slices(recorded), figures);
        let completion = slices(!recorded);
        latencies(subject, &stats.clat, COMPLETION, &completion, figures);
    }

    fn settled(&self, rates: &[f64]) -> Option<bool> {
        is_rate_steady(rates).map(|still| still && !self.unsteady)
    }
}

fn rates(
    intervals: &OwnIntervals<'_>,
    directions: &[Direction],
    count: impl Fn(&IntervalCounts) -> u64,
) -> Vec<f64> {
    let rate = |interval: Cow<'_, Interval>| {
        let each = directions
            .iter()
            .map(|direction| count(&interval.directions[*direction]));
        each.sum::<u64>() as f64 * 1e9 / interval.length_ns as f64
    };
    intervals.iter().map(rate).collect()
}

/// Measures of mean and percentiles.
type Latencies = (Measure, [(f64, Measure); 3]);

const TOTAL: Latencies = (
    Measure::LatMean,
    [
        (50.0, Measure::LatP50),
        (99.0, Measure::LatP99),
        (99.9, Measure::LatP999),
    ],
);
const COMPLETION: Latencies = (
    Measure::ClatMean,
    [
        (50.0, Measure::ClatP50),
        (99.0, Measure::ClatP99),
        (99.9, Measure::ClatP999),
    ],
);

/// Adds mean and percentiles of a latency. `slices` passes the interval's latencies, if known.
fn latencies(
    subject: Subject,
    stats: &LatencyStats,
    (mean, percentiles): Latencies,
    slices: EachHistogram<'_>,
    figures: &mut Vec<Figure>,
) {
    let count = stats.moments.count;
    if count == 0 || stats.moments.mean <= 0.0 {
        return;
    }
    let mut push = |measure, value, bounds| {
        figures.push(Figure {
            subject,
            measure,
            value,
            bounds,
            settled: None,
        });
    };
    let value = stats.moments.mean;
    push(mean, value, bounds_of_mean(value, slices));
    for (percent, measure) in percentiles {
        let value = stats.percentile(percent);
        if let (true, Some(value @ 1..)) = (has_enough_samples(count, percent), value) {
            let value = value as f64;
            push(measure, value, bounds_of_percentile(value, percent, slices));
        }
    }
}

/// Returns whether at least ten values lie beyond a percentile, more than a few outliers.
pub(crate) fn has_enough_samples(count: u64, percent: f64) -> bool {
    count as f64 * (100.0 - percent) / 100.0 + 1e-6 >= 10.0
}

/// Returns the pattern of a job.
pub(crate) fn pattern(job: &Job) -> IoPattern {
    let direction = Direction::ALL
        .into_iter()
        .find(|direction| job.workload.rw.has(*direction));
    let bs = match &job.workload.block_size[direction.unwrap_or(Direction::Read)] {
        BlockSize::Fixed(bytes) => bytes.to_string(),
        other => format!("{}-{}", other.min(), other.max()),
    };
    // A trace defines the I/O, and the pattern of the job is not used.
    let (rw, bs) = match job.replay {
        Some(_) => ("replay".to_owned(), "trace".to_owned()),
        None => (job.workload.rw.name().to_owned(), bs),
    };
    IoPattern {
        rw,
        bs,
        iodepth: job.io.iodepth,
        numjobs: job.numjobs,
    }
}
