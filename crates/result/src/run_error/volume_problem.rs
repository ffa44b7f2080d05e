//! Reasons why a volume of a cluster cannot be used as a target, as data.

use super::{RunError, SharedFileProblem, SystemFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a volume of a cluster cannot be used as a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VolumeProblem {
    /// The namespace forbids pods that run as root.
    RootForbidden {
        /// Whether the volume is a block device, which only root may open by default.
        is_block: bool,
    },
    /// The namespace forbids hostPath volumes.
    HostPathForbidden {
        /// Pod Security level of the namespace.
        level: String,
    },
    /// No claim has this name.
    NoClaim {
        /// The name.
        name: String,
    },
    /// The claim is a block device, and a file system was requested.
    ClaimIsBlock,
    /// The claim is a file system, and a block device was requested.
    ClaimIsFileSystem,
    /// The claim can only be read.
    ClaimIsReadOnly,
    /// A pod uses the claim's block device.
    UsedByPod {
        /// Name of the pod.
        pod: String,
    },
    /// No storage class has this name. The path is that of the class.
    NoStorageClass {
        /// A class with a similar name.
        similar: Option<String>,
        /// Names of the classes.
        known: Vec<String>,
    },
    /// The class has no provisioner: its volumes are made by hand.
    StaticClass,
    /// The target is not a storage class, whose volumes could be made and removed.
    NotAClass,
    /// The cluster has no API for snapshots: its custom resource definitions are missing.
    NoSnapshotApi,
    /// No snapshot class belongs to the driver of the storage class.
    NoSnapshotClass {
        /// The driver.
        driver: String,
        /// Drivers that have a snapshot class.
        known: Vec<String>,
    },
    /// No snapshot class has this name.
    NoSuchSnapshotClass {
        /// The name.
        class: String,
        /// Names of the snapshot classes.
        known: Vec<String>,
    },
    /// The snapshot class belongs to another driver than the storage class.
    SnapshotClassOfOtherDriver {
        /// The snapshot class.
        class: String,
        /// Its driver.
        class_driver: String,
        /// Driver of the storage class.
        driver: String,
    },
    /// The snapshot class keeps the data of snapshots that are deleted.
    SnapshotClassRetains {
        /// The snapshot class.
        class: String,
    },
    /// The driver of the class has too little space for the volume.
    DriverFull {
        /// Size of the largest possible volume.
        available_bytes: u64,
        /// Size of the claim.
        claim_bytes: u64,
    },
    /// A directory of a node was requested as a block device.
    DirectoryAsBlock,
    /// A process on the node uses the block device.
    DeviceInUse {
        /// The use.
        used: String,
        /// The owner of the volume.
        volume: DeviceVolume,
    },
    /// The block device holds data, and there is no consent to overwrite them.
    DeviceHasData {
        /// The data.
        carries: String,
        /// The owner of the volume.
        volume: DeviceVolume,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// A process on the node uses the block device of a rendered manifest.
    RenderedDeviceInUse {
        /// The use.
        used: String,
    },
    /// The block device of a rendered manifest holds data, and the manifest has no consent.
    RenderedDeviceHasData {
        /// The data.
        carries: String,
    },
    /// The scratch directory cannot be created in the volume.
    NoScratchDirectory {
        /// The error of the system.
        failure: SystemFailure,
    },
    /// The pods cannot share a file of the volume, or one of them read a wrong byte.
    SharedFile(Box<SharedFileProblem>),
}

impl VolumeProblem {
    /// Returns the errno of the failed call, if a call failed.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            VolumeProblem::NoScratchDirectory { failure } => failure.errno(),
            VolumeProblem::SharedFile(problem) => problem.errno(),
            _ => None,
        }
    }
}

/// Volume of a block device, as far as its data may be those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceVolume {
    /// The volume of an existing claim.
    ExistingClaim,
    /// A volume of a storage class. This user may not see whether it is new.
    UnknownOfClass,
    /// A volume of a storage class.
    OfClass,
}

impl SharedFileProblem {
    /// Returns the error of a run on this target.
    #[must_use]
    pub fn into_run_error(self, target: &str) -> RunError {
        let cause = VolumeProblem::SharedFile(Box::new(self));
        RunError::unusable_target(target, cause.into())
    }
}
