//! How a run is watched while it goes on.

use crate::interval::{Interval, IntervalCounts};
use crate::run::{Event, RunResult};
use iosonde_job::plan::{PerDirection, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Longest interval where the observer asks for no other.
pub const INTERVAL_NS_MAX: u64 = 1_000_000_000;
/// Shortest interval where the observer asks for no other.
pub const INTERVAL_NS_MIN: u64 = 100_000_000;
/// Intervals in a run of known length, where that gives no interval beyond the limits.
const INTERVALS_PER_RUN: u64 = 300;

/// Length of the intervals of a plan, in nanoseconds: short runs have enough of them for a confidence interval.
pub fn usual_interval_ns(plan: &Plan) -> u64 {
    match plan.longest_runtime_ns() {
        Some(ns) => (ns / INTERVALS_PER_RUN)
            .next_multiple_of(INTERVAL_NS_MIN)
            .clamp(INTERVAL_NS_MIN, INTERVAL_NS_MAX),
        None => INTERVAL_NS_MAX,
    }
}

/// Whether the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// End it as if its time were over: what was measured counts.
    Stop,
}

/// When the first jobs of a run start, once all of them are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At once.
    Now,
    /// At this instant; at once if it has passed.
    At(Instant),
    /// Not yet: asked again soon.
    Wait,
}

/// Sees a run while it goes on. It is called from the thread that called `Session::run`, never from a worker.
pub trait Observer {
    /// A short time has passed: for displays. Called several times a second.
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        let _ = progress;
        Control::Continue
    }

    /// Whether the statistics so far are wanted now, for [`Observer::status`]. Asked as often as `progress` is called.
    fn wants_status(&mut self, at_ns: u64) -> bool {
        let _ = at_ns;
        false
    }

    /// The result as if the run had ended here. Soon after it was wanted: workers hand out their statistics between two
    /// batches of I/O, and one that waits for a slow device is not waited for long.
    fn status(&mut self, so_far: &RunResult) {
        let _ = so_far;
    }

    /// Length of the intervals of a run of this plan. Asked once, when the run begins; a session may make them a little
    /// longer. Short ones tell sooner how much a rate varies, and are coarser where I/Os are few.
    fn interval_ns(&self, plan: &Plan) -> u64 {
        usual_interval_ns(plan)
    }

    /// A slice of the run is complete, as long as [`Observer::interval_ns`] asked: for studies.
    fn interval(&mut self, interval: &Interval) -> Control {
        let _ = interval;
        Control::Continue
    }

    /// All jobs that start first are prepared: when do they? Who measures in several places at once lets them wait for each
    /// other here. Asked again every few milliseconds as long as they wait. Not asked in simulations.
    fn start(&mut self) -> Start {
        Start::Now
    }

    /// Something happened: layout began, an error was survived, a job group began, ...
    fn event(&mut self, event: &Event) {
        let _ = event;
    }
}

/// Watches nothing.
impl Observer for () {}

/// Where a run stands.
#[derive(Debug, Clone)]
pub struct Progress<'a> {
    /// Since the start of the run.
    pub at_ns: u64,
    /// One for each worker, in plan order.
    pub workers: &'a [WorkerProgress],
    /// Rate over the last moment, all workers: per second.
    pub rate: PerDirection<IntervalCounts>,
    /// Estimate of the time left, when there is one.
    pub left_ns: Option<u64>,
    /// Share of the work that is done, 0 to 1, when it can be told.
    pub done: Option<f64>,
    /// Where each of several pods stands; empty where there is one place.
    pub pods: &'a [PodProgress],
}

/// Where one of several pods stands.
#[derive(Debug, Clone, PartialEq)]
pub struct PodProgress {
    /// Its number.
    pub number: usize,
    /// The node it is on.
    pub node: String,
    /// What its worker does that is the farthest behind; `None` where nothing has been heard.
    pub state: Option<WorkerState>,
    /// The job of that worker, an index into the plan's jobs.
    pub job: usize,
    /// Rate over the last moment.
    pub rate: PerDirection<IntervalCounts>,
    /// Latencies of the last interval: p50 and p99.
    pub latency_ns: Option<(u64, u64)>,
    /// Estimate of the time left, when there is one.
    pub left_ns: Option<u64>,
}

/// Where one worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerProgress {
    /// What it does.
    pub state: WorkerState,
    /// Index into the plan's jobs.
    pub job: usize,
    /// Files it has open.
    pub open_files: u32,
    /// Counts so far, ramp included.
    pub counts: PerDirection<IntervalCounts>,
}

/// The life of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum WorkerState {
    /// Waits for a stonewall or another job.
    #[default]
    NotStarted,
    /// Lays out its files.
    Layout,
    /// Ready, waits for the others of its group.
    Ready,
    /// Runs, not yet measured.
    Ramp,
    /// Runs.
    Running,
    /// Reads back what it wrote.
    Verifying,
    /// Flushes at the end.
    Syncing,
    /// Done.
    Finished,
    /// Ended by an error.
    Failed,
}

impl WorkerState {
    /// Whether it has ended.
    pub fn is_over(self) -> bool {
        matches!(self, WorkerState::Finished | WorkerState::Failed)
    }
}
