//! `iosonde doctor`: is this machine fit to be measured?

mod cluster;

use super::leftovers;
use crate::args::ClusterArgs;
use crate::failure::{Failure, told_at_once};
use crate::output::Output;
use crate::report;
use clap::{Args, ValueEnum};
use iosonde_engine::sys::ring::try_one;
use iosonde_job::errno::describe;
use iosonde_machine::access::access;
use iosonde_machine::activity::Moment;
use iosonde_machine::conditions::conditions;
use iosonde_machine::host::host;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_result::doctor::{self, Examination, ExaminedTarget, FORMAT, Finding, Severity};
use iosonde_result::host::{TargetInfo, TargetKind};
use iosonde_result::session::RunError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) const EXAMPLES: &str = "\
Examples:
  iosonde doctor                        this machine, and this directory
  iosonde doctor /mnt/data /dev/nvme1n1 two targets
  iosonde doctor --format json          for programs; docs/schema/doctor.json is its schema
  iosonde doctor --fail-on warning && iosonde probe
  iosonde doctor --clean                remove what killed runs have left here and in the usual places
  iosonde doctor --clean /mnt/nfs       ... and there also what other hosts have left, none of which may still run
  iosonde doctor --cluster              storage classes and nodes of a Kubernetes cluster
  iosonde doctor --cluster --trial      ... and whether a claim of each class works

Without --cluster or --clean, nothing is written, and nothing is asked over the network. It takes about a second, in which it
watches what others do. docs/doctor.md explains each finding.";

/// Arguments of `iosonde doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Directories, files or block devices that are to be measured
    ///
    /// Default: this directory.
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Exit with status 8 if there is a finding of this severity, or a worse one
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<FailOn>,
    /// How it is written
    #[arg(long, value_enum, default_value_t = DoctorFormat::Table)]
    pub(crate) format: DoctorFormat,
    /// File to write it to, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Look at a Kubernetes cluster instead: its storage classes, its nodes, what runs have left
    #[arg(long, conflicts_with = "targets")]
    pub(crate) cluster: bool,
    /// With --cluster: make a claim of each class, mount it, and remove it
    #[arg(long, requires = "cluster")]
    pub(crate) trial: bool,
    /// Remove working files that killed runs have left, at the targets and in the usual places; never one that a live
    /// process holds. Those of other hosts, of earlier boots and of iosonde 0.1.0 are removed where a target is their directory:
    /// make sure that no other host uses them. With --cluster: remove all runs, also those that go on, and the volumes that runs have left; with -n,
    /// in that namespace
    #[arg(long)]
    pub(crate) clean: bool,
    #[command(flatten)]
    pub(crate) place: ClusterArgs,
}

/// The mildest finding that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A measurement will fail, or measure something else
    Problem,
    /// The figures will be off, or noisy
    Warning,
    /// To be known when the figures are read
    Note,
}

impl FailOn {
    fn severity(self) -> Severity {
        match self {
            FailOn::Problem => Severity::Problem,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
        }
    }
}

/// How an examination is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

