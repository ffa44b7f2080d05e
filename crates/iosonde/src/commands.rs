//! One module for each command, and their dispatch.

mod beforehand;
mod bench_table;
pub(crate) mod ceph;
pub(crate) mod cluster;
mod cold;
pub(crate) mod compare;
mod consent;
pub(crate) mod doctor;
mod embedded_agents;
mod expect;
pub(crate) mod export;
mod file_name_uris;
pub(crate) mod fio;
pub(crate) mod import;
pub(crate) mod k8s;
mod leftovers;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod load;
mod made_storage;
mod mapped_storage;
pub(crate) mod merge;
mod numbered_runs;
mod outside;
mod pivot;
pub(crate) mod plot;
pub(crate) mod probe;
pub(crate) mod pts;
pub(crate) mod rados;
pub(crate) mod rbd;
mod recomputed;
mod render;
pub(crate) mod report;
mod requested_image;
mod result_ref;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod show;
mod show_command;
mod single_study;
pub(crate) mod sweep;
mod target;
mod target_session;
mod unused_cluster_options;
mod unused_file_names;
pub(crate) mod watch;

use crate::args::argument_error::argument_error;
use crate::args::wrong;
use crate::args::{
    CephArgs, Cli, CliCommand, KeepArgs, LoadArgs, ProbeArgs, PtsArgs, RunArgs, SweepArgs,
    completed_command,
};
use crate::failure::CommandError;
use crate::output::Output;
use anyhow::Context;
use clap::{CommandFactory, Parser};
use iosonde_history::{HistoryPath, HistoryWriter, Store, StoreError, absolute};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use made_storage::MadeStorage;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Parses the command line and runs its command. The first word is the program's name.
pub(crate) fn dispatch(words: &[OsString]) -> Result<(), CommandError> {
    if let Some((ours, rest)) = fio_words(words) {
        return fio::run(rest, &keep_args(ours)?);
    }
    let with_axes = crate::args::with_axes(words);
    let words = with_axes.as_deref().unwrap_or(words);
    let command = wrong::parse::<Cli>(words)?.command;
    if let Some(request) = render::RenderRequest::from_command(&command) {
        return request.render(words);
    }
    match command {
        CliCommand::Probe(args) => probe_in_made_storage(args),
        CliCommand::Fio { args } => fio::run(&args, &KeepArgs::default()),
        CliCommand::Sweep(args) => sweep_in_made_storage(args),
        CliCommand::Load(args) => load_in_made_storage(args),
        CliCommand::Pts(args) => pts_in_made_storage(args),
        CliCommand::Run(args) => run_in_made_storage(args),
        CliCommand::Watch(args) => watch::run(&args),
        CliCommand::Doctor(args) => doctor::run(&args),
        CliCommand::K8s(args) => k8s::run(&args),
        CliCommand::Rados(args) => rados::run(&args),
        CliCommand::Rbd(args) => rbd::run(&args),
        CliCommand::Limits(args) => limits::run(&args),
        CliCommand::Report(args) => report::run(&args),
        CliCommand::Plot(args) => plot::run(&args),
        CliCommand::List(args) => list::run(&args),
        CliCommand::Show(args) => show::run(&args),
        CliCommand::Compare(args) => compare::run(&args),
        CliCommand::Merge(args) => merge::run(&args),
        CliCommand::Export(args) => export::run(&args),
        CliCommand::Import(args) => import::run(&args),
        CliCommand::Rm(args) => rm::run(&args),
        CliCommand::Completions { shell } => {
            let (mut command, mut script) = (completed_command(), Vec::new());
            clap_complete::generate(shell, &mut command, "iosonde", &mut script);
            Output::Standard.write_unchanged(&script)
        }
        CliCommand::Man { directory } => match directory {
            Some(directory) => {
                let written = clap_mangen::generate_to(Cli::command(), &directory);
                Ok(written.with_context(|| format!("cannot write to {}", directory.display()))?)
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(Cli::command())
                    .render(&mut page)
                    .map_err(anyhow::Error::from)?;
                Output::Standard.write_unchanged(&page)
            }
        },
    }
}

fn probe_in_made_storage(mut args: ProbeArgs) -> Result<(), CommandError> {
    args.targets = args.cluster.in_each_context(&args.targets);
    args.targets
        .iter_mut()
        .for_each(|name| *name = absolute(name));
    let consent = &mut args.consent.allow_overwrite;
    let made = made_for(&mut args.targets, consent, &args.ceph)?;
    made.remove_after(probe::run(&args))
}

