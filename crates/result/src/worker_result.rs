//! Result of one worker of a run.

use crate::stats::{LatencyStats, Moments};
use iosonde_job::plan::{Direction, Engine, IoPriority, PerDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Result of one worker, which runs one clone of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Number of the clone, from 0.
    pub clone: u32,
    /// Number of the reporting group.
    pub groupid: u32,
    /// Thread id assigned by the kernel, shown where fio shows a pid.
    pub tid: u32,
    /// The I/O engine and the features that were in use.
    pub backend: BackendUsed,
    /// Start of the measured part, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Delay of the actual start after the agreed one, for example because the thread woke up late.
    #[serde(default)]
    pub start_delay_ns: u64,
    /// Length of the measured part (ramp excluded).
    pub runtime_ns: u64,
    /// Time from the start of the worker to its end, ramp and verification included.
    pub elapsed_ns: u64,
    /// Reads, writes and trims.
    pub directions: PerDirection<DirectionStats>,
    /// Counts and latencies of fsync, fdatasync and sync_file_range.
    pub sync: SyncStats,
    /// CPU time and context switches in the measured part.
    pub cpu: CpuUse,
    /// I/Os by depth at submission. The lower bounds of the classes are 1, 2, 4, 8, 16, 32 and 64.
    pub iodepth_level: [u64; 7],
    /// Submissions by batch size, with upper bounds 0, 4, 8, 16, 32, 64 and infinity.
    pub iodepth_submit: [u64; 7],
    /// Reaps by batch size, with the bounds of `iodepth_submit`.
    pub iodepth_complete: [u64; 7],
    /// Depth at which `latency_target` ended, else the job's iodepth. 0 if there was no I/O.
    pub latency_depth: u32,
    /// Outcome of `steadystate`.
    pub steady_state: Option<SteadyStateResult>,
    /// The error that ended the worker.
    pub error: Option<IoFailure>,
    /// Errors that `continue_on_error` tolerated.
    pub total_errors: u64,
    /// errno of the first tolerated error.
    pub first_error: i32,
    /// Counts of the ramp, if the worker ended within it. Nothing was measured then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_ramp: Option<Box<RampResult>>,
}

/// Counts of a worker that ended within its ramp. As in fio, they have no latencies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RampResult {
    /// Bytes moved.
    pub io_bytes: PerDirection<u64>,
    /// I/Os issued.
    pub total_ios: PerDirection<u64>,
    /// Length of the ramp so far, for directions that moved data.
    pub runtime_ns: PerDirection<u64>,
    /// fsync, fdatasync and sync_file_range.
    pub syncs: u64,
    /// Syncs that were fdatasync or sync_file_range.
    #[serde(default)]
    pub syncs_other_than_fsync: u64,
    /// Same classes as in [`WorkerResult`].
    pub iodepth_level: [u64; 7],
    /// Same classes as in [`WorkerResult`].
    pub iodepth_submit: [u64; 7],
    /// Same classes as in [`WorkerResult`].
    pub iodepth_complete: [u64; 7],
}

impl WorkerResult {
    /// Returns the worker's result as fio counts it.
    ///
    /// `lat` becomes fio's, which counts from the actual start of each I/O. `started_lat` then
    /// holds the latency from the intended start, if any. A ramp that never ended counts, without
    /// latencies. `total_ios` of the syncs counts fsync alone, but their latencies cover all syncs.
    pub(crate) fn as_fio_counts(&self) -> Cow<'_, WorkerResult> {
        let mut directions = self.directions.iter();
        let has_due_times = directions.any(|(_, stats)| stats.started_lat.is_some());
        let has_other_syncs = self.sync.other_than_fsync > 0;
        if self.only_ramp.is_none() && !has_due_times && !has_other_syncs {
            return Cow::Borrowed(self);
        }
        let mut counted = self.clone();
        for direction in Direction::ALL {
            let stats = &mut counted.directions[direction];
            if let Some(started) = &mut stats.started_lat {
                std::mem::swap(&mut stats.lat, started);
            }
        }
        counted.sync.total_ios -= counted.sync.other_than_fsync;
        let Some(ramp) = &self.only_ramp else {
            return Cow::Owned(counted);
        };
        for direction in Direction::ALL {
            let stats = &mut counted.directions[direction];
            stats.io_bytes = ramp.io_bytes[direction];
            stats.total_ios = ramp.total_ios[direction];
            stats.runtime_ns = ramp.runtime_ns[direction];
        }
        let runtimes = Direction::ALL.map(|direction| ramp.runtime_ns[direction]);
        counted.runtime_ns = runtimes.into_iter().max().unwrap_or(0);
        counted.sync.total_ios = ramp.syncs - ramp.syncs_other_than_fsync;
        counted.iodepth_level = ramp.iodepth_level;
        counted.iodepth_submit = ramp.iodepth_submit;
        counted.iodepth_complete = ramp.iodepth_complete;
        Cow::Owned(counted)
    }
}

