//! What was measured: the result of running one plan.
//!
//! [`RunResult`] is the source of every report and format. It is versioned; [`FORMAT`] counts up when a field changes its
//! meaning. Durations are in nanoseconds, points in time in milliseconds of the Unix epoch.

use crate::ceph::CephSide;
use crate::host::{Host, TargetInfo};
use crate::interval::Intervals;
use crate::machine::MachineSeries;
use crate::nfs::NfsSide;
use crate::nodes::NodeResult;
use crate::pods::PodResult;
use crate::stats::{LatencyStats, Moments};
use iosonde_job::plan::{Direction, Engine, IoPriority, PerDirection, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Version of the result format.
pub const FORMAT: u32 = 1;

/// The result of running one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Program and version.
    pub program: String,
    /// When the run began: milliseconds of the Unix epoch.
    pub started_at_ms: u64,
    /// How long it took, layout included.
    pub elapsed_ns: u64,
    /// What was run.
    pub plan: Plan,
    /// Where it ran.
    pub host: Host,
    /// What the files and devices were.
    pub targets: Vec<TargetInfo>,
    /// Labels, detected and given.
    pub labels: BTreeMap<String, String>,
    /// One for each clone of each job that ran, in plan order.
    pub workers: Vec<WorkerResult>,
    /// What each block device did meanwhile.
    pub disks: Vec<DiskUtil>,
    /// The run second by second, all workers together.
    pub intervals: Intervals,
    /// What the devices and the machine did meanwhile, slice by slice. Empty in simulations.
    #[serde(default)]
    pub series: MachineSeries,
    /// What each pod has done, where several ran the plan at the same time; the rest is then the sum of them.
    #[serde(default)]
    pub pods: Vec<PodResult>,
    /// What other machines did meanwhile, which serve the volume or were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeResult>,
    /// The Ceph cluster that was spoken to, and what it did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSide>,
    /// What was asked of NFS servers meanwhile, mount by mount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nfs: Vec<NfsSide>,
    /// What happened on the way.
    pub events: Vec<Event>,
    /// What the numbers mean, or why they may not be believed.
    pub verdicts: Vec<Verdict>,
    /// Advice that is no verdict on the figures, one sentence each: options without effect, a history that was not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What one worker (one clone of a job) did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Which clone, from 0.
    pub clone: u32,
    /// Reporting group.
    pub groupid: u32,
    /// The operating system's thread id, shown where fio shows a pid.
    pub tid: u32,
    /// How I/O was really issued.
    pub backend: BackendUsed,
    /// When the measured part began: milliseconds of the Unix epoch.
    pub started_at_ms: u64,
    /// How much later than agreed the worker began: it was still asleep, or the instant had passed.
    #[serde(default)]
    pub start_delay_ns: u64,
    /// Length of the measured part (ramp excluded).
    pub runtime_ns: u64,
    /// From the worker's start to its end, ramp and verification included.
    pub elapsed_ns: u64,
    /// Reads, writes and trims.
    pub directions: PerDirection<DirectionStats>,
    /// fsync, fdatasync and sync_file_range.
    pub sync: SyncStats,
    /// Processor use of the measured part.
    pub cpu: CpuUse,
    /// I/Os by depth at submission: 1, 2, 4, 8, 16, 32, 64 and more are the lower bounds.
    pub iodepth_level: [u64; 7],
    /// Submissions by batch size: 0, 4, 8, 16, 32, 64, more than 64 are the upper bounds.
    pub iodepth_submit: [u64; 7],
    /// Reaps by batch size, bounds as above.
    pub iodepth_complete: [u64; 7],
    /// The depth that `latency_target` arrived at, else the job's iodepth. 0 if the worker did no I/O.
    pub latency_depth: u32,
    /// Outcome of `steadystate`.
    pub steady_state: Option<SteadyStateResult>,
    /// The error that ended the worker.
    pub error: Option<IoFailure>,
    /// Errors survived thanks to `continue_on_error`.
    pub total_errors: u64,
    /// errno of the first of them.
    pub first_error: i32,
    /// What was done in the ramp, where it never ended: then nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_ramp: Option<Box<RampResult>>,
}

/// What a worker did in a ramp that never ended. As in fio, no latencies are known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RampResult {
    /// Bytes moved.
    pub io_bytes: PerDirection<u64>,
    /// I/Os issued.
    pub total_ios: PerDirection<u64>,
    /// Length of the ramp so far, for directions that moved something.
    pub runtime_ns: PerDirection<u64>,
    /// fsync, fdatasync and sync_file_range.
    pub syncs: u64,
    /// How many of them were no fsync.
    #[serde(default)]
    pub syncs_other_than_fsync: u64,
    /// As in [`WorkerResult`].
    pub iodepth_level: [u64; 7],
    /// As in [`WorkerResult`].
    pub iodepth_submit: [u64; 7],
    /// As in [`WorkerResult`].
    pub iodepth_complete: [u64; 7],
}

