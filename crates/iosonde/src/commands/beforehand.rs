//! What goes on at this machine before something is measured, in one line: what `iosonde doctor` sees in a second.
//!
//! The study waits for the watch and does nothing meanwhile. A layout at the same time would be seen as processors that are busy and
//! as I/O of others on the device, and a layout beside others' I/O would be no better than one after it. Arguments, suites and
//! targets are checked before: that takes milliseconds, so a watch beside it would end no sooner, but it would count the writes
//! to the history.

use super::{ceph, cluster};
use crate::args::ClusterArgs;
use iosonde_machine::activity::Moment;
use iosonde_machine::conditions::conditions;
use iosonde_machine::host::host;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_result::doctor::{self, Examination, ExaminedTarget, FORMAT, Finding, Severity};
use std::path::Path;
use std::time::Duration;

/// How long the machine is watched.
const WATCHED: Duration = Duration::from_millis(700);
/// Findings of a doctor that pass: what others do now, and how the machine is held back.
const PASSING: [&str; 5] = ["cpu-busy", "cpu-steal", "other-io", "cgroup-cpu", "hot"];

/// Watches the machine, and says in a line what would spoil a measurement of these targets now. Nothing is watched for targets
/// that are simulated or elsewhere.
pub(super) fn warn(targets: &[String], cluster: &ClusterArgs) {
    let is_here = |name: &&String| {
        !name.starts_with("sim:")
            && matches!(ceph::target(name), Ok(None))
            && matches!(cluster::target_within(name, cluster), Ok(None))
    };
    let here: Vec<&String> = targets.iter().filter(is_here).collect();
    if here.is_empty() {
        return;
    }
    if let Some(line) = line(&examine(&here)) {
        eprintln!("{line}");
    }
}

fn examine(targets: &[&String]) -> Vec<Finding> {
    let system = System::live();
    let before = Moment::now(&system);
    std::thread::sleep(WATCHED);
    let activity = Moment::now(&system).since(&before);
    let infos: Vec<_> = (targets.iter())
        .filter_map(|name| identify(Path::new(name)).ok())
        .collect();
    let conditions = conditions(&system, &infos, &activity);
    let examined = infos.into_iter().map(|info| ExaminedTarget {
        name: String::new(),
        access: Default::default(),
        info,
    });
    doctor::findings(&Examination {
        format: FORMAT,
        kind: "doctor".to_owned(),
        program: String::new(),
        examined_at_ms: 0,
        host: host(&system),
        conditions,
        targets: examined.collect(),
        leftovers: Vec::new(),
        findings: Vec::new(),
    })
}

/// The line, where there is something to be said.
fn line(findings: &[Finding]) -> Option<String> {
    let passing = findings.iter().filter(|finding| {
        finding.severity <= Severity::Warning && PASSING.contains(&finding.id.as_str())
    });
    let evidence: Vec<String> = passing
        .map(|finding| match finding.subject.as_str() {
            "machine" => finding.evidence.clone(),
            device => format!("{device}: {}", finding.evidence),
        })
        .collect();
    (!evidence.is_empty()).then(|| {
        format!(
            "warning: figures may be noisy: {} (`iosonde doctor` explains it)",
            evidence.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, severity: Severity, subject: &str) -> Finding {
        Finding {
            id: id.to_owned(),
            severity,
            subject: subject.to_owned(),
            evidence: format!("{id} is seen"),
            effect: String::new(),
            remedy: String::new(),
            command: None,
        }
    }

    #[test]
    fn findings_that_pass_are_one_line() {
        let all = [
            finding("cpu-busy", Severity::Warning, "machine"),
            finding("cpu-governor", Severity::Warning, "machine"),
            finding("other-io", Severity::Warning, "vda"),
            finding("other-io", Severity::Note, "vdb"),
        ];
        assert_eq!(
            line(&all).as_deref(),
            Some(
                "warning: figures may be noisy: cpu-busy is seen; vda: other-io is seen (`iosonde doctor` explains it)"
            )
        );
        assert_eq!(line(&all[1..2]), None);
    }
}
