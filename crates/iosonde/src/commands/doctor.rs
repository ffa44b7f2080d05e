//! `iosonde doctor`: is this machine fit to be measured?

mod class_trials;
mod cluster_check;
mod cluster_report;
mod node_inspection;
mod trial_rounds;

use super::{leftovers, target};
use crate::args::{DoctorArgs, DoctorFormat, FailOn};
use crate::failure::{CommandError, report_all};
use crate::output::Output;
use iosonde_engine::runner::check_build;
use iosonde_engine::sys::ring::try_one;
use iosonde_job::TargetScheme;
use iosonde_job::errno::describe;
use iosonde_job::plan::CephAccess;
use iosonde_job::target_scheme::is_simulated_name;
use iosonde_machine::access::access;
use iosonde_machine::activity::ActivitySnapshot;
use iosonde_machine::conditions::conditions;
use iosonde_machine::host::describe_host;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_report as report;
use iosonde_result::doctor::{self, Examination, ExaminedTarget, FORMAT, Finding};
use iosonde_result::host::{PathKind, TargetInfo};
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem, UnsupportedFeature};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Sampling time of the activity of other processes.
const WATCHED: Duration = Duration::from_secs(1);

/// Examines the machine and the targets, and prints the findings.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CommandError> {
    if args.cluster {
        return cluster_check::run(args);
    }
    if let Some(option) = args.place.given_option() {
        return Err(CommandError::usage(
            format!("{option} is for a cluster, but this machine is checked"),
            format!("add --cluster, or leave out {option}"),
        ));
    }
    check_build()?;
    let system = System::live();
    let here = [PathBuf::from(".")];
    let targets: &[PathBuf] = match args.targets.as_slice() {
        [] => &here,
        named => named,
    };
    let (named, unusable) = usable(targets);
    if named.is_empty() {
        return report_all(unusable);
    }
    let (paths, targets): (Vec<PathBuf>, Vec<TargetInfo>) = named.into_iter().unzip();
    let output = Output::open_report(args.output.as_deref())?;
    let before = ActivitySnapshot::now(&system);
    std::thread::sleep(WATCHED);
    let activity = ActivitySnapshot::now(&system).since(&before);
    let mut conditions = conditions(&system, &targets, &activity);
    // A seccomp filter that forbids io_uring shows only when a ring is set up.
    let refused = try_one().err();
    conditions.io_uring_errno = refused.as_ref().and_then(io::Error::raw_os_error);
    conditions.io_uring_error = refused.as_ref().map(describe);
    let examined = |(path, info): (&PathBuf, TargetInfo)| ExaminedTarget {
        name: path.display().to_string(),
        access: access(&info),
        info,
    };
    let named = paths.iter().zip(&targets);
    let places = leftovers::search_directories(named);
    let mut left = leftovers::find_leftovers(&places);
    if args.clean {
        leftovers::remove(&left, &args.targets)
            .iter()
            .for_each(|line| eprintln!("{line}"));
        left = leftovers::find_leftovers(&places);
    }
    left.retain(|each| leftovers::concerns(each, &paths));
    let mut examination = Examination {
        format: FORMAT,
        kind: "doctor".to_owned(),
        program: report::json_document::PROGRAM.to_owned(),
        examined_at_ms: epoch_ms(),
        host: describe_host(&system),
        conditions,
        targets: paths.iter().zip(targets).map(examined).collect(),
        leftovers: left,
        findings: Vec::new(),
    };
    examination.findings = doctor::findings(&examination);
    let text = match args.format {
        DoctorFormat::Table => report::doctor::examination_text(&examination),
        DoctorFormat::Json => report::doctor::examination_json(&examination),
    };
    output.save(&text)?;
    report_all(unusable)?;
    count_findings(&examination.findings, args.fail_on)
}

