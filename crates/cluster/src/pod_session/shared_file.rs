//! Check of a file that all pods write and read, before their first run.

use super::PodSession;
use super::ending::no_answer;
use crate::connection::{AgentEvent, unreadable};
use crate::options::ClusterOptions;
use crate::setup_observer::{SetupEvent, TICK};
use crate::survey::SharedTrial;
use iosonde_result::run_error::{RunError, SharedFileProblem};
use iosonde_result::shared_file::{
    MEMBERS_MAX, MemberStep, SharedFileReply, SharedFileResult, check_shared_file,
};
use iosonde_result::wire::{AgentMessage, AgentRequest};
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Timeout for the answers to one round. An NFS client may wait half a minute before it asks again
/// for a lock.
const ROUND: Duration = Duration::from_secs(180);

impl PodSession<'_> {
    /// Has the pods write to one file and read what the others wrote.
    ///
    /// # Errors
    /// If a byte is wrong, a call fails, or a pod is lost.
    pub fn try_shared_file(&mut self, options: &ClusterOptions) -> Result<SharedTrial, RunError> {
        let checked = self.check_shared_file(options)?;
        debug_assert!(
            !checked.checks.is_empty(),
            "close-to-open is always checked"
        );
        Ok(SharedTrial {
            nodes: self.node_names(),
            verified_bytes: checked
                .checks
                .iter()
                .map(|check| check.verified_bytes)
                .sum(),
        })
    }

    /// Has the pods check a file in the directory of the first one.
    pub(super) fn check_shared_file(
        &mut self,
        options: &ClusterOptions,
    ) -> Result<SharedFileResult, RunError> {
        let target = options.target.to_string();
        let count = self.pods.len();
        let pods = u16::try_from(count).unwrap_or(u16::MAX);
        if !(2..=MEMBERS_MAX).contains(&pods) {
            let problem = SharedFileProblem::PodCount { pods: count as u64 };
            return Err(problem.into_run_error(&target));
        }
        self.show_waiting("the check of the shared file");
        let directory = directory_name(self.path());
        let checked = check_shared_file(pods, &mut |steps| self.perform_steps(&directory, steps));
        (self.watch.tell)(SetupEvent::Over);
        checked.map_err(|failure| {
            let names: Vec<String> = self.pods.iter().map(|pod| pod.name.clone()).collect();
            failure.into_run_error(&target, &names)
        })
    }

    /// Has pods perform steps at the same time.
    fn perform_steps(
        &self,
        directory: &str,
        steps: &[MemberStep],
    ) -> Result<Vec<SharedFileReply>, RunError> {
        for MemberStep { pod, step } in steps {
            let connection = &self.pods[usize::from(*pod)].connection;
            connection.ask(&AgentRequest::SharedFile {
                directory: directory.to_owned(),
                step: step.clone(),
            });
        }
        let begun = Instant::now();
        let each = steps.iter().map(|step| usize::from(step.pod));
        each.map(|index| self.shared_file_reply(index, begun))
            .collect()
    }

    /// Waits for the answer of one pod.
    fn shared_file_reply(&self, index: usize, begun: Instant) -> Result<SharedFileReply, RunError> {
        let pod = &self.pods[index];
        loop {
            match pod.connection.events.recv_timeout(TICK) {
                Ok(AgentEvent::Message(AgentMessage::SharedFile(reply))) => return Ok(reply),
                Ok(
                    AgentEvent::Message(AgentMessage::Refused(problem))
                    | AgentEvent::Unreadable(problem),
                ) => return Err(unreadable(problem)),
                _ if (self.watch.interrupts)() > 0 => return Err(RunError::Interrupted),
                Ok(AgentEvent::Message(_)) => {}
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < ROUND => {}
                _ => return Err(self.explain_loss(index, no_answer(&pod.name))),
            }
        }
    }
}

/// Returns the name of the directory of a pod in the volume.
fn directory_name(scratch: &str) -> String {
    let name = Path::new(scratch).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_a_pod_is_named_without_its_volume() {
        assert_eq!(
            directory_name("/data/.iosonde-3f2a9c-0"),
            ".iosonde-3f2a9c-0"
        );
    }
}
