//! Results of several pods that run one plan at the same time, and their sum.
//!
//! The sum has the form of a single pod's result, so that every format can show it. Workers of one
//! job and clone are combined by fio's rule for a reporting group: counts add up, latencies are
//! merged, and the runtime is the longest.

use crate::cache_state::combine_caches;
use crate::compare::bounds_of_samples;
use crate::histogram::Histogram;
use crate::interval::{Interval, Intervals};
use crate::littles_law::SlotTime;
use crate::machine::MachineSeries;
use crate::run::{
    DirectionStats, DiskUtil, RunEvent, RunResult, Verdict, VerdictKind, WorkerResult,
};
use crate::worker_sums::{add_cpu, add_direction, add_each};
use iosonde_job::plan::{Direction, PerDirection};
use serde::Serialize;
use serde_json::{Value, json};

pub use crate::pod_result::PodResult;
pub use crate::pod_totals::PodTotals;

/// Result of one pod before it is combined with others.
#[derive(Debug, Clone)]
pub struct PodRun {
    /// As [`PodResult::name`].
    pub name: String,
    /// As [`PodResult::node`].
    pub node: String,
    /// As [`PodResult::started_ns`].
    pub started_ns: u64,
    /// As [`PodResult::clock_error_ns`].
    pub clock_error_ns: u64,
    /// Result that the pod's session returned.
    pub result: RunResult,
}

/// Figures of one direction, for a pod, a node or all pods.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PodShare {
    /// Direction of the I/O.
    pub direction: Direction,
    /// I/Os per second.
    pub iops: f64,
    /// Half the 95 % interval of the rate, from the samples of each worker. Their errors are added,
    /// as workers that share a target slow down together. `None`: too few samples.
    #[serde(skip)]
    pub iops_error: Option<f64>,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Completion latency (or else total latency) in nanoseconds: percentiles 50, 99 and 99.9.
    pub latency_ns: Option<[u64; 3]>,
}

/// Combines the results of all pods. Returns `None` if there are none.
pub fn combined(pods: Vec<PodRun>) -> Option<RunResult> {
    sum_of_members(pods, "pods")
}

/// As [`combined`]. `members` is the word for the pods in the evidence of verdicts.
pub(crate) fn sum_of_members(mut pods: Vec<PodRun>, members: &str) -> Option<RunResult> {
    let mut sum = pods.first()?.result.clone();
    sum.workers = merged(pods.iter().map(|pod| (&pod.name, &pod.result.workers)));
    sum.neighbours = merged(pods.iter().map(|pod| (&pod.name, &pod.result.neighbours)));
    let issued = |workers: &[WorkerResult]| -> u64 {
        let stats = workers.iter().flat_map(|worker| worker.directions.iter());
        stats.map(|(_, stats)| stats.total_ios).sum()
    };
    debug_assert_eq!(
        issued(&sum.workers),
        pods.iter()
            .map(|pod| issued(&pod.result.workers))
            .sum::<u64>(),
        "the sum has the I/Os of all pods"
    );
    sum.started_at_ms = pods.iter().map(|pod| pod.result.started_at_ms).min()?;
    sum.elapsed_ns = pods.iter().map(|pod| pod.result.elapsed_ns).max()?;
    sum.intervals = intervals(&pods);
    sum.verdicts = verdicts(&pods, members);
    // Pods of one node see the same devices, so one suffices. Different nodes have different ones.
    sum.series = MachineSeries::default();
    sum.disks.clear();
    sum.nfs.clear();
    sum.shared_file = None;
    sum.events.clear();
    sum.caches = combine_caches(pods.iter().map(|pod| pod.result.caches.as_slice()));
    let mut nodes: Vec<&str> = Vec::new();
    let mut mounts: Vec<(&str, &str)> = Vec::new();
    for pod in &pods {
        let result = &pod.result;
        sum.host.keep_common_facts(&result.host);
        sum.labels
            .retain(|key, value| result.labels.get(key) == Some(value));
        // Pods of one node that mount the same export share its counters.
        let of_others = mounts.len();
        for side in &result.nfs {
            let mount = (pod.node.as_str(), side.source.as_str());
            if !mounts[..of_others].contains(&mount) {
                sum.nfs.push(side.clone());
            }
            mounts.push(mount);
        }
        for target in &result.targets {
            if !sum.targets.contains(target) {
                sum.targets.push(target.clone());
            }
        }
        sum.events
            .extend(result.events.iter().map(|event| RunEvent {
                message: format!("{}: {}", pod.name, event.message),
                ..event.clone()
            }));
        if !nodes.contains(&pod.node.as_str()) {
            nodes.push(&pod.node);
            sum.disks.extend(result.disks.iter().map(|disk| DiskUtil {
                name: format!("{}/{}", pod.node, disk.name),
                ..disk.clone()
            }));
        }
    }
    if nodes.len() == 1 {
        sum.disks = pods[0].result.disks.clone();
        sum.series = pods[0].result.series.clone();
    }
    sum.labels.insert("pods".to_owned(), pods.len().to_string());
    sum.labels
        .insert("nodes".to_owned(), nodes.len().to_string());
    sum.pods = pods.drain(..).map(PodRun::into_result).collect();
    Some(sum)
}