impl WorkerResult {
    /// The worker as fio counts it. `lat` is fio's, from the start of each I/O, and where I/Os were due at a time
    /// `started_lat` is the other one. What was done in a ramp that never ended counts, without latencies. Of the syncs
    /// fio counts fsync alone in `total_ios`, though it has the latencies of all.
    pub fn as_fio_counts(&self) -> Cow<'_, WorkerResult> {
        let has_due_times = self
            .directions
            .iter()
            .any(|(_, stats)| stats.started_lat.is_some());
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

/// How I/O was really issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackendUsed {
    /// What ran.
    pub engine: Engine,
    /// What was asked for.
    pub asked: Engine,
    /// Why another engine, or fewer of its features, were used than asked for.
    pub reason: Option<String>,
    /// Whether O_DIRECT was in force.
    pub direct: bool,
    /// Whether files were registered with the kernel.
    pub registered_files: bool,
    /// Whether buffers were registered with the kernel.
    pub fixed_buffers: bool,
    /// The Ceph cluster, for the engines that speak to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephUsed>,
}

/// What of a Ceph cluster was used, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CephUsed {
    /// Library and its version, e.g. `librados 3.0.0`.
    pub client: String,
    /// Identity of the cluster.
    pub fsid: String,
    /// The pool.
    pub pool: String,
    /// The namespace in it.
    pub namespace: Option<String>,
    /// The image.
    pub image: Option<String>,
    /// Size of the objects that files were spread over; `None` kept each file in one.
    pub object_bytes: Option<u64>,
    /// librbd's cache: `off`, or its policy, e.g. `writearound`. `None` where there is none.
    pub cache: Option<String>,
    /// Reads and writes of a pool of so many bytes or more went through librados without a copy; `None` when some or all were copied.
    #[serde(default)]
    pub uncopied_from: Option<u64>,
}

/// What was moved in one direction, and how fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DirectionStats {
    /// Bytes moved.
    pub io_bytes: u64,
    /// I/Os issued, as fio counts `total_ios`.
    pub total_ios: u64,
    /// I/Os that moved less than asked for.
    pub short_ios: u64,
    /// I/Os that moved nothing.
    pub drop_ios: u64,
    /// Time during which this direction ran; 0 when nothing was moved.
    pub runtime_ns: u64,
    /// Submission latency.
    pub slat: LatencyStats,
    /// Completion latency.
    pub clat: LatencyStats,
    /// Total latency: from when an I/O was due, where a rate or a trace says so, else from its start.
    pub lat: LatencyStats,
    /// Total latency from the real start, where `lat` counts from when I/Os were due. This is fio's `lat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_lat: Option<LatencyStats>,
    /// Samples of the bandwidth, in KiB/s.
    pub bw: Moments,
    /// Samples of I/Os per second.
    pub iops: Moments,
    /// Latencies by I/O priority, where I/Os of one worker have several (`cmdprio_percentage`, `cmdprio_bssplit`). Empty
    /// where all have the job's priority.
    #[serde(default)]
    pub by_priority: Vec<PriorityLatency>,
}

/// Latencies of the I/Os of one priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityLatency {
    /// The priority.
    pub priority: IoPriority,
    /// As in fio, completion latency, or with `lat_percentiles` total latency.
    pub latency: LatencyStats,
}

/// fsync, fdatasync and sync_file_range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct SyncStats {
    /// How many.
    pub total_ios: u64,
    /// How many of them were fdatasync or sync_file_range, which fio leaves out of its `total_ios`.
    #[serde(default)]
    pub other_than_fsync: u64,
    /// How long they took.
    pub lat: LatencyStats,
}

/// Processor use of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CpuUse {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Ready to run, waiting for a processor; 0 where the kernel does not tell.
    #[serde(default)]
    pub queued_ns: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

impl CpuUse {
    /// What was used since an earlier look.
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

    /// What two used together.
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
    /// Whether it was reached.
    pub attained: bool,
    /// The measured criterion: deviation or slope, in the unit of the limit.
    pub criterion: f64,
    /// Largest deviation from the mean.
    pub max_deviation: f64,
    /// Slope of the fitted line.
    pub slope: f64,
    /// I/Os per second, second by second over the window.
    pub iops: Vec<u64>,
    /// Bytes per second, second by second over the window.
    pub bw_bytes: Vec<u64>,
    /// Mean latency in nanoseconds, second by second over the window.
    pub lat_ns: Vec<u64>,
}

/// Why a worker ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoFailure {
    /// errno.
    pub errno: i32,
    /// What was being done: `read`, `write`, `open`, `verify`, ...
    pub operation: String,
    /// Which file, where there is one.
    pub file: Option<String>,
    /// Offset of the I/O in bytes.
    pub offset: Option<u64>,
    /// One sentence with the remedy.
    pub message: String,
}

