//! One plan, run by several pods at the same time: what each has done, and all of it put together.
//!
//! The sum has the form of a single pod's result, so that every format shows it: worker by worker, counts add up, latencies
//! are merged, the runtime is the longest. That is fio's rule for a reporting group.

use crate::fio::aggregate::{add_cpu, add_direction, add_each};
use crate::histogram::Histogram;
use crate::interval::{Interval, Intervals};
use crate::machine::MachineSeries;
use crate::run::{DirectionStats, DiskUtil, Event, RunResult, Verdict, VerdictKind, WorkerResult};
use iosonde_job::plan::{Direction, PerDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What one pod has done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodResult {
    /// The pod's name.
    pub name: String,
    /// The node that it ran on.
    pub node: String,
    /// How long after the agreed instant its first job began.
    pub started_ns: u64,
    /// How far off the pod's notion of that instant may be: half of the fastest exchange with its clock. 0 where pods
    /// started by themselves: then the first to start is the instant, by the clocks of their nodes.
    pub clock_error_ns: u64,
    /// Its workers, in plan order.
    pub workers: Vec<WorkerResult>,
    /// What its block devices did meanwhile.
    pub disks: Vec<DiskUtil>,
    /// What the devices and the node did meanwhile, slice by slice.
    pub series: MachineSeries,
    /// What its numbers mean.
    pub verdicts: Vec<Verdict>,
}

/// What one pod brings home.
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
    /// Its own result.
    pub result: RunResult,
}

/// The figures of a pod, of a node, or of all: one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Direction.
    pub direction: Direction,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Percentiles of the completion latency (total latency where that alone was measured), in nanoseconds: 50, 99, 99.9.
    pub latency_ns: Option<[u64; 3]>,
}

/// Puts the results of all pods together. `None` without any.
pub fn combined(mut pods: Vec<PodRun>) -> Option<RunResult> {
    let mut sum = pods.first()?.result.clone();
    sum.workers = merged(pods.iter().map(|pod| (&pod.name, &pod.result.workers)));
    sum.started_at_ms = pods.iter().map(|pod| pod.result.started_at_ms).min()?;
    sum.elapsed_ns = pods.iter().map(|pod| pod.result.elapsed_ns).max()?;
    sum.intervals = intervals(&pods);
    sum.verdicts = verdicts(&pods);
    // Of a node with several pods one tells of its devices; of several nodes each has devices of its own.
    sum.series = MachineSeries::default();
    sum.disks.clear();
    sum.nfs.clear();
    sum.events.clear();
    let mut nodes: Vec<&str> = Vec::new();
    let mut mounts: Vec<(&str, &str)> = Vec::new();
    for pod in &pods {
        let result = &pod.result;
        sum.labels
            .retain(|key, value| result.labels.get(key) == Some(value));
        // Pods of one node that mount the same export share its counters; each may have mounts of its own.
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
        sum.events.extend(result.events.iter().map(|event| Event {
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

/// Time between the first and the last pod to start, and how far off that may be.
pub fn start_skew_ns(pods: &[PodResult]) -> Option<(u64, u64)> {
    let first = pods.iter().map(|pod| pod.started_ns).min()?;
    let last = pods.iter().map(|pod| pod.started_ns).max()?;
    let mut errors: Vec<u64> = pods.iter().map(|pod| pod.clock_error_ns).collect();
    errors.sort_unstable();
    let error = errors.iter().rev().take(2).sum();
    Some((last - first, error))
}

/// The nodes of these pods, each once, in order.
pub fn nodes(pods: &[PodResult]) -> Vec<&str> {
    let mut nodes: Vec<&str> = pods.iter().map(|pod| pod.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Pods, nodes and all together as data.
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

/// What these pods did together, for each direction in which anything was done.
pub fn shares<'a>(pods: impl Iterator<Item = &'a PodResult>) -> Vec<Share> {
    let mut sums: PerDirection<DirectionStats> = PerDirection::default();
    let mut rates: PerDirection<(f64, f64)> = PerDirection::default();
    for worker in pods.flat_map(|pod| &pod.workers) {
        for direction in Direction::ALL {
            let stats = &worker.directions[direction];
            add_direction(&mut sums[direction], stats);
            if stats.runtime_ns > 0 {
                let seconds = stats.runtime_ns as f64 / 1e9;
                rates[direction].0 += stats.total_ios as f64 / seconds;
                rates[direction].1 += stats.io_bytes as f64 / seconds;
            }
        }
    }
    let moved = Direction::ALL
        .into_iter()
        .filter(|direction| sums[*direction].total_ios > 0);
    moved
        .map(|direction| Share {
            direction,
            iops: rates[direction].0,
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

/// Worker by worker, in plan order.
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
                Some(sum) => add(sum, worker),
                None => sums.push(worker),
            }
        }
    }
    sums.sort_by_key(|worker| (worker.job, worker.clone));
    sums
}

fn add(sum: &mut WorkerResult, more: WorkerResult) {
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
    sum.cpu.queued_ns += more.cpu.queued_ns;
    add_each(&mut sum.iodepth_level, &more.iodepth_level);
    add_each(&mut sum.iodepth_submit, &more.iodepth_submit);
    add_each(&mut sum.iodepth_complete, &more.iodepth_complete);
    // Whether a rate was steady is known of each pod alone.
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

/// Slice by slice from the common start, as far as all pods have them.
fn intervals(pods: &[PodRun]) -> Intervals {
    let mut each: Vec<_> = pods.iter().map(|pod| pod.result.intervals.iter()).collect();
    let sums = std::iter::from_fn(|| {
        let slices: Option<Vec<_>> = each.iter_mut().map(Iterator::next).collect();
        let slices = slices.filter(|slices| !slices.is_empty())?;
        Some(interval(slices.iter().map(|slice| &**slice)))
    });
    sums.collect()
}

/// The same slice of all pods as one.
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

/// Each kind once, with the evidence of the first pod that has it.
fn verdicts(pods: &[PodRun]) -> Vec<Verdict> {
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
            (count, all) if count == all => format!(" (so in all {all} pods; here {})", pod.name),
            (count, all) => format!(" (so in {count} of {all} pods; here {})", pod.name),
        };
        Some(Verdict {
            kind,
            evidence: format!("{}{whose}", first.evidence),
        })
    };
    kinds.into_iter().filter_map(of).collect()
}
