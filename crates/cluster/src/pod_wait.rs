//! Waits until the pods of a run are running. The wait ends with success, an explained failure, or
//! an interrupt of the user.

mod provisioner_queue;

use crate::api;
use crate::diagnose::{ObservedPod, PodProblem, PodState};
use crate::node_taints::with_tolerations;
use crate::run_objects::RunObjects;
use crate::run_watch::RunWatch;
use crate::setup_observer::{SetupEvent, SetupObserver, TICK};
use iosonde_result::run_error::pod_failure::{
    AwaitedStep, FailedObject, FailureCondition, PodWait, RunningPods,
};
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::api::core::v1::Pod;
use provisioner_queue::ProvisionerQueue;
use std::time::{Duration, Instant};

/// Time in which a new Job may not be visible yet. A Job that is missing later was deleted.
const JOB_SEEN: Duration = Duration::from_secs(5);

impl RunObjects {
    /// Waits until the containers of all pods run.
    pub(crate) async fn wait(
        &self,
        pods: u32,
        timeout: Duration,
        watch: &mut SetupObserver<'_>,
    ) -> Result<Vec<Pod>, RunError> {
        let observed_pods = self.wait_observed(pods, timeout, watch).await?;
        let running = observed_pods.into_iter().filter_map(|one| one.pod);
        Ok(running.collect())
    }

    /// As [`wait`](Self::wait), with the claims of the pods.
    pub(crate) async fn wait_observed(
        &self,
        pods: u32,
        timeout: Duration,
        watch: &mut SetupObserver<'_>,
    ) -> Result<Vec<ObservedPod>, RunError> {
        let begun = Instant::now();
        let mut objects = RunWatch::start(self);
        let mut problem_duration = ProblemDuration::default();
        let mut queue = ProvisionerQueue::default();
        let mut observed_pods = None;
        while begun.elapsed() <= timeout {
            if (watch.interrupts)() > 0 {
                return Err(RunError::Interrupted);
            }
            let changed = objects.wait_for_changes(TICK).await;
            if changed.map_err(|failure| api::failed(ClusterRequest::WatchPod, &failure.error))? {
                observed_pods = objects.observed_pods();
            }
            let Some(observed) = &observed_pods else {
                continue;
            };
            let waits_for = match judge_all(observed, pods) {
                PodState::Running => {
                    debug_assert!(observed.len() >= pods as usize, "each state is of a pod");
                    return Ok(observed.clone());
                }
                PodState::Waiting(wait) => {
                    problem_duration = ProblemDuration::default();
                    wait.to_string()
                }
                PodState::Problem(problem) => {
                    let is_over = problem_duration.by(&problem) >= problem.timeout;
                    let is_silent = is_over && problem.is_provisioner_silent();
                    if is_silent && queue.has_advanced(self, observed).await {
                        problem_duration = ProblemDuration::default();
                    } else if is_over {
                        return Err(self.explained_failure(problem, observed).await);
                    }
                    problem_in_words(&problem)
                }
            };
            if observed.iter().all(|one| one.job.is_none()) && begun.elapsed() > JOB_SEEN {
                let job = self.job.clone();
                let deleted = FailureCondition::JobDeleted { job };
                return Err(RunError::not_ready(FailedObject::only_pod(), deleted));
            }
            (watch.tell)(SetupEvent::Waiting(&waits_for));
        }
        let observed = observed_pods.as_deref();
        let wait = match observed.map(|observed| judge_all(observed, pods)) {
            Some(PodState::Waiting(wait)) => wait,
            _ => AwaitedStep::ClusterAnswer.into(),
        };
        let late = || too_late(timeout, wait);
        let problem = problem_duration.last().unwrap_or_else(late);
        let observed = observed.unwrap_or_default();
        Err(self.explained_failure(problem, observed).await)
    }

    /// Returns the error for a problem that ends the wait.
    async fn explained_failure(&self, problem: PodProblem, observed: &[ObservedPod]) -> RunError {
        let condition = with_tolerations(&self.cluster, problem.condition, observed).await;
        RunError::not_ready(FailedObject::only_pod(), condition)
    }
}

/// Returns what a pod with this problem waits for, for the user.
pub(crate) fn problem_in_words(problem: &PodProblem) -> String {
    format!("this problem to pass: {}", problem.condition)
}

/// Judges all pods together: a problem of one counts for all, and the last to run is awaited.
fn judge_all(observed_pods: &[ObservedPod], pods: u32) -> PodState {
    let has_provisioner = observed_pods
        .iter()
        .any(ObservedPod::has_provisioning_begun);
    let judge = |observed: &ObservedPod| match observed.judge() {
        // The provisioner works on another claim, and this one is in its queue.
        PodState::Problem(problem) if has_provisioner && problem.is_provisioner_silent() => {
            PodState::Waiting(AwaitedStep::ClaimBinding.into())
        }
        state => state,
    };
    let states: Vec<PodState> = observed_pods.iter().map(judge).collect();
    let problems = states.iter().filter_map(|state| match state {
        PodState::Problem(problem) => Some(problem),
        _ => None,
    });
    // Permanent problems are reported before those that may pass.
    if let Some(problem) = problems.min_by_key(|problem| problem.timeout) {
        return PodState::Problem(problem.clone());
    }
    let running = states
        .iter()
        .filter(|state| **state == PodState::Running)
        .count();
    let waiting = states.into_iter().find(|state| *state != PodState::Running);
    let step = match waiting {
        Some(PodState::Waiting(wait)) => wait.step,
        _ if running >= pods as usize => return PodState::Running,
        _ => AwaitedStep::PodCreation,
    };
    let running = (pods != 1).then_some(RunningPods {
        running: running as u32,
        pods,
    });
    PodState::Waiting(PodWait { step, running })
}

/// The current problem, and the time when it was first seen.
#[derive(Default)]
pub(crate) struct ProblemDuration {
    known: Option<(PodProblem, Instant)>,
}

impl ProblemDuration {
    /// Returns how long this problem has lasted. Another problem restarts the time.
    pub(crate) fn by(&mut self, problem: &PodProblem) -> Duration {
        let since = match self.known.take() {
            Some((known, since)) if known.is_same(problem) => since,
            _ => Instant::now(),
        };
        self.known = Some((problem.clone(), since));
        since.elapsed()
    }

    fn last(self) -> Option<PodProblem> {
        self.known.map(|(problem, _)| problem)
    }
}

/// Returns the problem of a pod that waits for longer than the timeout of the user.
pub(crate) fn too_late(timeout: Duration, awaits: PodWait) -> PodProblem {
    PodProblem::permanent(FailureCondition::StartTimedOut {
        seconds: timeout.as_secs(),
        awaits,
    })
}

#[cfg(test)]
mod tests;
