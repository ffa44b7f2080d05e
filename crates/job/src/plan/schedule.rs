//! Start, end and rate limits of a job.

use super::PerDirection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start, end and rate limits of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// `stonewall`: wait for all jobs before this one to end.
    pub stonewall: bool,
    /// `wait_for`: wait for the job of this name to end.
    pub wait_for: Option<String>,
    /// `exec_prerun`: a shell command before the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_prerun: Option<String>,
    /// `exec_postrun`: a shell command after the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_postrun: Option<String>,
    /// `startdelay`: the range from which the delay is drawn, in nanoseconds.
    pub startdelay_ns: (u64, u64),
    /// `runtime`; 0 is no limit.
    pub runtime_ns: u64,
    /// `time_based`: repeat the workload until `runtime` is over.
    pub time_based: bool,
    /// `ramp_time`.
    pub ramp_time_ns: u64,
    /// `loops`, at least 1.
    pub loops: u32,
    /// `exitall`: the jobs to stop when this job ends.
    pub exitall: Option<ExitWhat>,
    /// `exitall_on_error`.
    pub exitall_on_error: bool,
    /// `thinktime` and the other `thinktime_` options.
    pub thinktime: Option<ThinkTime>,
    /// `rate` in bytes per second.
    pub rate_bytes: PerDirection<Option<u64>>,
    /// `rate_min` in bytes per second: the job fails below this rate.
    pub rate_min_bytes: PerDirection<Option<u64>>,
    /// `rate_iops`.
    pub rate_iops: PerDirection<Option<u64>>,
    /// `rate_iops_min`.
    pub rate_iops_min: PerDirection<Option<u64>>,
    /// `rate_process=poisson`.
    pub rate_poisson: bool,
    /// `rate_ignore_thinktime`.
    pub rate_ignore_thinktime: bool,
    /// `rate_cycle`: window of the `rate_min` and `rate_iops_min` checks, in nanoseconds.
    pub rate_cycle_ns: u64,
    /// `latency_target` and the other `latency_` options.
    pub latency_target: Option<LatencyTarget>,
    /// `max_latency` in nanoseconds.
    pub max_latency_ns: PerDirection<Option<u64>>,
    /// `steadystate` and its `ss_` options.
    pub steady_state: Option<SteadyState>,
    /// `flow`, `flow_id` and `flow_sleep`.
    pub flow: Option<Flow>,
    /// Whether the job is a neighbour: it starts before the other jobs, lasts until they have
    /// ended, and is not part of their figures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub neighbour: bool,
}

/// `exit_what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitWhat {
    /// Jobs of the same group.
    Group,
    /// Running jobs, in any group.
    Stonewall,
    /// All jobs, including jobs that have not started.
    All,
}

/// `thinktime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkTime {
    /// Pause in nanoseconds.
    pub pause_ns: u64,
    /// `thinktime_spin`: the first part of the pause, spent spinning.
    pub spin_ns: u64,
    /// `thinktime_blocks`: pause after this many blocks.
    pub blocks: u32,
    /// `thinktime_blocks_type=issue` counts issued rather than completed blocks.
    pub count_issued: bool,
    /// `thinktime_iotime`: pause after this much time of I/O; 0 is off.
    pub iotime_ns: u64,
}

/// `latency_target`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyTarget {
    /// Upper limit of the completion latency.
    pub target_ns: u64,
    /// `latency_window`.
    pub window_ns: u64,
    /// `latency_percentile`.
    pub percentile: f64,
    /// `latency_run`: continue after the depth is found.
    pub run: bool,
}

/// `steadystate`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// The rate that must be steady.
    pub metric: SteadyMetric,
    /// Whether the limit applies to the slope instead of the deviation from the mean.
    pub slope: bool,
    /// The limit: per cent when `percent`, else in the metric's unit (IOPS or bytes per second).
    pub limit: f64,
    /// Whether `limit` is in per cent.
    pub percent: bool,
    /// `ss_dur`.
    pub duration_ns: u64,
    /// `ss_ramp`.
    pub ramp_ns: u64,
    /// `ss_interval`.
    pub interval_ns: u64,
}

impl SteadyState {
    /// Number of samples in the window.
    pub fn samples(&self) -> usize {
        (self.duration_ns / self.interval_ns.max(1)).max(1) as usize
    }
}

/// The rate that `steadystate` checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyMetric {
    /// I/Os per second.
    Iops,
    /// Bandwidth.
    Bandwidth,
}

/// `flow`: jobs that share an id keep their I/O counts in proportion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// `flow_id`.
    pub id: u32,
    /// `flow`: weight.
    pub weight: i64,
    /// `flow_sleep` in nanoseconds.
    pub sleep_ns: u64,
}
