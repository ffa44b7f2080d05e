//! Explains why a pod does not run: the cause, from the state and events of its objects.
//!
//! Pure: [`ObservedPod`] is the observation, [`ObservedPod::judge`] its meaning. A permanent cause
//! ends the wait at once. A cause that may pass, such as a full node, ends it after a timeout. The
//! wait for a node that an autoscaler adds has no timeout of its own.

mod container_problem;
mod storage_problem;

pub(crate) use container_problem::last_line;
pub(crate) use storage_problem::names_untolerated_taint;

use iosonde_result::run_error::pod_failure::{AwaitedStep, FailureCondition, PodRefusal, PodWait};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerState, Event, PersistentVolumeClaim, Pod, PodCondition};
use std::mem::discriminant;
use std::time::Duration;

/// Observed state of the objects of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObservedPod {
    /// The Job. `None` if it is gone.
    pub(crate) job: Option<Job>,
    /// The pod, if there is one.
    pub(crate) pod: Option<Pod>,
    /// The claims of the pod.
    pub(crate) claims: Vec<PersistentVolumeClaim>,
    /// Events of these objects, oldest first.
    pub(crate) events: Vec<Event>,
}

/// State of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PodState {
    /// Its container runs.
    Running,
    /// The pod makes progress.
    Waiting(PodWait),
    /// A problem prevents it from running.
    Problem(PodProblem),
}

/// Problem that prevents a pod from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodProblem {
    /// The cause, with the cluster's message.
    pub(crate) condition: FailureCondition,
    /// Time that the problem may last before the wait ends: it may pass by itself.
    pub(crate) timeout: Duration,
}

impl PodProblem {
    /// Creates a problem that does not pass.
    pub(crate) fn permanent(condition: FailureCondition) -> PodProblem {
        PodProblem {
            condition,
            timeout: AT_ONCE,
        }
    }

    /// Whether no provisioner has begun to create a volume.
    pub(crate) fn is_provisioner_silent(&self) -> bool {
        matches!(self.condition, FailureCondition::ProvisionerSilent { .. })
    }

    /// Whether both are the same problem, although the cluster may describe them differently.
    pub(crate) fn is_same(&self, other: &PodProblem) -> bool {
        use FailureCondition as Cause;
        match (&self.condition, &other.condition) {
            (Cause::PodRefused { reason, .. }, Cause::PodRefused { reason: other, .. }) => {
                reason == other
            }
            (
                Cause::VolumeNotMounted { reason, .. },
                Cause::VolumeNotMounted { reason: other, .. },
            ) => reason == other,
            (
                Cause::Unschedulable {
                    reason,
                    is_node_coming,
                    ..
                },
                Cause::Unschedulable {
                    reason: other,
                    is_node_coming: is_other_coming,
                    ..
                },
            ) => match (is_node_coming, is_other_coming) {
                // The scheduler's message changes while the new node starts.
                (true, true) => true,
                (false, false) => reason == other,
                _ => false,
            },
            (one, other) => discriminant(one) == discriminant(other),
        }
    }
}

/// Timeout of a permanent problem.
const AT_ONCE: Duration = Duration::ZERO;
/// Timeout of problems that retries of kubelets and provisioners solve, if at all.
const RETRIES: Duration = Duration::from_secs(30);
/// Timeout of a missing service account, which the cluster creates after its namespace.
const ACCOUNT: Duration = Duration::from_secs(10);
/// Timeout of problems that end when a node has room again.
const NODES: Duration = Duration::from_secs(120);
/// No timeout: the cluster is solving the problem, in a time that is not known.
const FOR_EVER: Duration = Duration::MAX;

const _: () = assert!(RETRIES.as_secs() < NODES.as_secs());

