//! Reasons why a cluster cannot run a plan, as data.

use super::{SystemFailure, UnusableNodes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a cluster cannot run a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClusterObstacle {
    /// The API server refused a request, or did not answer.
    RequestFailed {
        /// The request.
        request: ClusterRequest,
        /// Its failure.
        failure: ApiFailure,
    },
    /// The kubeconfig is invalid, or names no cluster that can be reached.
    NotReachable {
        /// The error with its causes.
        error: String,
        /// Whether the address of a proxy, or `NO_PROXY`, is invalid.
        is_proxy_invalid: bool,
    },
    /// The kubeconfig has no context of this name.
    NoSuchContext {
        /// The name.
        context: String,
        /// Names of the contexts.
        known: Vec<String>,
    },
    /// The client certificate of the kubeconfig is of version 1.
    OldClientCertificate,
    /// Neither the kubeconfig nor the system has certificates to verify the API server by.
    NoRootCertificates,
    /// The address of the proxy is invalid.
    InvalidProxy {
        /// The address and its error.
        problem: String,
    },
    /// The thread of the connections cannot be started.
    NoConnectionThread {
        /// The error of the kernel.
        failure: SystemFailure,
    },
    /// The namespace does not exist.
    NoNamespace {
        /// Its name.
        namespace: String,
    },
    /// The namespace is being removed.
    NamespaceTerminating {
        /// Its name.
        namespace: String,
    },
    /// The namespace does not exist, and this user may not create and remove it.
    NamespaceForbidden {
        /// Its name.
        namespace: String,
        /// The missing rights, e.g. `create namespaces`.
        rights: Vec<String>,
        /// Manifest of a role that has all rights that are needed.
        #[serde(default)]
        role: String,
    },
    /// This user lacks rights that a run needs.
    MissingRights {
        /// The missing rights, e.g. `create jobs`.
        rights: Vec<String>,
        /// Manifest of roles that have all rights that are needed.
        #[serde(default)]
        role: String,
        /// Whether the run uses objects that exist in this namespace, so that another is no remedy.
        #[serde(default)]
        is_bound_to_namespace: bool,
    },
    /// This user may not list or delete the runs in the cluster.
    CleanUpForbidden {
        /// The missing rights, e.g. `list jobs`.
        rights: Vec<String>,
        /// Manifest of a role that has all rights that are needed.
        #[serde(default)]
        role: String,
        /// Whether the user named no namespace, and one of them needs fewer rights.
        #[serde(default)]
        suggests_namespace: bool,
    },
    /// `--pod-patch` with the manifest is not a pod.
    InvalidPodPatch {
        /// The error of the manifest.
        error: String,
    },
    /// `--pod-patch` names a field that pods lack.
    UnknownPodField {
        /// Path of the field.
        field: String,
    },
    /// The agent runs another plan.
    AgentBusy {
        /// Reason that the agent gives.
        problem: String,
    },
    /// This user may not list nodes, so that their number is unknown.
    NodesNotListed,
    /// No node has the requested labels.
    NoLabelledNode {
        /// The requested labels.
        labels: Vec<String>,
    },
    /// No node has the processor architecture of the agent.
    OtherArchitecture {
        /// Architectures of the nodes.
        nodes: Vec<String>,
        /// Architecture of the agent.
        agent: String,
    },
    /// All nodes are not ready, or closed to new pods.
    NoUsableNode(UnusableNodes),
    /// The cluster has no node of this name.
    NoSuchNode {
        /// The name.
        node: String,
        /// A node with a similar name.
        similar: Option<String>,
    },
    /// A limit range forbids a claim of this size.
    ClaimOutsideLimits {
        /// Name of the limit range.
        limit_range: String,
        /// The bound that is exceeded.
        bound: ClaimBound,
        /// Size of the claim.
        claim_bytes: u64,
    },
    /// A quota forbids the claims.
    QuotaExceeded {
        /// Name of the quota.
        quota: String,
        /// The resource of the quota.
        resource: String,
        /// The shortage.
        shortage: QuotaShortage,
    },
    /// A quota counts a resource of which the pod states no amount.
    QuotaNeedsAmount {
        /// Name of the quota.
        quota: String,
        /// The resource of the quota, e.g. `limits.memory`.
        resource: String,
    },
    /// The files of the jobs do not fit into the volume.
    VolumeTooSmall {
        /// The option and its value for a claim of sufficient size. `None`: an existing claim.
        option: Option<String>,
        /// Size of the volume.
        volume_bytes: u64,
        /// Bytes that the jobs need.
        needed_bytes: u64,
    },
    /// Each suitable node has less ephemeral storage than a pod requests.
    EphemeralStorageTooSmall {
        /// Request of a pod.
        requested_bytes: u64,
        /// Largest amount that a node allocates to pods.
        largest_bytes: u64,
        /// The node with this amount.
        node: String,
    },
    /// The files of the jobs do not fit into the free room of the share that holds the volumes.
    ShareFull {
        /// Free room of the share.
        free_bytes: u64,
        /// Bytes that the jobs write.
        needed_bytes: u64,
    },
    /// The run has several plans, so that another client cannot follow it.
    NotFollowable {
        /// Namespace of the run's Job.
        namespace: String,
        /// Name of the run's Job.
        job: String,
    },
    /// The cluster has no run with this id.
    NoSuchRun {
        /// The id.
        run: String,
        /// Ids of the runs in the cluster.
        known: Vec<String>,
        /// The namespace, if this user may not list the runs of others.
        #[serde(default)]
        hidden_outside: Option<String>,
    },
    /// No pod of this rendered manifest is in the namespace.
    NoPodsOfRendered {
        /// Id of the manifest.
        run: String,
        /// The namespace.
        namespace: String,
        /// Ids of the manifests with pods.
        known: Vec<String>,
    },
    /// No pod of a rendered manifest is in the namespace.
    NoRenderedRun {
        /// The namespace.
        namespace: String,
    },
    /// Several rendered manifests have pods in the namespace.
    SeveralRenderedRuns {
        /// Ids of the manifests.
        known: Vec<String>,
    },
    /// All pods of a rendered manifest were removed.
    RenderedPodsRemoved {
        /// Id of the manifest.
        run: String,
    },
    /// The image of a rendered manifest does not contain the agent.
    ImageWithoutAgent {
        /// The image. Empty: none was named.
        image: String,
    },
    /// A manifest cannot hold what the options request.
    NotRenderable(ManifestLimit),
    /// A manifest cannot be written as YAML.
    ManifestNotWritten {
        /// The error.
        error: String,
    },
    /// Pods of the user cannot be used.
    UnusablePods(SelectedPodsProblem),
    /// The job file in a pod is invalid.
    InvalidJobFile {
        /// Message with all errors of the file.
        message: String,
    },
}

impl ClusterObstacle {
    /// Returns the errno of the failed call, if a call failed.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            ClusterObstacle::NoConnectionThread { failure } => failure.errno(),
            _ => None,
        }
    }
}

