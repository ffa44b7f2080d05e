//! Actions to take after a [`PodFailure`](super::PodFailure), in words.

use super::{
    FailedObject, FailureCondition, KeptResultProblem, MountFailure, PodOnNode, PodRefusal,
    SchedulingObstacle, is_access_denied,
};
use iosonde_job::quote_shell_word;

/// Maximum number of tolerations that a remedy offers.
const NAMED_TOLERATIONS_MAX: usize = 3;

impl FailureCondition {
    /// Returns the action to take, which may depend on the object.
    pub(super) fn remedy(&self, object: &FailedObject) -> String {
        self.fixed_remedy()
            .map(str::to_owned)
            .unwrap_or_else(|| self.variable_remedy(object))
    }

    /// Returns the command of kubectl that explains the failure if `--keep` keeps the pod. `None`
    /// for the conditions that a kept pod does not explain.
    pub(super) fn command_for_kept_pod(&self) -> Option<&'static str> {
        use FailureCondition as Cause;
        match self {
            Cause::StartTimedOut { .. }
            | Cause::PodFailed { .. }
            | Cause::Terminated
            | Cause::ContainerStopped { .. }
            | Cause::VolumeNotMounted {
                reason: MountFailure::Other,
                ..
            }
            | Cause::Unschedulable {
                reason: SchedulingObstacle::Other,
                is_node_coming: false,
                ..
            } => Some("kubectl describe pod"),
            Cause::ContainerEnded { .. }
            | Cause::NoOutput
            | Cause::NoGreeting
            | Cause::NoGreetingButLog { .. }
            | Cause::NoAnswer
            | Cause::MessageUnreadable { .. } => Some("kubectl logs"),
            _ => None,
        }
    }

    /// Returns the action to take if it names no object. `None` for the other conditions.
    fn fixed_remedy(&self) -> Option<&'static str> {
        use FailureCondition as Cause;
        Some(match self {
            Cause::PodRefused { reason, .. } => reason.remedy(),
            Cause::VolumeNotMounted { reason, .. } => reason.remedy(),
            Cause::Unschedulable {
                is_node_coming: true,
                ..
            } => "wait longer with --timeout",
            Cause::Unschedulable {
                reason,
                tolerations,
                ..
            } if tolerations.is_empty() => reason.remedy(),
            Cause::ImageNotPulled { .. } => {
                "name an image with `sh` that the cluster has or can pull, with --image; \
                 --image-pull-secret opens a private registry"
            }
            Cause::AgentImageNotPulled { .. } => {
                "render the manifest again with an image that carries the agent and that the \
                 nodes can pull, with --image; --image-pull-secret opens a private registry"
            }
            Cause::ContainerNotCreated { .. } => {
                "use an image that has `sh`, or one that carries the agent and is named \
                 iosonde-agent, with --image; --run-as chooses the user"
            }
            Cause::ClaimLost { .. } => "use another claim",
            Cause::ClaimNotProvisioned { .. } => {
                "check whether the class can make such volumes (--access-mode, --volume-mode, \
                 --claim-size), and the provisioner's log"
            }
            Cause::ProvisionerSilent { .. } => {
                "check that the provisioner of the class runs (its pods, and their log), or use \
                 another class"
            }
            Cause::StartTimedOut { .. } => "give it more time with --timeout",
            Cause::OtherBuild { .. } => {
                "use the iosonde that made the image, or make the image again with `iosonde k8s \
                 image`; an image without an agent, named with --image, gets this one's"
            }
            Cause::UploadTimedOut { .. } => {
                "see that the API server answers (`kubectl get nodes`) and run it again, or use \
                 an image that has the agent (`iosonde k8s image`)"
            }
            Cause::UploadFailed { .. } => {
                "use an image that has `sh`, `head` and `sha256sum`, such as busybox, with --image"
            }
            Cause::AgentNotStarted { .. } => {
                "name a directory that the user of the container may write and execute files in, \
                 pods://SELECTOR:/PATH; the image needs `sh`, `head` and `sha256sum`"
            }
            Cause::NamespaceTerminating { .. } => {
                "choose another with --namespace, or see its conditions: kubectl get namespace -o \
                 yaml"
            }
            _ => return self.end_remedy().or_else(|| self.container_remedy()),
        })
    }

    /// Returns the action to take if a pod or connection ended. `None` for other conditions.
    fn end_remedy(&self) -> Option<&'static str> {
        use FailureCondition as Cause;
        Some(match self {
            Cause::DeadlinePassed { .. } => "give it more time with --deadline",
            Cause::JobFailed { .. } => {
                "something removed or refused its pod: see `kubectl get events`, and run it again"
            }
            Cause::JobDeleted { .. }
            | Cause::Deleted
            | Cause::Terminated
            | Cause::ContainerStopped { .. } => "run it again",
            Cause::Evicted { .. } => {
                "free space on the node, choose another one with --node-selector, or use a \
                 smaller size"
            }
            Cause::NodeLost { .. } => "run it again on another node",
            Cause::PodFailed { .. } => "run it again, on another node with --node-selector",
            Cause::Disrupted { reason, .. } => disruption_remedy(reason),
            Cause::TerminatedEarly => {
                "see `kubectl get events` for who wanted that, and apply the manifest again"
            }
            Cause::NoAnswer => "check the network between here and the cluster",
            Cause::MessageUnreadable { .. } => {
                "run it again; if that does not help, check whether the image has an agent of \
                 another version of iosonde"
            }
            Cause::NoResult { .. } => "see `kubectl describe pod`, and apply the manifest again",
            Cause::ResultNotKept => "see `kubectl logs` of the pod, and render the manifest again",
            Cause::KeptResultInvalid => {
                "see `kubectl logs` of the pod, and render the manifest with an image of this \
                 version"
            }
            Cause::KeptResultUnreadable { problem } => problem.remedy(),
            _ => return None,
        })
    }

    /// Returns the action to take if a container ended. `None` for other conditions.
    fn container_remedy(&self) -> Option<&'static str> {
        use FailureCondition as Cause;
        Some(match self {
            Cause::OutOfMemory => {
                "use fewer jobs or a smaller iodepth, or a namespace with a larger memory limit"
            }
            Cause::ShellMissing { .. } => {
                "use an image that has `sh`, `head` and `sha256sum`, with --image"
            }
            Cause::ArgumentsRefused { .. } => {
                "the image carries an agent of another version: make it anew with `iosonde k8s \
                 image`"
            }
            Cause::NoRequests => "run it again; look for a network that drops idle connections",
            Cause::VolumeRefused { error, .. } if is_access_denied(error) => {
                "name a user that may write there with --run-as UID (0 is root), or change the \
                 owner of the volume's root directory"
            }
            Cause::ContainerEnded { .. }
            | Cause::NoOutput
            | Cause::NoGreeting
            | Cause::NoGreetingButLog { .. } => {
                "run it again; --run-as chooses the user that may write to the volume"
            }
            _ => return None,
        })
    }

    /// Returns the action to take that names an object. The functions above know the action of the
    /// last conditions. They are listed so that the compiler reports a condition without an action.
    fn variable_remedy(&self, object: &FailedObject) -> String {
        use FailureCondition as Cause;
        match self {
            Cause::NodeNotReady { node } => {
                format!("see `kubectl describe node {node}`, and run it again on another node")
            }
            Cause::NotRunning {
                namespace,
                selector,
            } => format!("see `kubectl -n {namespace} get pods -l {selector}`"),
            Cause::Unreachable { run, .. } => format!(
                "the run may go on, so nothing was removed; if it is a fio job, `iosonde k8s \
                 attach {run}` continues it; it keeps its result for as long as it took, at least \
                 two minutes, and then removes itself"
            ),
            Cause::JobRefused { error } | Cause::VolumeRefused { error, .. } => error.remedy(),
            Cause::AgentEnded { namespace, job } => ended_run_remedy(namespace, job),
            Cause::FilesLeft { namespace, paths } => left_files_remedy(namespace, paths, object),
            Cause::Unschedulable { tolerations, .. } => toleration_remedy(tolerations),
            Cause::ApiFailed {
                code: Some(401 | 403),
                ..
            } => object.forbidden_removal_remedy(),
            Cause::NodesNotReady { pods } => object.stranded_remedy(pods),
            Cause::ApiFailed { .. }
            | Cause::StillThere { .. }
            | Cause::RemovalInterrupted { .. }
            | Cause::ForeignObject { .. }
            | Cause::OtherRun => object.removal_remedy(),
            Cause::PodRefused { .. }
            | Cause::DeadlinePassed { .. }
            | Cause::JobFailed { .. }
            | Cause::JobDeleted { .. }
            | Cause::Evicted { .. }
            | Cause::NodeLost { .. }
            | Cause::PodFailed { .. }
            | Cause::ImageNotPulled { .. }
            | Cause::AgentImageNotPulled { .. }
            | Cause::ProvisionerSilent { .. }
            | Cause::Disrupted { .. }
            | Cause::NoGreetingButLog { .. }
            | Cause::ContainerNotCreated { .. }
            | Cause::OutOfMemory
            | Cause::ShellMissing { .. }
            | Cause::ArgumentsRefused { .. }
            | Cause::NoRequests
            | Cause::ContainerEnded { .. }
            | Cause::ContainerStopped { .. }
            | Cause::VolumeNotMounted { .. }
            | Cause::ClaimLost { .. }
            | Cause::ClaimNotProvisioned { .. }
            | Cause::StartTimedOut { .. }
            | Cause::Deleted
            | Cause::Terminated
            | Cause::TerminatedEarly
            | Cause::OtherBuild { .. }
            | Cause::NoOutput
            | Cause::NoGreeting
            | Cause::NoAnswer
            | Cause::MessageUnreadable { .. }
            | Cause::UploadTimedOut { .. }
            | Cause::UploadFailed { .. }
            | Cause::AgentNotStarted { .. }
            | Cause::NoResult { .. }
            | Cause::ResultNotKept
            | Cause::KeptResultInvalid
            | Cause::KeptResultUnreadable { .. }
            | Cause::NamespaceTerminating { .. } => object.removal_remedy(),
        }
    }
}

