//! Objects and causes of a [`PodFailure`](super::PodFailure) in words.

use super::{
    AwaitedStep, ExistingDirectories, FailedObject, FailureCondition, KeptObjects,
    KeptResultProblem, LeftoverFiles, PodOnNode, PodWait, RemainingObject, is_access_denied,
    removal_command,
};
use std::fmt;

impl fmt::Display for FailedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailedObject::Pod { name: None } => write!(f, "the pod"),
            FailedObject::Pod { name: Some(name) } => write!(f, "the pod {name}"),
            FailedObject::AnyPod { job: None } => write!(f, "a pod"),
            FailedObject::AnyPod { job: Some(job) } => write!(f, "a pod of {job}"),
            FailedObject::Agent => write!(f, "the agent"),
            FailedObject::Run => write!(f, "the run"),
            FailedObject::Connection { pod: None } => write!(f, "the connection to the pod"),
            FailedObject::Connection { pod: Some(pod) } => {
                write!(f, "the connection to the pod {pod}")
            }
            FailedObject::Job { name, .. } => write!(f, "the job {name}"),
            FailedObject::Namespace {
                name,
                is_made_for_runs: true,
            } => write!(f, "the namespace {name}, which was made for runs"),
            FailedObject::Namespace { name, .. } => write!(f, "the namespace {name}"),
            FailedObject::Leftovers => write!(f, "removing what runs have left"),
        }
    }
}

impl fmt::Display for RemainingObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemainingObject::Job { name } => write!(f, "the job {name}"),
            RemainingObject::Objects { job } => write!(f, "{job}"),
            RemainingObject::Pod => write!(f, "its pod"),
            RemainingObject::Claim => write!(f, "its claim"),
            RemainingObject::ClaimOf { job } => write!(f, "the claim of {job}"),
            RemainingObject::Namespace => write!(f, "the namespace"),
            RemainingObject::Volume { name } => write!(f, "the volume {name}"),
        }
    }
}

impl fmt::Display for LeftoverFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftoverFiles { volume, run } = self;
        write!(
            f,
            "files of the run may be left in {volume}: if so, remove .iosonde-{run}* there"
        )
    }
}

impl fmt::Display for KeptObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeptObjects { namespace, job } = self;
        write!(
            f,
            "--keep has kept it: see kubectl -n {namespace} describe job,pod -l job-name={job}, \
             and then remove it: {}",
            removal_command(namespace, job)
        )
    }
}

impl fmt::Display for ExistingDirectories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("nearby directories", &self.directories),
            ("mounts", &self.mounts),
        ];
        let known = lists.iter().filter(|(_, paths)| !paths.is_empty());
        let words: Vec<String> = known
            .map(|(name, paths)| format!("{name} of the node {}: {}", self.node, paths.join(", ")))
            .collect();
        f.write_str(&words.join("; "))
    }
}

impl fmt::Display for AwaitedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AwaitedStep::PodCreation => "the pod to be made",
            AwaitedStep::OtherPods => "the other pods to be made",
            AwaitedStep::Node => "a node",
            AwaitedStep::ClaimBinding => "the claim to be bound",
            AwaitedStep::ImagePull => "the image to be pulled",
            AwaitedStep::ContainerStart => "the volume to be mounted and the container to start",
            AwaitedStep::PodOutput => "what a pod has written",
            AwaitedStep::ClusterAnswer => "the cluster's answer",
        })
    }
}

impl fmt::Display for PodWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.running {
            None => write!(f, "{}", self.step),
            Some(pods) => write!(
                f,
                "{}; {} of {} pods run",
                self.step, pods.running, pods.pods
            ),
        }
    }
}

impl fmt::Display for KeptResultProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeptResultProblem::ExecRefused { status } => write!(f, "{status}"),
            KeptResultProblem::TooLong { limit_mib } => {
                write!(f, "it has more than {limit_mib} MiB")
            }
            KeptResultProblem::NoProgress { seconds } => write!(
                f,
                "for {seconds} s each connection has ended before anything came"
            ),
            KeptResultProblem::CommandFailed { message } => write!(f, "{message}"),
        }
    }
}

impl fmt::Display for FailureCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause())
    }
}

impl FailureCondition {
    /// Returns the cause in words.
    fn cause(&self) -> String {
        self.start_cause()
            .or_else(|| self.end_cause())
            .unwrap_or_else(|| self.removal_cause())
    }

