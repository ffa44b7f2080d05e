//! [`ProgressReport`]: the progress of a run, as an agent sends it.

use crate::interval::IntervalCounts;
use crate::observer::{RunProgress, WorkerProgress};
use iosonde_job::plan::PerDirection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// [`RunProgress`] as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressReport {
    /// Time since the start of the run.
    pub at_ns: u64,
    /// Progress of each worker, in plan order.
    pub workers: Vec<WorkerProgress>,
    /// Current rate per second, summed over all workers.
    pub rate: PerDirection<IntervalCounts>,
    /// Estimated time left, if known.
    pub left_ns: Option<u64>,
    /// Share of the work that is done, from 0 to 1, if known.
    pub done: Option<f64>,
}

impl ProgressReport {
    /// Returns the report as an observer receives it.
    pub fn view(&self) -> RunProgress<'_> {
        RunProgress {
            at_ns: self.at_ns,
            workers: &self.workers,
            rate: self.rate,
            left_ns: self.left_ns,
            done: self.done,
            pods: &[],
        }
    }
}

impl From<&RunProgress<'_>> for ProgressReport {
    fn from(progress: &RunProgress<'_>) -> ProgressReport {
        ProgressReport {
            at_ns: progress.at_ns,
            workers: progress.workers.to_vec(),
            rate: progress.rate,
            left_ns: progress.left_ns,
            done: progress.done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json_line;

    #[test]
    fn progress_round_trips_through_json() {
        let workers = [WorkerProgress {
            state: crate::observer::WorkerState::Running,
            job: 1,
            open_files: 2,
            counts: PerDirection::default(),
        }];
        let progress = RunProgress {
            at_ns: 5,
            workers: &workers,
            rate: PerDirection::default(),
            left_ns: Some(7),
            done: Some(0.25),
            pods: &[],
        };
        let text = json_line(&ProgressReport::from(&progress));
        let back: ProgressReport = serde_json::from_str(&text).unwrap();
        assert_eq!(back.view().workers, progress.workers);
        assert_eq!((back.left_ns, back.done), (Some(7), Some(0.25)));
    }
}
