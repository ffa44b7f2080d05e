//! The end of a session: removal of its pods, and the errors for pods that are lost.

use super::PodSession;
use crate::connection::{AgentEvent, Connection};
use crate::device_consent::DeviceTarget;
use crate::options::KeepOption;
use crate::pod_set::with_keep_option;
use crate::run_objects::RunObjects;
use crate::setup_observer::{SetupEvent, TICK};
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition, LeftoverFiles};
use iosonde_result::run_error::{ClusterObstacle, RunError};
use iosonde_result::wire::AgentRequest;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Timeout for the agents to remove their files.
const CLOSE: Duration = Duration::from_secs(30);
/// Time for the cluster to report why a pod was terminated, which this client never requests.
const TERMINATION_CAUSE: Duration = Duration::from_secs(10);

impl PodSession<'_> {
    /// Removes pods and volumes once. Pods that may go on with a run are kept.
    pub(super) fn remove(&mut self) -> Result<(), RunError> {
        let before = (self.watch.interrupts)();
        self.nodes.request_removal();
        self.cold.request_removal();
        let removed = match std::mem::replace(&mut self.is_closed, true) {
            true => Ok(()),
            false => self.remove_pods(before),
        };
        self.nodes.close(before, &mut self.watch);
        self.cold.close(before, &mut self.watch);
        (self.watch.tell)(SetupEvent::Over);
        if let Some(remainder) = self.share.remainder.take().filter(|_| removed.is_ok()) {
            (self.watch.tell)(SetupEvent::Note(&remainder));
        }
        removed
    }

    /// Has the agents remove their files and the cluster all objects. One more interrupt than
    /// `before` ends the waits.
    fn remove_pods(&mut self, before: u32) -> Result<(), RunError> {
        (self.watch.tell)(SetupEvent::Waiting(match &self.pods[..] {
            _ if self.objects.selected.is_some() => "the agent's files to be removed",
            [_] => "pod and volume to be removed",
            _ => "pods and volumes to be removed",
        }));
        for pod in &self.pods {
            pod.connection.ask(&AgentRequest::Close);
        }
        let interrupts = self.watch.interrupts;
        if self.objects.selected.is_some() {
            self.wait_for_agents(before);
            return self.runtime.block_on(self.objects.remove_agent_files());
        }
        // The files in a volume that is removed too need no time of their own: an agent ends in the
        // same way on both requests.
        let is_asked = self.persistent_volume.is_none()
            && self.runtime.block_on(self.objects.ask_to_delete()).is_ok();
        self.wait_for_agents(before);
        let deleted = (self.objects).wait_for_deletion(is_asked, before, interrupts);
        self.runtime.block_on(deleted)
    }

    /// Waits until the agents have ended. One more interrupt than `before` ends the wait.
    fn wait_for_agents(&self, before: u32) {
        let begun = Instant::now();
        for pod in &self.pods {
            while begun.elapsed() < CLOSE && (self.watch.interrupts)() <= before.max(1) {
                if has_ended(&pod.connection) {
                    break;
                }
            }
        }
    }

    /// Keeps the objects of a run whose pod is lost, if the user requested it. Else the remedy says
    /// how to keep them, if the command can.
    pub(super) fn keep_if_lost(&mut self, error: RunError) -> RunError {
        let is_lost = matches!(error, RunError::Lost(_));
        if self.is_closed || !is_lost {
            return error;
        }
        self.is_closed = self.objects.keep_failed == KeepOption::Given;
        with_keep_option(error, &self.objects)
    }

    /// Replaces the error of a lost pod by the cause that the cluster knows.
    pub(super) fn explain_loss(&self, index: usize, error: RunError) -> RunError {
        let RunError::Lost { .. } = error else {
            return error;
        };
        let pod = &self.pods[index];
        let begun = Instant::now();
        // The agent reports its termination before the cluster knows the cause.
        while pod.is_cut_short && begun.elapsed() < TERMINATION_CAUSE {
            match self.runtime.block_on(self.objects.why_pod_lost(&pod.name)) {
                Ok(Some(cause)) => return self.name_pod(index, cause),
                _ => std::thread::sleep(TICK),
            }
        }
        let known = self.runtime.block_on(self.objects.why_pod_lost(&pod.name));
        self.name_pod(index, known.ok().flatten().unwrap_or(error))
    }

    /// Adds the name of one of several pods to the error for a lost pod.
    pub(super) fn name_pod(&self, index: usize, error: RunError) -> RunError {
        match error {
            RunError::Lost(failure) if self.has_common_start => {
                let pod = FailedObject::named_pod(&self.pods[index].name);
                RunError::Lost(Box::new(failure.with_object(pod)))
            }
            other => other,
        }
    }
}

/// Waits for the next event of an agent that closes. Returns whether its connection has ended.
fn has_ended(connection: &Connection) -> bool {
    matches!(
        connection.events.recv_timeout(TICK),
        Ok(AgentEvent::Ended | AgentEvent::Unreadable(_)) | Err(RecvTimeoutError::Disconnected)
    )
}

/// Returns the error for an agent that does not answer on an open connection.
pub(super) fn no_answer(pod: &str) -> RunError {
    let pod = Some(pod.to_owned());
    RunError::lost(FailedObject::Connection { pod }, FailureCondition::NoAnswer)
}

/// Returns the error for agents that had earlier runs, or wait for their first, as in a study.
pub(super) fn not_followable(objects: &RunObjects) -> RunError {
    let obstacle = ClusterObstacle::NotFollowable {
        namespace: objects.cluster.namespace.clone(),
        job: objects.job.clone(),
    };
    obstacle.into()
}

/// Adds to the remedy that a lost agent may have left files in a volume that outlives the run.
pub(super) fn with_leftovers(error: RunError, volume: Option<&str>, id: &str) -> RunError {
    match (error, volume) {
        (RunError::Lost(failure), Some(volume)) => {
            let leftovers = LeftoverFiles {
                volume: volume.to_owned(),
                run: id.to_owned(),
            };
            RunError::Lost(Box::new(failure.with_leftovers(leftovers)))
        }
        (other, _) => other,
    }
}

/// Puts an agent's refusal into the terms of its client, which knows target and options.
pub(super) fn explain_refusal(error: RunError, device: Option<&DeviceTarget>) -> RunError {
    match device {
        Some(device) => device.explain(error),
        None => error,
    }
}
