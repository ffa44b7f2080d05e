//! Causes of verdicts: one variant per cause, with the quantities that the evidence names.
//!
//! Shares are from 0 to 1. Results stored by older versions lack causes: then only the evidence is
//! known.

use crate::ceph::{CephActivity, OsdCounts};
use crate::known_cause::read_known_cause;
use crate::network::NetworkLoad;
use iosonde_job::plan::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cause of a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum VerdictCause {
    /// The jobs ran at different times, so that their figures do not belong together.
    DifferentTimes,
    /// A job reached its option `rate` or `rate_iops`.
    JobRate {
        /// Name of the job.
        job: String,
        /// Name of the option.
        option: String,
        /// Value of the option, in bytes or I/Os per second.
        limit_per_s: u64,
        /// Rate of the job, in bytes or I/Os per second.
        reached_per_s: f64,
    },
    /// `thinktime` paused a job.
    ThinkTime {
        /// Name of the job.
        job: String,
        /// Share of the time.
        paused_share: f64,
    },
    /// The job reached a limit of a control group on a device.
    CgroupIoReached {
        /// The limit.
        limit: CgroupIoLimit,
        /// Name of the device, if it is known.
        device: Option<String>,
        /// Rate of the job, in the unit of the limit.
        reached_per_s: f64,
    },
    /// Control groups throttled the CPU time of this process.
    CgroupCpu {
        /// CPUs that the control groups allow.
        limit_cpus: f64,
        /// Share of the time in which the process was throttled.
        throttled_share: f64,
    },
    /// Workers on a file system waited for locks, while a cache took the data.
    LocksOverCache {
        /// Number of workers.
        workers: u64,
        /// Type of the file system.
        fs_type: String,
        /// Share of the time in which workers slept.
        asleep_share: f64,
        /// Share of the time in which the device was busy.
        device_busy_share: f64,
    },
    /// A worker used a CPU for almost all of the time.
    WorkerBusy {
        /// Number of workers.
        workers: u64,
        /// Share of the busiest worker's time in user mode.
        user_share: f64,
        /// Share of the busiest worker's time in the kernel.
        system_share: f64,
        /// Type of the file system that stores the data in memory, if one does.
        memory_fs_type: Option<String>,
    },
    /// A worker waited for a CPU.
    WorkerQueued {
        /// Number of workers.
        workers: u64,
        /// Share of the busiest worker's time on a CPU.
        cpu_share: f64,
        /// Share of the busiest worker's time waiting for a CPU.
        queued_share: f64,
        /// Share of the time in which all CPUs of the machine were busy.
        machine_busy_share: f64,
        /// Type of the file system that stores the data in memory, if one does.
        memory_fs_type: Option<String>,
    },
    /// I/Os waited for a file server, a process, or the network.
    Served {
        /// Description of the service.
        service: String,
        /// Name of the local device of the service, if there is one.
        device: Option<String>,
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Mean number of I/Os in flight.
        in_flight: f64,
        /// Share of the busiest worker's time on a CPU.
        cpu_share: f64,
        /// Traffic of the busiest network interface, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkLoad>,
    },
    /// Other programs used much of a busy device.
    OtherTraffic {
        /// Traffic of the other programs.
        traffic: ForeignTraffic,
        /// Share of the time in which the device was busy.
        busy_share: f64,
    },
    /// Other programs used a device, which need not be the limit.
    SharedDevice {
        /// Traffic of the other programs.
        traffic: ForeignTraffic,
    },
    /// I/Os waited for locks of a file system, above the device.
    LocksAboveDevice {
        /// I/Os of the workers and requests of the device.
        queue: QueueAboveDevice,
        /// Type of the file system.
        fs_type: String,
    },
    /// I/Os were queued above the device by a throttle or the I/O scheduler.
    QueuedAboveDevice {
        /// I/Os of the workers and requests of the device.
        queue: QueueAboveDevice,
        /// Limit of a control group, if this process can read one.
        limit: Option<CgroupIoLimit>,
    },
    /// The rate is constant while I/Os wait, as under a throttle of a provider.
    FlatRate {
        /// Mean rate.
        iops: f64,
        /// Standard deviation of the rate between intervals, as a share of the mean.
        variation_share: f64,
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Shortest latency of an I/O.
        latency_ns_min: f64,
    },
    /// Workers waited for fsync or fdatasync.
    Flushes {
        /// Number of workers.
        workers: u64,
        /// Share of the workers' time in flushes.
        flush_share: f64,
        /// Mean latency of a flush.
        flush_ns: f64,
        /// Device, if it is known.
        device: Option<BusyDevice>,
        /// Whether the device is the limit, and not the number of jobs.
        is_device_limit: bool,
    },
    /// A synchronous engine keeps one I/O in flight at any iodepth.
    SynchronousEngine {
        /// Name of the engine.
        engine: String,
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Device, if it is known.
        device: Option<BusyDevice>,
    },
    /// About one I/O was in flight at a time.
    OneIoInFlight {
        /// Sum of the iodepths.
        iodepth: u64,
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Device, if it is known.
        device: Option<BusyDevice>,
    },
    /// I/Os in flight took little longer than a single one.
    LowDepth {
        /// Mean number of I/Os in flight.
        in_flight: f64,
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Shortest latency of an I/O.
        latency_ns_min: f64,
        /// Device, if it is known.
        device: Option<BusyDevice>,
    },
    /// The device was busy.
    DeviceBusy {
        /// The device.
        device: BusyDevice,
        /// Mean time per request.
        request_ns: f64,
    },
    /// No limit was found.
    NoLimitFound {
        /// Device, if it is known.
        device: Option<BusyDevice>,
        /// Share of the busiest worker's time on a CPU.
        cpu_share: f64,
        /// Mean number of I/Os in flight.
        in_flight: f64,
    },
    /// One OSD was much slower than the others.
    SlowOsd {
        /// Number of the OSD.
        osd: u32,
        /// Latency that was compared.
        measured: OsdMeasure,
        /// Latency of the OSD.
        latency_ns: f64,
        /// Median of the other OSDs' latencies.
        others_ns: f64,
    },
    /// I/Os spent most of their time in the OSDs.
    TimeInOsds {
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Part of it in the OSDs.
        osds_ns: f64,
    },
    /// I/Os spent most of their time outside of the OSDs.
    TimeOutsideOsds {
        /// Mean latency of an I/O.
        latency_ns: f64,
        /// Part of it in the OSDs.
        osds_ns: f64,
        /// Traffic of the busiest network interface, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkLoad>,
    },
    /// The cluster moved data.
    ClusterRecovery {
        /// Activity of the cluster.
        activity: CephActivity,
    },
    /// The cluster scrubbed placement groups.
    ClusterScrub {
        /// Activity of the cluster.
        activity: CephActivity,
    },
    /// OSDs of the cluster were down.
    OsdsDown {
        /// Numbers of OSDs.
        osds: OsdCounts,
        /// Messages of the cluster's health checks.
        checks: Vec<String>,
    },
    /// A cache served I/O of the job.
    ServedFromCache {
        /// Direction of the I/O.
        direction: Direction,
        /// Bytes of the job.
        job_bytes: u64,
        /// Bytes that the device moved.
        device_bytes: u64,
    },
    /// The cache of this machine's Ceph client acknowledged writes before the cluster had them.
    AcknowledgedByClientCache {
        /// Policy of the cache, e.g. `writearound`.
        policy: String,
        /// Bytes that the jobs wrote through this cache.
        written_bytes: u64,
    },
    /// Parts of a file that were never written were read.
    UnwrittenData {
        /// Path of the file.
        file: String,
        /// Bytes of data.
        data_bytes: u64,
        /// Bytes of holes.
        hole_bytes: u64,
        /// Bytes of unwritten extents.
        unwritten_bytes: u64,
    },
    /// The hypervisor withheld CPU time (steal).
    HypervisorSteal {
        /// Share of the CPU time.
        steal_percent: f64,
    },
    /// The machine was suspended.
    MachineSuspended {
        /// Length of the suspends.
        suspended_ns: u64,
    },
    /// The clock was set.
    ClockSet {
        /// Step of the clock. Negative if it was set back.
        step_ns: i64,
    },
    /// The process did not run for a while.
    ProcessStopped {
        /// Number of stops.
        stops: u64,
        /// Length of all stops.
        stopped_ns: u64,
        /// Time of the first stop, since the jobs were prepared.
        first_ns: u64,
        /// Whether the machine was suspended.
        was_suspended: bool,
        /// Whether the figures exclude the stops.
        is_excluded: bool,
    },
    /// Another engine or feature than requested was used.
    EngineFallback {
        /// Engine in use.
        engine: String,
        /// Reason in one sentence.
        reason: String,
    },
    /// I/Os waited for a server whose node was watched.
    WatchedServer {
        /// The node and its busiest disk.
        server: ServerNode,
        /// Cause of the wait, as the worker's machine showed it.
        #[serde(deserialize_with = "read_known_cause")]
        wait: Option<Box<VerdictCause>>,
    },
}