fn sweep_in_made_storage(mut args: SweepArgs) -> Result<(), CommandError> {
    args.targets = args.cluster.in_each_context(&args.targets);
    if args.dry_run {
        return sweep::run(&args);
    }
    let consent = &mut args.written.consent.allow_overwrite;
    let made = made_for(&mut args.targets, consent, &args.ceph)?;
    made.remove_after(sweep::run(&args))
}

fn load_in_made_storage(mut args: LoadArgs) -> Result<(), CommandError> {
    args.target = absolute(&args.target);
    let consent = &mut args.written.consent.allow_overwrite;
    let targets = std::slice::from_mut(&mut args.target);
    let made = made_for(targets, consent, &args.ceph)?;
    made.remove_after(load::run(&args))
}

fn pts_in_made_storage(mut args: PtsArgs) -> Result<(), CommandError> {
    args.target = absolute(&args.target);
    let consent = &mut args.written.consent.allow_overwrite;
    let targets = std::slice::from_mut(&mut args.target);
    let made = made_for(targets, consent, &args.ceph)?;
    made.remove_after(pts::run(&args))
}

fn run_in_made_storage(mut args: RunArgs) -> Result<(), CommandError> {
    if args.check || args.dry_run {
        return run::run(&args);
    }
    let consent = &mut args.written.consent.allow_overwrite;
    let made = made_for(&mut args.targets, consent, &args.ceph)?;
    made.remove_after(run::run(&args))
}

/// Makes the pools and images that the targets of a command ask for, and maps images with `--map`.
fn made_for(
    targets: &mut [String],
    consent: &mut Vec<PathBuf>,
    ceph: &CephArgs,
) -> Result<MadeStorage, CommandError> {
    let kind = ceph.made_pool.make_pool.as_ref();
    let Some(format) = ceph.map else {
        return MadeStorage::make(targets, consent, ceph.access(), kind);
    };
    mapped_storage::check_machine(targets, format)?;
    let mut made = MadeStorage::make(targets, consent, ceph.access(), kind)?;
    made.map_images(targets, consent, format)?;
    Ok(made)
}

/// Splits the words of `fio ...` or `iosonde fio ...` into iosonde's own, before `fio`, and fio's.
/// fio's words bypass clap, which would interpret `--help`, `--version` and `--` itself.
fn fio_words(words: &[OsString]) -> Option<(&[OsString], &[OsString])> {
    let name = Path::new(words.first()?).file_name()?;
    if name == "fio" {
        return Some((&[], &words[1..]));
    }
    let mut at = 1;
    loop {
        let word = words.get(at)?.to_str()?;
        at += match word {
            "fio" => return Some((&words[1..at], &words[at + 1..])),
            "--label" | "--store" => 2,
            "--no-save" => 1,
            _ if word.starts_with("--label=") || word.starts_with("--store=") => 1,
            _ => return None,
        };
    }
}

/// Parses the options before `fio`: where and how the result is stored. `iosonde probe --help`
/// describes them.
fn keep_args(words: &[OsString]) -> Result<KeepArgs, CommandError> {
    #[derive(Parser)]
    #[command(name = "iosonde", no_binary_name = true, disable_help_flag = true)]
    struct Keep {
        #[command(flatten)]
        keep: KeepArgs,
    }
    let parsed = Keep::try_parse_from(words);
    let parsed = parsed.map_err(|error| argument_error(error, "iosonde probe"))?;
    Ok(parsed.keep)
}

/// Prints the notes of the history.
fn print_notes(history_writer: &mut HistoryWriter) {
    for note in history_writer.notes() {
        eprintln!("note: {note}");
    }
}

/// Opens the history and prints its warnings.
fn open_history(place: &HistoryPath) -> Result<Store, StoreError> {
    let store = Store::open(place)?;
    for warning in store.warnings() {
        eprintln!("warning: {warning}");
    }
    Ok(store)
}

/// Stores the result of a study with its runs in the history, and prints its id.
fn keep_study(
    history_writer: &mut HistoryWriter,
    result: &impl Serialize,
) -> Result<(), CommandError> {
    store_study(history_writer, result).map(drop)
}

/// Stores and prints as [`keep_study`], and returns the id. `None`: the result is not stored.
fn store_study(
    history_writer: &mut HistoryWriter,
    result: &impl Serialize,
) -> Result<Option<String>, CommandError> {
    let document = serde_json::to_value(result).map_err(anyhow::Error::from)?;
    let id = history_writer.finish(Some(&document));
    if let Some(id) = &id {
        eprintln!("stored in the history as {id}");
    }
    print_notes(history_writer);
    Ok(id)
}

/// Removes from the history the records of a study that ends without a result.
fn discard(history_writer: &mut HistoryWriter) {
    history_writer.discard();
    print_notes(history_writer);
}

