//! Adds several runs of one workload to one result. Latencies are added by histogram.
//!
//! Runs at the same time are added as further clones of each job, by the sum that pods have: counts
//! and rates add up. Runs one after another are added to the time of each clone: counts and times
//! add up, so that a rate is the mean over the whole time.

mod merge_error;
mod run_difference;

use crate::host::Host;
use crate::interval::Intervals;
use crate::machine::MachineSeries;
use crate::pods::{PodRun, sum_of_members};
use crate::run::{RunResult, WorkerResult};
use crate::stats::Moments;
use crate::words;
use iosonde_job::plan::Direction;
use run_difference::run_differences;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use merge_error::MergeError;
pub use run_difference::RunDifference;

/// Least share of the longer run in which runs at the same time overlap.
const PARALLEL_SHARE_MIN: f64 = 0.9;
/// Largest share of the shorter run in which runs one after another overlap: clocks differ.
const SERIAL_SHARE_MAX: f64 = 0.1;
const _: () = assert!(SERIAL_SHARE_MAX < PARALLEL_SHARE_MIN);
/// Runs whose times a note names.
const SHOWN_TIMES: usize = 4;

/// Whether runs took place at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeTiming {
    /// At the same time: rates add up.
    Parallel,
    /// One after another: times add up.
    Serial,
}

/// A run to add.
#[derive(Debug, Clone)]
pub struct RunToMerge {
    /// Name of the run in the history.
    pub name: String,
    /// Id that no other run has: that of the study, with the number of the run. `None`: the run
    /// comes from a file.
    pub id: Option<String>,
    /// Kind of its study.
    pub kind: String,
    /// The result.
    pub result: RunResult,
    /// The runs that the result is a sum of. Empty: it is a single run.
    pub members: Vec<MergedRun>,
}

/// The runs of a sum, as the history stores them beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeSummary {
    /// Whether the runs took place at the same time.
    pub timing: MergeTiming,
    /// The runs in the order of their start.
    pub runs: Vec<MergedRun>,
}

/// A run of a sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergedRun {
    /// Name of the run in the history.
    pub name: String,
    /// Id of the run in the history. `None`: it comes from a file, or an older version stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Kind of its study.
    pub kind: String,
    /// Machine that it ran on, if known.
    pub machine: Option<String>,
    /// Start, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Duration, layout included.
    pub elapsed_ns: u64,
    /// Its I/Os.
    pub total_ios: u64,
    /// The runs that it is a sum of. Empty: it is a single run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MergedRun>,
}

/// Adds runs. Without `timing` their times decide.
///
/// # Errors
/// Fails if the runs measured different workloads, or if it is unclear whether their rates add up.
pub fn merge_runs(
    mut runs: Vec<RunToMerge>,
    timing: Option<MergeTiming>,
) -> Result<(RunResult, MergeSummary), MergeError> {
    refuse_unlike(&runs)?;
    debug_assert!(runs.len() >= 2, "fewer runs are refused");
    runs.sort_by_key(|run| run.result.started_at_ms);
    let mut notes = Vec::new();
    let timing = match timing {
        Some(timing) => {
            let is_serial = timing_of(&runs) == Ok(MergeTiming::Serial);
            if timing == MergeTiming::Parallel && is_serial {
                notes.push(serial_note(&runs));
            }
            timing
        }
        None => timing_of(&runs)?,
    };
    let summary = MergeSummary {
        timing,
        runs: runs.iter().map(MergedRun::from_run).collect(),
    };
    let labels = common_labels(&runs);
    let members: Vec<PodRun> = runs.into_iter().map(into_member).collect();
    let added = match timing {
        MergeTiming::Parallel => in_parallel(members),
        MergeTiming::Serial => in_sequence(members),
    };
    let mut sum = added.ok_or(MergeError::TooFew)?;
    // Counters of devices and nodes belong to the time of one run.
    sum.pods.clear();
    sum.disks.clear();
    sum.nodes.clear();
    sum.nfs.clear();
    sum.ceph = None;
    sum.series = MachineSeries::default();
    sum.labels = labels;
    notes.insert(0, summary.words());
    sum.notes = notes;
    Ok((sum, summary))
}

/// Refuses runs that are not several measurements of one workload.
fn refuse_unlike(runs: &[RunToMerge]) -> Result<(), MergeError> {
    let [first, others @ ..] = runs else {
        return Err(MergeError::TooFew);
    };
    if others.is_empty() {
        return Err(MergeError::TooFew);
    }
    for (index, run) in runs.iter().enumerate() {
        let is_same = |other: &&RunToMerge| is_same_run(other, run);
        if let Some(earlier) = runs[..index].iter().find(is_same) {
            return Err(MergeError::Twice {
                first: earlier.name.clone(),
                other: run.name.clone(),
            });
        }
        for earlier in &runs[..index] {
            if let Some(common) = common_run(earlier, run) {
                return Err(MergeError::Contained {
                    first: earlier.name.clone(),
                    other: run.name.clone(),
                    run: common,
                });
            }
        }
        if total_ios(&run.result) == 0 {
            let name = run.name.clone();
            return Err(MergeError::NoIo { name });
        }
    }
    for other in others {
        let mut differences = run_differences(&first.result, &other.result);
        if first.kind != other.kind {
            differences.insert(
                0,
                RunDifference {
                    job: None,
                    property: "kind".to_owned(),
                    first: first.kind.clone(),
                    other: other.kind.clone(),
                },
            );
        }
        if !differences.is_empty() {
            return Err(MergeError::Unlike {
                first: first.name.clone(),
                other: other.name.clone(),
                differences,
            });
        }
    }
    Ok(())
}

