//! Explains why a pod does not run: cause and remedy, from the state and events of its objects.
//!
//! Pure: [`Sight`] is the observation, [`Sight::judge`] its meaning. A permanent cause ends the
//! wait at once. A cause that may pass, such as a full node, ends it after a timeout. The wait for
//! a node that an autoscaler adds has no timeout of its own.

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerState, Event, PersistentVolumeClaim, Pod};
use std::time::Duration;

/// Observed state of the objects of a run.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// The Job. `None` if it is gone.
    pub job: Option<Job>,
    /// The pod, if there is one.
    pub pod: Option<Pod>,
    /// The claims of the pod.
    pub claims: Vec<PersistentVolumeClaim>,
    /// Events of these objects, oldest first.
    pub events: Vec<Event>,
}

/// State of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Its container runs.
    Running,
    /// The pod makes progress. The text names the condition it waits for.
    Waiting(String),
    /// A problem prevents it from running.
    Hindered(Hindrance),
}

/// Problem that prevents a pod from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hindrance {
    /// The cause, in the cluster's words if they are clear.
    pub cause: String,
    /// Action to take.
    pub remedy: String,
    /// Time that the problem may last before the wait ends: it may pass by itself.
    pub patience: Duration,
}

/// Timeout of a permanent problem.
const AT_ONCE: Duration = Duration::ZERO;
/// Timeout of problems that retries of kubelets and provisioners solve, if at all.
const RETRIES: Duration = Duration::from_secs(30);
/// Timeout of problems that end when a node has room again.
const NODES: Duration = Duration::from_secs(120);
/// No timeout: the cluster is solving the problem, in a time that is not known.
const FOR_EVER: Duration = Duration::MAX;

impl Sight {
    /// Splits the objects of a run by pod, with those that all pods share. Missing pods are
    /// represented by one entry without a pod.
    pub(crate) fn each(
        name: &str,
        job: Option<Job>,
        pods: Vec<Pod>,
        claims: &[PersistentVolumeClaim],
        events: &[Event],
    ) -> Vec<Sight> {
        let shared = format!("{name}-data");
        let is_none_there = pods.is_empty();
        let about = |pod: Option<&str>, object: &str| {
            let of_pod =
                pod.is_some_and(|pod| object == pod || object.starts_with(&format!("{pod}-")));
            let no_pod = pod.is_none() && is_none_there && object.starts_with(&format!("{name}-"));
            object == name || object == shared || of_pod || no_pod
        };
        let sight = |pod: Option<Pod>| {
            let pod_name = pod.as_ref().and_then(|pod| pod.metadata.name.clone());
            let is_about = |object: Option<&String>| {
                about(pod_name.as_deref(), object.map_or("", String::as_str))
            };
            Sight {
                job: job.clone(),
                claims: claims
                    .iter()
                    .filter(|claim| is_about(claim.metadata.name.as_ref()))
                    .cloned()
                    .collect(),
                events: events
                    .iter()
                    .filter(|event| is_about(event.involved_object.name.as_ref()))
                    .cloned()
                    .collect(),
                pod,
            }
        };
        let expected = job.as_ref().and_then(|job| job.spec.as_ref()?.completions);
        let is_short = pods.len() < expected.unwrap_or(1).max(1) as usize;
        let mut sights: Vec<Sight> = pods.into_iter().map(|pod| sight(Some(pod))).collect();
        if is_short {
            sights.push(sight(None));
        }
        sights
    }

    /// Returns the name of the pod.
    pub(crate) fn pod_name(&self) -> Option<&str> {
        self.pod.as_ref()?.metadata.name.as_deref()
    }

    /// Returns the state of the pod.
    pub fn judge(&self) -> State {
        // A running container means that earlier problems are solved.
        if self.of_pod().is_none()
            && self
                .container_state()
                .is_some_and(|state| state.running.is_some())
        {
            return State::Running;
        }
        if let Some(hindrance) = self.hindrance() {
            return State::Hindered(hindrance);
        }
        let Some(pod) = &self.pod else {
            return State::Waiting("the pod to be made".to_owned());
        };
        if node(pod).is_none() {
            return State::Waiting("a node".to_owned());
        }
        let unbound = self.claims.iter().find(|claim| phase(claim) != "Bound");
        State::Waiting(match unbound {
            Some(_) => "the claim to be bound".to_owned(),
            None => match self
                .container_state()
                .and_then(|state| state.waiting.as_ref())
            {
                Some(_) if self.has_event("Pulling") && !self.has_event("Pulled") => {
                    "the image to be pulled".to_owned()
                }
                _ => "the volume to be mounted and the container to start".to_owned(),
            },
        })
    }

