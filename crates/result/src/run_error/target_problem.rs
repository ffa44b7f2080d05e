//! Reasons why a path cannot be used as a target, as data.

use super::{CephAction, CephProblem, MapProblem, SystemFailure, VolumeProblem};
use iosonde_job::plan::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a path cannot be used as a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TargetProblem {
    /// The job has no size, and its files do not exist or are empty. The path is the job's name.
    NoSize,
    /// `directory` names a file.
    FileAsDirectory,
    /// `filename` names a directory.
    DirectoryAsFile,
    /// The file is standard input or output.
    StandardStream,
    /// The file is a pipe or a socket.
    PipeOrSocket,
    /// `fill_device` on a ramfs, which has no size limit.
    FillOfRamfs,
    /// The region of the job starts at or after the end of the file.
    OffsetAfterFile {
        /// Start of the region.
        offset: u64,
        /// Size of the file.
        file_bytes: u64,
    },
    /// The region of the job starts at or after `filesize`.
    OffsetAfterFilesize {
        /// Start of the region.
        offset: u64,
        /// `filesize`.
        filesize: u64,
    },
    /// The region of the job ends after the maximum offset.
    OffsetOverMaximum {
        /// Start of the region.
        offset: u64,
        /// Length of the region.
        size_bytes: u64,
        /// The maximum offset.
        limit_bytes: u64,
    },
    /// The job needs a layout, and `--readonly` forbids it.
    LayoutForbidden {
        /// Name of the job.
        job: String,
        /// Size of the file. `None` if the file does not exist.
        file_bytes: Option<u64>,
        /// Size that the job needs.
        needed_bytes: u64,
    },
    /// `atomic=1`, and neither the file system nor the device has atomic writes.
    NoAtomicWrites {
        /// Name of the job.
        job: String,
    },
    /// A block of a job with `atomic=1` is no power of two within the limits of the file or device.
    AtomicBlockSize {
        /// Name of the job.
        job: String,
        /// Size of the block.
        block_bytes: u64,
        /// Smallest atomic write.
        min_bytes: u64,
        /// Largest atomic write.
        max_bytes: u64,
    },
    /// `uncached=1`, and the kernel or the file system refuses it.
    UncachedRefused {
        /// Name of the job.
        job: String,
        /// The error of the kernel.
        errno: i32,
    },
    /// The file does not exist, and `allow_file_create=0` forbids creating it.
    CreationForbidden,
    /// The path is on a pseudo file system.
    PseudoFileSystem {
        /// Type of the file system.
        fs_type: String,
    },
    /// Another program has changed the size of the file since the start of the run.
    ChangedByOthers {
        /// Size at the start of the run.
        before_bytes: u64,
        /// Size before the layout.
        now_bytes: u64,
    },
    /// Another program created a file of this name during the run.
    CreatedByOthers,
    /// The trace extends beyond the end of the device.
    TraceAfterDevice {
        /// End of the last I/O of the trace.
        trace_bytes: u64,
        /// Size of the device.
        device_bytes: u64,
    },
    /// A device of the trace does not exist.
    NoReplayDevice {
        /// ENOENT.
        errno: i32,
    },
    /// This machine has no block device with the number in the trace.
    NoTracedDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// The trace contains no I/O that may be replayed.
    EmptyTrace {
        /// Whether `--readonly` removed its writes.
        readonly: bool,
    },
    /// The trace has an error.
    InvalidTrace {
        /// Line or byte of the error.
        place: String,
        /// The error.
        problem: String,
    },
    /// The trace is too large to be loaded into memory.
    TraceTooLarge {
        /// Maximum size.
        limit_bytes: u64,
    },
    /// The trace is read from a device that has no end, or more data than iosonde reads of devices.
    TraceFromDevice,
    /// The job would change a target that has no consent to overwrite.
    ReadOnly {
        /// Name of the job.
        job: String,
        /// The change.
        harm: FileHarm,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// The job uses a file outside of its targets.
    OutsideTargets {
        /// Name of the job.
        job: String,
        /// The targets. Empty for a simulated device.
        targets: Vec<String>,
    },
    /// The path cannot be accessed.
    NotAccessible {
        /// The error of the system.
        failure: SystemFailure,
        /// The use of the path.
        purpose: AccessPurpose,
    },
    /// A study measures a directory of a pseudo file system.
    NoDataStored {
        /// Type of the file system.
        fs_type: String,
    },
    /// A study measures a character device.
    CharacterDevice,
    /// The path is no directory, file or block device.
    OtherFileType,
    /// The engine of a job determines another target.
    EngineOfOtherTarget {
        /// Name of the job.
        job: String,
        /// The engine.
        engine: Engine,
    },
    /// The region of a job starts after the end of the target.
    JobAfterTarget {
        /// Name of the job.
        job: String,
        /// Start of the region.
        start_bytes: u64,
        /// Size of the target.
        target_bytes: u64,
    },
    /// Other benchmarks of this host use all object names.
    NoObjectNames {
        /// Number of names that were tried.
        names: u32,
        /// Command that removes objects of earlier benchmarks.
        clean_up: String,
    },
    /// Objects of a benchmark are still in the pool.
    ObjectsNotRemoved {
        /// Name of the first object.
        first: String,
        /// Number of the other objects.
        others: u64,
        /// errno of the first removal.
        errno: i32,
        /// Command that removes the objects.
        clean_up: String,
    },
    /// A call to a Ceph cluster failed.
    CephCall {
        /// Operation that failed.
        action: CephAction,
        /// errno of the call.
        errno: i32,
        /// Message of the cluster, or empty.
        said: String,
    },
    /// A pool or an image of Ceph cannot be used.
    Ceph(CephProblem),
    /// An image of Ceph cannot be mapped through the kernel.
    Map(MapProblem),
    /// A volume of a cluster cannot be used.
    Volume(VolumeProblem),
}

impl From<CephProblem> for TargetProblem {
    fn from(problem: CephProblem) -> TargetProblem {
        TargetProblem::Ceph(problem)
    }
}

impl From<MapProblem> for TargetProblem {
    fn from(problem: MapProblem) -> TargetProblem {
        TargetProblem::Map(problem)
    }
}

impl From<VolumeProblem> for TargetProblem {
    fn from(problem: VolumeProblem) -> TargetProblem {
        TargetProblem::Volume(problem)
    }
}

impl TargetProblem {
    /// Returns the errno of the failed call, if a call failed.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            TargetProblem::NoReplayDevice { errno }
            | TargetProblem::UncachedRefused { errno, .. }
            | TargetProblem::CephCall { errno, .. } => Some(*errno),
            TargetProblem::NotAccessible { failure, .. } => failure.errno(),
            TargetProblem::Ceph(problem) => problem.errno(),
            TargetProblem::Volume(problem) => problem.errno(),
            _ => None,
        }
    }
}

