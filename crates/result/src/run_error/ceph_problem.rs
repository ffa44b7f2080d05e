//! Reasons why a pool or an image of Ceph cannot be used as a target, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a pool or an image of Ceph cannot be used as a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CephProblem {
    /// A name contains a zero byte.
    ZeroByteInName {
        /// The name.
        name: String,
    },
    /// A job reads ranges of an image that hold no data, and may not write them before.
    UnwrittenImageRange {
        /// Name of the job.
        job: String,
        /// Bytes that hold no data.
        missing_bytes: u64,
        /// Bytes that the job reads.
        needed_bytes: u64,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// A job writes, discards or must fill ranges of a snapshot, which is read-only.
    ReadOnlySnapshot {
        /// Bytes that must be written before they are read. 0: a job changes data.
        missing_bytes: u64,
    },
    /// Images could not be closed, because the cluster does not answer.
    ImagesNotClosed {
        /// The first image, as `POOL/IMAGE`.
        image: String,
    },
    /// The existing object is smaller than the job needs.
    ObjectTooSmall {
        /// Size of the object.
        object_bytes: u64,
        /// Name of the job.
        job: String,
        /// Bytes that the job needs.
        needed_bytes: u64,
    },
    /// A job reads ranges of an object that an earlier job discarded, and may not write them.
    DiscardedObjectRange {
        /// Discarded bytes.
        missing_bytes: u64,
        /// Bytes that the job needs.
        needed_bytes: u64,
        /// Name of the job.
        job: String,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// An erasure-coded pool accepts no overwrites.
    NoOverwrites {
        /// The pool.
        pool: String,
    },
    /// Objects must be written before they are read, and `--readonly` forbids it.
    FillForbidden {
        /// Bytes of the object.
        needed_bytes: u64,
    },
    /// Objects of a run could not be removed.
    ObjectsNotRemoved {
        /// The pool.
        pool: String,
        /// Namespace of the pool.
        namespace: Option<String>,
        /// Name of the first object.
        object: String,
        /// Number of the other objects.
        others: usize,
        /// errno of the call for the first object.
        errno: i32,
    },
    /// A pool that a command must make exists.
    PoolExists {
        /// The pool.
        pool: String,
        /// Whether a run of iosonde made it.
        is_made: bool,
    },
    /// A pool that was made does not accept I/O, and was removed.
    PoolNotActive {
        /// Time that iosonde waited, in seconds.
        wait_s: u64,
        /// Number of copies or chunks of an object.
        size: u64,
    },
    /// The cluster forbids the removal of pools, so none is made.
    PoolRemovalForbidden,
    /// The cluster reports errors, so nothing is made in it.
    ClusterInError {
        /// Messages of its health checks.
        checks: Vec<String>,
    },
    /// A pool to remove was not made by iosonde.
    PoolNotMade,
    /// A pool that a command made could not be removed.
    PoolNotRemoved {
        /// The pool.
        pool: String,
        /// errno of the removal.
        errno: i32,
        /// Message of the cluster, or empty.
        said: String,
    },
    /// An image that a command made could not be removed.
    ImageNotRemoved {
        /// The image, as `POOL/IMAGE`.
        image: String,
        /// errno of the removal.
        errno: i32,
    },
    /// A pool whose cache tier is to be compared has none.
    NoCacheTier {
        /// The pool.
        pool: String,
    },
    /// The mode of a cache tier, which a comparison changed, could not be restored.
    CacheModeNotRestored {
        /// The pool of the tier.
        tier: String,
        /// The mode before the comparison.
        mode: String,
        /// errno of the change.
        errno: i32,
    },
}

impl CephProblem {
    /// Returns the errno of the failed call, if a call failed.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            CephProblem::ObjectsNotRemoved { errno, .. }
            | CephProblem::PoolNotRemoved { errno, .. }
            | CephProblem::ImageNotRemoved { errno, .. }
            | CephProblem::CacheModeNotRestored { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// Operation on a Ceph cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CephAction {
    /// Create a client.
    CreateClient,
    /// Read a configuration file. `None`: the default one.
    ReadConfiguration(Option<String>),
    /// Read the settings in `CEPH_ARGS`.
    ReadArguments,
    /// Change a setting.
    Set {
        /// Name of the setting.
        name: String,
        /// The new value.
        value: String,
    },
    /// Connect to the cluster.
    Connect,
    /// Read the cluster's identity.
    ReadIdentity,
    /// Send a command to a daemon.
    Query(String),
    /// Open a pool.
    OpenPool(String),
    /// List the objects of a pool.
    ListObjects,
    /// Write an object.
    WriteObject(String),
    /// Create an object.
    CreateObject(String),
    /// Read an object.
    ReadObject(String),
    /// Read the metadata of an object.
    InspectObject(String),
    /// Remove an object.
    RemoveObject(String),
    /// Write a file before it is read, at this offset.
    LayOut(u64),
    /// Open an image.
    OpenImage(String),
    /// Read the size of an image.
    MeasureImage,
    /// Read an image.
    ReadImage,
    /// Make the writes of an image durable.
    FlushImage,
    /// List the clients that have an image open.
    ListImageClients,
    /// List the locks on an image.
    ListImageLocks,
    /// List the written ranges of an image.
    ListImageRanges,
    /// Create an image.
    CreateImage {
        /// Name of the image.
        image: String,
        /// Its namespace, as `POOL/NAMESPACE`. `None`: the image has no namespace.
        namespace: Option<String>,
    },
    /// Remove an image.
    RemoveImage(String),
    /// List the images of a pool.
    ListImages,
    /// Create a pool.
    CreatePool(String),
    /// Remove a pool.
    RemovePool(String),
}
