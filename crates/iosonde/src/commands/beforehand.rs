//! A one-line warning before a study: what `iosonde doctor` finds within a second.
//!
//! The study waits for the sampling: its own layout would count as busy CPUs and as other I/O, and
//! a layout beside other I/O would be no better than a later one. Arguments, suites and targets are
//! checked before. This takes milliseconds; in parallel, its writes to the history would be
//! counted.

use super::{ceph, cluster};
use crate::args::ClusterArgs;
use iosonde_job::target_scheme::is_simulated_name;
use iosonde_machine::activity::ActivitySnapshot;
use iosonde_machine::conditions::conditions;
use iosonde_machine::host::describe_host;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_result::doctor::{self, Examination, ExaminedTarget, FORMAT, Finding, Severity};
use std::path::Path;
use std::time::Duration;

/// Sampling time.
const WATCHED: Duration = Duration::from_millis(700);
/// Ids of transient findings: activity of other processes, and throttling.
const PASSING: [&str; 5] = ["cpu-busy", "cpu-steal", "other-io", "cgroup-cpu", "hot"];

/// Samples the machine and prints one line about noise that would spoil a measurement of these
/// targets now. Skips the sampling if all targets are simulated or remote.
pub(super) fn warn_of_noise(targets: &[String], cluster: &ClusterArgs) {
    let is_here = |name: &&String| {
        !is_simulated_name(name)
            && matches!(ceph::target(name), Ok(None))
            && matches!(cluster::target_within(name, cluster), Ok(None))
    };
    let here: Vec<&String> = targets.iter().filter(is_here).collect();
    if here.is_empty() {
        return;
    }
    if let Some(line) = noise_warning(&examine(&here)) {
        eprintln!("{line}");
    }
}

fn examine(targets: &[&String]) -> Vec<Finding> {
    let system = System::live();
    let before = ActivitySnapshot::now(&system);
    std::thread::sleep(WATCHED);
    let activity = ActivitySnapshot::now(&system).since(&before);
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
        host: describe_host(&system),
        conditions,
        targets: examined.collect(),
        leftovers: Vec::new(),
        findings: Vec::new(),
    })
}

/// The warning; `None` without such a finding.
fn noise_warning(findings: &[Finding]) -> Option<String> {
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
            "warning: figures may be noisy: {} (see `iosonde doctor`)",
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
            cause: None,
        }
    }

    #[test]
    fn transient_findings_are_one_line() {
        let all = [
            finding("cpu-busy", Severity::Warning, "machine"),
            finding("cpu-governor", Severity::Warning, "machine"),
            finding("other-io", Severity::Warning, "vda"),
            finding("other-io", Severity::Note, "vdb"),
        ];
        assert_eq!(
            noise_warning(&all).as_deref(),
            Some(
                "warning: figures may be noisy: cpu-busy is seen; vda: other-io is seen (see \
                 `iosonde doctor`)"
            )
        );
        assert_eq!(noise_warning(&all[1..2]), None);
    }
}