    /// Returns the cause of a pod that does not start. `None` for other conditions.
    fn start_cause(&self) -> Option<String> {
        use FailureCondition as Cause;
        Some(match self {
            Cause::PodRefused { message, .. } => format!("the pod is refused: {message}"),
            Cause::ImageNotPulled {
                image,
                reason,
                message,
            } => format!("{reason}: the image {image} cannot be pulled: {message}"),
            Cause::AgentImageNotPulled {
                image,
                reason,
                message,
            } => format!("{reason}: the image {image} cannot be pulled: {message}"),
            Cause::ContainerNotCreated { reason, message } => format!("{reason}: {message}"),
            Cause::VolumeNotMounted { message, .. } => message.clone(),
            Cause::ClaimLost { .. } => "the volume of the claim is gone".to_owned(),
            Cause::ClaimNotProvisioned { message, .. } => {
                format!("the claim is not provisioned: {message}")
            }
            Cause::ProvisionerSilent { message, .. } => {
                format!("no provisioner has begun to create the volume of the claim: {message}")
            }
            Cause::Unschedulable {
                is_node_coming,
                message,
                ..
            } => {
                let start = match is_node_coming {
                    true => "the cluster adds a node; until then, ",
                    false => "",
                };
                format!("{start}no node takes the pod: {message}")
            }
            Cause::StartTimedOut { seconds, awaits } => {
                format!("after {seconds} s it still waits for {awaits}")
            }
            Cause::NotRunning { .. } => "it is not running".to_owned(),
            Cause::OtherBuild { program } => {
                format!("it is {program} of another build, whose messages differ from this one's")
            }
            Cause::NoOutput => "it has no output".to_owned(),
            Cause::NoGreeting => "it does not answer".to_owned(),
            Cause::NoGreetingButLog { last_line } => {
                format!("it does not answer; its last line is: {last_line}")
            }
            Cause::AgentEnded { .. } => "its agent has ended, and its result is gone".to_owned(),
            Cause::UploadTimedOut { seconds } => format!(
                "the agent could not be sent into it: not all of it arrived within {seconds} s"
            ),
            Cause::UploadFailed { message } => {
                format!("the agent could not be sent into it: {message}")
            }
            Cause::AgentNotStarted { message } => {
                format!("the agent cannot be started in it: {message}")
            }
            Cause::FilesLeft { paths, .. } => {
                format!("files of the run are left in it: {}", paths.join(" "))
            }
            Cause::NamespaceTerminating { seconds } => {
                format!("it is being removed, and still there after {seconds} s")
            }
            _ => return None,
        })
    }

    /// Returns the cause of a pod or connection that ended. `None` for other conditions.
    fn end_cause(&self) -> Option<String> {
        use FailureCondition as Cause;
        Some(match self {
            Cause::DeadlinePassed { is_measured, .. } => {
                measured_until_then("the run's deadline has passed", *is_measured)
            }
            Cause::JobFailed { reason, message } => {
                format!("the cluster has given up the job: {reason}: {message}")
            }
            Cause::JobDeleted { job } => format!("the job {job} was deleted"),
            Cause::Evicted { message } => format!("the node evicted the pod: {message}"),
            Cause::NodeLost { reason, message } => format!("{reason}: {message}"),
            Cause::NodeNotReady { node } => format!("its node {node} is not ready"),
            Cause::PodFailed { reason, message } => {
                format!("the pod has failed: {reason}: {message}")
            }
            Cause::Deleted => "it was deleted".to_owned(),
            Cause::Disrupted { reason, message } => {
                format!("the cluster removed it: {reason}{}", detail(message))
            }
            Cause::Terminated => "it was terminated".to_owned(),
            Cause::TerminatedEarly => {
                measured_until_then("it was terminated before its job was over", true)
            }
            Cause::NoAnswer => "the agent does not answer".to_owned(),
            Cause::Unreachable { seconds, error, .. } => {
                format!("for {seconds} s nothing has answered: {error}")
            }
            Cause::MessageUnreadable { problem } => {
                format!("the agent's answer cannot be read: {problem}")
            }
            Cause::JobRefused { error } => format!("its job was refused: {error}"),
            Cause::NoResult {
                reason,
                exit_code,
                last_line,
            } => no_result(reason.as_deref(), *exit_code, last_line.as_deref()),
            Cause::ResultNotKept => {
                "its node has cut its log before the result was read, and the pod has not kept it"
                    .to_owned()
            }
            Cause::KeptResultInvalid => {
                "its node has cut its log, and what the pod has kept is no result".to_owned()
            }
            Cause::KeptResultUnreadable { problem } => format!(
                "its node has cut its log, and its result cannot be read in the pod: {problem}"
            ),
            _ => return self.container_cause(),
        })
    }