/// What one block device did during the run, as in fio's `disk_util`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DiskUtil {
    /// Kernel name, e.g. `nvme0n1`.
    pub name: String,
    /// Completed requests by read and write.
    pub ios: [u64; 2],
    /// Merged requests by read and write.
    pub merges: [u64; 2],
    /// Milliseconds spent by read and write.
    pub ticks_ms: [u64; 2],
    /// Weighted milliseconds in queue.
    pub in_queue_ms: u64,
    /// Sectors of 512 bytes moved by read and write.
    pub sectors: [u64; 2],
    /// Share of the time with I/O in flight, in per cent.
    pub util_percent: f64,
    /// Sums over the devices below, when this one is made of others.
    pub below: Vec<DiskUtil>,
}

/// Something that happened during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Since the start of the run.
    pub at_ns: u64,
    /// What, in one sentence.
    pub message: String,
}

/// What a result means, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// How it bears on the numbers.
    pub kind: VerdictKind,
    /// The finding with its evidence, in one sentence.
    pub evidence: String,
}

impl RunResult {
    /// What held the run back: the first verdict that names a bottleneck. Later ones are findings beside it.
    pub fn bottleneck(&self) -> Option<&Verdict> {
        self.verdicts
            .iter()
            .find(|verdict| verdict.kind.limit().is_some())
    }

    /// All verdicts as sentences for people. That of the bottleneck says what it is before its evidence.
    pub fn findings(&self) -> Vec<String> {
        let bottleneck = self.bottleneck();
        let sentence = |verdict: &Verdict| match verdict.kind.limit() {
            // That of a cache says it all itself.
            Some(limit)
                if bottleneck == Some(verdict) && verdict.kind != VerdictKind::ServedFromCache =>
            {
                format!("held back by {limit}: {}", verdict.evidence)
            }
            _ => verdict.evidence.clone(),
        };
        self.verdicts.iter().map(sentence).collect()
    }
}

/// The kinds of verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The device moved fewer bytes than the job: a cache answered.
    ServedFromCache,
    /// Holes or unwritten extents were read.
    UnwrittenData,
    /// The generator had no processor time to spare.
    Generator,
    /// A bound on this machine throttled the I/O: a control group's, or one that shows above the device.
    Throttled,
    /// The rate stands as still as under the throttle of a provider: a guess.
    Allowance,
    /// Somebody else used the device.
    Interference,
    /// The device did all that it could.
    Device,
    /// Too few I/Os were in flight to keep the device busy.
    QueueDepth,
    /// I/Os waited for another machine, or for the process that serves a file system.
    Network,
    /// I/Os waited for each other in the file system, above the device.
    LockContention,
    /// A Ceph cluster was recovering or scrubbing.
    ClusterBusy,
    /// Storage daemons of a Ceph cluster were down.
    ClusterDegraded,
    /// One storage daemon of a Ceph cluster is much slower than the others.
    SlowOsd,
    /// I/Os waited for the storage daemons of a Ceph cluster.
    Osds,
    /// The job itself asks for no more: a rate, think time.
    JobLimit,
    /// No part was seen at its limit.
    Unclear,
    /// The hypervisor gave the processors to others.
    Steal,
    /// The machine slept or its clock was set during the run.
    ClockDisturbed,
    /// The process did not run for a while: a stop signal, a frozen control group, a debugger.
    Stopped,
    /// Another engine or feature than asked for was used.
    Fallback,
    /// The figure did not settle.
    Unsteady,
}

impl VerdictKind {
    /// Whether a rate was held where it was by somebody's rule, not by what the device can do.
    pub fn is_throttle(self) -> bool {
        matches!(self, VerdictKind::Throttled | VerdictKind::Allowance)
    }

    /// What held the run back, in a few words that follow "held back by"; `None` for findings of another sort.
    pub fn limit(self) -> Option<&'static str> {
        Some(match self {
            VerdictKind::ServedFromCache => "a page cache",
            VerdictKind::Generator => "the processors of this machine",
            VerdictKind::Throttled => "a throttle",
            VerdictKind::Allowance => "a throttle, as it seems",
            VerdictKind::Interference => "other users of the device",
            VerdictKind::Device => "the device",
            VerdictKind::QueueDepth => "the queue depth",
            VerdictKind::Network => "the network or the server",
            VerdictKind::LockContention => "locks in the file system",
            VerdictKind::ClusterBusy => "other work of the cluster",
            VerdictKind::SlowOsd => "one slow OSD",
            VerdictKind::Osds => "the OSDs of the cluster",
            VerdictKind::JobLimit => "the job itself",
            VerdictKind::Unclear => "nothing that shows",
            VerdictKind::UnwrittenData
            | VerdictKind::ClusterDegraded
            | VerdictKind::Steal
            | VerdictKind::ClockDisturbed
            | VerdictKind::Stopped
            | VerdictKind::Fallback
            | VerdictKind::Unsteady => return None,
        })
    }
}