    /// Returns the first problem found, most specific first.
    fn hindrance(&self) -> Option<Hindrance> {
        self.of_job()
            .or_else(|| self.of_pod())
            .or_else(|| self.of_container())
            .or_else(|| self.of_volume())
            .or_else(|| self.of_provisioning())
            .or_else(|| self.of_scheduling())
            .or_else(|| self.of_failed_job())
    }

    fn of_job(&self) -> Option<Hindrance> {
        if self.pod.is_none()
            && let Some(event) = self.last_event(&["FailedCreate"])
        {
            return Some(not_created(message(event)));
        }
        self.deadline()
    }

    /// Returns the problem that the Job exceeded its deadline, so that its pods are deleted.
    pub(crate) fn deadline(&self) -> Option<Hindrance> {
        let is_over = self.failed()?.reason.as_deref() == Some("DeadlineExceeded");
        is_over.then(|| {
            hindrance(
                "the run's deadline has passed",
                "give it more time with --deadline",
                AT_ONCE,
            )
        })
    }

    /// Whether the Job exists, has not failed, and is not being deleted.
    pub(crate) fn has_job_that_goes_on(&self) -> bool {
        let is_kept = |job: &Job| job.metadata.deletion_timestamp.is_none();
        self.job.as_ref().is_some_and(is_kept) && self.failed().is_none()
    }

