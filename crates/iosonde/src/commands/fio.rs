//! `iosonde fio`: fio's command line and job files.
//!
//! Results go to standard output or to `--output`, errors to standard error, notes as in [`notes`].

mod cache_comparison;
mod no_device;
mod notes;
mod remote_target;
mod target_options;

use crate::args::{KeepArgs, WITHOUT_CEPH};
use crate::commands::ceph::remote_storage;
use crate::commands::file_name_uris::refuse_broken_uris;
use crate::commands::{cold, consent, finish_command};
use crate::failure::CommandError;
use crate::fio_document::document;
use crate::live::fio_live::FioLive;
use crate::output::{Output, is_reader_gone};
use crate::signals::StopSignal;
use crate::terminal_text::{self, COLUMNS_MAX};
use iosonde_engine::runner::LocalRunner;
use iosonde_history::{HistoryWriter, target_here};
use iosonde_job::cmdline::Action;
use iosonde_job::parse::{ParsedCommand, parse_for};
use iosonde_job::plan::CephAccess;
use iosonde_job::{CommandLine, Plan, help};
use iosonde_machine::consent::Consent;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::cache_state::ColdLayers;
use iosonde_result::fio::{self, Formats};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use remote_target::{OnCeph, RemoteTarget};
use signal_hook::consts::SIGPIPE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs fio's command line. As in fio, a closed standard output ends it by SIGPIPE.
pub(crate) fn run(words: &[OsString], keep: &KeepArgs) -> Result<(), CommandError> {
    match run_here_or_elsewhere(words, keep) {
        Ok(()) if is_reader_gone() => Err(CommandError::Interrupted(SIGPIPE)),
        ended => ended,
    }
}

fn run_here_or_elsewhere(words: &[OsString], keep: &KeepArgs) -> Result<(), CommandError> {
    let (remote_target, words) = target_options::split(words)?;
    let engine_of_target =
        matches!(&remote_target, Some(RemoteTarget::Ceph(there)) if there.map.is_none());
    let mut parsed = parse_for(&words, engine_of_target, &SystemEnv::default())
        .map_err(|all| CommandError::Jobs(Box::new(all)))?;
    parsed.plan.count_stops();
    let notes = parsed.warnings.sentences();
    let command = &parsed.command;
    if let Some(text) = action_text(&command.action)? {
        return Output::Standard.write(&text);
    }
    if command.showcmd {
        let lines = parsed.command_lines.join("\n") + "\n";
        let lines = lines + &notes::comments(&notes);
        return Output::Standard.write_unchanged(lines.as_bytes());
    }
    if command.parse_only {
        let output = Output::open_report(command.output.as_deref().map(Path::new))?;
        return output.save(&notes::notes_text(&notes, Formats::asked(command)));
    }
    if parsed.plan.jobs.is_empty() {
        return Err(CommandError::usage(
            "no jobs are defined",
            "name a job file, or define a job, for example `iosonde fio --name=a --rw=randread \
             --size=64m`",
        ));
    }
    if matches!(remote_target, Some(RemoteTarget::Pods(_))) && !command.allow_in_use.is_empty() {
        return Err(CommandError::usage(
            "--allow-in-use applies only to devices of this machine and Ceph images",
            "leave out --allow-in-use; iosonde refuses volumes that other pods use",
        ));
    }
    refuse_broken_uris(&parsed.plan.jobs)?;
    let cold = cold::parse_layers(&command.cold)?;
    let has_pods = matches!(remote_target, Some(RemoteTarget::Pods(_)));
    cold::announce_for_jobs(cold, has_pods, &parsed.plan.jobs)?;
    match remote_target {
        None => {
            let runner = LocalRunner {
                remote: remote_storage(CephAccess::default()),
                cold,
                ..LocalRunner::default()
            };
            measure(&parsed.plan, command, keep, runner, notes)
        }
        Some(RemoteTarget::Ceph(there)) => measure_on_ceph(*there, &parsed, keep, cold, notes),
        Some(RemoteTarget::Pods(there)) => {
            print_note(there.describe_unused_names(&parsed));
            match there.form() {
                Some(form) => there.render(form, &parsed),
                None => there.measure(parsed.plan.clone(), command, keep, notes),
            }
        }
    }
}

/// Prints a note that a result does not keep, if there is one.
fn print_note(note: Option<String>) {
    if let Some(note) = note {
        eprintln!("note: {note}");
    }
}

/// Runs the jobs on a pool or an image of a Ceph cluster.
fn measure_on_ceph(
    mut there: OnCeph,
    parsed: &ParsedCommand,
    keep: &KeepArgs,
    cold: ColdLayers,
    notes: Vec<String>,
) -> Result<(), CommandError> {
    print_note(there.describe_unused_names(parsed));
    let (plan, command) = (&parsed.plan, &parsed.command);
    if there.is_cache_compared {
        return cache_comparison::compare_setups(there, (plan, command), keep, notes);
    }
    let made = there.make_storage()?;
    let mut plan = plan.clone();
    let placed = there.put(&mut plan);
    let runner = LocalRunner {
        remote: remote_storage(there.access),
        consent: Consent::to_overwrite(there.consent),
        cold,
        ..LocalRunner::default()
    };
    let ended = placed.and_then(|placed| {
        let notes = notes.into_iter().chain(placed).collect();
        measure(&plan, command, keep, runner, notes)
    });
    made.remove_after(ended)
}