/// Use of a path that cannot be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessPurpose {
    /// A study measures the target.
    Measure {
        /// Whether the program runs as root.
        is_root: bool,
    },
    /// `doctor` examines the target.
    Examine,
    /// A suite makes its scratch directory in the directory.
    ScratchDirectory,
    /// A suite writes the target.
    Overwrite,
    /// The agent inspects a volume of its pod.
    Volume,
    /// The program copies the agent into pods.
    AgentProgram,
}

/// A change of a file that has no consent to be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileHarm {
    /// The job writes or trims.
    Write,
    /// The job removes the file.
    Remove,
    /// The job needs a larger file.
    Extend {
        /// Size that the job needs.
        needed_bytes: u64,
        /// Size of the file.
        file_bytes: u64,
    },
}

/// An operation on a path that failed with an error of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathAction {
    /// Open a file.
    Open,
    /// Create a file or directory.
    Create,
    /// Read a file or directory.
    Read,
    /// Write a file.
    Write,
    /// Read metadata.
    Inspect,
    /// Use a directory.
    Use,
    /// Read the size of a device or file system.
    Measure,
    /// Read the size of the file system of a file.
    MeasureFileSystem,
    /// Drop the page cache of a file.
    DropCache,
    /// Write dirty pages back.
    Flush,
    /// Read a file into the page cache before the job (`pre_read`).
    PreRead,
    /// Set `write_hint`.
    SetWriteHint,
    /// Allocate the buffers of a layout.
    AllocateFillBuffers,
    /// Reserve the space of a file.
    Reserve,
    /// Set the size of a file.
    Resize,
    /// Remove a file.
    Remove,
}
