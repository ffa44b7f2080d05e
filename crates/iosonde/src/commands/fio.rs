//! `iosonde fio`: fio's command line and job files.
//!
//! Results go to standard output or to `--output`. Standard error is for errors: [`notes`] says where advice goes.

mod elsewhere;
mod no_device;
mod notes;

use crate::args::KeepArgs;
use crate::commands::{consent, end};
use crate::failure::Failure;
use crate::live::fio::FioLive;
use crate::output::{Output, is_reader_gone};
use crate::signals::Stop;
use crate::store::{Keeper, target_here};
use elsewhere::Elsewhere;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::cmdline::Action;
use iosonde_job::parse::parse_for;
use iosonde_job::{CommandLine, Plan, help};
use iosonde_machine::consent::Consent;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::fio::{self, Formats};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use signal_hook::consts::SIGPIPE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Does what fio would do with these arguments. As fio does, it ends by SIGPIPE when nobody reads what it prints.
pub(crate) fn run(words: &[OsString], keep: &KeepArgs) -> Result<(), Failure> {
    match run_here_or_elsewhere(words, keep) {
        Ok(()) if is_reader_gone() => Err(Failure::Interrupted(SIGPIPE)),
        ended => ended,
    }
}

fn run_here_or_elsewhere(words: &[OsString], keep: &KeepArgs) -> Result<(), Failure> {
    let (elsewhere, words) = elsewhere::split(words)?;
    let engine_of_target = matches!(elsewhere, Some(Elsewhere::Ceph(_)));
    let mut parsed = parse_for(&words, engine_of_target, &SystemEnv::default())
        .map_err(|all| Failure::Jobs(Box::new(all)))?;
    parsed.plan.count_stops();
    let notes = parsed.warnings.sentences();
    let command = &parsed.command;
    if let Some(text) = told(&command.action)? {
        return Output::Standard.write(&text);
    }
    if command.showcmd {
        let lines = parsed.command_lines.join("\n") + "\n";
        let lines = lines + &notes::comments(&notes);
        return Output::Standard.write_unchanged(lines.as_bytes());
    }
    if command.parse_only {
        let output = Output::open(command.output.as_deref().map(Path::new))?;
        return output.save(&notes::text(&notes, Formats::asked(command)));
    }
    if parsed.plan.jobs.is_empty() {
        return Err(Failure::usage(
            "no jobs are defined",
            "name a job file, or define a job with --name=NAME and its options; --help lists them",
        ));
    }
    if matches!(elsewhere, Some(Elsewhere::Pods(_))) && !command.allow_in_use.is_empty() {
        return Err(Failure::usage(
            "--allow-in-use is for devices of this machine and images of Ceph",
            "leave it out: volumes of pods are refused while others use them",
        ));
    }
    match elsewhere {
        None => {
            let runner = LocalRunner::default();
            measure(&parsed.plan, command, keep, runner, notes)
        }
        Some(Elsewhere::Ceph(there)) => {
            let mut plan = parsed.plan.clone();
            there.put(&mut plan)?;
            let runner = LocalRunner {
                ceph: there.access,
                consent: Consent::to_overwrite(there.consent),
                ..LocalRunner::default()
            };
            measure(&plan, command, keep, runner, notes)
        }
        Some(Elsewhere::Pods(there)) => match there.form() {
            Some(form) => there.render(form, &parsed),
            None => there.measure(parsed.plan.clone(), command, keep, notes),
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
    notes: Vec<String>,
) -> Result<(), Failure> {
    let formats = Formats::asked(command);
    let consent = consent_of(command, runner.consent)?;
    let missing = no_device::missing_in(Path::new("/dev"), plan);
    let stop = Stop::listen_as_fio()?;
    let mut keeper = Keeper::open(keep)?;
    let mut output = Output::open(command.output.as_deref().map(Path::new))?;
    let mut session = LocalRunner {
        consent,
        interrupt: stop.interrupt.clone(),
        keep_files: true,
        may_run_full: true,
        dump_directory: command.aux_path.clone().unwrap_or_default().into(),
        readonly: command.readonly,
        ..runner
    }
    .open();
    keeper.begin("fio", &target_here(plan));
    let run = (&mut keeper, &mut session as &mut dyn Session);
    let (outcome, shown) = watched(run, plan, command, formats, &mut output)?;
    let made = no_device::made(&missing);
    let notes = notes.into_iter().chain(made).collect();
    keeper.cut_off(stop.signal().is_some());
    let reported = notes::into_result(outcome, notes)
        .map_err(Failure::from)
        .and_then(|mut result| {
            let name = target_here(&result.plan);
            report(&mut result, &name, formats, &mut keeper, output)?;
            conclude(&result, &stop)
        });
    let closed = Box::new(session).close();
    end([reported, shown], closed)
}

/// What may be overwritten: by the command line, and by `allow_mounted_write=1` as fio defines it.
fn consent_of(command: &CommandLine, mut consent: Consent) -> Result<Consent, Failure> {
    let paths = |names: &[String]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let (overwrite, in_use) = (
        paths(&command.allow_overwrite),
        paths(&command.allow_in_use),
    );
    let all = [&overwrite[..], &consent.paths()].concat();
    consent::refuse_in_use_alone(&all, &in_use)?;
    let given = Consent::to_overwrite(overwrite).and_in_use(in_use);
    consent.targets.extend(given.targets);
    consent.in_use.extend(given.in_use);
    consent.by_jobs = true;
    Ok(consent)
}

/// How a run ended, and whether what fio shows meanwhile could be written.
type Watched = (Result<RunResult, RunError>, Result<(), Failure>);

/// Runs it, and shows what fio shows meanwhile.
fn watched(
    (keeper, session): (&mut Keeper, &mut dyn Session),
    plan: &Plan,
    command: &CommandLine,
    formats: Formats,
    output: &mut Output,
) -> Result<Watched, Failure> {
    let mut live = FioLive::new(plan, command, formats, output);
    if let Some(prefix) = &command.bandwidth_log {
        live.log_bandwidth(prefix)?;
    }
    let outcome = keeper.run(session, plan, &mut live);
    if outcome.is_ok() {
        live.begin();
    }
    Ok((outcome, live.end()))
}

/// Prints the result, and keeps it in the history, also where it cannot be printed. The history may be slow or locked: the result is
/// out by then.
pub(super) fn report(
    result: &mut RunResult,
    target: &str,
    formats: Formats,
    keeper: &mut Keeper,
    output: Output,
) -> Result<(), Failure> {
    keeper.name_target("fio", target);
    keeper.label_run(result);
    let notes_of_run = result.notes.len();
    result.notes.extend(keeper.notes());
    let printed = print(result, formats, output);
    result.notes.truncate(notes_of_run);
    keeper.keep(result);
    keeper.finish(None);
    keeper.tell_notes();
    printed
}

fn print(result: &RunResult, formats: Formats, mut output: Output) -> Result<(), Failure> {
    output.write_unchanged(&document(result, &formats)?)?;
    if formats.normal && !result.pods.is_empty() {
        output.write(&crate::report::pods::text(&result.pods))?;
    }
    if formats.normal {
        output.write(&crate::report::nodes::text(&result.nodes))?;
    }
    output.save(&notes::text(&notes::of_result(result), formats))
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

/// The options of `iosonde fio` beside fio's own: those of `--target`.
#[cfg(test)]
pub(crate) fn options_of_targets() -> clap::Command {
    elsewhere::options_of_targets()
}

#[cfg(test)]
mod tests;