/// The I/O engine and the features that a worker used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackendUsed {
    /// Engine in use.
    pub engine: Engine,
    /// Engine that the job requested.
    pub asked: Engine,
    /// Reason for using another engine, or fewer features, than requested.
    pub reason: Option<String>,
    /// Whether files were opened with O_DIRECT.
    pub direct: bool,
    /// Whether files were registered with the kernel.
    pub registered_files: bool,
    /// Whether buffers were registered with the kernel.
    pub fixed_buffers: bool,
    /// Flags in force of the io_uring (`defer_taskrun`, `no_sqarray`, `registered_ring`,
    /// `uring_discard`, ...), of reads and writes (`atomic`, `uncached`), of the open files
    /// (`noatime`) and of the clock (`tsc`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The Ceph cluster, for the engines `rados` and `rbd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephUsed>,
}

/// The Ceph client library, and the pool or image that a worker used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CephUsed {
    /// Library and its version, e.g. `librados 3.0.0`.
    pub client: String,
    /// fsid of the cluster.
    pub fsid: String,
    /// Name of the pool.
    pub pool: String,
    /// Namespace within the pool.
    pub namespace: Option<String>,
    /// Name of the RBD image.
    pub image: Option<String>,
    /// Size of the objects that each file is striped over. `None`: one object per file.
    pub object_bytes: Option<u64>,
    /// Cache of librbd: `off`, or its policy, e.g. `writearound`. `None` if there is no cache.
    pub cache: Option<String>,
}

impl CephUsed {
    /// Returns the policy of a cache that acknowledges writes before the cluster has them.
    pub fn write_cache(&self) -> Option<&str> {
        let policy = self.cache.as_deref()?;
        matches!(policy, "writearound" | "writeback").then_some(policy)
    }
}

/// Counts, latencies and rates of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DirectionStats {
    /// Bytes moved.
    pub io_bytes: u64,
    /// I/Os issued, as fio counts `total_ios`.
    pub total_ios: u64,
    /// I/Os that moved fewer bytes than requested.
    pub short_ios: u64,
    /// I/Os that moved nothing.
    pub drop_ios: u64,
    /// Time in which this direction ran. 0 if it moved no data.
    pub runtime_ns: u64,
    /// Submission latency.
    pub slat: LatencyStats,
    /// Completion latency.
    pub clat: LatencyStats,
    /// Total latency, from the intended start if there is one, else from the actual start.
    pub lat: LatencyStats,
    /// fio's `lat`: total latency from the actual start, if `lat` counts from the intended one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_lat: Option<LatencyStats>,
    /// Bandwidth samples in KiB/s.
    pub bw: Moments,
    /// IOPS samples.
    pub iops: Moments,
    /// Latencies by I/O priority. Empty if all I/Os have the priority of the job, that is without
    /// `cmdprio_percentage` and `cmdprio_bssplit`.
    #[serde(default)]
    pub by_priority: Vec<PriorityLatency>,
}

/// Latencies of the I/Os of one priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityLatency {
    /// The I/O priority.
    pub priority: IoPriority,
    /// Completion latency, or total latency with `lat_percentiles`, as in fio.
    pub latency: LatencyStats,
}

/// Counts and latencies of fsync, fdatasync and sync_file_range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct SyncStats {
    /// Number of syncs.
    pub total_ios: u64,
    /// Syncs that were fdatasync or sync_file_range. fio does not count them in `total_ios`.
    #[serde(default)]
    pub other_than_fsync: u64,
    /// Latency of the syncs.
    pub lat: LatencyStats,
}

/// CPU time, context switches and page faults of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CpuUse {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Time runnable but waiting for a processor. 0 if the kernel does not report it.
    #[serde(default)]
    pub queued_ns: u64,
    /// Context switches, voluntary and involuntary.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

impl CpuUse {
    /// Returns the use since `before`, an earlier snapshot.
    pub fn since(&self, before: &CpuUse) -> CpuUse {
        CpuUse {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            queued_ns: self.queued_ns.saturating_sub(before.queued_ns),
            context_switches: self
                .context_switches
                .saturating_sub(before.context_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
        }
    }

    /// Returns the sum of both.
    pub fn and(&self, other: &CpuUse) -> CpuUse {
        CpuUse {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            queued_ns: self.queued_ns + other.queued_ns,
            context_switches: self.context_switches + other.context_switches,
            major_faults: self.major_faults + other.major_faults,
            minor_faults: self.minor_faults + other.minor_faults,
        }
    }
}

/// Outcome of `steadystate`, as fio reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyStateResult {
    /// Whether the worker reached steady state.
    pub attained: bool,
    /// Value of the criterion: deviation or slope, in the unit of the limit.
    pub criterion: f64,
    /// Largest deviation from the mean.
    pub max_deviation: f64,
    /// Slope of the fitted line.
    pub slope: f64,
    /// IOPS of each second of the window.
    pub iops: Vec<u64>,
    /// Bandwidth in bytes per second, for each second of the window.
    pub bw_bytes: Vec<u64>,
    /// Mean latency in nanoseconds, for each second of the window.
    pub lat_ns: Vec<u64>,
}

/// I/O error that ended a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoFailure {
    /// Number of the errno.
    pub errno: i32,
    /// Operation that failed: `read`, `write`, `open`, `verify`, ...
    pub operation: String,
    /// File on which the operation failed, if there is one.
    pub file: Option<String>,
    /// Offset of the I/O in bytes.
    pub offset: Option<u64>,
    /// Error in one sentence, with the remedy.
    pub message: String,
}
