//! Latencies of a whole run as they are stored: moments and histogram of each kind.

use crate::compare::Subject;
use crate::run::{DirectionStats, RunResult, WorkerResult};
use crate::stats::LatencyStats;
use iosonde_job::plan::{Direction, UnifiedReporting};

/// The part of an I/O that a latency covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKind {
    /// From the intended start, or else from the actual one, to the completion.
    Total,
    /// fio's total latency: from the actual start, if `Total` counts from the intended one.
    Started,
    /// From the submission to the completion.
    Completion,
    /// From the start to the submission.
    Submission,
}

impl LatencyKind {
    /// Returns the name in documents.
    pub fn name(self) -> &'static str {
        match self {
            LatencyKind::Total => "lat",
            LatencyKind::Started => "started_lat",
            LatencyKind::Completion => "clat",
            LatencyKind::Submission => "slat",
        }
    }

    /// Returns the words in tables.
    pub fn words(self) -> &'static str {
        match self {
            LatencyKind::Total => "latency",
            LatencyKind::Started => "latency from the actual start",
            LatencyKind::Completion => "completion latency",
            LatencyKind::Submission => "submission latency",
        }
    }
}

/// Latencies of one kind, summed over the workers of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLatency {
    /// Name of the part: its job. Equal names of several reporting groups are numbered.
    pub part: String,
    /// The I/O that was timed.
    pub subject: Subject,
    /// The part of the I/O that was timed.
    pub kind: LatencyKind,
    /// Moments and, unless only they were recorded, the histogram.
    pub stats: LatencyStats,
}

/// Returns all latencies of a run. Parts are jobs within a reporting group, as in
/// [`crate::compare::parts`].
pub fn stored_latencies(run: &RunResult) -> Vec<StoredLatency> {
    let mut members: Vec<(u32, &str, Vec<&WorkerResult>)> = Vec::new();
    for worker in &run.workers {
        let name = run.plan.jobs[worker.job].name.as_str();
        match members
            .iter_mut()
            .find(|(group, job, _)| *group == worker.groupid && *job == name)
        {
            Some((_, _, workers)) => workers.push(worker),
            None => members.push((worker.groupid, name, vec![worker])),
        }
    }
    let mut found = Vec::new();
    for (at, (_, name, workers)) in members.iter().enumerate() {
        let earlier = members[..at].iter().filter(|(_, other, _)| other == name);
        let part = match earlier.count() {
            0 => (*name).to_owned(),
            count => format!("{name} #{}", count + 1),
        };
        push_part(run, &part, workers, &mut found);
    }
    found
}

fn push_part(
    run: &RunResult,
    part: &str,
    workers: &[&WorkerResult],
    found: &mut Vec<StoredLatency>,
) {
    debug_assert!(!workers.is_empty(), "a part has at least one worker");
    let job = &run.plan.jobs[workers[0].job];
    let mut push = |subject, kind, stats: LatencyStats| {
        if stats.moments.count > 0 {
            found.push(StoredLatency {
                part: part.to_owned(),
                subject,
                kind,
                stats,
            });
        }
    };
    let groups: Vec<(Subject, &[Direction])> = match job.measure.unified {
        UnifiedReporting::Mixed => vec![(Subject::Mixed, &Direction::ALL[..])],
        UnifiedReporting::None | UnifiedReporting::Both => Direction::ALL
            .iter()
            .map(|direction| (Subject::from(*direction), std::slice::from_ref(direction)))
            .collect(),
    };
    for (subject, directions) in groups {
        let sum = |latency: fn(&DirectionStats) -> Option<&LatencyStats>| {
            let mut sum = LatencyStats::default();
            for worker in workers {
                let stats = directions.iter().map(|each| &worker.directions[*each]);
                stats.filter_map(latency).for_each(|each| sum.merge(each));
            }
            sum
        };
        push(subject, LatencyKind::Total, sum(|stats| Some(&stats.lat)));
        let started = sum(|stats| stats.started_lat.as_ref());
        push(subject, LatencyKind::Started, started);
        let completion = sum(|stats| Some(&stats.clat));
        push(subject, LatencyKind::Completion, completion);
        let submission = sum(|stats| Some(&stats.slat));
        push(subject, LatencyKind::Submission, submission);
    }
    let mut syncs = LatencyStats::default();
    for worker in workers {
        syncs.merge(&worker.sync.lat);
    }
    push(Subject::Sync, LatencyKind::Total, syncs);
}
