//! `iosonde fio`: fio's command line and job files.
//!
//! Results go to standard output or to `--output`; everything else goes to standard error, so that JSON stays JSON.

mod elsewhere;

use crate::args::KeepArgs;
use crate::failure::Failure;
use crate::live::fio::FioLive;
use crate::output::Output;
use crate::report::facts;
use crate::signals::Stop;
use crate::store::{Keeper, target_here};
use elsewhere::Elsewhere;
use iosonde_engine::local::LocalRunner;
use iosonde_engine::system_env::SystemEnv;
use iosonde_job::cmdline::Action;
use iosonde_job::parse::parse_for;
use iosonde_job::{CommandLine, Plan, help};
use iosonde_result::fio::{self, Formats};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::storage::StorageUsed;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Does what fio would do with these arguments.
pub(crate) fn run(words: &[OsString], keep: &KeepArgs) -> Result<(), Failure> {
    let (elsewhere, words) = elsewhere::split(words)?;
    let engine_of_target = matches!(elsewhere, Some(Elsewhere::Ceph(_)));
    let parsed = parse_for(&words, engine_of_target, &SystemEnv::default())
        .map_err(|all| Failure::Jobs(Box::new(all)))?;
    if !parsed.warnings.list.is_empty() {
        eprintln!("{}", parsed.warnings);
    }
    let command = &parsed.command;
    if let Some(text) = told(&command.action)? {
        return Output::Standard.write(text.as_bytes());
    }
    if command.showcmd {
        let lines = parsed.command_lines.join("\n") + "\n";
        return Output::Standard.write(lines.as_bytes());
    }
    if parsed.plan.jobs.is_empty() {
        return Err(Failure::usage(
            "no jobs are defined",
            "name a job file, or define a job with --name=NAME and its options; --help lists them",
        ));
    }
    if command.parse_only {
        return Ok(());
    }
    match elsewhere {
        None => measure(&parsed.plan, command, keep, LocalRunner::default()),
        Some(Elsewhere::Ceph(there)) => {
            let mut plan = parsed.plan.clone();
            there.put(&mut plan)?;
            let runner = LocalRunner {
                ceph: there.access,
                consent: there.consent,
                ..LocalRunner::default()
            };
            measure(&plan, command, keep, runner)
        }
        Some(Elsewhere::Pods(there)) => match there.form() {
            Some(form) => there.render(form, &parsed),
            None => there.measure(parsed.plan.clone(), command, keep),
        },
    }
}

/// Help and versions: what is printed instead of running anything.
fn told(action: &Action) -> Result<Option<String>, Failure> {
    let unknown = |problem| {
        Failure::usage(
            problem,
            "--cmdhelp lists all options, --enghelp all engines",
        )
    };
    Ok(Some(match action {
        Action::Run => return Ok(None),
        // Scripts compare this line with the versions of fio that they know, and take any word beside it for a failure.
        // Who really answers: `iosonde --version`.
        Action::Version => format!("{}\n", fio::VERSION),
        Action::Help => help::usage("iosonde fio"),
        Action::CommandHelp(name) => help::command_help(name.as_deref()).map_err(unknown)?,
        Action::EngineHelp(name) => help::engine_help(name.as_deref()).map_err(unknown)?,
    }))
}

fn measure(
    plan: &Plan,
    command: &CommandLine,
    keep: &KeepArgs,
    runner: LocalRunner,
) -> Result<(), Failure> {
    let formats = Formats::asked(command);
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(keep)?;
    let mut output = Output::open(command.output.as_deref().map(Path::new), false)?;
    let agreed = command.allow_overwrite.iter().map(PathBuf::from);
    let mut session = LocalRunner {
        consent: runner.consent.into_iter().chain(agreed).collect(),
        interrupt: stop.interrupt.clone(),
        keep_files: true,
        dump_directory: command.aux_path.clone().unwrap_or_default().into(),
        readonly: command.readonly,
        ..runner
    }
    .open();
    let (outcome, shown) = watched(&mut session, plan, command, formats, &mut output)?;
    let closed = Box::new(session).close();
    let result = outcome?;
    let name = target_here(&result);
    keeper.cut_off(stop.signal().is_some());
    let result = report(result, &name, formats, &mut keeper, &mut output)?;
    shown?;
    match (closed, conclude(&result, &stop)) {
        // Why the run failed is the news; what it could not remove comes on top.
        (Err(left), Err(failure)) => {
            eprintln!("warning: {left}\nhelp: {}", left.remedy());
            Err(failure)
        }
        (closed, outcome) => closed.map_err(Failure::from).and(outcome),
    }
}

