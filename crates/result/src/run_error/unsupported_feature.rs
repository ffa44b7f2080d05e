//! Features that a machine or this program does not support, as data.

use super::{ClusterObstacle, SystemFailure};
use crate::cache_state::CacheLayer;
use iosonde_job::outside_access::AccessKind;
use iosonde_job::plan::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A feature that this machine or this program does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnsupportedFeature {
    /// `iodepth` exceeds the maximum of io_uring.
    IodepthOverMaximum {
        /// Name of the job.
        job: String,
        /// The depth that the job uses.
        iodepth: u32,
        /// Maximum number of I/Os in flight.
        limit: u32,
    },
    /// The kernel refuses the engine of a job.
    EngineUnavailable {
        /// The engine.
        engine: Engine,
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// The kernel refuses all engines of `ioengine=auto`.
    NoEngine {
        /// The engines, each with its error.
        refused: Vec<RefusedEngine>,
    },
    /// This program is built without the engine.
    EngineNotBuilt {
        /// Name of the job.
        job: String,
        /// The engine.
        engine: Engine,
    },
    /// The buffers of concurrent jobs exceed the available memory.
    BuffersOverMemory {
        /// Bytes of all buffers.
        needed_bytes: u64,
        /// Bytes of available memory.
        available_bytes: u64,
    },
    /// The memory of a job's buffers cannot be allocated.
    NoBufferMemory {
        /// Name of the job.
        job: String,
        /// Number of buffers.
        slots: u64,
        /// Size of each buffer.
        buffer_bytes: u64,
        /// Memory that the job requests.
        memory: BufferMemory,
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// The memory of `lockmem` cannot be locked.
    NoLockedMemory {
        /// `lockmem`.
        bytes: u64,
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// A setting of a worker's thread is refused.
    ThreadSettingRefused {
        /// The option with its value, e.g. `nice=-5`.
        setting: String,
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// A thread cannot be started.
    NoThread {
        /// The purpose of the thread. Continues the text "no thread".
        purpose: String,
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// An option names a processor or NUMA node that this machine lacks.
    NoSuchNumber {
        /// The option.
        option: String,
        /// The unit that the number stands for.
        unit: NumberedUnit,
        /// The number that does not exist.
        number: u32,
        /// Existing numbers, e.g. `0-3,8`.
        online: String,
    },
    /// The scheduler of a device cannot be set.
    SchedulerRefused {
        /// Name of the job.
        job: String,
        /// `ioscheduler`.
        scheduler: String,
        /// The sysfs file.
        path: String,
        /// The error of the kernel.
        failure: SystemFailure,
        /// Schedulers of the device, as sysfs lists them.
        offered: String,
    },
    /// The shell of `exec_prerun` or `exec_postrun` cannot be started.
    NoShell {
        /// `prerun` or `postrun`.
        moment: String,
        /// The command.
        command: String,
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// The job accesses a path or setting outside of its target.
    OutsideAccess {
        /// Name of the job.
        job: String,
        /// The option that causes the access.
        option: String,
        /// The command, the setting or the path.
        value: String,
        /// The kind of the access.
        kind: AccessKind,
    },
    /// The sizes of a job do not fit together.
    SizesMismatch {
        /// Name of the job.
        job: String,
        /// The error of the workload.
        problem: String,
    },
    /// The specification of a job's simulated device has an error.
    InvalidSimulation {
        /// Name of the job.
        job: String,
        /// The error of the specification.
        problem: String,
    },
    /// The run mixes simulated jobs with other jobs.
    MixedSimulation,
    /// The files of a job do not fit on its simulated device.
    SimulatedDeviceTooSmall {
        /// Name of the job.
        job: String,
        /// The error of the simulated device.
        failure: SystemFailure,
    },
    /// The engine cannot register a file that was opened during the run.
    FileNotRegistered {
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// `ioengine=mmap` with `fill_device`.
    MmapFixedSize {
        /// Name of the job.
        job: String,
    },
    /// `ioengine=mmap` with `openfiles` or `unlink_each_loop`.
    MmapKeepsFilesOpen {
        /// Name of the job.
        job: String,
    },
    /// The job names another Ceph cluster than that of its target.
    OtherCephCluster {
        /// Name of the job.
        job: String,
        /// The option that names the cluster.
        option: String,
        /// Value of the option.
        value: String,
    },
    /// A job and its Ceph target have different values for an option.
    OptionOfOtherTarget {
        /// Name of the job.
        job: String,
        /// The option.
        option: String,
        /// Value in the job.
        value: String,
        /// Source of the other value, e.g. `filename`.
        other_source: String,
        /// The other value.
        other_value: String,
    },
    /// A job on Ceph has no pool.
    NoPool {
        /// Name of the job.
        job: String,
    },
    /// A command for Ceph targets got another target.
    NotCephTarget {
        /// The target.
        target: String,
    },
    /// No command supports the scheme of the target.
    UnknownScheme {
        /// The target.
        target: String,
        /// Its scheme, without `://`.
        scheme: String,
    },
    /// This program is built without the agent that it copies into pods.
    NoEmbeddedAgent,
    /// A job in a pod replays a trace.
    ReplayInPod {
        /// Name of the job.
        job: String,
    },
    /// A job in a pod writes logs.
    LogsInPod {
        /// Name of the job.
        job: String,
    },
    /// A job in a pod accesses a path or setting outside of its volume.
    OutsideAccessInPod {
        /// Name of the job.
        job: String,
        /// The option that causes the access.
        option: String,
        /// The command, the setting or the path.
        value: String,
        /// The kind of the access.
        kind: AccessKind,
    },
    /// The capacity of the target is too small to offer shares of it.
    TooSlowForLoads {
        /// The target.
        target: String,
        /// Capacity in hundredths of an I/O per second.
        iops_hundredths: u64,
    },
    /// `read_iolog` on a Ceph target.
    ReplayOnCeph {
        /// Name of the job.
        job: String,
    },
    /// A Ceph target, but this program was built without Ceph.
    BuiltWithoutCeph,
    /// A target on this machine, but this program was built without I/O on it.
    BuiltForClusters,
    /// A library of Ceph is missing or has another version.
    CephLibrary {
        /// File name of the library.
        library: String,
        /// Debian package of the library.
        package: String,
        /// Message of the loader.
        reason: String,
    },
    /// `--cold`: the caches of a node or an OSD are not dropped.
    CachesNotDropped {
        /// The layer.
        layer: CacheLayer,
        /// Name of the node or the OSD.
        place: String,
        /// The error.
        failure: SystemFailure,
    },
    /// A cluster cannot run the plan.
    Cluster(ClusterObstacle),
}

impl UnsupportedFeature {
    /// Returns the errno of the failed call, if a call failed.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            UnsupportedFeature::EngineUnavailable { failure, .. }
            | UnsupportedFeature::NoBufferMemory { failure, .. }
            | UnsupportedFeature::NoLockedMemory { failure, .. }
            | UnsupportedFeature::ThreadSettingRefused { failure, .. }
            | UnsupportedFeature::NoThread { failure, .. }
            | UnsupportedFeature::SchedulerRefused { failure, .. }
            | UnsupportedFeature::NoShell { failure, .. }
            | UnsupportedFeature::SimulatedDeviceTooSmall { failure, .. }
            | UnsupportedFeature::CachesNotDropped { failure, .. }
            | UnsupportedFeature::FileNotRegistered { failure } => failure.errno(),
            UnsupportedFeature::NoEngine { refused } => {
                refused.last().and_then(|engine| engine.failure.errno())
            }
            UnsupportedFeature::Cluster(obstacle) => obstacle.errno(),
            _ => None,
        }
    }
}

/// An engine that the kernel refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedEngine {
    /// The engine.
    pub engine: Engine,
    /// The error of the kernel.
    pub failure: SystemFailure,
}

/// Parts of a machine that the kernel numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberedUnit {
    /// A processor.
    Cpu,
    /// A NUMA node.
    NumaNode,
}

/// Kind of memory of a job's buffers (`mem`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BufferMemory {
    /// Ordinary memory.
    Ordinary,
    /// Huge pages.
    HugePages,
    /// A mapped file.
    File,
}
