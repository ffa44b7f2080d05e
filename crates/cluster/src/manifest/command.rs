//! Command of the container: a shell that waits for the agent, or the agent in the image.

use super::{AGENT_DIRECTORY, DEVICE, JOB_DIRECTORY, JOB_FILE, RESULT_FILE, RunSpec};
use crate::image::AGENT_IN_IMAGE;

/// Seconds after which an agent without a client ends.
const IDLE_TIMEOUT_S: u32 = 120;

/// Checks per second whether the agent has been sent.
const TICKS_PER_S: u64 = 50;

/// How the agent gets into the pod, and its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentStart {
    /// The agent is sent over exec into an image with a shell, and serves clients.
    Streamed,
    /// The image contains the agent, which serves clients.
    InImage,
    /// The image contains the agent, which runs a job file by itself.
    ByItself {
        /// Whether it keeps running after the job: a StatefulSet would restart it.
        stays: bool,
    },
}

impl AgentStart {
    /// Selects the start for this image.
    pub(crate) fn of_image(image: &str) -> AgentStart {
        match crate::image::carries_agent(image) {
            true => AgentStart::InImage,
            false => AgentStart::Streamed,
        }
    }

    /// Returns the path of the agent's executable in the pod.
    pub(crate) fn agent(self) -> String {
        match self {
            AgentStart::Streamed => format!("{AGENT_DIRECTORY}/agent"),
            AgentStart::InImage | AgentStart::ByItself { .. } => AGENT_IN_IMAGE.to_owned(),
        }
    }
}

impl RunSpec<'_> {
    /// Returns the command of the container.
    pub(super) fn command(&self) -> Vec<String> {
        let agent = self.start.agent();
        match self.start {
            AgentStart::Streamed => vec!["sh".to_owned(), "-c".to_owned(), self.script(&agent)],
            AgentStart::InImage => {
                let words = format!("{agent} {}", self.serve("$(JOB_COMPLETION_INDEX)"));
                words.split(' ').map(str::to_owned).collect()
            }
            AgentStart::ByItself { stays } => {
                let mut words = vec![agent, "job".to_owned()];
                if !self.is_block() {
                    words.extend([
                        "--scratch".to_owned(),
                        self.own_scratch("$(JOB_COMPLETION_INDEX)"),
                    ]);
                }
                words.extend(self.device_consent().iter().map(ToString::to_string));
                if stays {
                    words.extend(["--stay", "--keep", RESULT_FILE].map(str::to_owned));
                }
                words.push(format!("{JOB_DIRECTORY}/{JOB_FILE}"));
                words
            }
        }
    }

    /// Returns a script that waits for the agent to be sent, and then execs it.
    fn script(&self, agent: &str) -> String {
        let ticks = self.first_s().unwrap_or(300) * TICKS_PER_S;
        // The `sleep` of some images takes whole seconds only.
        let others = TICKS_PER_S - 1;
        format!(
            "trap 'exit 143' TERM; n=0; \
             while [ ! -x {agent} ]; do n=$((n+1)); [ $n -lt {ticks} ] || exit 1; \
             sleep 0.02 2>/dev/null || {{ n=$((n+{others})); sleep 1; }}; done; \
             exec {agent} {}",
            self.serve("$JOB_COMPLETION_INDEX")
        )
    }

    /// Returns the seconds that the first pod waits for a client, which waits for the last pod.
    fn first_s(&self) -> Option<u64> {
        (self.pods > 1).then(|| self.options.timeout.as_secs() + u64::from(IDLE_TIMEOUT_S))
    }

    /// Returns the arguments for serving. `index` is the reference to the pod's own index.
    fn serve(&self, index: &str) -> String {
        let use_of_volume = match self.is_block() {
            _ if self.options.inspects_node => String::new(),
            true => format!(" --device {DEVICE}"),
            false => format!(" --scratch {}", self.own_scratch(index)),
        };
        let first = self
            .first_s()
            .map_or(String::new(), |seconds| format!(" --first {seconds}"));
        format!(
            "serve --socket {AGENT_DIRECTORY}/socket --idle {IDLE_TIMEOUT_S}{first}{use_of_volume}"
        )
    }

    /// Returns the options for consent in a manifest. Pods on one node that share a device need
    /// `--allow-in-use`, since each would claim it exclusively.
    fn device_consent(&self) -> Vec<&'static str> {
        let mut words = Vec::new();
        if self.is_block() && self.options.allow_overwrite {
            words.extend(["--allow-overwrite", DEVICE]);
        }
        if self.is_block() && self.is_shared() {
            words.extend(["--allow-in-use", DEVICE]);
        }
        words
    }

    fn own_scratch(&self, index: &str) -> String {
        self.scratch(self.is_one_of_several().then_some(index))
    }
}