impl ObservedPod {
    /// Splits the objects of a run by pod, with those that all pods share. Missing pods are
    /// represented by one entry without a pod.
    pub(crate) fn each(
        name: &str,
        job: Option<Job>,
        pods: Vec<Pod>,
        claims: &[PersistentVolumeClaim],
        events: &[Event],
    ) -> Vec<ObservedPod> {
        let shared = format!("{name}-data");
        let is_none_there = pods.is_empty();
        let about = |pod: Option<&str>, object: &str| {
            let of_pod =
                pod.is_some_and(|pod| object == pod || object.starts_with(&format!("{pod}-")));
            let no_pod = pod.is_none() && is_none_there && object.starts_with(&format!("{name}-"));
            object == name || object == shared || of_pod || no_pod
        };
        let observed = |pod: Option<Pod>| {
            let pod_name = pod.as_ref().and_then(|pod| pod.metadata.name.clone());
            let is_about = |object: Option<&String>| {
                about(pod_name.as_deref(), object.map_or("", String::as_str))
            };
            ObservedPod {
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
        let mut observed_pods: Vec<ObservedPod> =
            pods.into_iter().map(|pod| observed(Some(pod))).collect();
        if is_short {
            observed_pods.push(observed(None));
        }
        debug_assert!(
            !observed_pods.is_empty(),
            "a run without pods has one entry"
        );
        observed_pods
    }

    /// Returns the name of the pod.
    pub(crate) fn pod_name(&self) -> Option<&str> {
        self.pod.as_ref()?.metadata.name.as_deref()
    }

    /// Returns the state of the pod.
    pub(crate) fn judge(&self) -> PodState {
        // A running container means that earlier problems are solved.
        if self.pod_problem().is_none()
            && self
                .container_state()
                .is_some_and(|state| state.running.is_some())
        {
            return PodState::Running;
        }
        if let Some(problem) = self.problem() {
            return PodState::Problem(problem);
        }
        let Some(pod) = &self.pod else {
            return PodState::Waiting(AwaitedStep::PodCreation.into());
        };
        if node_name(pod).is_none() {
            return PodState::Waiting(AwaitedStep::Node.into());
        }
        let unbound = self.claims.iter().find(|claim| phase(claim) != "Bound");
        let step = match unbound {
            Some(_) => AwaitedStep::ClaimBinding,
            None => match self
                .container_state()
                .and_then(|state| state.waiting.as_ref())
            {
                Some(_) if self.has_event("Pulling") && !self.has_event("Pulled") => {
                    AwaitedStep::ImagePull
                }
                _ => AwaitedStep::ContainerStart,
            },
        };
        PodState::Waiting(step.into())
    }

    /// Returns the first problem found, most specific first.
    fn problem(&self) -> Option<PodProblem> {
        self.job_problem()
            .or_else(|| self.pod_problem())
            .or_else(|| self.container_problem())
            .or_else(|| self.volume_problem())
            .or_else(|| self.provisioning_problem())
            .or_else(|| self.scheduling_problem())
            .or_else(|| self.failed_job_problem())
    }

    fn job_problem(&self) -> Option<PodProblem> {
        if self.pod.is_none()
            && let Some(event) = self.last_event(&["FailedCreate"])
        {
            return Some(not_created(message(event)));
        }
        self.deadline()
    }

    /// Returns the problem that the Job exceeded its deadline, so that its pods are deleted.
    pub(crate) fn deadline(&self) -> Option<PodProblem> {
        let is_over = self.failed()?.reason.as_deref() == Some("DeadlineExceeded");
        let spec = self.job.as_ref().and_then(|job| job.spec.as_ref());
        let seconds = spec.and_then(|spec| spec.active_deadline_seconds);
        is_over.then(|| {
            PodProblem::permanent(FailureCondition::DeadlinePassed {
                seconds: seconds.and_then(|seconds| u64::try_from(seconds).ok()),
                is_measured: false,
            })
        })
    }

    /// Returns the reason for which the cluster removes the pod, if it names one.
    pub(crate) fn disruption(&self) -> Option<FailureCondition> {
        let conditions = self.pod.as_ref()?.status.as_ref()?.conditions.as_ref()?;
        let is_it = |condition: &&PodCondition| {
            condition.type_ == "DisruptionTarget" && condition.status == "True"
        };
        let condition = conditions.iter().find(is_it)?;
        Some(FailureCondition::Disrupted {
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
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
    fn failed_job_problem(&self) -> Option<PodProblem> {
        let failed = self.failed()?;
        let reason = failed.reason.clone();
        Some(PodProblem::permanent(FailureCondition::JobFailed {
            reason: reason.unwrap_or_else(|| "Failed".to_owned()),
            message: failed.message.clone().unwrap_or_default(),
        }))
    }

    fn pod_problem(&self) -> Option<PodProblem> {
        let status = self.pod.as_ref()?.status.as_ref()?;
        if status.phase.as_deref() != Some("Failed") {
            return None;
        }
        let message = status.message.clone().unwrap_or_default();
        let reason = status.reason.clone()?;
        Some(PodProblem::permanent(match reason.as_str() {
            "Evicted" => FailureCondition::Evicted { message },
            "NodeLost" | "NodeShutdown" | "Terminated" => {
                FailureCondition::NodeLost { reason, message }
            }
            // The kubelet did not admit the pod, or the pod was preempted.
            _ => FailureCondition::PodFailed { reason, message },
        }))
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

/// Reads the message of a Job whose pod the API server refused.
fn not_created(message: &str) -> PodProblem {
    let (reason, timeout) = if message.contains("looking up service account") {
        // The service account of a new namespace is created a moment later.
        (PodRefusal::ServiceAccount, ACCOUNT)
    } else if message.contains("failed quota") && message.contains("must specify") {
        (PodRefusal::QuotaAmount, AT_ONCE)
    } else if message.contains("exceeded quota") {
        (PodRefusal::Quota, AT_ONCE)
    } else if message.contains("PodSecurity") || message.contains("violates") {
        (PodRefusal::PodSecurity, AT_ONCE)
    } else if ["LimitRange", "minimum", "maximum"]
        .iter()
        .any(|word| message.contains(word))
    {
        (PodRefusal::LimitRange, AT_ONCE)
    } else if message.contains("PriorityClass") {
        (PodRefusal::PriorityClass, AT_ONCE)
    } else {
        (PodRefusal::Other, AT_ONCE)
    };
    PodProblem {
        condition: FailureCondition::PodRefused {
            reason,
            message: message.to_owned(),
        },
        timeout,
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

fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

#[cfg(test)]
mod tests;
