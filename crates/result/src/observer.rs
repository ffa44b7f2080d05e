//! [`Observer`]: how displays and studies follow a run, and end it.

use crate::interval::{Interval, IntervalCounts};
use crate::run::{RunEvent, RunResult};
use iosonde_job::plan::{PerDirection, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Longest default interval.
pub const INTERVAL_NS_MAX: u64 = 1_000_000_000;
/// Shortest default interval.
const INTERVAL_NS_MIN: u64 = 100_000_000;
/// Default intervals per run of known length, before the length is clamped to the limits above.
const INTERVALS_PER_RUN: u64 = 300;

/// Returns the default interval in nanoseconds. Short runs have enough for a confidence interval.
pub fn usual_interval_ns(plan: &Plan) -> u64 {
    match plan.longest_runtime_ns() {
        Some(ns) => (ns / INTERVALS_PER_RUN)
            .next_multiple_of(INTERVAL_NS_MIN)
            .clamp(INTERVAL_NS_MIN, INTERVAL_NS_MAX),
        None => INTERVAL_NS_MAX,
    }
}

/// Whether a run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Continue the run.
    Continue,
    /// End the run as if its run time were over. The measured data count.
    Stop,
}

/// Start time of the first job group, once all of its jobs are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartDecision {
    /// Start at once.
    Now,
    /// Start at this instant, or at once if it has passed.
    At(Instant),
    /// Do not start yet. The session asks again within milliseconds.
    Wait,
}

/// Follows a run. The thread that called `Session::run` calls these methods, never a worker.
pub trait Observer {
    /// Reports progress to displays, several times a second.
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        let _ = progress;
        Control::Continue
    }

    /// Returns whether [`Observer::status`] is wanted now. Asked as often as `progress` is called.
    fn wants_status(&mut self, at_ns: u64) -> bool {
        let _ = at_ns;
        false
    }

    /// Receives the result as if the run had ended now.
    ///
    /// The call follows soon after the request, because workers copy their statistics between
    /// batches. The session does not wait long for a worker that is blocked by a slow device.
    fn status(&mut self, so_far: &RunResult) {
        let _ = so_far;
    }

    /// Returns the length of the intervals for a run of `plan`.
    ///
    /// The session asks once, when the run begins, and may choose a slightly longer interval. Short
    /// intervals show the variance of a rate sooner, but are coarser if there are few I/Os.
    fn interval_ns(&self, plan: &Plan) -> u64 {
        usual_interval_ns(plan)
    }

    /// Receives a completed interval of about [`Observer::interval_ns`] in length. Studies use it.
    fn interval(&mut self, interval: &Interval) -> Control {
        let _ = interval;
        Control::Continue
    }

    /// Returns when the prepared jobs of the first group start.
    ///
    /// A measurement in several places at once synchronises its sessions here. The session asks
    /// again every few milliseconds while the answer is [`StartDecision::Wait`]. Simulations do not
    /// ask.
    fn start(&mut self) -> StartDecision {
        StartDecision::Now
    }

    /// Receives an event: layout began, an error was tolerated, a job group began, ...
    fn event(&mut self, event: &RunEvent) {
        let _ = event;
    }
}

/// Ignores all reports, and never stops a run.
impl Observer for () {}

/// Progress of a run.
#[derive(Debug, Clone)]
pub struct RunProgress<'a> {
    /// Time since the start of the run.
    pub at_ns: u64,
    /// Progress of each worker, in plan order.
    pub workers: &'a [WorkerProgress],
    /// Current rate per second, summed over all workers.
    pub rate: PerDirection<IntervalCounts>,
    /// Estimated time left, if known.
    pub left_ns: Option<u64>,
    /// Share of the work that is done, from 0 to 1, if known.
    pub done: Option<f64>,
    /// Progress of each pod. Empty if the run does not use several pods.
    pub pods: &'a [PodProgress],
}

/// Progress of one of several pods.
#[derive(Debug, Clone, PartialEq)]
pub struct PodProgress {
    /// Number of the pod.
    pub number: usize,
    /// Node on which the pod runs.
    pub node: String,
    /// State of the pod's slowest worker. `None` if the pod has not reported yet.
    pub state: Option<WorkerState>,
    /// Job of that worker, as an index into the plan's jobs.
    pub job: usize,
    /// Current rate per second.
    pub rate: PerDirection<IntervalCounts>,
    /// Latencies p50 and p99 of the last interval.
    pub latency_ns: Option<(u64, u64)>,
    /// Estimated time left, if known.
    pub left_ns: Option<u64>,
}

/// Progress of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerProgress {
    /// State of the worker.
    pub state: WorkerState,
    /// Index into the plan's jobs.
    pub job: usize,
    /// Number of open files.
    pub open_files: u32,
    /// Counts so far, ramp included.
    pub counts: PerDirection<IntervalCounts>,
}

/// States of a worker, in the order in which it passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(strum::VariantArray))]
#[repr(u8)]
pub enum WorkerState {
    /// Waits for a stonewall or another job.
    #[default]
    NotStarted,
    /// Lays out its files.
    Layout,
    /// Prepared, waits for the other workers of its group.
    Ready,
    /// Runs the ramp, which is not measured.
    Ramp,
    /// Runs the measured part.
    Running,
    /// Reads back and verifies the blocks that it wrote.
    Verifying,
    /// Flushes its files at the end.
    Syncing,
    /// Ended without an error.
    Finished,
    /// Ended by an error.
    Failed,
}

impl WorkerState {
    /// All states, each at the index of its number.
    pub const ALL: [WorkerState; 9] = [
        WorkerState::NotStarted,
        WorkerState::Layout,
        WorkerState::Ready,
        WorkerState::Ramp,
        WorkerState::Running,
        WorkerState::Verifying,
        WorkerState::Syncing,
        WorkerState::Finished,
        WorkerState::Failed,
    ];

    /// Returns whether the worker has ended.
    pub fn is_over(self) -> bool {
        matches!(self, WorkerState::Finished | WorkerState::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn worker_states_are_listed_by_number() {
        assert_eq!(WorkerState::ALL, WorkerState::VARIANTS);
        for (number, state) in WorkerState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
        }
    }
}
