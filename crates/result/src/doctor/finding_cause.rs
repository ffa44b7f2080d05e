//! Causes of findings: one variant per condition, with the quantities that the finding names.
//!
//! The words are made in `finding_text.rs` and the files beside it.

use super::cluster_cause::ClusterCause;
use super::io_path_cause::{IoPathCause, IoUringRefusal};
use crate::host::{DeviceKind, PathKind, PcieLink, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cause of a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FindingCause {
    /// A condition of the machine.
    Machine(MachineCause),
    /// A condition of a device.
    Device(DeviceCause),
    /// A setting on the path of an I/O to a fast device.
    IoPath(IoPathCause),
    /// A condition of a target.
    Target(TargetCause),
    /// A leftover, or a run in progress.
    Leftover(LeftoverCause),
    /// A condition of a cluster.
    Cluster(ClusterCause),
}

/// Conditions of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MachineCause {
    /// The CPU frequency governor lowers frequencies.
    CpuGovernor {
        /// Governors of the CPUs.
        governor: String,
        /// Frequency driver, if it is known.
        driver: Option<String>,
    },
    /// The machine runs on battery power.
    OnBattery,
    /// Other programs use the CPUs.
    CpuBusy {
        /// CPU utilisation over all processors.
        busy_percent: f64,
        /// Number of CPUs, if it is known.
        cpus: Option<u32>,
        /// Load average over 1 minute.
        load_average: Option<f64>,
    },
    /// The hypervisor withheld CPU time (steal).
    CpuSteal {
        /// Share of the CPU time.
        steal_percent: f64,
    },
    /// Little memory is available.
    MemoryLow {
        /// Memory that is available.
        available_bytes: u64,
        /// Memory of the machine.
        memory_bytes: u64,
    },
    /// Swap space is in use.
    SwapInUse {
        /// Swap space in use.
        used_bytes: u64,
    },
    /// The page cache has many dirty pages.
    DirtyPages {
        /// Bytes in dirty pages.
        dirty_bytes: u64,
    },
    /// io_uring is not available.
    IoUring {
        /// Reason with the name of the errno, if io_uring was refused.
        error: Option<String>,
        /// Value of `kernel.io_uring_disabled`, if it is not 0.
        disabled_level: Option<u32>,
        /// Whether this process runs in a container.
        container: bool,
        /// Origin of the refusal.
        #[serde(default)]
        refusal: IoUringRefusal,
    },
    /// Few requests of native AIO can be reserved.
    AioExhausted {
        /// Requests that are reserved.
        reserved_requests: u64,
        /// Requests that may be reserved.
        limit_requests: u64,
    },
    /// This process may lock little memory.
    Memlock {
        /// Memory that it may lock.
        limit_bytes: u64,
    },
    /// The kernel lacks io_uring or features of it.
    OldKernel {
        /// Release of the kernel.
        release: String,
        /// Whether the kernel has io_uring.
        has_io_uring: bool,
    },
    /// The kernel's clock source is slow.
    SlowClock {
        /// Clock source in use.
        clock: String,
        /// Faster clock source that is available.
        better: Option<String>,
    },
    /// Control groups limit CPU time.
    CgroupCpu {
        /// CPUs that the control groups allow.
        limit_cpus: f64,
        /// CPUs of the machine.
        cpus: u32,
    },
    /// Control groups limit memory.
    CgroupMemory {
        /// Memory that the control groups allow.
        limit_bytes: u64,
    },
    /// The machine is virtual.
    VirtualMachine {
        /// Cloud of the machine, if it is known.
        cloud: Option<String>,
    },
    /// This process runs in a container.
    Container,
    /// A process does temporary work.
    Maintenance {
        /// Description of the work.
        work: String,
        /// Process id.
        pid: u32,
    },
}

/// Conditions of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeviceCause {
    /// The device stores data in memory, or nowhere.
    MemoryDevice {
        /// Kind of the device.
        device_kind: DeviceKind,
    },
    /// A loop device uses the page cache.
    BufferedLoop,
    /// The device is thinly provisioned.
    Thin,
    /// The I/O scheduler costs time.
    Scheduler {
        /// I/O scheduler in use.
        scheduler: String,
        /// I/O scheduler that suits the device.
        better: String,
    },
    /// The device has a volatile write cache.
    WriteCache {
        /// Kind of the device.
        device_kind: DeviceKind,
        /// Transport of the device, if it is known.
        transport: Option<Transport>,
    },
    /// The PCI Express link is narrower or slower than the controller supports.
    PcieLink {
        /// The link.
        link: PcieLink,
    },
    /// The device accepts one command at a time.
    QueueDepthOne {
        /// Transport of the device, if it is known.
        transport: Option<Transport>,
    },
    /// The CPU encrypts the data of the device.
    Encrypted,
    /// The kernel does not count the device's I/O.
    StatisticsOff,
    /// A software RAID array synchronises its members.
    ArraySync {
        /// Sync action of the array.
        action: String,
        /// Progress of the action.
        progress_percent: Option<f64>,
    },
    /// A software RAID array lacks members.
    ArrayDegraded {
        /// Number of missing members.
        missing_members: u32,
    },
    /// The device does not serve I/O.
    DeviceDown {
        /// State of the device.
        state: String,
    },
    /// The device is near the temperature at which it throttles itself.
    Hot {
        /// Temperature of the device.
        celsius: f64,
        /// Temperature at which the device starts to throttle itself.
        limit_celsius: f64,
    },
    /// Other programs do I/O on the device.
    OtherIo {
        /// Reads per second.
        read_iops: f64,
        /// Writes per second.
        write_iops: f64,
        /// Bytes read per second.
        read_bytes_per_s: f64,
        /// Bytes written per second.
        write_bytes_per_s: f64,
        /// Share of the time in which I/O was in flight.
        busy_percent: f64,
        /// Length of the observation.
        watched_s: f64,
        /// Whether the traffic distorts figures.
        disturbs: bool,
        /// Programs that do I/O to any device.
        programs: Vec<RunningProgram>,
    },
}