/// Returns the options that admit a pod to tainted nodes.
fn toleration_remedy(tolerations: &[String]) -> String {
    debug_assert!(!tolerations.is_empty(), "another remedy names no taint");
    let taints = match tolerations {
        [taint] if !taint.contains(',') => "the taint",
        _ => "the taints of a node",
    };
    let options: Vec<String> = tolerations
        .iter()
        .take(NAMED_TOLERATIONS_MAX)
        .map(|taints| format!("--toleration {}", quote_shell_word(taints)))
        .collect();
    format!(
        "tolerate {taints} with {}, or choose other nodes with --node-selector",
        options.join(" or ")
    )
}

/// Returns the command that removes files of a run from a pod of the user.
fn left_files_remedy(namespace: &str, paths: &[String], object: &FailedObject) -> String {
    let pod = match object {
        FailedObject::Pod { name: Some(name) } => name,
        _ => "POD",
    };
    let paths: Vec<String> = paths.iter().map(|path| quote_shell_word(path)).collect();
    let paths = paths.join(" ");
    format!("remove them: kubectl -n {namespace} exec {pod} -- rm -rf {paths}")
}

impl FailedObject {
    /// Returns the action if nodes of its pods are not ready.
    fn stranded_remedy(&self, pods: &[PodOnNode]) -> String {
        let FailedObject::Job { namespace, .. } = self else {
            return self.removal_remedy();
        };
        let pods: Vec<&str> = pods.iter().map(|one| one.pod.as_str()).collect();
        format!(
            "the cluster removes it when the node is back; if it is gone for good: kubectl -n \
             {namespace} delete pod {} --force --grace-period=0",
            pods.join(" ")
        )
    }