impl PodRun {
    fn into_result(self) -> PodResult {
        PodResult {
            name: self.name,
            node: self.node,
            started_ns: self.started_ns,
            clock_error_ns: self.clock_error_ns,
            workers: self.result.workers,
            disks: self.result.disks,
            series: self.result.series,
            verdicts: self.result.verdicts,
        }
    }
}

/// Returns the time between the starts of the first and the last pod, and its error.
pub fn start_skew_ns(pods: &[PodResult]) -> Option<(u64, u64)> {
    let first = pods.iter().map(|pod| pod.started_ns).min()?;
    let last = pods.iter().map(|pod| pod.started_ns).max()?;
    let mut errors: Vec<u64> = pods.iter().map(|pod| pod.clock_error_ns).collect();
    errors.sort_unstable();
    let error = errors.iter().rev().take(2).sum();
    Some((last - first, error))
}

/// Returns the nodes of these pods, sorted and without duplicates.
pub fn nodes(pods: &[PodResult]) -> Vec<&str> {
    let mut nodes: Vec<&str> = pods.iter().map(|pod| pod.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns the figures of each pod, each node and all pods as JSON.
pub(crate) fn summary(pods: &[PodResult]) -> Value {
    let each = pods.iter().map(|pod| {
        json!({
            "name": pod.name,
            "node": pod.node,
            "started_ns": pod.started_ns,
            "clock_error_ns": pod.clock_error_ns,
            "shares": shares([pod].into_iter()),
        })
    });
    let of_node = |node: &str| shares(pods.iter().filter(|pod| pod.node == node));
    let nodes = nodes(pods).into_iter();
    let nodes = nodes.map(|node| json!({"name": node, "shares": of_node(node)}));
    let (skew_ns, error_ns) = start_skew_ns(pods).unwrap_or_default();
    json!({
        "start_skew_ns": skew_ns,
        "start_skew_error_ns": error_ns,
        "each": each.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "all": shares(pods.iter()),
    })
}

/// Returns the summed figures of these pods, for each direction with I/O.
pub fn shares<'a>(pods: impl Iterator<Item = &'a PodResult>) -> Vec<PodShare> {
    let mut sums: PerDirection<DirectionStats> = PerDirection::default();
    let mut rates: PerDirection<(f64, f64)> = PerDirection::default();
    let mut errors: PerDirection<Option<f64>> = PerDirection::from_fn(|_| Some(0.0));
    for worker in pods.flat_map(|pod| &pod.workers) {
        for direction in Direction::ALL {
            let stats = &worker.directions[direction];
            add_direction(&mut sums[direction], stats);
            if stats.runtime_ns > 0 {
                let seconds = stats.runtime_ns as f64 / 1e9;
                let iops = stats.total_ios as f64 / seconds;
                let bounds = bounds_of_samples(iops, &stats.iops, &SlotTime::default());
                let error = bounds.map(|bounds| bounds.high - iops);
                if stats.total_ios > 0 {
                    errors[direction] =
                        errors[direction].zip(error).map(|(sum, error)| sum + error);
                }
                rates[direction].0 += iops;
                rates[direction].1 += stats.io_bytes as f64 / seconds;
            }
        }
    }
    let moved = Direction::ALL
        .into_iter()
        .filter(|direction| sums[*direction].total_ios > 0);
    moved
        .map(|direction| PodShare {
            direction,
            iops: rates[direction].0,
            iops_error: errors[direction],
            bytes_per_second: rates[direction].1,
            latency_ns: latency(&sums[direction]),
        })
        .collect()
}

fn latency(stats: &DirectionStats) -> Option<[u64; 3]> {
    let known = |stats: &crate::stats::LatencyStats| percentiles(stats.histogram.as_ref()?);
    known(&stats.clat).or_else(|| known(&stats.lat))
}

fn percentiles(histogram: &Histogram) -> Option<[u64; 3]> {
    let at = |percent| histogram.percentile(percent);
    Some([at(50.0)?, at(99.0)?, at(99.9)?])
}

/// Combines workers with the same job and clone, in plan order.
fn merged<'a>(
    pods: impl Iterator<Item = (&'a String, &'a Vec<WorkerResult>)>,
) -> Vec<WorkerResult> {
    let mut sums: Vec<WorkerResult> = Vec::new();
    for (pod, workers) in pods {
        for worker in workers {
            let mut worker = worker.clone();
            if let Some(error) = &mut worker.error {
                error.message = format!("{pod}: {}", error.message);
            }
            let is_same =
                |sum: &&mut WorkerResult| (sum.job, sum.clone) == (worker.job, worker.clone);
            match sums.iter_mut().find(is_same) {
                Some(sum) => add_worker(sum, worker),
                None => sums.push(worker),
            }
        }
    }
    sums.sort_by_key(|worker| (worker.job, worker.clone));
    assert!(
        sums.is_sorted_by(|a, b| (a.job, a.clone) < (b.job, b.clone)),
        "each clone of a job has one sum"
    );
    sums
}