    /// Returns the condition for failure of the Job. Newer clusters set `Failed` only once the pods
    /// are gone, and `FailureTarget` before.
    fn failed(&self) -> Option<&JobCondition> {
        let conditions = self.job.as_ref()?.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| {
            matches!(condition.type_.as_str(), "Failed" | "FailureTarget")
                && condition.status == "True"
        })
    }

    /// Returns the problem of a failed Job whose pod is gone, for lack of a known cause.
    fn of_failed_job(&self) -> Option<Hindrance> {
        let failed = self.failed()?;
        let said = failed.message.as_deref().unwrap_or_default();
        let reason = failed.reason.as_deref().unwrap_or("Failed");
        Some(hindrance(
            format!("the cluster has given up the job: {reason}: {said}"),
            "something removed or refused its pod: see `kubectl get events`, and run it again",
            AT_ONCE,
        ))
    }

    fn of_pod(&self) -> Option<Hindrance> {
        let status = self.pod.as_ref()?.status.as_ref()?;
        if status.phase.as_deref() != Some("Failed") {
            return None;
        }
        let said = status.message.clone().unwrap_or_default();
        match status.reason.as_deref() {
            Some("Evicted") => Some(hindrance(
                format!("the node evicted the pod: {said}"),
                "free space on the node, choose another one with --node-selector, or use a smaller size",
                AT_ONCE,
            )),
            Some(reason @ ("NodeLost" | "NodeShutdown" | "Terminated")) => Some(hindrance(
                format!("{reason}: {said}"),
                "run it again on another node",
                AT_ONCE,
            )),
            // The kubelet did not admit the pod, or the pod was preempted.
            Some(reason) => Some(hindrance(
                format!("the pod has failed: {reason}: {said}"),
                "see `kubectl describe pod`, and run it again, on another node with --node-selector",
                AT_ONCE,
            )),
            None => None,
        }
    }

    fn of_container(&self) -> Option<Hindrance> {
        let state = self.container_state()?;
        if let Some(ended) = &state.terminated {
            return Some(ended_early(
                ended.exit_code,
                ended.reason.as_deref().unwrap_or_default(),
                ended.message.as_deref().unwrap_or_default(),
            ));
        }
        let waiting = state.waiting.as_ref()?;
        let said = waiting.message.clone().unwrap_or_default();
        match waiting.reason.as_deref()? {
            reason @ ("ErrImagePull" | "ImagePullBackOff" | "InvalidImageName"
            | "ErrImageNeverPull") => Some(image(reason, &said, &self.image())),
            reason @ ("CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError") => Some(hindrance(
                format!("{reason}: {said}"),
                "use an image that has `sh`, or one that carries the agent and is named iosonde-agent, with --image; --run-as chooses the user",
                Duration::from_secs(10),
            )),
            _ => None,
        }
    }

    fn of_volume(&self) -> Option<Hindrance> {
        let event = self.last_event(&["FailedMount", "FailedAttachVolume", "FailedMapVolume"])?;
        let said = in_short(message(event));
        if said.contains("is not a directory") || said.contains("hostPath type check failed") {
            return Some(hindrance(
                said,
                "name a directory that exists on the node; --node-selector chooses the node",
                AT_ONCE,
            ));
        }
        let remedy = if said.contains("Multi-Attach") {
            "another pod on another node uses this volume: end it, or choose its node with --node-selector"
        } else {
            "see `kubectl describe pod`, and the log of the storage class's driver on that node"
        };
        Some(hindrance(said, remedy, RETRIES))
    }

    fn of_provisioning(&self) -> Option<Hindrance> {
        let claim = self.claims.iter().find(|claim| phase(claim) != "Bound")?;
        if phase(claim) == "Lost" {
            return Some(hindrance(
                "the volume of the claim is gone",
                "use another claim",
                AT_ONCE,
            ));
        }
        let event = self.last_event(&["ProvisioningFailed"])?;
        Some(hindrance(
            format!("the claim is not provisioned: {}", in_short(message(event))),
            "check whether the class can make such volumes (--access-mode, --volume-mode, --claim-size), and the provisioner's log",
            RETRIES,
        ))
    }

    fn of_scheduling(&self) -> Option<Hindrance> {
        let pod = self.pod.as_ref()?;
        if node(pod).is_some() {
            return None;
        }
        let event = self.last_event(&["FailedScheduling"])?;
        let said = message(event);
        // Intermediate steps: the claim is about to be created or observed.
        let is_ours = said.contains("persistentvolumeclaim \"iosonde-");
        if said.contains("waiting for ephemeral volume controller")
            || said.contains("could not find v1.PersistentVolumeClaim")
            || (is_ours && said.contains("-data\" not found") && !self.claims.is_empty())
        {
            return None;
        }
        // The scheduler reports this while claims with immediate binding are being provisioned.
        let patience = if said.contains("unbound immediate PersistentVolumeClaims") {
            NODES
        } else {
            RETRIES
        };
        let cause = format!("no node takes the pod: {said}");
        // Event reasons of the Cluster Autoscaler and of Karpenter.
        if self.has_event("TriggeredScaleUp") || self.has_event("Nominated") {
            let cause = format!("the cluster adds a node; until then, {cause}");
            let remedy = "wait longer with --timeout, or see `kubectl describe pod`";
            return Some(hindrance(cause, remedy, FOR_EVER));
        }
        Some(hindrance(cause, scheduling_remedy(said), patience))
    }

    fn container_state(&self) -> Option<&ContainerState> {
        let statuses = self
            .pod
            .as_ref()?
            .status
            .as_ref()?
            .container_statuses
            .as_ref()?;
        statuses.first()?.state.as_ref()
    }

    fn image(&self) -> String {
        let spec = self.pod.as_ref().and_then(|pod| pod.spec.as_ref());
        spec.and_then(|spec| spec.containers.first()?.image.clone())
            .unwrap_or_default()
    }

    fn has_event(&self, reason: &str) -> bool {
        self.last_event(&[reason]).is_some()
    }

    fn last_event(&self, reasons: &[&str]) -> Option<&Event> {
        let is_meant = |event: &&Event| {
            let reason = event.reason.as_deref();
            reason.is_some_and(|reason| reasons.contains(&reason))
        };
        self.events.iter().rev().find(is_meant)
    }
}

