//! Steps of the check of a file that several pods share, on the volume of this agent.

use iosonde_machine::shared_file::SharedFileMember;
use iosonde_result::shared_file::SharedFileStep;
use iosonde_result::wire::AgentMessage;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the file.
const FILE_NAME: &str = "shared-file";
/// Start of the names of all directories of agents. Others in the volume are those of the user.
const DIRECTORY_PREFIX: &str = ".iosonde-";
/// Time for a step to end before the files of the agent are removed: longer than a lock step that
/// gets its lock.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Polling interval of that wait.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The member of the check in this agent.
pub(crate) struct SharedFileSteps {
    /// Directory of the volume. `None`: the agent has a block device or no volume.
    volume: Option<PathBuf>,
    member: Mutex<Option<SharedFileMember>>,
}

impl SharedFileSteps {
    /// Creates it for the volume that contains the agent's own directory.
    pub(crate) fn new(scratch: Option<&Path>) -> SharedFileSteps {
        SharedFileSteps {
            volume: scratch.and_then(Path::parent).map(Path::to_owned),
            member: Mutex::new(None),
        }
    }

    /// Performs a step on the file in the directory of a pod, and returns the answer.
    pub(crate) fn perform(&self, directory: &str, step: &SharedFileStep) -> AgentMessage {
        let Some(path) = self.path(directory) else {
            return AgentMessage::Refused(format!("{directory} is no directory of this volume"));
        };
        let mut member = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        let known = member.take().filter(|member| member.path() == path);
        let member = member.insert(known.unwrap_or_else(|| SharedFileMember::new(path)));
        AgentMessage::SharedFile(member.perform(step))
    }

    /// Closes the file. An NFS client keeps the name of a removed file that is open, and with it
    /// the directory. A step that does not end in time keeps the file open.
    pub(crate) fn close(&self) {
        let begun = Instant::now();
        while begun.elapsed() < CLOSE_TIMEOUT {
            if let Ok(mut member) = self.member.try_lock() {
                *member = None;
                return;
            }
            thread::sleep(CLOSE_POLL_INTERVAL);
        }
    }

    /// Returns the path of the file. A client must not reach files outside of the volume, nor those
    /// of the user in it.
    fn path(&self, directory: &str) -> Option<PathBuf> {
        let mut components = Path::new(directory).components();
        let is_name = matches!(
            (components.next(), components.next()),
            (Some(Component::Normal(_)), None)
        );
        let is_of_agent = is_name && directory.starts_with(DIRECTORY_PREFIX);
        let volume = self.volume.as_ref().filter(|_| is_of_agent)?;
        Some(volume.join(directory).join(FILE_NAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::shared_file::SharedFileReply;

    #[test]
    fn path_outside_of_directories_of_agents_is_refused() {
        let steps = SharedFileSteps::new(Some(Path::new("/data/.iosonde-a-1")));
        let inside = steps.path(".iosonde-a-0").unwrap();
        assert_eq!(inside, Path::new("/data/.iosonde-a-0/shared-file"));
        let outside = ["..", "/etc", ".iosonde-a/../../b", ".iosonde-a/b", "", "a"];
        for outside in outside {
            assert_eq!(steps.path(outside), None, "{outside}");
        }
        assert_eq!(SharedFileSteps::new(None).path(".iosonde-a-0"), None);
    }

    #[test]
    fn step_is_performed_in_directory_of_the_first_pod() {
        let volume = tempfile::tempdir().unwrap();
        let first = volume.path().join(".iosonde-a-0");
        std::fs::create_dir(&first).unwrap();
        let steps = SharedFileSteps::new(Some(&volume.path().join(".iosonde-a-1")));
        let reply = steps.perform(".iosonde-a-0", &SharedFileStep::Create);
        assert_eq!(reply, AgentMessage::SharedFile(SharedFileReply::Done));
        assert!(first.join(FILE_NAME).exists());
        steps.close();
        assert!(steps.member.lock().unwrap().is_none());
    }
}