/// Returns whether two results are one measurement. A simulated run has no start, so two runs of
/// one seed have equal figures: only their ids tell them apart.
fn is_same_run(first: &RunToMerge, other: &RunToMerge) -> bool {
    if first.name == other.name {
        return true;
    }
    match (&first.id, &other.id) {
        (Some(id), Some(other_id)) if id == other_id => true,
        (Some(_), Some(_)) if first.result.started_at_ms == 0 => false,
        _ => {
            first.result.started_at_ms == other.result.started_at_ms
                && first.result.workers == other.result.workers
        }
    }
}

/// Returns the name of a run that a sum and another result both contain.
fn common_run(first: &RunToMerge, other: &RunToMerge) -> Option<String> {
    if first.members.is_empty() && other.members.is_empty() {
        return None;
    }
    let contained = |run: &RunToMerge| MergedRun::from_run(run).single_runs();
    let others = contained(other);
    let is_same = |a: &MergedRun, b: &MergedRun| match (&a.id, &b.id) {
        (Some(id), Some(other_id)) if id == other_id => true,
        (Some(_), Some(_)) if a.started_at_ms == 0 => false,
        _ => {
            (a.started_at_ms, a.elapsed_ns, a.total_ios, &a.machine)
                == (b.started_at_ms, b.elapsed_ns, b.total_ios, &b.machine)
        }
    };
    let mut all = contained(first).into_iter();
    let common = all.find(|run| others.iter().any(|other| is_same(run, other)));
    common.map(|run| run.name)
}

/// Returns start and end of the measured part of a run, in nanoseconds since the Unix epoch. Layout
/// and ramp do not count: runs that only lay out files at the same time have no common I/O.
fn measured_time(run: &RunResult) -> (f64, f64) {
    let workers = run.workers.iter().filter(|worker| worker.runtime_ns > 0);
    let times = workers.map(|worker| {
        let start_ns = worker.started_at_ms as f64 * 1e6;
        (start_ns, start_ns + worker.runtime_ns as f64)
    });
    let all = times.reduce(|(from, to), (start, end)| (from.min(start), to.max(end)));
    all.unwrap_or_else(|| {
        let start_ns = run.started_at_ms as f64 * 1e6;
        (start_ns, start_ns + run.elapsed_ns as f64)
    })
}

/// Decides by their times whether runs took place at the same time.
fn timing_of(runs: &[RunToMerge]) -> Result<MergeTiming, MergeError> {
    let mut pairs = Vec::new();
    for (index, first) in runs.iter().enumerate() {
        pairs.extend(runs[index + 1..].iter().map(|other| (first, other)));
    }
    let shares = |(first, other): &(&RunToMerge, &RunToMerge)| {
        let (from, to) = measured_time(&first.result);
        let (other_from, other_to) = measured_time(&other.result);
        let both_ns = (to.min(other_to) - from.max(other_from)).max(0.0);
        let (length_ns, other_ns) = (to - from, other_to - other_from);
        let share = |of_ns: f64| both_ns / of_ns.max(1.0);
        (
            share(length_ns.max(other_ns)),
            share(length_ns.min(other_ns)),
        )
    };
    if pairs
        .iter()
        .all(|pair| shares(pair).0 >= PARALLEL_SHARE_MIN)
    {
        return Ok(MergeTiming::Parallel);
    }
    match pairs.iter().find(|pair| shares(pair).1 > SERIAL_SHARE_MAX) {
        None => Ok(MergeTiming::Serial),
        Some((first, other)) => Err(MergeError::PartlyAtOnce {
            first: first.name.clone(),
            other: other.name.clone(),
        }),
    }
}

/// Notes that runs whose rates are added ran one after another, with their times.
fn serial_note(runs: &[RunToMerge]) -> String {
    let times = runs.iter().map(|run| measured_time(&run.result));
    let times: Vec<(f64, f64)> = times.collect();
    let first_ns = times.iter().map(|(from, _)| *from).fold(f64::MAX, f64::min);
    let shown = |at_ns: f64| words::duration((at_ns - first_ns) / 1e9);
    let mut each: Vec<String> = (runs.iter().zip(&times))
        .map(|(run, (from, to))| format!("{} from {} to {}", run.name, shown(*from), shown(*to)))
        .collect();
    if each.len() > SHOWN_TIMES {
        each.truncate(SHOWN_TIMES);
        each.push(format!("and {} more", runs.len() - SHOWN_TIMES));
    }
    format!(
        "the rates are added, but the clocks say that the runs measured one after another, counted \
         from the first I/O: {}; without --timing, a rate is the mean over their time",
        each.join(", ")
    )
}

