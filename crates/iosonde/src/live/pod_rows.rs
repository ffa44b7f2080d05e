//! A table with a line per pod.

use crate::terminal_text::shortened;
use iosonde_result::observer::{PodProgress, WorkerState};
use iosonde_study::words;
use std::fmt::Write;

/// Maximum number of pods in the table.
const MOST: usize = 16;

/// Width from which the table shows all figures.
const COLUMNS_MIN: usize = 80;

/// Returns a table for a terminal of this width. Of more than `MOST` pods it holds the slowest, and
/// finished ones only if there is room. `jobs` are the names of the plan's jobs.
pub(crate) fn pod_table(pods: &[PodProgress], jobs: &[String], columns: usize) -> String {
    let mut shown: Vec<&PodProgress> = pods.iter().collect();
    if pods.len() > MOST {
        shown.sort_by_key(|pod| (is_over(pod), completed_ios(pod), pod.number));
        shown.truncate(MOST);
        shown.sort_by_key(|pod| pod.number);
    }
    let is_narrow = columns < COLUMNS_MIN;
    let mut text = match is_narrow {
        true => format!("{:>4} {:<14} {:>7} {:>8}", "pod", "state", "IOPS", "p99"),
        false => format!(
            "{:>4} {:<16} {:<19} {:>7} {:>11} {:>8} {:>8}",
            "pod", "node", "state", "IOPS", "bandwidth", "p50", "p99"
        ),
    };
    for pod in &shown {
        text.push('\n');
        text.push_str(&match is_narrow {
            true => narrow_row(pod, jobs),
            false => pod_row(pod, jobs),
        });
    }
    if shown.len() < pods.len() {
        let _ = write!(text, "\n     and {} faster pods", pods.len() - shown.len());
    }
    text
}

fn pod_row(pod: &PodProgress, jobs: &[String]) -> String {
    let bytes: u64 = pod.rate.iter().map(|(_, counts)| counts.bytes).sum();
    format!(
        "{:>4} {:<16} {:<19} {:>7} {:>11} {:>8} {:>8}",
        pod.number,
        shortened(&pod.node, 16),
        shortened(&state(pod, jobs), 19),
        words::iops_text(completed_ios(pod) as f64),
        match bytes {
            0 => "-".to_owned(),
            moved => words::bandwidth(moved as f64),
        },
        latency(pod, |(p50, _)| p50),
        latency(pod, |(_, p99)| p99),
    )
}

/// Row for a terminal of 40 columns.
fn narrow_row(pod: &PodProgress, jobs: &[String]) -> String {
    format!(
        "{:>4} {:<14} {:>7} {:>8}",
        pod.number,
        shortened(&state(pod, jobs), 14),
        words::iops_text(completed_ios(pod) as f64),
        latency(pod, |(_, p99)| p99),
    )
}

/// One of the median and the 99th percentile. `-` if neither is known.
fn latency(pod: &PodProgress, which: fn((u64, u64)) -> u64) -> String {
    let ns = pod.latency_ns.map(which);
    ns.map_or("-".to_owned(), |ns| words::latency(ns as f64))
}

fn is_over(pod: &PodProgress) -> bool {
    pod.state.is_some_and(WorkerState::is_over)
}

fn completed_ios(pod: &PodProgress) -> u64 {
    pod.rate.iter().map(|(_, counts)| counts.ios).sum()
}

/// Describes the state of a pod; with the job's name if the plan has several jobs.
fn state(pod: &PodProgress, jobs: &[String]) -> String {
    let state = match pod.state {
        None => "no report yet",
        Some(WorkerState::NotStarted) => "waits",
        Some(WorkerState::Layout) => "lays out",
        Some(WorkerState::Ready) => "ready",
        Some(WorkerState::Ramp) => "ramps up",
        Some(WorkerState::Running) => "runs",
        Some(WorkerState::Verifying) => "verifies",
        Some(WorkerState::Syncing) => "flushes",
        Some(WorkerState::Finished) => "done",
        Some(WorkerState::Failed) => "failed",
    };
    match (jobs.get(pod.job), is_over(pod)) {
        (Some(job), false) if jobs.len() > 1 && pod.state.is_some() => format!("{state} {job}"),
        _ => state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::PerDirection;
    use iosonde_result::interval::IntervalCounts;

    fn pod(number: usize, state: Option<WorkerState>, ios: u64) -> PodProgress {
        let read = IntervalCounts {
            ios,
            bytes: 4096 * ios,
        };
        PodProgress {
            number,
            node: format!("worker-{number}.lab.example.com"),
            state,
            job: 1,
            rate: PerDirection {
                read,
                ..PerDirection::default()
            },
            latency_ns: (ios > 0).then_some((85_000, 1_230_000)),
            left_ns: None,
        }
    }

    #[test]
    fn pod_rows_hold_a_line_per_pod() {
        let pods = [
            pod(0, Some(WorkerState::Running), 12_345),
            pod(1, Some(WorkerState::Layout), 0),
            pod(2, None, 0),
            pod(3, Some(WorkerState::Finished), 0),
        ];
        let jobs = ["fill".to_owned(), "random-read".to_owned()];
        let text = pod_table(&pods, &jobs, 80);
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
        insta::assert_snapshot!("pods", text);
        let narrow = pod_table(&pods, &jobs, 40);
        let lines: Vec<&str> = narrow.lines().collect();
        assert_eq!(lines[0], " pod state             IOPS      p99");
        assert_eq!(lines[1], "   0 runs random-r~   12.3k  1.23 ms");
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| line.len() < 40), "{narrow}");
    }

    #[test]
    fn pod_rows_of_many_pods_hold_the_slowest() {
        let pods: Vec<PodProgress> = (0..500)
            .map(|number| pod(number, Some(WorkerState::Running), 1000 - number as u64))
            .collect();
        let text = pod_table(&pods, &["a".to_owned()], 120);
        assert_eq!(text.lines().count(), 18, "{text}");
        assert!(
            text.contains(" 499 worker-499") && text.contains(" 484 worker-484"),
            "{text}"
        );
        assert!(text.ends_with("and 484 faster pods"), "{text}");
    }
}
