//! Judges the pods whose results are not written yet, and limits the wait for them.

use crate::connect::KubeCluster;
use crate::diagnose::{ObservedPod, PodProblem, PodState};
use crate::node_taints::with_tolerations;
use crate::pod_wait::{ProblemDuration, problem_in_words, too_late};
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{AwaitedStep, FailedObject, FailureCondition};
use k8s_openapi::api::core::v1::Pod;
use std::time::{Duration, Instant};

/// Timeouts while no pod runs.
pub(super) struct WaitTimeouts {
    timeout: Duration,
    problem_duration: ProblemDuration,
    idle: Instant,
}

impl WaitTimeouts {
    pub(super) fn new(timeout: Duration) -> WaitTimeouts {
        WaitTimeouts {
            timeout,
            problem_duration: ProblemDuration::default(),
            idle: Instant::now(),
        }
    }

    /// Returns what pods without result wait for, or `None` while one runs. A problem ends the
    /// wait.
    pub(super) fn judge(&mut self, due: &[ObservedPod]) -> Result<Option<String>, PodProblem> {
        match judge_due(due) {
            PodState::Running => {
                self.idle = Instant::now();
                self.problem_duration = ProblemDuration::default();
                Ok(None)
            }
            PodState::Problem(problem) => {
                if self.problem_duration.by(&problem) >= problem.timeout.min(self.timeout) {
                    return Err(problem);
                }
                Ok(Some(problem_in_words(&problem)))
            }
            PodState::Waiting(wait) if self.idle.elapsed() >= self.timeout => {
                Err(too_late(self.timeout, wait))
            }
            PodState::Waiting(wait) => {
                self.problem_duration = ProblemDuration::default();
                Ok(Some(wait.to_string()))
            }
        }
    }
}

/// Judges the pods without result. A permanent problem of one comes first, then a running pod,
/// which is worth waiting for. Problems that may pass count only if none runs.
pub(super) fn judge_due(due: &[ObservedPod]) -> PodState {
    let states: Vec<PodState> = due.iter().map(judge_one).collect();
    let for_good = |state: &&PodState| match state {
        PodState::Problem(problem) => problem.timeout.is_zero(),
        _ => false,
    };
    let runs = |state: &&PodState| **state == PodState::Running;
    let is_problem = |state: &&PodState| matches!(state, PodState::Problem(_));
    let states = || states.iter();
    let mut telling = states()
        .filter(for_good)
        .chain(states().filter(runs))
        .chain(states().filter(is_problem))
        .chain(states());
    let others = || PodState::Waiting(AwaitedStep::OtherPods.into());
    telling.next().cloned().unwrap_or_else(others)
}

/// A terminated container is no problem: its log is still to be read, or it is restarted.
fn judge_one(observed: &ObservedPod) -> PodState {
    match (observed.judge(), &observed.pod) {
        (PodState::Problem(_), Some(pod)) if has_ended(pod) => {
            PodState::Waiting(AwaitedStep::PodOutput.into())
        }
        (state, _) => state,
    }
}

/// Whether the container has terminated and the kubelet reports no reason for the pod.
fn has_ended(pod: &Pod) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let containers = status.container_statuses.iter().flatten();
    let mut states = containers.filter_map(|container| container.state.as_ref());
    status.reason.is_none() && states.any(|state| state.terminated.is_some())
}

/// Returns the error for the pod that has this problem, with the tolerations that it lacks.
pub(super) async fn explain_problem(
    cluster: &KubeCluster,
    due: &[ObservedPod],
    problem: PodProblem,
) -> RunError {
    let state = PodState::Problem(problem.clone());
    let observed = due.iter().find(|observed| observed.judge() == state);
    let object = match observed.and_then(ObservedPod::pod_name) {
        Some(name) => FailedObject::named_pod(name),
        None => FailedObject::AnyPod { job: None },
    };
    let condition = with_tolerations(cluster, problem.condition, due).await;
    RunError::not_ready(object, of_rendered_pod(condition))
}

/// Returns the condition as one of a rendered pod, whose image carries the agent.
fn of_rendered_pod(condition: FailureCondition) -> FailureCondition {
    match condition {
        FailureCondition::ImageNotPulled {
            image,
            reason,
            message,
        } => FailureCondition::AgentImageNotPulled {
            image,
            reason,
            message,
        },
        other => other,
    }
}
