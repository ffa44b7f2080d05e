//! Causes of findings about a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Conditions of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClusterCause {
    /// Several storage classes are the default one.
    SeveralDefaultClasses,
    /// The driver of a storage class runs on no node.
    DriverOnNoNode {
        /// Name of the driver.
        driver: String,
    },
    /// A trial of a storage class failed.
    ClassFails {
        /// Reason of the failure.
        error: String,
        /// Action to take.
        action: String,
    },
    /// One pod tried a storage class whose volumes several nodes can write.
    SharingNotTried {
        /// Reason why two pods could not try it.
        error: String,
        /// Action to take.
        action: String,
    },
    /// A storage class retains the volumes of removed claims.
    ClassRetains,
    /// A storage class keeps the directories of removed volumes on its share.
    ClassKeepsDirectory {
        /// Parameter of the class that says so.
        parameter: String,
        /// Data that stays on the share, for people.
        remainder: String,
    },
    /// No storage class has volumes that several nodes write (ReadWriteMany).
    NoSharedClass {
        /// Provisioners of the classes.
        provisioners: Vec<String>,
    },
    /// A node is not ready, or closed to new pods.
    NodeNotUsable,
    /// A node reports that a resource is scarce.
    NodePressure {
        /// Condition of the node, e.g. `DiskPressure`.
        condition: String,
    },
    /// A node of Google's service is too old for NVMe local SSDs as ephemeral storage.
    NoNvmeEphemeralStorage {
        /// Version of the node.
        version: String,
        /// First sufficient version.
        needed: String,
    },
    /// A node has less ephemeral storage for pods than the user intends to request.
    EphemeralStorageTooSmall {
        /// Intended request.
        requested_bytes: u64,
        /// Amount that the node allocates to pods.
        allocatable_bytes: u64,
    },
    /// A run is in the cluster.
    RunInCluster {
        /// Id of the run.
        run: String,
        /// Creation time in the format of the cluster.
        created: String,
        /// Whether a pod of the run is active.
        is_running: bool,
        /// Where it is removed.
        clean_up: CleanUp,
    },
    /// The volume of a run whose claim is gone.
    RetainedVolume {
        /// Size in the notation of Kubernetes.
        size: String,
        /// Where it is removed.
        clean_up: CleanUp,
    },
    /// A namespace that was created for runs and has none.
    EmptyNamespace {
        /// Where it is removed.
        clean_up: CleanUp,
    },
}

/// Context and namespace of a command that removes leftovers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanUp {
    /// Context of the kubeconfig. `None`: the current one.
    pub context: Option<String>,
    /// The namespace.
    pub namespace: String,
}