    /// Returns the action if this user may not remove the object, or not any more.
    fn forbidden_removal_remedy(&self) -> String {
        let credentials = "renew the credentials of this context, or ask for the role in \
                           docs/kubernetes.md";
        match self {
            FailedObject::Job { namespace, name } => format!(
                "{credentials}; then remove it: {}",
                removal_command(namespace, name)
            ),
            _ => format!("{credentials}; then remove it with `iosonde doctor --cluster --clean`"),
        }
    }

    /// Returns the action if the object is not removed.
    fn removal_remedy(&self) -> String {
        match self {
            FailedObject::Job { namespace, name } => format!(
                "the cluster goes on removing it; if it does not: {}",
                removal_command(namespace, name)
            ),
            FailedObject::Namespace { name, .. } => {
                format!("if it is not needed: kubectl delete namespace {name}")
            }
            FailedObject::Pod { .. }
            | FailedObject::AnyPod { .. }
            | FailedObject::Agent
            | FailedObject::Run
            | FailedObject::Connection { .. }
            | FailedObject::Leftovers => {
                "see `kubectl describe` of it: a finalizer, or a node that is gone, holds it"
                    .to_owned()
            }
        }
    }
}

/// Returns the kubectl command that removes all objects of a run.
pub(crate) fn removal_command(namespace: &str, job: &str) -> String {
    format!("kubectl -n {namespace} delete job {job}")
}

