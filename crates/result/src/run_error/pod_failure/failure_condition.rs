//! [`FailureCondition`]: the causes for which an object of a remote run fails.

use super::failure_reasons::{
    KeptResultProblem, MountFailure, PodOnNode, PodRefusal, PodWait, RemainingObject,
    SchedulingObstacle,
};
use crate::run_error::RunError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cause of a [`PodFailure`](super::PodFailure).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureCondition {
    /// The cluster refused to create the pod.
    PodRefused {
        /// The violated rule.
        reason: PodRefusal,
        /// The cluster's message.
        message: String,
    },
    /// The deadline of the Job has passed.
    DeadlinePassed {
        /// Length of the deadline in seconds.
        seconds: Option<u64>,
        /// Whether the run was measured until then.
        is_measured: bool,
    },
    /// The Job has failed without a known cause.
    JobFailed {
        /// The condition's reason.
        reason: String,
        /// The condition's message.
        message: String,
    },
    /// The Job of the run was deleted.
    JobDeleted {
        /// Its name.
        job: String,
    },
    /// The node evicted the pod.
    Evicted {
        /// The kubelet's message.
        message: String,
    },
    /// The node of the pod is lost or shuts down.
    NodeLost {
        /// The pod's reason.
        reason: String,
        /// The pod's message.
        message: String,
    },
    /// The node of the pod is not ready.
    NodeNotReady {
        /// Its name.
        node: String,
    },
    /// The nodes of all remaining pods are not ready.
    NodesNotReady {
        /// The pods and their nodes.
        pods: Vec<PodOnNode>,
    },
    /// The pod failed for another reason of its node.
    PodFailed {
        /// The pod's reason.
        reason: String,
        /// The pod's message.
        message: String,
    },
    /// The image was not pulled.
    ImageNotPulled {
        /// The image.
        image: String,
        /// The kubelet's reason.
        reason: String,
        /// The kubelet's message.
        message: String,
    },
    /// The image of a rendered manifest was not pulled.
    AgentImageNotPulled {
        /// The image.
        image: String,
        /// The kubelet's reason.
        reason: String,
        /// The kubelet's message.
        message: String,
    },
    /// The container was not created.
    ContainerNotCreated {
        /// The kubelet's reason.
        reason: String,
        /// The kubelet's message.
        message: String,
    },
    /// The kernel killed the agent, because its memory limit was reached.
    OutOfMemory,
    /// The image has no shell that runs.
    ShellMissing {
        /// Exit status of the container.
        exit_code: i32,
        /// The container's message.
        message: String,
    },
    /// The agent does not know its arguments.
    ArgumentsRefused {
        /// The container's message.
        message: String,
    },
    /// The agent exited because no client made a request.
    NoRequests,
    /// The agent cannot use the volume.
    VolumeRefused {
        /// User id of the container, if it is known.
        user: Option<i64>,
        /// The agent's error.
        error: Box<RunError>,
    },
    /// The container ended with an error.
    ContainerEnded {
        /// Its exit status.
        exit_code: i32,
        /// The kubelet's reason.
        reason: String,
        /// The container's message.
        message: String,
    },
    /// The container does not run any more, for no known reason.
    ContainerStopped {
        /// The state of the pod.
        awaits: PodWait,
    },
    /// A volume was not attached or mounted.
    VolumeNotMounted {
        /// The kind of the problem.
        reason: MountFailure,
        /// The kubelet's message.
        message: String,
    },
    /// The volume of a claim is gone.
    ClaimLost {
        /// Name of the claim.
        claim: Option<String>,
    },
    /// The provisioner did not create the volume of a claim.
    ClaimNotProvisioned {
        /// Name of the claim.
        claim: Option<String>,
        /// The provisioner's message.
        message: String,
    },
    /// No provisioner has begun to create the volume of a claim.
    ProvisionerSilent {
        /// Name of the claim.
        claim: Option<String>,
        /// The cluster's message.
        message: String,
    },
    /// No node takes the pod.
    Unschedulable {
        /// The obstacle.
        reason: SchedulingObstacle,
        /// Whether an autoscaler adds a node.
        is_node_coming: bool,
        /// The scheduler's message.
        message: String,
        /// Arguments of `--toleration`, each of which admits the pod to a node. Empty if they are
        /// not known, or if no taint keeps the pod away.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tolerations: Vec<String>,
    },
    /// The pod did not run within the timeout.
    StartTimedOut {
        /// The timeout in seconds.
        seconds: u64,
        /// The step that was not complete.
        awaits: PodWait,
    },
    /// The pod does not run.
    NotRunning {
        /// Namespace of the run.
        namespace: String,
        /// Label selector of its pods.
        selector: String,
    },
    /// The agent of another client's run has ended, and its result is gone.
    AgentEnded {
        /// Namespace of the run.
        namespace: String,
        /// Job of the run.
        job: String,
    },
    /// The pod was deleted.
    Deleted,
    /// The cluster removed the pod and named the reason.
    Disrupted {
        /// Reason of the pod's condition `DisruptionTarget`.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// The pod was terminated.
    Terminated,
    /// The pod was terminated before its job was over, and was measured until then.
    TerminatedEarly,
    /// The agent is one of another build, with another protocol.
    OtherBuild {
        /// Name and version of the agent.
        program: String,
    },
    /// The agent has no output.
    NoOutput,
    /// The agent does not greet its client.
    NoGreeting,
    /// The agent does not greet its client, and has written a log.
    NoGreetingButLog {
        /// The last line of the log.
        last_line: String,
    },
    /// The agent does not answer on an open connection.
    NoAnswer,
    /// No connection was made for a while.
    Unreachable {
        /// Length of the attempts in seconds.
        seconds: u64,
        /// The last error.
        error: Box<RunError>,
        /// Id of the run.
        run: String,
    },
    /// Output of the agent is not a message.
    MessageUnreadable {
        /// The syntax error.
        problem: String,
    },
    /// The agent did not arrive in the pod in time.
    UploadTimedOut {
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The pod did not store the agent.
    UploadFailed {
        /// The output of the pod.
        message: String,
    },
    /// The agent cannot be started in a pod of the user.
    AgentNotStarted {
        /// The output of the pod.
        message: String,
    },
    /// Files of the run are left in a pod of the user.
    FilesLeft {
        /// Namespace of the pod.
        namespace: String,
        /// Paths of the files.
        paths: Vec<String>,
    },
    /// The agent refused the job of the pod.
    JobRefused {
        /// The agent's error.
        error: Box<RunError>,
    },
    /// The pod ended without a result.
    NoResult {
        /// The reason of the pod or its container.
        reason: Option<String>,
        /// Exit status of the container.
        exit_code: Option<i32>,
        /// The last line of its log.
        last_line: Option<String>,
    },
    /// The node truncated the log, and the pod has not kept its result.
    ResultNotKept,
    /// The node truncated the log, and the kept file is no result.
    KeptResultInvalid,
    /// The node truncated the log, and the kept result was not read.
    KeptResultUnreadable {
        /// The problem.
        problem: KeptResultProblem,
    },
    /// The API server answered with an error.
    ApiFailed {
        /// The request: `get`, `list`, `delete`.
        verb: String,
        /// The requested resource, in the plural.
        resource: String,
        /// Status code of the answer. `None` without an answer.
        code: Option<u16>,
        /// The error's message.
        message: String,
    },
    /// An object that is being removed is still there.
    StillThere {
        /// The object.
        object: RemainingObject,
        /// Length of the wait in seconds.
        seconds: Option<u64>,
    },
    /// The user interrupted the wait for a removal.
    RemovalInterrupted {
        /// The object that was still there.
        object: RemainingObject,
    },
    /// A namespace that is to be used is being removed.
    NamespaceTerminating {
        /// Length of the wait in seconds.
        seconds: u64,
    },
    /// An object in the namespace is not of a run.
    ForeignObject {
        /// Its kind, in words.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Another run may use the namespace.
    OtherRun,
}