    /// Returns the cause of a container that ended. `None` for other conditions.
    fn container_cause(&self) -> Option<String> {
        use FailureCondition as Cause;
        Some(match self {
            Cause::OutOfMemory => "the container ran out of memory (OOMKilled)".to_owned(),
            Cause::ShellMissing { exit_code, message } => {
                let detail = detail(message);
                format!("the image cannot run `sh` (exit status {exit_code}{detail})")
            }
            Cause::ArgumentsRefused { message } => {
                let detail = detail(message);
                format!("the agent does not understand how it was called (exit status 2{detail})")
            }
            Cause::NoRequests => "the agent ended because no client asked for anything".to_owned(),
            Cause::ContainerEnded {
                exit_code,
                reason,
                message,
            } => {
                let detail = detail(message);
                let killed = killing_signal(*exit_code)
                    .map_or(String::new(), |signal| format!(", killed by {signal}"));
                format!("the container ended with status {exit_code}{killed} ({reason}{detail})")
            }
            Cause::VolumeRefused {
                user: Some(user),
                error,
            } if is_access_denied(error) => {
                format!("the user {user} of the pod may not write to the volume: {error}")
            }
            Cause::VolumeRefused { error, .. } => error.to_string(),
            Cause::ContainerStopped { awaits } => {
                format!("its container no longer runs; it waits for {awaits}")
            }
            _ => return None,
        })
    }

    /// Returns the cause of a removal that is not complete. The functions above describe the last
    /// conditions. They are listed so that the compiler reports a condition without words.
    fn removal_cause(&self) -> String {
        use FailureCondition as Cause;
        match self {
            Cause::StillThere { object, seconds } => still_there(object, *seconds),
            Cause::RemovalInterrupted {
                object: RemainingObject::Job { .. } | RemainingObject::Objects { .. },
            } => "you interrupted the wait for it".to_owned(),
            Cause::RemovalInterrupted { object } => {
                format!("you interrupted the wait for it, and {object} is still there")
            }
            Cause::NodesNotReady { pods } => nodes_not_ready(pods),
            Cause::ForeignObject { kind, name } => {
                format!("the {kind} {name} in it is not of a run")
            }
            Cause::OtherRun => "another run may be in it".to_owned(),
            Cause::ApiFailed { message, .. } => message.clone(),
            Cause::PodRefused { .. }
            | Cause::DeadlinePassed { .. }
            | Cause::JobFailed { .. }
            | Cause::JobDeleted { .. }
            | Cause::Evicted { .. }
            | Cause::NodeLost { .. }
            | Cause::NodeNotReady { .. }
            | Cause::PodFailed { .. }
            | Cause::ImageNotPulled { .. }
            | Cause::AgentImageNotPulled { .. }
            | Cause::VolumeRefused { .. }
            | Cause::ProvisionerSilent { .. }
            | Cause::AgentEnded { .. }
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
            | Cause::Unschedulable { .. }
            | Cause::StartTimedOut { .. }
            | Cause::NotRunning { .. }
            | Cause::Deleted
            | Cause::Terminated
            | Cause::TerminatedEarly
            | Cause::OtherBuild { .. }
            | Cause::NoOutput
            | Cause::NoGreeting
            | Cause::NoAnswer
            | Cause::Unreachable { .. }
            | Cause::MessageUnreadable { .. }
            | Cause::UploadTimedOut { .. }
            | Cause::UploadFailed { .. }
            | Cause::AgentNotStarted { .. }
            | Cause::FilesLeft { .. }
            | Cause::JobRefused { .. }
            | Cause::NoResult { .. }
            | Cause::ResultNotKept
            | Cause::KeptResultInvalid
            | Cause::KeptResultUnreadable { .. }
            | Cause::NamespaceTerminating { .. } => format!("{self:?}"),
        }
    }
}

fn nodes_not_ready(pods: &[PodOnNode]) -> String {
    let each: Vec<String> = pods
        .iter()
        .map(|one| format!("the node {} of its pod {}", one.node, one.pod))
        .collect();
    format!("{} is not ready", each.join(", "))
}

fn still_there(object: &RemainingObject, seconds: Option<u64>) -> String {
    match seconds {
        None => format!("{object} is still there"),
        Some(seconds) => format!("{object} is still there after {seconds} s"),
    }
}

/// Returns the signal that ended a container, by the convention of its exit status.
fn killing_signal(exit_code: i32) -> Option<&'static str> {
    Some(match exit_code {
        132 => "SIGILL",
        134 => "SIGABRT",
        135 => "SIGBUS",
        136 => "SIGFPE",
        137 => "SIGKILL",
        139 => "SIGSEGV",
        143 => "SIGTERM",
        _ => return None,
    })
}

fn measured_until_then(cause: &str, is_measured: bool) -> String {
    match is_measured {
        true => format!("{cause}; what it has measured is of the time until then"),
        false => cause.to_owned(),
    }
}

fn no_result(reason: Option<&str>, exit_code: Option<i32>, last_line: Option<&str>) -> String {
    let ended = match (reason, exit_code) {
        (reason, Some(status)) => {
            format!("{} (exit status {status})", reason.unwrap_or_default())
        }
        (Some(reason), None) => reason.to_owned(),
        (None, None) => "it ended".to_owned(),
    };
    match last_line {
        Some(last) => format!("{ended}, and its last words are: {last}"),
        None => ended,
    }
}

/// Returns the message of a container as the end of a sentence in parentheses.
fn detail(message: &str) -> String {
    match message.is_empty() {
        true => String::new(),
        false => format!(": {message}"),
    }
}