/// Returns the first failure of the end of a command and prints the others as warnings. `ended`:
/// writing the result, storing it, judging it. `closed`: restoring the targets.
fn finish_command<const N: usize>(
    ended: [Result<(), CommandError>; N],
    closed: Result<(), RunError>,
) -> Result<(), CommandError> {
    let (first, others) = failed(ended, closed);
    others.iter().for_each(CommandError::warn);
    first.map_or(Ok(()), Err)
}

/// The first failure, and the others.
fn failed<const N: usize>(
    ended: [Result<(), CommandError>; N],
    closed: Result<(), RunError>,
) -> (Option<CommandError>, Vec<CommandError>) {
    let left = closed.err().map(CommandError::from);
    let mut failures = ended.into_iter().filter_map(Result::err).chain(left);
    (failures.next(), failures.collect())
}

/// Stores and prints the result of a study, and removes the resources of its targets. `write` gets
/// the id if the result is stored. `status` gets whether the result was written, and returns the
/// failure that the result itself stands for.
fn conclude_study(
    history_writer: &mut HistoryWriter,
    result: &impl Serialize,
    write: impl FnOnce(Option<&str>) -> Result<(), CommandError>,
    status: impl FnOnce(bool) -> Result<(), CommandError>,
    session: Box<dyn Session + '_>,
) -> Result<(), CommandError> {
    let kept = store_study(history_writer, result);
    let id = kept.as_ref().ok().and_then(Option::as_deref);
    let written = write(id);
    let concluded = status(written.is_ok());
    // Removal may be slow or fail, so it comes last.
    let closed = session.close();
    finish_command([written, kept.map(drop), concluded], closed)
}

/// Discards a study that found nothing and returns its error. Warns if the clean-up fails.
fn nothing_found(
    error: impl Into<CommandError>,
    history_writer: &mut HistoryWriter,
    session: Box<dyn Session + '_>,
) -> CommandError {
    discard(history_writer);
    if let Err(left) = session.close() {
        CommandError::from(left).warn();
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::pod_failure::PodFailure;

    fn words(line: &str) -> Option<Vec<String>> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let rest = fio_words(&words)?.1.iter();
        Some(
            rest.map(|word| word.to_string_lossy().into_owned())
                .collect(),
        )
    }

    #[test]
    fn fio_is_called_by_either_name() {
        let expected = Some(vec!["--help".to_owned(), "x.fio".to_owned()]);
        assert_eq!(words("/usr/local/bin/fio --help x.fio"), expected);
        assert_eq!(words("target/iosonde fio --help x.fio"), expected);
        let ours = "iosonde --no-save --label disk=new";
        assert_eq!(words(&format!("{ours} fio --help x.fio")), expected);
        let ours = "iosonde --label=a=b --store s.db";
        assert_eq!(words(&format!("{ours} fio --help x.fio")), expected);
        assert_eq!(words("iosonde --label"), None);
        assert_eq!(words("iosonde probe fio"), None);
        assert_eq!(words("iosonde"), None);
    }

    #[test]
    fn keep_args_before_fio_are_parsed() {
        let words = ["--label", "a=b", "--store=s.db"].map(OsString::from);
        let keep = keep_args(&words).unwrap();
        assert_eq!(keep.labels, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(keep.store.as_deref(), Some(Path::new("s.db")));
        let Err(error) = keep_args(&[OsString::from("--label=a")]) else {
            panic!("a label without a value is an error");
        };
        assert_eq!(error.usage_parts().1, "for example `--label build=main`");
    }

    /// A full disk does not hide a leftover in a cluster.
    #[test]
    fn failures_at_end_are_all_reported() {
        let left = || {
            RunError::NotRemoved(Box::new(PodFailure::from_texts(
                "the job iosonde-1",
                "the cluster does not answer",
                "delete it",
            )))
        };
        let full = || {
            Err(CommandError::Output(
                "out".into(),
                std::io::ErrorKind::StorageFull.into(),
            ))
        };
        let io = || Err(CommandError::Io("EIO".to_owned()));
        let statuses = |ended, closed| {
            let (first, others) = failed::<3>(ended, closed);
            let others: Vec<u8> = others.iter().map(CommandError::status).collect();
            (first.map(|failure| failure.status()), others)
        };
        assert_eq!(statuses([Ok(()), Ok(()), Ok(())], Ok(())), (None, vec![]));
        assert_eq!(
            statuses([full(), Ok(()), io()], Err(left())),
            (Some(5), vec![1, 9])
        );
        assert_eq!(
            statuses([Ok(()), Ok(()), Ok(())], Err(left())),
            (Some(9), vec![])
        );
    }
}