/// Limit of a control group on the I/O of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupIoLimit {
    /// Path of the control group.
    pub cgroup: String,
    /// Direction that it limits.
    pub direction: Direction,
    /// Value of the limit.
    pub rate: IoRateLimit,
}

/// Largest rate that a limit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoRateLimit {
    /// I/Os per second.
    Iops(u64),
    /// Bytes per second.
    BytesPerS(u64),
}

/// A device and its use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyDevice {
    /// Kernel name.
    pub name: String,
    /// Share of the time in which requests were in flight.
    pub busy_share: f64,
    /// Mean number of requests in flight.
    pub queue: f64,
}

/// Traffic of other programs on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignTraffic {
    /// Kernel name of the device.
    pub device: String,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Share of the device's traffic.
    pub traffic_share: f64,
}

/// I/Os of the workers, few of which were in the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueAboveDevice {
    /// Mean number of I/Os in flight.
    pub in_flight: f64,
    /// Mean latency of an I/O.
    pub latency_ns: f64,
    /// Kernel name of the device.
    pub device: String,
    /// Mean number of requests in the device.
    pub device_queue: f64,
    /// Mean time per request of the device.
    pub request_ns: f64,
}

/// Latency by which OSDs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OsdMeasure {
    /// Operations of clients.
    Operation,
    /// Commits of writes.
    Commit,
}

/// A watched node, with its busiest disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerNode {
    /// Name of the node.
    pub node: String,
    /// Whether it serves the volume.
    pub serves_volume: bool,
    /// Busiest disk. `None` if no disk had I/O.
    pub disk: Option<ServerDisk>,
    /// Part of the disk in the limit.
    pub limit: DiskLimit,
    /// Traffic of the busiest network interface of the node, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkLoad>,
}

/// Use of a disk of a watched node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDisk {
    /// Kernel name.
    pub name: String,
    /// Share of the time in which requests were in flight, in per cent.
    pub busy_percent: f64,
    /// Mean number of requests in flight.
    pub queue: f64,
    /// Mean time per request.
    pub request_ns: f64,
}

/// Whether a server's disk limits the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskLimit {
    /// The disk is the limit.
    Limit,
    /// The disk is not the limit.
    NoLimit,
    /// Unknown.
    Unknown,
}