fn common_labels(runs: &[RunToMerge]) -> BTreeMap<String, String> {
    let mut labels = match runs.first() {
        Some(first) => first.result.labels.clone(),
        None => BTreeMap::new(),
    };
    labels.retain(|key, value| {
        let value = &*value;
        let mut others = runs.iter().map(|run| run.result.labels.get(key));
        others.all(|other| other == Some(value))
    });
    labels
}

fn into_member(run: RunToMerge) -> PodRun {
    PodRun {
        node: host_name(&run.result.host),
        name: run.name,
        started_ns: 0,
        clock_error_ns: 0,
        result: run.result,
    }
}

fn host_name(host: &Host) -> String {
    host.hostname.clone().unwrap_or_default()
}

/// Adds runs at the same time: each run has clones of its own in the sum.
fn in_parallel(mut runs: Vec<PodRun>) -> Option<RunResult> {
    let count = u32::try_from(runs.len()).ok()?;
    for (number, run) in (0..count).zip(&mut runs) {
        let result = &mut run.result;
        for worker in &mut result.workers {
            let numjobs = result.plan.jobs[worker.job].numjobs;
            worker.clone += number.saturating_mul(numjobs);
        }
    }
    let mut sum = sum_of_members(runs, "runs")?;
    for job in &mut sum.plan.jobs {
        job.numjobs = job.numjobs.saturating_mul(count);
        job.measure.group_reporting = true;
    }
    Some(sum)
}

/// Adds runs one after another: the times of each clone add up.
fn in_sequence(mut runs: Vec<PodRun>) -> Option<RunResult> {
    let (intervals, elapsed_ns) = intervals_in_sequence(&mut runs);
    let mut sum = sum_of_members(runs, "runs")?;
    sum.intervals = intervals;
    sum.elapsed_ns = elapsed_ns;
    for worker in &mut sum.workers {
        let members = sum.pods.iter().flat_map(|run| &run.workers);
        let members: Vec<&WorkerResult> = members
            .filter(|member| (member.job, member.clone) == (worker.job, worker.clone))
            .collect();
        worker.runtime_ns = members.iter().map(|member| member.runtime_ns).sum();
        worker.elapsed_ns = members.iter().map(|member| member.elapsed_ns).sum();
        for direction in Direction::ALL {
            let stats = &mut worker.directions[direction];
            let each = members.iter().map(|member| &member.directions[direction]);
            stats.runtime_ns = each.clone().map(|member| member.runtime_ns).sum();
            stats.bw = Moments::default();
            stats.iops = Moments::default();
            for member in each {
                stats.bw.merge(&member.bw);
                stats.iops.merge(&member.iops);
            }
        }
    }
    Some(sum)
}

/// Returns the intervals of all runs as if each run began when the previous one ended, and the time
/// of all runs. Moves the events of each run by the same time.
fn intervals_in_sequence(runs: &mut [PodRun]) -> (Intervals, u64) {
    let mut all = Intervals::default();
    let mut before_ns = 0u64;
    for run in runs {
        let mut end_ns = run.result.elapsed_ns;
        for interval in &run.result.intervals {
            let mut interval = interval.into_owned();
            end_ns = end_ns.max(interval.start_ns.saturating_add(interval.length_ns));
            interval.start_ns = interval.start_ns.saturating_add(before_ns);
            all.push(interval);
        }
        for event in &mut run.result.events {
            event.at_ns = event.at_ns.saturating_add(before_ns);
        }
        before_ns = before_ns.saturating_add(end_ns);
    }
    (all, before_ns)
}

fn total_ios(run: &RunResult) -> u64 {
    let stats = run.workers.iter().flat_map(|worker| {
        let directions = worker.directions.iter();
        directions.map(|(_, stats)| stats.total_ios)
    });
    stats.sum()
}

impl MergedRun {
    fn from_run(run: &RunToMerge) -> MergedRun {
        MergedRun {
            name: run.name.clone(),
            id: run.id.clone(),
            kind: run.kind.clone(),
            machine: run.result.host.hostname.clone(),
            started_at_ms: run.result.started_at_ms,
            elapsed_ns: run.result.elapsed_ns,
            total_ios: total_ios(&run.result),
            members: run.members.clone(),
        }
    }

    /// Returns the single runs of a sum, also of a sum of sums.
    fn single_runs(self) -> Vec<MergedRun> {
        match self.members.is_empty() {
            true => vec![self],
            false => (self.members.into_iter())
                .flat_map(MergedRun::single_runs)
                .collect(),
        }
    }
}

impl MergeSummary {
    /// Describes the sum in one sentence.
    pub fn words(&self) -> String {
        let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
        let (when, rates) = match self.timing {
            MergeTiming::Parallel => ("at the same time", "rates and clones add up"),
            MergeTiming::Serial => ("one after another", "a rate is the mean over their time"),
        };
        format!(
            "sum of {} {when} ({}): {rates}; devices, CPUs and nodes are only in the single runs",
            words::counted(self.runs.len(), "run"),
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests;