fn add_worker(sum: &mut WorkerResult, more: WorkerResult) {
    for direction in Direction::ALL {
        add_direction(&mut sum.directions[direction], &more.directions[direction]);
    }
    sum.started_at_ms = sum.started_at_ms.min(more.started_at_ms);
    sum.start_delay_ns = sum.start_delay_ns.max(more.start_delay_ns);
    sum.runtime_ns = sum.runtime_ns.max(more.runtime_ns);
    sum.elapsed_ns = sum.elapsed_ns.max(more.elapsed_ns);
    sum.sync.total_ios += more.sync.total_ios;
    sum.sync.other_than_fsync += more.sync.other_than_fsync;
    sum.sync.lat.merge(&more.sync.lat);
    add_cpu(&mut sum.cpu, &more.cpu);
    add_each(&mut sum.iodepth_level, &more.iodepth_level);
    add_each(&mut sum.iodepth_submit, &more.iodepth_submit);
    add_each(&mut sum.iodepth_complete, &more.iodepth_complete);
    // Steady state is known only for each pod, not for the sum.
    sum.steady_state = None;
    sum.error = sum.error.take().or(more.error);
    sum.total_errors += more.total_errors;
    if sum.first_error == 0 {
        sum.first_error = more.first_error;
    }
    if sum.backend.reason.is_none() {
        sum.backend = more.backend;
    }
}

/// Sums the intervals from the common start on, as long as all pods have one.
fn intervals(pods: &[PodRun]) -> Intervals {
    let mut each: Vec<_> = pods.iter().map(|pod| pod.result.intervals.iter()).collect();
    let sums = std::iter::from_fn(|| {
        let slices: Option<Vec<_>> = each.iter_mut().map(Iterator::next).collect();
        let slices = slices.filter(|slices| !slices.is_empty())?;
        Some(interval(slices.iter().map(|slice| &**slice)))
    });
    let sums: Intervals = sums.collect();
    debug_assert!(
        pods.iter()
            .all(|pod| sums.len() <= pod.result.intervals.len()),
        "each sum has an interval of each pod"
    );
    sums
}

/// Sums one interval of all pods.
pub fn interval<'a>(slices: impl Iterator<Item = &'a Interval>) -> Interval {
    let mut sum: Option<Interval> = None;
    for slice in slices {
        let Some(sum) = &mut sum else {
            sum = Some(slice.clone());
            continue;
        };
        sum.length_ns = sum.length_ns.max(slice.length_ns);
        sum.ramp |= slice.ramp;
        sum.stopped_ns = sum.stopped_ns.max(slice.stopped_ns);
        sum.add(slice);
    }
    sum.unwrap_or_default()
}

/// Returns each kind of verdict once, with the evidence of the first pod that has it.
fn verdicts(pods: &[PodRun], members: &str) -> Vec<Verdict> {
    let mut kinds: Vec<VerdictKind> = Vec::new();
    for verdict in pods.iter().flat_map(|pod| &pod.result.verdicts) {
        if !kinds.contains(&verdict.kind) {
            kinds.push(verdict.kind);
        }
    }
    let of = |kind: VerdictKind| {
        let has = |pod: &&PodRun| {
            pod.result
                .verdicts
                .iter()
                .any(|verdict| verdict.kind == kind)
        };
        let count = pods.iter().filter(has).count();
        let pod = pods.iter().find(has)?;
        let first = pod
            .result
            .verdicts
            .iter()
            .find(|verdict| verdict.kind == kind)?;
        let whose = match (count, pods.len()) {
            (_, 1) => String::new(),
            (count, all) if count == all => {
                format!(" (in all {all} {members}; these figures: {})", pod.name)
            }
            (count, all) => {
                let name = &pod.name;
                format!(" (in {count} of {all} {members}; these figures: {name})")
            }
        };
        Some(Verdict {
            kind,
            evidence: format!("{}{whose}", first.evidence),
            cause: first.cause.clone(),
        })
    };
    let found: Vec<Verdict> = kinds.iter().copied().filter_map(of).collect();
    assert_eq!(found.len(), kinds.len(), "each kind is that of a pod");
    found
}
