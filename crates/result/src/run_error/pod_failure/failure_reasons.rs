//! Parts of a [`FailureCondition`](super::FailureCondition): reasons and objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule by which the cluster refuses a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PodRefusal {
    /// The service account does not exist.
    ServiceAccount,
    /// A resource quota is exceeded.
    Quota,
    /// The Pod Security level of the namespace.
    PodSecurity,
    /// A limit range.
    LimitRange,
    /// The priority class does not exist.
    PriorityClass,
    /// The pod states no amount of a resource that a quota counts.
    QuotaAmount,
    /// Another one.
    Other,
}

/// Reason why a volume was not mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountFailure {
    /// The node has no directory of this name.
    HostPath,
    /// The volume is attached to another node.
    MultiAttach,
    /// Another one.
    Other,
}

/// Reason why no node takes a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulingObstacle {
    /// A claim with immediate binding has no volume.
    UnboundClaim,
    /// The node selector or affinity.
    NodeSelector,
    /// The volume is bound to other nodes.
    VolumeAffinity,
    /// Too little capacity for the volume.
    Storage,
    /// Too little ephemeral storage.
    EphemeralStorage,
    /// Nodes under disk pressure.
    DiskPressure,
    /// A taint.
    Taint,
    /// Too little of another resource.
    Resources,
    /// The claim does not exist.
    Claim,
    /// Another one.
    Other,
}

/// Step that a pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AwaitedStep {
    /// The creation of the pod.
    PodCreation,
    /// The creation of the other pods.
    OtherPods,
    /// A node.
    Node,
    /// The binding of the claim.
    ClaimBinding,
    /// The image.
    ImagePull,
    /// The volume and the start of the container.
    ContainerStart,
    /// The output of a pod.
    PodOutput,
    /// An answer of the API server.
    ClusterAnswer,
}

/// Step that the pods of a run wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodWait {
    /// The step that is not complete.
    pub step: AwaitedStep,
    /// The pods that run already, if the run has several.
    pub running: Option<RunningPods>,
}

impl From<AwaitedStep> for PodWait {
    fn from(step: AwaitedStep) -> PodWait {
        PodWait {
            step,
            running: None,
        }
    }
}

/// Number of pods that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunningPods {
    /// Pods that run.
    pub running: u32,
    /// All pods of the run.
    pub pods: u32,
}

/// Problem with the result that a pod has kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeptResultProblem {
    /// The API server refused to execute a command in the pod.
    ExecRefused {
        /// Status of the answer.
        status: String,
    },
    /// The result is too long.
    TooLong {
        /// The limit in MiB.
        limit_mib: u64,
    },
    /// No bytes arrived over several connections.
    NoProgress {
        /// Length of the wait in seconds.
        seconds: u64,
    },
    /// The command in the pod failed.
    CommandFailed {
        /// Its message.
        message: String,
    },
}

/// Object that is still there during a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemainingObject {
    /// A Job.
    Job {
        /// Its name.
        name: String,
    },
    /// The objects of a Job, if the server does not answer.
    Objects {
        /// The Job.
        job: String,
    },
    /// A pod of the Job.
    Pod,
    /// A claim of the Job.
    Claim,
    /// A claim of a Job of an earlier run.
    ClaimOf {
        /// The Job.
        job: String,
    },
    /// The namespace itself.
    Namespace,
    /// A PersistentVolume.
    Volume {
        /// Its name.
        name: String,
    },
}

/// A pod and its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodOnNode {
    /// Name of the pod.
    pub pod: String,
    /// Name of the node.
    pub node: String,
}