/// A request to the API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterRequest {
    /// Read the version of the cluster.
    ReadVersion,
    /// Check the rights of this user.
    CheckRights,
    /// Create a namespace.
    CreateNamespace {
        /// Its name.
        name: String,
    },
    /// List namespaces.
    ListNamespaces,
    /// Create the Job of a run.
    CreateJob {
        /// Its name.
        name: String,
    },
    /// List the Jobs of runs.
    ListJobs,
    /// Delete a Job.
    DeleteJob {
        /// Its name.
        name: String,
    },
    /// Find the Job of a run.
    FindRun,
    /// Read a claim.
    ReadClaim {
        /// Its name.
        name: String,
    },
    /// Create the claim of a run.
    CreateClaim,
    /// List the pods that use a claim.
    FindClaimUsers,
    /// List the volumes of the cluster.
    ListVolumes,
    /// List the snapshot classes of the cluster.
    ListSnapshotClasses,
    /// Remove the snapshots of a run.
    RemoveSnapshots,
    /// Remove a volume.
    RemoveVolume {
        /// Its name.
        name: String,
    },
    /// List the pods of rendered manifests.
    FindPods,
    /// List the pods of a rendered manifest.
    ListPods,
    /// List the pods of a run.
    FindRunPods,
    /// Watch a pod.
    WatchPod,
    /// Send the agent into a pod.
    SendAgent,
    /// Connect to the agent in a pod.
    ConnectAgent,
    /// Read the log of a pod.
    ReadLog {
        /// Its name.
        pod: String,
    },
    /// Read the result that a pod keeps.
    ReadKeptResult {
        /// Its name.
        pod: String,
    },
}

/// Failure of a request to the API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApiFailure {
    /// The API server refused the request.
    Refused {
        /// HTTP status.
        code: u16,
        /// Message of the API server.
        message: String,
    },
    /// The credentials cannot be used.
    Authentication {
        /// The error.
        error: String,
    },
    /// The API server did not answer.
    NoAnswer {
        /// The error with its causes.
        error: String,
    },
}

/// Bound of a limit range on the size of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimBound {
    /// Largest size.
    MaximumBytes(u64),
    /// Smallest size.
    MinimumBytes(u64),
}

/// A quota's shortage for the claims of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaShortage {
    /// Too few bytes are left.
    Bytes {
        /// Bytes of all claims.
        needed_bytes: u64,
        /// Bytes that are left.
        left_bytes: u64,
    },
    /// The number of claims is exhausted. Results of earlier versions have it.
    Claims,
    /// Too few claims are left.
    ClaimCount {
        /// Claims of the run.
        needed: u64,
        /// Claims that are left.
        left: u64,
    },
    /// Too little of another resource is left.
    Amount {
        /// Amount of the run, in thousandths.
        needed_milli: u64,
        /// Amount that is left, in thousandths.
        left_milli: u64,
    },
}

/// Reason why pods of the user, given by a selector, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelectedPodsProblem {
    /// The selector matches no pod in the namespace.
    NoPods {
        /// The label selector.
        selector: String,
        /// The namespace.
        namespace: String,
    },
    /// A pod mounts no volume that can be written.
    NoVolume {
        /// Name of the pod.
        pod: String,
    },
    /// A pod mounts several volumes.
    SeveralVolumes {
        /// Name of the pod.
        pod: String,
        /// Directories of the volumes.
        paths: Vec<String>,
    },
}

/// Request that a rendered manifest cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ManifestLimit {
    /// An existing claim as a block device: its users are not checked.
    ExistingBlockClaim,
    /// `--shared` with a StatefulSet, whose pods have a claim each.
    SharedStatefulSet,
    /// `--shared=file`, whose check needs a client.
    SharedFileCheck,
    /// Several pods of a StatefulSet on one volume.
    StatefulSetOnOneVolume,
    /// One pod per node: the number of nodes is unknown.
    UnknownPodCount,
    /// Job files or a suite above the size of a ConfigMap.
    FilesTooLarge {
        /// Size of the files.
        bytes: u64,
    },
}
