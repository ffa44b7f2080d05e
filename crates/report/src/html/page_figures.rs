//! Figures of a run: one per job and direction. As in fio's groups, clones are summed up.

use super::curve;
use super::document::{PageFigure, PageFigureTexts, PageLatencyKind, PageRate};
use super::figure_texts::{mean_bounds, mean_latency};
use iosonde_job::plan::{BlockSize, Direction, Engine, Job};
use iosonde_result::compare::{
    Measure, ResultPart, Subject, bounds_of_rates, informative_interval, name_beside, parts,
};
use iosonde_result::interval::{Interval, IntervalCounts, Intervals};
use iosonde_result::littles_law::SlotTime;
use iosonde_result::run::{DirectionStats, RunResult, VerdictKind, WorkerResult};
use iosonde_result::series_statistics::is_rate_steady;
use iosonde_result::stats::LatencyStats;
use std::borrow::Cow;

/// Returns all figures of a run. Rates, intervals and stability are those of the run's parts, as in
/// all reports. The sum of concurrent jobs is no part: its interval comes from the run's intervals.
pub(super) fn list_figures(result: &RunResult) -> Vec<PageFigure> {
    let jobs: Vec<usize> = (0..result.plan.jobs.len())
        .filter(|job| result.workers.iter().any(|worker| worker.job == *job))
        .collect();
    let parts = parts(result);
    let mut figures = Vec::new();
    for job in &jobs {
        let workers: Vec<&WorkerResult> = of_job(result, *job).collect();
        let name = (jobs.len() > 1).then(|| result.plan.jobs[*job].name.clone());
        let mut of_job = group(result, &workers, name);
        if let Some(part) = part_of(result, &jobs, *job, &parts) {
            of_job
                .iter_mut()
                .for_each(|figure| copy_part_rates(figure, part));
        }
        figures.extend(of_job);
    }
    if jobs.len() > 1 && ran_side_by_side(result) {
        let workers: Vec<&WorkerResult> = result.workers.iter().collect();
        let mut all = group(result, &workers, Some("all jobs".to_owned()));
        all.iter_mut().for_each(|figure| estimate(figure, result));
        figures.extend(all);
    }
    figures
}

/// Part of a job. `None` if other jobs share its name, or if the run has no such part.
fn part_of<'a>(
    result: &RunResult,
    jobs: &[usize],
    job: usize,
    parts: &'a [ResultPart],
) -> Option<&'a ResultPart> {
    let name = &result.plan.jobs[job].name;
    let mut same = jobs
        .iter()
        .filter(|other| result.plan.jobs[**other].name == *name);
    let is_alone = same.nth(1).is_none();
    let name = match result.plan.neighbour() {
        Some(_) => name_beside(name),
        None => name.clone(),
    };
    parts.iter().find(|part| is_alone && part.name == name)
}

/// Copies the rates of a part to a figure.
fn copy_part_rates(figure: &mut PageFigure, part: &ResultPart) {
    let subject = figure.direction;
    if let Some(iops) = page_rate(part, subject, Measure::Iops) {
        figure.iops = iops;
    }
    if let Some(bytes_per_s) = page_rate(part, subject, Measure::BytesPerS) {
        figure.bytes_per_s = bytes_per_s;
    }
    let found = part.figure(subject, Measure::Iops);
    figure.settled = found.and_then(|figure| figure.settled);
    figure.percentile_bounds = percentile_bounds(part, subject);
    figure.mean_bounds = mean_bounds(part, subject, figure.latency_kind);
    figure.shown.mean = mean_latency(part, subject, figure.latency_kind);
}

/// Returns the informative intervals of the percentiles 50, 99 and 99.9 of a part: of total
/// latency, or else of completion latency.
pub(super) fn percentile_bounds(part: &ResultPart, subject: Subject) -> [Option<(f64, f64)>; 3] {
    let measures = match part.figure(subject, Measure::LatP50) {
        Some(_) => [Measure::LatP50, Measure::LatP99, Measure::LatP999],
        None => [Measure::ClatP50, Measure::ClatP99, Measure::ClatP999],
    };
    measures.map(|measure| {
        let figure = part.figure(subject, measure)?;
        let bounds = figure.bounds?;
        informative_interval(figure.value, (bounds.low, bounds.high))
    })
}

/// Rate of a part with half of its interval.
pub(super) fn page_rate(part: &ResultPart, subject: Subject, measure: Measure) -> Option<PageRate> {
    let figure = part.figure(subject, measure)?;
    let error = figure.bounds.map(|bounds| bounds.high - figure.value);
    Some(PageRate::new(figure.value, error))
}

fn of_job(result: &RunResult, job: usize) -> impl Iterator<Item = &WorkerResult> {
    result
        .workers
        .iter()
        .filter(move |worker| worker.job == job)
}

/// Whether no job waited for another.
fn ran_side_by_side(result: &RunResult) -> bool {
    let jobs = &result.plan.jobs;
    jobs.iter().all(|job| {
        !job.schedule.stonewall
            && job.schedule.wait_for.is_none()
            && job.schedule.startdelay_ns == (0, 0)
    })
}

fn group(result: &RunResult, workers: &[&WorkerResult], name: Option<String>) -> Vec<PageFigure> {
    let moved = Direction::ALL
        .into_iter()
        .filter_map(|direction| moved(result, workers, direction));
    let mut figures: Vec<PageFigure> = moved.collect();
    figures.extend(synced(result, workers));
    for figure in &mut figures {
        figure.job.clone_from(&name);
    }
    figures
}