/// Help and versions, which are printed instead of running jobs.
fn action_text(action: &Action) -> Result<Option<String>, CommandError> {
    let unknown = |problem| {
        CommandError::usage(
            problem,
            "--cmdhelp lists all options, --enghelp all engines",
        )
    };
    Ok(Some(match action {
        Action::Run => return Ok(None),
        // Scripts compare this line with known versions of fio; a further word makes them fail.
        // `iosonde --version` names iosonde.
        Action::Version => format!("{}\n", fio::VERSION),
        Action::Help => {
            let columns = terminal_text::columns(std::io::stdout()).unwrap_or(COLUMNS_MAX);
            let usage = help::usage("iosonde fio");
            let usage = terminal_text::wrapped_table(&usage, columns, help::DOC_COLUMN);
            usage + &target_options::help_of_targets(columns)
        }
        Action::CommandHelp(name) => help::command_help(name.as_deref()).map_err(unknown)?,
        Action::EngineHelp(name) => {
            help::engine_help(name.as_deref(), !WITHOUT_CEPH).map_err(unknown)?
        }
    }))
}

fn measure(
    plan: &Plan,
    command: &CommandLine,
    keep: &KeepArgs,
    runner: LocalRunner,
    notes: Vec<String>,
) -> Result<(), CommandError> {
    let consent = consent_of(command, runner.consent)?;
    let missing = no_device::missing_in(Path::new("/dev"), plan);
    let stop = StopSignal::listen_as_fio()?;
    let mut history_writer = HistoryWriter::open(&keep.options())?;
    let output = Output::open_report(command.output.as_deref().map(Path::new))?;
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
    history_writer.begin("fio", &target_here(plan));
    let run = (&mut history_writer, &mut session as &mut dyn Session);
    let name = |result: &RunResult| target_here(&result.plan);
    let notes = || {
        let made = no_device::regular_file_notes(&missing);
        notes.into_iter().chain(made).collect()
    };
    let ended = run_and_report(run, (plan, command), output, &stop, name, notes)?;
    let closed = Box::new(session).close();
    finish_command(ended, closed)
}

/// Runs the plan with fio's live output, then prints and stores the result. `name` returns the
/// target of the result, and `notes` the notes after the run. Returns the failures of the result
/// and of the live output.
fn run_and_report(
    (history_writer, session): (&mut HistoryWriter, &mut dyn Session),
    (plan, command): (&Plan, &CommandLine),
    mut output: Output,
    stop: &StopSignal,
    name: impl FnOnce(&RunResult) -> String,
    notes: impl FnOnce() -> Vec<String>,
) -> Result<[Result<(), CommandError>; 2], CommandError> {
    let formats = Formats::asked(command);
    let run = (&mut *history_writer, session);
    let (outcome, shown) = run_with_live_output(run, plan, command, formats, &mut output)?;
    history_writer.cut_off(stop.signal().is_some());
    let reported = notes::into_result(outcome, notes())
        .map_err(CommandError::from)
        .and_then(|mut result| {
            let name = name(&result);
            report(&mut result, &name, formats, history_writer, output)?;
            conclude(&result, stop)
        });
    Ok([reported, shown])
}

/// Consent to overwrite: from the command line, and from fio's `allow_mounted_write=1`.
fn consent_of(command: &CommandLine, mut consent: Consent) -> Result<Consent, CommandError> {
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

/// The outcome of a run, and whether its live output could be written.
type FioRunOutcome = (Result<RunResult, RunError>, Result<(), CommandError>);

/// Runs the plan with fio's live output.
fn run_with_live_output(
    (history_writer, session): (&mut HistoryWriter, &mut dyn Session),
    plan: &Plan,
    command: &CommandLine,
    formats: Formats,
    output: &mut Output,
) -> Result<FioRunOutcome, CommandError> {
    let mut live = FioLive::new(plan, command, formats, output);
    if let Some(prefix) = &command.bandwidth_log {
        live.log_bandwidth(prefix)?;
    }
    let outcome = history_writer.run(session, plan, &mut live);
    if outcome.is_ok() {
        live.begin();
    }
    Ok((outcome, live.finish()))
}

/// Prints the result, then stores it in the history, even if printing failed. The history may be
/// slow or locked, so printing is first.
pub(super) fn report(
    result: &mut RunResult,
    target: &str,
    formats: Formats,
    history_writer: &mut HistoryWriter,
    output: Output,
) -> Result<(), CommandError> {
    history_writer.name_target("fio", target);
    history_writer.label_run(result);
    let notes_of_run = result.notes.len();
    result.notes.extend(history_writer.notes());
    let printed = print(result, formats, output);
    result.notes.truncate(notes_of_run);
    history_writer.store_run(result);
    history_writer.finish(None);
    crate::commands::print_notes(history_writer);
    printed
}

fn print(result: &RunResult, formats: Formats, mut output: Output) -> Result<(), CommandError> {
    output.write_unchanged(&document(result, &formats)?)?;
    if formats.normal && !result.pods.is_empty() {
        output.write(&iosonde_report::pods::pods_table(&result.pods))?;
    }
    if formats.normal {
        output.write(&iosonde_report::nodes::nodes_text(&result.nodes))?;
    }
    output.save(&notes::notes_text(&notes::of_result(result), formats))
}

/// The exit status, by the interrupt and the errors of workers.
pub(super) fn conclude(result: &RunResult, stop: &StopSignal) -> Result<(), CommandError> {
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

/// The options of `iosonde fio` that fio lacks: those of `--target`.
#[cfg(test)]
pub(crate) fn options_of_targets() -> clap::Command {
    target_options::options_of_targets()
}

#[cfg(test)]
mod tests;