/// How long others are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// Examines the machine and the targets, and prints what was found.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    if args.cluster {
        return cluster::run(args);
    }
    let system = System::live();
    let here = [PathBuf::from(".")];
    let targets: &[PathBuf] = match args.targets.as_slice() {
        [] => &here,
        named => named,
    };
    let (named, unusable) = usable(targets);
    if named.is_empty() {
        return told_at_once(unusable);
    }
    let (paths, targets): (Vec<PathBuf>, Vec<TargetInfo>) = named.into_iter().unzip();
    let output = Output::open(args.output.as_deref())?;
    let before = Moment::now(&system);
    std::thread::sleep(WATCHED);
    let activity = Moment::now(&system).since(&before);
    let mut conditions = conditions(&system, &targets, &activity);
    // A seccomp filter that forbids io_uring shows only when a ring is made.
    conditions.io_uring_error = try_one().err().map(|error| describe(&error));
    let examined = |(path, info): (&PathBuf, TargetInfo)| ExaminedTarget {
        name: path.display().to_string(),
        access: access(&info),
        info,
    };
    let named = paths.iter().zip(&targets);
    let places = leftovers::places(named);
    let mut left = leftovers::find(&places);
    if args.clean {
        leftovers::remove(&left, &args.targets)
            .iter()
            .for_each(|line| eprintln!("{line}"));
        left = leftovers::find(&places);
    }
    left.retain(|each| leftovers::concerns(each, &paths));
    let mut examination = Examination {
        format: FORMAT,
        kind: "doctor".to_owned(),
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")).to_owned(),
        examined_at_ms: epoch_ms(),
        host: host(&system),
        conditions,
        targets: paths.iter().zip(targets).map(examined).collect(),
        leftovers: left,
        findings: Vec::new(),
    };
    examination.findings = doctor::findings(&examination);
    let text = match args.format {
        DoctorFormat::Table => report::doctor::text(&examination),
        DoctorFormat::Json => report::doctor::json(&examination),
    };
    output.save(&text)?;
    told_at_once(unusable)?;
    count_findings(&examination.findings, args.fail_on)
}

/// The targets that can be examined, and why the others cannot be.
fn usable(paths: &[PathBuf]) -> (Vec<(PathBuf, TargetInfo)>, Vec<Failure>) {
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

/// What can be measured is there; all else would be advice on nothing.
fn existing(path: &Path) -> Result<TargetInfo, Failure> {
    let name = path.display().to_string();
    if let Some((scheme, _)) = name.split_once("://") {
        return Err(Failure::Run(RunError::Unsupported {
            problem: format!("{name}: targets of the kind {scheme}:// are not supported"),
            remedy: "name a directory, a file or a block device".to_owned(),
        }));
    }
    let unusable = |error: &io::Error| {
        Failure::Run(RunError::Target {
            path: name.clone(),
            problem: iosonde_engine::worker::io_failure::in_words(error),
            remedy: "name a directory, file or block device that exists and can be reached"
                .to_owned(),
        })
    };
    let info = identify(path).map_err(|error| unusable(&error))?;
    match info.kind {
        TargetKind::Missing => Err(unusable(&io::Error::from_raw_os_error(
            rustix::io::Errno::NOENT.raw_os_error(),
        ))),
        TargetKind::CharacterDevice | TargetKind::Other => Err(Failure::Run(RunError::Target {
            path: name,
            problem: "this is neither a directory nor a file nor a block device".to_owned(),
            remedy: "name a directory, a file or a block device".to_owned(),
        })),
        TargetKind::Directory | TargetKind::File | TargetKind::BlockDevice => Ok(info),
    }
}

fn count_findings(findings: &[Finding], fail_on: Option<FailOn>) -> Result<(), Failure> {
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
            Err(Failure::Unfit(format!(
                "{count} finding{plural} of severity {name} or worse (--fail-on {name})"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_examined_is_named_with_a_remedy() {
        for name in ["/proc/nonexistent", "/dev/null", "sc://fast"] {
            let failure = existing(Path::new(name)).unwrap_err();
            assert_eq!(failure.status(), 3);
            let text = failure.text(false);
            assert!(text.contains(name) && text.contains("help: "), "{text}");
        }
        assert!(existing(Path::new(".")).is_ok());
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
    fn findings_fail_from_the_severity_that_is_asked_for() {
        let mut examination = report::doctor::samples::laptop();
        let failed = |examination: &Examination, fail_on| {
            count_findings(&examination.findings, fail_on)
                .err()
                .map(|failure| failure.status())
        };
        assert_eq!(failed(&examination, None), None);
        assert_eq!(failed(&examination, Some(FailOn::Note)), Some(8));
        examination
            .findings
            .retain(|finding| finding.severity == Severity::Note);
        assert_eq!(failed(&examination, Some(FailOn::Warning)), None);
        assert_eq!(failed(&examination, Some(FailOn::Note)), Some(8));
    }
}