fn not_created(said: &str) -> Hindrance {
    if said.contains("looking up service account") {
        // The service account of a new namespace is created a moment later.
        return hindrance(
            format!("the pod is refused: {said}"),
            "name an account that exists with --service-account; see `kubectl get serviceaccounts`",
            Duration::from_secs(10),
        );
    }
    let remedy = if said.contains("exceeded quota") {
        "use a smaller --claim-size, remove what is not needed, or ask for more quota"
    } else if said.contains("PodSecurity") || said.contains("violates") {
        "use a namespace whose Pod Security level allows this kind of target"
    } else if said.contains("LimitRange") || said.contains("minimum") || said.contains("maximum") {
        "use another --claim-size, or a namespace with other limits"
    } else if said.contains("PriorityClass") {
        "name one that exists with --priority-class; see `kubectl get priorityclasses`"
    } else {
        "see the message of the cluster"
    };
    hindrance(format!("the pod is refused: {said}"), remedy, AT_ONCE)
}

fn ended_early(exit_code: i32, reason: &str, said: &str) -> Hindrance {
    let detail = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    match (reason, exit_code) {
        ("OOMKilled", _) => hindrance(
            "the container ran out of memory (OOMKilled)",
            "use fewer jobs or a smaller iodepth, or a namespace with a larger memory limit",
            AT_ONCE,
        ),
        (_, 126 | 127) => hindrance(
            format!("the image cannot run `sh` (exit status {exit_code}{detail})"),
            "use an image that has `sh`, `head` and `sha256sum`, with --image",
            AT_ONCE,
        ),
        (_, 2) => hindrance(
            format!("the agent does not understand how it was called (exit status 2{detail})"),
            "the image carries an agent of another version: make it anew with `iosonde k8s image`",
            AT_ONCE,
        ),
        (_, 0) => hindrance(
            "the agent ended because no client asked for anything",
            "run it again; look for a network that drops idle connections",
            AT_ONCE,
        ),
        _ => hindrance(
            format!("the container ended with status {exit_code} ({reason}{detail})"),
            "see its last words with `kubectl logs`; --run-as chooses the user that may write to the volume",
            AT_ONCE,
        ),
    }
}

fn image(reason: &str, said: &str, image: &str) -> Hindrance {
    // The first pull may fail temporarily. A back-off, or a missing image, is permanent.
    let is_final = reason != "ErrImagePull" || said.contains("not found") || said.contains("404");
    hindrance(
        format!("{reason}: the image {image} cannot be pulled: {said}"),
        "name an image with `sh` that the cluster has or can pull, with --image; --image-pull-secret opens a private registry",
        if is_final { AT_ONCE } else { RETRIES },
    )
}

fn scheduling_remedy(said: &str) -> &'static str {
    let causes = [
        (
            "unbound immediate PersistentVolumeClaims",
            "check that the class's provisioner runs: its pods, and its log",
        ),
        (
            "didn't match Pod's node affinity/selector",
            "choose other labels with --node-selector, or check the nodes' architecture",
        ),
        (
            "volume node affinity conflict",
            "the volume is bound to a node or zone that the pod cannot use: choose that one with --node-selector",
        ),
        (
            "did not have enough free storage",
            "use a smaller --claim-size",
        ),
        (
            "Insufficient ephemeral-storage",
            "use a smaller --claim-size, or nodes with more local disk",
        ),
        (
            "disk-pressure",
            "free space on the nodes: they are under disk pressure",
        ),
        (
            "untolerated taint",
            "put up with the taint with --toleration, or choose other nodes with --node-selector",
        ),
        ("Insufficient", "free resources, or add nodes"),
        (
            "persistentvolumeclaim",
            "check the claim's name and namespace",
        ),
    ];
    causes
        .iter()
        .find(|(words, _)| said.contains(words))
        .map_or("see `kubectl describe pod`", |(_, remedy)| remedy)
}

fn hindrance(cause: impl Into<String>, remedy: &str, patience: Duration) -> Hindrance {
    Hindrance {
        cause: cause.into(),
        remedy: remedy.to_owned(),
        patience,
    }
}

/// Returns the first line, shortened: some drivers report the whole output of a command.
fn in_short(said: &str) -> String {
    const LONGEST: usize = 400;
    let line = said.lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None if line.len() < said.len() => format!("{line} ..."),
        None => line.to_owned(),
    }
}

fn message(event: &Event) -> &str {
    event.message.as_deref().unwrap_or_default().trim()
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    let status = claim.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}

fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

#[cfg(test)]
mod tests;