/// A program that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunningProgram {
    /// Name of the process.
    pub name: String,
    /// Process id.
    pub pid: u32,
}

/// Conditions of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetCause {
    /// The target cannot be read.
    Unreadable {
        /// Reason with the name of the errno.
        error: String,
        /// Number of the errno, if it is known.
        errno: Option<i32>,
        /// Kind of the path.
        path_kind: PathKind,
    },
    /// The device of the target is read-only.
    ReadOnlyDevice {
        /// Name of the device.
        device: String,
    },
    /// The target cannot be written.
    Unwritable {
        /// Reason with the name of the errno.
        error: String,
        /// Kind of the path.
        path_kind: PathKind,
        /// Mount point of the file system, if it is mounted read-only.
        read_only_mount: Option<String>,
    },
    /// The target has users or contents.
    InUse {
        /// Reasons that require consent.
        obstacles: Vec<String>,
        /// Action needed before the target can be overwritten.
        action: Option<String>,
    },
    /// The file system refuses O_DIRECT.
    NoDirectIo,
    /// The target is smaller than the smallest working set.
    NoRoom {
        /// Free space of a directory, or size of a file or device.
        bytes: u64,
        /// Smallest working set.
        minimum_bytes: u64,
        /// Kind of the path.
        path_kind: PathKind,
    },
    /// The file system is nearly full.
    NearlyFull {
        /// Free space.
        available_bytes: u64,
        /// Size of the file system.
        total_bytes: u64,
        /// Mount point of the file system, if it is known.
        mount_point: Option<String>,
    },
    /// The file has holes.
    SparseFile {
        /// Bytes that are allocated.
        allocated_bytes: u64,
        /// Size of the file.
        size_bytes: u64,
    },
    /// Control groups limit I/O.
    CgroupIo {
        /// Paths of the control groups.
        cgroups: Vec<String>,
        /// Strictest limits on each device.
        limits: Vec<DeviceIoLimits>,
    },
    /// The file system stores no data.
    PseudoFileSystem {
        /// Type of the file system.
        fs_type: String,
    },
    /// The file system stores its data in memory.
    MemoryFileSystem {
        /// Type of the file system.
        fs_type: String,
    },
    /// The data is on another machine.
    NetworkFileSystem {
        /// Type of the file system.
        fs_type: String,
        /// Source of the mount.
        source: String,
    },
    /// A process serves the file system.
    UserSpaceFileSystem {
        /// Type of the file system.
        fs_type: String,
    },
    /// The file system is stacked on others.
    Overlay {
        /// Type of the file system.
        fs_type: String,
    },
    /// The file system is mounted with `sync`.
    SyncMount {
        /// Mount point.
        mount_point: String,
    },
    /// The file system compresses data.
    Compression {
        /// Type of the file system.
        fs_type: String,
        /// Mount point.
        mount_point: String,
        /// Mount option.
        option: String,
    },
    /// The file system is mounted with `discard`.
    OnlineDiscard {
        /// Mount point.
        mount_point: String,
    },
}

/// Limits of control groups on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceIoLimits {
    /// Name of the device, or its number.
    pub device: String,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<u64>,
}

/// Leftovers of runs, and runs in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LeftoverCause {
    /// A killed run of this host left a file.
    KilledRun {
        /// Bytes allocated to the file.
        bytes: u64,
        /// Seconds since the last change.
        age_s: Option<u64>,
    },
    /// A run on another host, or before the last boot, created a file.
    AnotherHost {
        /// Bytes allocated to the file.
        bytes: u64,
        /// Seconds since the last change.
        age_s: Option<u64>,
        /// Whether the name of the file tells the boot that created it.
        is_boot_known: bool,
        /// Directory of the file.
        directory: String,
    },
    /// A running process uses the file.
    AnotherRun,
    /// A file with the name of a working file. Its use is unknown.
    UnknownUse {
        /// Bytes allocated to the file.
        bytes: u64,
        /// Seconds since the last change.
        age_s: Option<u64>,
    },
}