/// Returns the action for a run of another client whose result is gone.
fn ended_run_remedy(namespace: &str, job: &str) -> String {
    format!(
        "if its client has ended normally, `iosonde list` there has the result; remove the rest \
         with {}",
        removal_command(namespace, job)
    )
}

/// Returns the action after the cluster removed a pod for this reason.
fn disruption_remedy(reason: &str) -> &'static str {
    match reason {
        "EvictionByEvictionAPI" => {
            "a user or program evicted the pod, e.g. with `kubectl drain`: run it again on another \
             node with --node-selector"
        }
        "PreemptionByScheduler" => {
            "a pod of higher priority took its place: use --priority-class, or another node"
        }
        "DeletionByTaintManager" => {
            "tolerate the taint with --toleration, or choose other nodes with --node-selector"
        }
        "DeletionByPodGC" | "TerminationByKubelet" => "run it again on another node",
        _ => "run it again",
    }
}

impl PodRefusal {
    fn remedy(self) -> &'static str {
        match self {
            PodRefusal::ServiceAccount => {
                "name an account that exists with --service-account; see `kubectl get \
                 serviceaccounts`"
            }
            PodRefusal::Quota => {
                "use a smaller --claim-size, remove what is not needed, or ask for more quota"
            }
            PodRefusal::PodSecurity => {
                "use a namespace whose Pod Security level allows this kind of target"
            }
            PodRefusal::LimitRange => "use another --claim-size, or a namespace with other limits",
            PodRefusal::PriorityClass => {
                "name one that exists with --priority-class; see `kubectl get priorityclasses`"
            }
            PodRefusal::QuotaAmount => {
                "state the amounts that the quota counts with --requests and --limits, e.g. \
                 --requests cpu=1,memory=1Gi --limits cpu=1,memory=1Gi"
            }
            PodRefusal::Other => "use a namespace whose policies allow the pod, with --namespace",
        }
    }
}

impl MountFailure {
    fn remedy(self) -> &'static str {
        match self {
            MountFailure::HostPath => {
                "name a directory that exists on the node; --node-selector chooses the node"
            }
            MountFailure::MultiAttach => {
                "another pod on another node uses this volume: end it, or choose its node with \
                 --node-selector"
            }
            MountFailure::Other => "see the log of the storage class's driver on that node",
        }
    }
}

impl SchedulingObstacle {
    fn remedy(self) -> &'static str {
        match self {
            SchedulingObstacle::UnboundClaim => {
                "check that the class's provisioner runs: its pods, and its log"
            }
            SchedulingObstacle::NodeSelector => {
                "choose other labels with --node-selector, or check the nodes' architecture"
            }
            SchedulingObstacle::VolumeAffinity => {
                "the volume is bound to a node or zone that the pod cannot use: choose that one \
                 with --node-selector"
            }
            SchedulingObstacle::Storage => "use a smaller --claim-size",
            SchedulingObstacle::EphemeralStorage => {
                "use a smaller --claim-size, or nodes with more local disk"
            }
            SchedulingObstacle::DiskPressure => {
                "free space on the nodes: they are under disk pressure"
            }
            SchedulingObstacle::Taint => {
                "tolerate the taint with --toleration, or choose other nodes with --node-selector"
            }
            SchedulingObstacle::Resources => "free resources, or add nodes",
            SchedulingObstacle::Claim => "check the claim's name and namespace",
            SchedulingObstacle::Other => "change what the scheduler names",
        }
    }
}

impl KeptResultProblem {
    fn remedy(&self) -> &'static str {
        match self {
            KeptResultProblem::ExecRefused { .. } => {
                "ask for the role in the manifest, which permits exec in its pods"
            }
            KeptResultProblem::TooLong { .. } => "render a shorter job",
            KeptResultProblem::NoProgress { .. } => {
                "check the network between here and the cluster, and collect again: the pod keeps \
                 its result"
            }
            KeptResultProblem::CommandFailed { .. } => {
                "see `kubectl logs` of the pod, and collect again: it keeps its result"
            }
        }
    }
}