fn moved(
    result: &RunResult,
    workers: &[&WorkerResult],
    direction: Direction,
) -> Option<PageFigure> {
    let all = || workers.iter().map(|worker| &worker.directions[direction]);
    let ios: u64 = all().map(|stats| stats.total_ios).sum();
    let bytes: u64 = all().map(|stats| stats.io_bytes).sum();
    let seconds = all().map(|stats| stats.runtime_ns).max()? as f64 / 1e9;
    if ios == 0 || seconds == 0.0 {
        return None;
    }
    let total = all().any(|stats| stats.lat.histogram.is_some());
    let latency =
        merged(all().map(|stats: &DirectionStats| if total { &stats.lat } else { &stats.clat }));
    let blocks = || worker_jobs(result, workers).map(|job| &job.workload.block_size[direction]);
    let rate = |count: u64| PageRate::new(count as f64 / seconds, None);
    Some(PageFigure {
        block_bytes: [
            blocks().map(BlockSize::min).min().unwrap_or(0),
            blocks().map(BlockSize::max).max().unwrap_or(0),
        ],
        ios,
        bytes,
        iops: rate(ios),
        bytes_per_s: rate(bytes),
        latency_kind: match total {
            true => PageLatencyKind::Total,
            false => PageLatencyKind::Completion,
        },
        latency: curve::latency(&latency),
        ..blank(result, workers, direction.into())
    })
}

/// Figure of fsync, fdatasync and sync_file_range, if the workers called any.
fn synced(result: &RunResult, workers: &[&WorkerResult]) -> Option<PageFigure> {
    let ios: u64 = workers.iter().map(|worker| worker.sync.total_ios).sum();
    let seconds = workers.iter().map(|worker| worker.runtime_ns).max()? as f64 / 1e9;
    if ios == 0 || seconds == 0.0 {
        return None;
    }
    Some(PageFigure {
        ios,
        iops: PageRate::new(ios as f64 / seconds, None),
        latency: curve::latency(&merged(workers.iter().map(|worker| &worker.sync.lat))),
        ..blank(result, workers, Subject::Sync)
    })
}

/// Fields that all figures of a group of workers share.
fn blank(result: &RunResult, workers: &[&WorkerResult], direction: Subject) -> PageFigure {
    let nothing = PageRate::new(0.0, None);
    PageFigure {
        job: None,
        direction,
        rw: common_value(worker_jobs(result, workers).map(|job| job.workload.rw.name()))
            .unwrap_or_default()
            .to_owned(),
        block_bytes: [0, 0],
        iodepth: common_value(worker_jobs(result, workers).map(|job| job.io.iodepth)).unwrap_or(0),
        workers: workers.len() as u32,
        engine: common_value(workers.iter().map(|worker| worker.backend.engine))
            .map_or("", Engine::name)
            .to_owned(),
        direct: Some(workers.iter().all(|worker| worker.backend.direct)),
        ios: 0,
        bytes: 0,
        iops: nothing,
        bytes_per_s: nothing,
        settled: None,
        sure: None,
        shape: None,
        latency_kind: PageLatencyKind::Total,
        latency: curve::latency(&LatencyStats::default()),
        percentile_bounds: [None; 3],
        mean_bounds: None,
        shown: PageFigureTexts::default(),
    }
}

/// The job of each worker.
fn worker_jobs<'a>(
    result: &'a RunResult,
    workers: &'a [&WorkerResult],
) -> impl Iterator<Item = &'a Job> {
    workers.iter().map(|worker| &result.plan.jobs[worker.job])
}

/// The common value, if all are equal.
fn common_value<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

fn merged<'a>(parts: impl Iterator<Item = &'a LatencyStats>) -> LatencyStats {
    let mut merged = LatencyStats::default();
    parts.for_each(|part| merged.merge(part));
    merged
}

/// Estimates the errors of a figure's rates, and whether the rate is stable, from the intervals.
fn estimate(figure: &mut PageFigure, result: &RunResult) {
    let mut directions = Direction::ALL.into_iter();
    let is_of_figure = |direction: &Direction| Subject::from(*direction) == figure.direction;
    let Some(direction) = directions.find(is_of_figure) else {
        return;
    };
    let rates = |count: fn(&IntervalCounts) -> u64| -> Vec<f64> {
        complete(&result.intervals)
            .map(|slice| count(&slice.directions[direction]) as f64 * 1e9 / slice.length_ns as f64)
            .collect()
    };
    let slots = SlotTime::from_run(result);
    let error = |rate: PageRate, rates: &[f64]| {
        bounds_of_rates(rate.mean, rates, figure.ios, &slots).map(|bounds| bounds.high - rate.mean)
    };
    let ios = rates(|counts| counts.ios);
    let bytes = rates(|counts| counts.bytes);
    let errors = (error(figure.iops, &ios), error(figure.bytes_per_s, &bytes));
    (figure.iops.error, figure.bytes_per_s.error) = errors;
    let unsteady = result
        .verdicts
        .iter()
        .any(|verdict| verdict.kind == VerdictKind::Unsteady);
    figure.settled = is_rate_steady(&ios).map(|still| still && !unsteady);
}

/// Complete intervals of the measured time. The last one may be cut off.
fn complete(intervals: &Intervals) -> impl Iterator<Item = Cow<'_, Interval>> {
    let longest = intervals.iter().map(|slice| slice.length_ns).max();
    let longest = longest.unwrap_or(0);
    intervals
        .iter()
        .filter(move |slice| !slice.ramp && slice.length_ns > longest / 2)
}