/// The targets that can be examined, and the errors of the others.
fn usable(paths: &[PathBuf]) -> (Vec<(PathBuf, TargetInfo)>, Vec<CommandError>) {
    let (mut targets, mut failures) = (Vec::new(), Vec::new());
    for path in paths {
        match existing(path) {
            Ok(info) => targets.push((path.clone(), info)),
            Err(failure) => failures.push(failure),
        }
    }
    (targets, failures)
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Identifies a target. Fails if it is missing or cannot be measured: findings would be useless.
fn existing(path: &Path) -> Result<TargetInfo, CommandError> {
    let name = path.display().to_string();
    if name.is_empty() || is_simulated_name(&name) {
        // An empty name, or one of no device, has its own error.
        target::check(&name, &[], &CephAccess::default())?;
        return Err(CommandError::usage(
            format!("{name} is a simulated device, which has nothing to examine"),
            format!("name a directory, file or device, or run `iosonde probe {name}`"),
        ));
    }
    if let Some(scheme) = TargetScheme::of_name(&name) {
        return Err(CommandError::Run(
            UnsupportedFeature::UnknownScheme {
                target: name.clone(),
                scheme: scheme.name().to_owned(),
            }
            .into(),
        ));
    }
    let unusable = |error: &io::Error| {
        CommandError::Run(RunError::unusable_target(
            name.clone(),
            TargetProblem::NotAccessible {
                failure: error.into(),
                purpose: AccessPurpose::Examine,
            },
        ))
    };
    let info = identify(path).map_err(|error| unusable(&error))?;
    match info.kind {
        PathKind::Missing => Err(unusable(&io::Error::from_raw_os_error(
            rustix::io::Errno::NOENT.raw_os_error(),
        ))),
        PathKind::CharacterDevice | PathKind::Other => Err(CommandError::Run(
            RunError::unusable_target(name, TargetProblem::OtherFileType),
        )),
        PathKind::Directory | PathKind::File | PathKind::BlockDevice => Ok(info),
    }
}

fn count_findings(findings: &[Finding], fail_on: Option<FailOn>) -> Result<(), CommandError> {
    let Some(mildest) = fail_on.map(FailOn::severity) else {
        return Ok(());
    };
    let counted = findings
        .iter()
        .filter(|finding| finding.severity <= mildest);
    match counted.count() {
        0 => Ok(()),
        count => {
            let plural = if count == 1 { "" } else { "s" };
            let name = mildest.name();
            Err(CommandError::Unfit(format!(
                "{count} finding{plural} of severity {name} or worse (--fail-on {name})"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;
    use iosonde_job::errno::ENOENT;
    use iosonde_result::doctor::Severity;
    use iosonde_result::run_error::SystemFailure;

    #[test]
    fn cluster_option_without_cluster_is_refused() {
        for words in [
            &["--ephemeral-storage", "200g"][..],
            &["--clean", "-n", "bench"],
        ] {
            let line = ["iosonde", "doctor"].iter().chain(words);
            let CliCommand::Doctor(args) = Cli::try_parse_from(line).unwrap().command else {
                panic!("not a doctor");
            };
            let refused = run(&args).unwrap_err();
            assert_eq!(refused.status(), 2, "{words:?}");
            let (_, help) = refused.usage_parts();
            let expected = "add --cluster, or leave out ";
            assert!(help.starts_with(expected), "{words:?}: {help}");
        }
    }

    #[test]
    fn unusable_target_error_has_name_and_cause() {
        let refused = |name: &str| {
            let failure = existing(Path::new(name)).unwrap_err();
            assert_eq!(failure.status(), 3);
            match failure {
                CommandError::Run(error) => error,
                other => panic!("{name}: {other:?}"),
            }
        };
        let missing = TargetProblem::NotAccessible {
            failure: SystemFailure::Errno(ENOENT),
            purpose: AccessPurpose::Examine,
        };
        for (name, problem) in [
            ("/proc/nonexistent", missing),
            ("/dev/null", TargetProblem::OtherFileType),
        ] {
            assert_eq!(refused(name), RunError::unusable_target(name, problem));
        }
        let unknown_scheme = UnsupportedFeature::UnknownScheme {
            target: "sc://fast".to_owned(),
            scheme: "sc".to_owned(),
        };
        assert_eq!(refused("sc://fast"), RunError::from(unknown_scheme));
        assert!(existing(Path::new(".")).is_ok());
    }

    /// It was reported as a missing file.
    #[test]
    fn simulated_device_is_explained() {
        let failure = existing(Path::new("sim:nvme")).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.text(false),
            "error: sim:nvme is a simulated device, which has nothing to examine\n\
             help: name a directory, file or device, or run `iosonde probe sim:nvme`"
        );
        for (name, problem) in [
            ("sim:", "sim: names no simulated device"),
            ("", "the target is empty"),
        ] {
            let failure = existing(Path::new(name)).unwrap_err();
            assert_eq!(failure.usage_parts().0, problem);
        }
    }

    #[test]
    fn unusable_target_does_not_hide_the_others() {
        let paths = ["/proc/nonexistent", ".", "/dev/null"].map(PathBuf::from);
        let (targets, failures) = usable(&paths);
        let names: Vec<&Path> = targets.iter().map(|(path, _)| path.as_path()).collect();
        assert_eq!(names, [Path::new(".")]);
        assert_eq!(failures.len(), 2);
    }

    #[test]
    fn fail_on_counts_findings_of_severity_or_worse() {
        let finding = |severity| Finding {
            id: "numa".to_owned(),
            severity,
            subject: "machine".to_owned(),
            evidence: String::new(),
            effect: String::new(),
            remedy: String::new(),
            command: None,
            cause: None,
        };
        let failed = |findings: &[Finding], fail_on| {
            count_findings(findings, fail_on)
                .err()
                .map(|failure| failure.status())
        };
        let both = [finding(Severity::Warning), finding(Severity::Note)];
        assert_eq!(failed(&both, None), None);
        assert_eq!(failed(&both, Some(FailOn::Problem)), None);
        assert_eq!(failed(&both, Some(FailOn::Warning)), Some(8));
        assert_eq!(failed(&both[1..], Some(FailOn::Warning)), None);
        assert_eq!(failed(&both[1..], Some(FailOn::Note)), Some(8));
    }
}