/// How a run ended, and whether what fio shows meanwhile could be written.
type Watched = (Result<RunResult, RunError>, Result<(), Failure>);

/// Runs it, and shows what fio shows meanwhile.
fn watched(
    session: &mut dyn Session,
    plan: &Plan,
    command: &CommandLine,
    formats: Formats,
    output: &mut Output,
) -> Result<Watched, Failure> {
    let mut live = FioLive::new(plan, command, formats, output);
    if let Some(prefix) = &command.bandwidth_log {
        live.log_bandwidth(prefix)?;
    }
    let outcome = session.run(plan, &mut live);
    if outcome.is_ok() {
        live.begin();
    }
    Ok((outcome, live.end()))
}

/// Keeps the result, and prints it.
pub(super) fn report(
    mut result: RunResult,
    target: &str,
    formats: Formats,
    keeper: &mut Keeper,
    output: &mut Output,
) -> Result<RunResult, Failure> {
    keeper.begin("fio", target);
    keeper.keep(&mut result);
    keeper.finish(None);
    output.write(&document(&result, &formats)?)?;
    if formats.normal && !result.pods.is_empty() {
        output.write(crate::report::pods::text(&result.pods).as_bytes())?;
    }
    if formats.normal {
        output.write(crate::report::nodes::text(&result.nodes).as_bytes())?;
    }
    keeper.tell_notes();
    // JSON carries them itself, and tools that ask for it take any word on standard error for a failure.
    if formats.normal || std::io::stderr().is_terminal() {
        // What a disk of this machine is, whoever names it knows.
        let storage = StorageUsed::of(&result).filter(StorageUsed::is_service);
        let storage = storage.map(|used| ("storage", used.words()));
        let unknown = result.ceph.as_ref().and_then(facts::ceph_unknown);
        let told = storage.into_iter().chain(facts::nfs(&result.nfs));
        for (name, fact) in told.chain(unknown) {
            eprintln!("note: {name}: {fact}");
        }
        for finding in result.findings() {
            eprintln!("note: {finding}");
        }
    }
    Ok(result)
}

/// The result in all formats that are asked for.
pub(crate) fn document(result: &RunResult, formats: &Formats) -> Result<Vec<u8>, Failure> {
    document_so_far(result, formats, Some(0))
}

/// As [`document`], while the run goes on for so long, if that is known.
pub(crate) fn document_so_far(
    result: &RunResult,
    formats: &Formats,
    left_ns: Option<u64>,
) -> Result<Vec<u8>, Failure> {
    let mut document = Vec::new();
    fio::write_so_far(&mut document, result, formats, left_ns).map_err(anyhow::Error::from)?;
    if !document.ends_with(b"\n") {
        document.push(b'\n');
    }
    Ok(document)
}

/// The exit status, from what happened.
pub(super) fn conclude(result: &RunResult, stop: &Stop) -> Result<(), Failure> {
    let failed: Vec<String> = result
        .workers
        .iter()
        .filter_map(|worker| {
            let error = worker.error.as_ref()?;
            Some(format!(
                "{}: {}",
                result.plan.jobs[worker.job].name, error.message
            ))
        })
        .collect();
    stop.conclude(match failed.split_first() {
        None => None,
        Some((first, [])) => Some(first.clone()),
        Some((first, rest)) => Some(format!("{first} (and {} more clones failed)", rest.len())),
    })
}

#[cfg(test)]
mod tests;
