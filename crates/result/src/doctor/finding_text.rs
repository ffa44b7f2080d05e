//! Makes a finding from its cause.

use super::finding_cause::FindingCause;
use super::{
    ClusterCause, Finding, Severity, cluster_text, device_text, io_path_text, leftover_text,
    machine_text, target_text,
};

impl Finding {
    /// Creates a finding about a cluster. `subject` is the object that has the condition.
    pub fn in_cluster(severity: Severity, subject: &str, cause: ClusterCause) -> Finding {
        finding(severity, subject, FindingCause::Cluster(cause))
    }
}

/// Returns the finding of a cause. `subject` is the machine, a device, a target or an object of a
/// cluster.
pub(super) fn finding(severity: Severity, subject: &str, cause: FindingCause) -> Finding {
    let text = match &cause {
        FindingCause::Machine(cause) => machine_text::describe(cause),
        FindingCause::Device(cause) => device_text::describe(cause, subject),
        FindingCause::IoPath(cause) => io_path_text::describe(cause, subject),
        FindingCause::Target(cause) => target_text::describe(cause, subject),
        FindingCause::Leftover(cause) => leftover_text::describe(cause),
        FindingCause::Cluster(cause) => cluster_text::describe(cause),
    };
    Finding {
        id: text.id.to_owned(),
        severity,
        subject: subject.to_owned(),
        evidence: text.evidence,
        effect: text.effect,
        remedy: text.remedy,
        command: text.command,
        cause: Some(cause),
    }
}
