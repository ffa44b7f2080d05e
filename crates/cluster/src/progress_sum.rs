//! Sums up the progress of several pods.

use iosonde_job::plan::{Direction, PerDirection};
use iosonde_result::interval::IntervalCounts;
use iosonde_result::observer::WorkerProgress;
use iosonde_result::wire::ProgressReport;

/// Sums up progress, and remembers the time of the last sum.
#[derive(Debug, Default)]
pub(crate) struct ProgressSum {
    last_sum_at_ns: Option<u64>,
}

impl ProgressSum {
    /// Returns the sum, if all pods have reported and a report is newer than the last sum.
    pub(crate) fn progress<'a>(
        &mut self,
        reports: impl Iterator<Item = Option<&'a ProgressReport>>,
    ) -> Option<ProgressReport> {
        let reports: Vec<&ProgressReport> = reports.collect::<Option<_>>()?;
        let at_ns = reports.iter().map(|report| report.at_ns).max()?;
        if self.last_sum_at_ns == Some(at_ns) {
            return None;
        }
        self.last_sum_at_ns = Some(at_ns);
        let (first, rest) = reports.split_first()?;
        let mut sum = (*first).clone();
        for report in rest {
            add_report(&mut sum, report);
        }
        Some(ProgressReport { at_ns, ..sum })
    }
}

fn add_report(sum: &mut ProgressReport, more: &ProgressReport) {
    add_counts(&mut sum.rate, &more.rate);
    for (sum, more) in sum.workers.iter_mut().zip(&more.workers) {
        add_worker(sum, more);
    }
    // The run ends with its last pod.
    sum.left_ns = sum.left_ns.max(more.left_ns);
    sum.done = match (sum.done, more.done) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => None,
    };
}

fn add_worker(sum: &mut WorkerProgress, more: &WorkerProgress) {
    if sum.state.is_over() {
        sum.state = more.state;
    }
    sum.open_files += more.open_files;
    add_counts(&mut sum.counts, &more.counts);
}

fn add_counts(sum: &mut PerDirection<IntervalCounts>, more: &PerDirection<IntervalCounts>) {
    for direction in Direction::ALL {
        sum[direction].ios += more[direction].ios;
        sum[direction].bytes += more[direction].bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::observer::WorkerState;

    fn report(at_ns: u64, ios: u64, state: WorkerState, left_ns: u64) -> ProgressReport {
        let mut counts: PerDirection<IntervalCounts> = PerDirection::default();
        counts.read.ios = ios;
        ProgressReport {
            at_ns,
            workers: vec![WorkerProgress {
                state,
                job: 0,
                open_files: 1,
                counts,
            }],
            rate: counts,
            left_ns: Some(left_ns),
            done: Some(0.5),
        }
    }

    #[test]
    fn progress_is_summed_once_all_pods_report() {
        let mut together = ProgressSum::default();
        let one = report(10, 100, WorkerState::Finished, 7);
        let two = report(12, 50, WorkerState::Running, 9);
        assert_eq!(together.progress([Some(&one), None].into_iter()), None);
        let sum = together.progress([Some(&one), Some(&two)].into_iter());
        let sum = sum.unwrap();
        assert_eq!(
            (sum.at_ns, sum.rate.read.ios, sum.left_ns),
            (12, 150, Some(9))
        );
        let worker = &sum.workers[0];
        assert_eq!((worker.state, worker.open_files), (WorkerState::Running, 2));
        assert_eq!(
            together.progress([Some(&one), Some(&two)].into_iter()),
            None
        );
    }
}
