//! Pods that list disks and mounts of their nodes, and the directories of a node for the error of a
//! hostPath that does not exist.

use super::PodSession;
use super::ending::no_answer;
use crate::connection::{AgentEvent, unreadable};
use crate::manifest::MOUNT;
use crate::pod_set::ClusterRunner;
use crate::preflight::{RIGHTS, in_words};
use crate::setup_observer::{ANSWER_TIMEOUT, SetupEvent, SetupObserver, TICK};
use iosonde_job::TargetUri;
use iosonde_result::node_storage::InspectedNode;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{ExistingDirectories, FailureCondition, MountFailure};
use iosonde_result::session::Session;
use iosonde_result::wire::{AgentMessage, AgentRequest};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

/// Returns the rights that pods for an inspection of nodes need, e.g. `create jobs`.
pub fn inspection_rights() -> Vec<String> {
    RIGHTS.into_iter().map(in_words).collect()
}

impl PodSession<'_> {
    /// Lists disks and mounts of the node of each pod. The options of the pods are those of
    /// [`for_node_inspection`](crate::ClusterOptions::for_node_inspection). With `near`, an
    /// absolute path on the nodes, the directories in its nearest existing parent are listed too.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn inspect_nodes(&mut self, near: Option<&str>) -> Result<Vec<InspectedNode>, RunError> {
        for pod in &self.pods {
            pod.connection.ask(&AgentRequest::InspectNode {
                root: MOUNT.to_owned(),
                near: near.map(str::to_owned),
            });
        }
        let each = 0..self.pods.len();
        let inspected: Result<Vec<_>, RunError> =
            each.map(|index| self.inspected_node(index)).collect();
        let mut inspected = inspected?;
        inspected.sort_by(|a, b| a.node.cmp(&b.node));
        Ok(inspected)
    }

    /// Waits for the answer of one pod.
    fn inspected_node(&self, index: usize) -> Result<InspectedNode, RunError> {
        let pod = &self.pods[index];
        let begun = Instant::now();
        loop {
            match pod.connection.events.recv_timeout(TICK) {
                Ok(AgentEvent::Message(AgentMessage::Node(storage))) => {
                    return Ok(InspectedNode {
                        node: pod.node(),
                        storage: *storage,
                    });
                }
                Ok(AgentEvent::Unreadable(problem)) => return Err(unreadable(problem)),
                _ if (self.watch.interrupts)() > 0 => return Err(RunError::Interrupted),
                Ok(AgentEvent::Message(_)) => {}
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER_TIMEOUT => {}
                _ => return Err(self.explain_loss(index, no_answer(&pod.name))),
            }
        }
    }
}

impl ClusterRunner<'_> {
    /// Adds the directories that exist to the error of a hostPath that does not. A short-lived pod
    /// lists them. The error stays as it is if this pod fails, too.
    pub(super) fn name_existing_directories(
        &self,
        error: RunError,
        watch: &mut SetupObserver<'_>,
    ) -> RunError {
        let TargetUri::HostPath(path) = &self.options.target else {
            return error;
        };
        match error {
            RunError::NotReady(failure) if is_missing_directory(failure.condition()) => {
                let failure = match self.existing_directories(path, watch) {
                    Some(existing) => Box::new(failure.with_existing_directories(existing)),
                    None => failure,
                };
                RunError::NotReady(failure)
            }
            other => other,
        }
    }

    fn existing_directories(
        &self,
        path: &str,
        watch: &mut SetupObserver<'_>,
    ) -> Option<ExistingDirectories> {
        (watch.tell)(SetupEvent::Waiting(
            "a pod that lists the node's directories",
        ));
        let runner = ClusterRunner {
            options: self.options.for_node_inspection(None),
            agents: self.agents,
        };
        // The notes on the pod were shown for the run.
        let mut ignore = |_: SetupEvent<'_>| {};
        let mut inner = SetupObserver {
            tell: &mut ignore,
            interrupts: watch.interrupts,
        };
        let found = runner.make(&mut inner).and_then(|made| {
            let mut session = PodSession::new(made, false, inner);
            let found = session.inspect_nodes(Some(path));
            Box::new(session).close()?;
            found
        });
        (watch.tell)(SetupEvent::Over);
        let first = found.ok()?.into_iter().next()?;
        let mounts = first.storage.mounts.into_iter().map(|mount| mount.path);
        let existing = ExistingDirectories {
            node: first.node,
            directories: first.storage.directories,
            mounts: mounts.collect(),
        };
        (!existing.is_empty()).then_some(existing)
    }
}

/// Whether the node has no directory of the name of the hostPath.
fn is_missing_directory(condition: Option<&FailureCondition>) -> bool {
    matches!(
        condition,
        Some(FailureCondition::VolumeNotMounted {
            reason: MountFailure::HostPath,
            ..
        })
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{ClusterOptions, KeepOption, VolumeMode};

    #[test]
    fn inspection_keeps_the_placement_and_drops_the_volume() {
        let mut options = ClusterOptions::new("hostpath:///mnt/disks/ssd7".parse().unwrap());
        options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
        options.volume_mode = VolumeMode::Block;
        options.keep_failed = KeepOption::Given;
        let requests = crate::options::pod::resource("ephemeral-storage=200Gi");
        options.pod.requests = requests.into_iter().collect();
        let inspection = options.for_node_inspection(None);
        assert_eq!(inspection.target, TargetUri::HostPath("/".to_owned()));
        assert_eq!(inspection.node_selector, options.node_selector);
        assert!(inspection.pod.requests.is_empty());
        assert_eq!(inspection.keep_failed, KeepOption::Unavailable);
        assert!(inspection.inspects_node && !inspection.is_block());
    }

    #[test]
    fn rights_of_an_inspection_are_those_of_a_run() {
        let rights = inspection_rights();
        assert!(rights.contains(&"create jobs".to_owned()));
        assert!(rights.contains(&"create pods/exec".to_owned()));
    }
}
