//! One module for each command, and the way to it.

mod beforehand;
pub(crate) mod ceph;
pub(crate) mod cluster;
pub(crate) mod compare;
mod consent;
pub(crate) mod doctor;
mod expect;
pub(crate) mod export;
pub(crate) mod fio;
pub(crate) mod import;
pub(crate) mod journal;
pub(crate) mod k8s;
mod leftovers;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod load;
mod named;
mod outside;
mod pivot;
mod places;
pub(crate) mod probe;
pub(crate) mod pts;
pub(crate) mod rados;
pub(crate) mod report;
mod resumable;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod sweep;
mod target;
pub(crate) mod watch;

use crate::args::wrong;
use crate::args::{Cli, Command, KeepArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{Keeper, absolute};
use clap::{CommandFactory, Parser};
use iosonde_result::session::{RunError, Session};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;

/// Runs what the words ask for. The first word is the name that the program was called by.
pub(crate) fn dispatch(words: &[OsString]) -> Result<(), Failure> {
    if let Some((ours, rest)) = fio_words(words) {
        return fio::run(rest, &keep_args(ours)?);
    }
    let with_axes = crate::args::with_axes(words);
    match wrong::parse::<Cli>(with_axes.as_deref().unwrap_or(words))?.command {
        Command::Probe(mut args) => {
            args.targets = args.cluster.in_each_context(&args.targets);
            args.targets
                .iter_mut()
                .for_each(|name| *name = absolute(name));
            probe::run(&args)
        }
        Command::Fio { args } => fio::run(&args, &KeepArgs::default()),
        Command::Sweep(mut args) => {
            args.targets = args.cluster.in_each_context(&args.targets);
            sweep::run(&args)
        }
        Command::Load(mut args) => {
            args.target = absolute(&args.target);
            load::run(&args)
        }
        Command::Pts(mut args) => {
            args.target = absolute(&args.target);
            pts::run(&args)
        }
        Command::Run(args) => run::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::K8s(args) => k8s::run(&args),
        Command::Rados(args) => rados::run(&args),
        Command::Limits(args) => limits::run(&args),
        Command::Report(args) => report::run(&args),
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Rm(args) => rm::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "iosonde", &mut script);
            Output::Standard.write_unchanged(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(anyhow::Error::from)?;
            Output::Standard.write_unchanged(&page)
        }
    }
}

/// fio's words, if fio is what was called: `fio ...` or `iosonde fio ...`; and the words of ours before them. fio's must not
/// pass through clap, which would give its own meaning to `--help`, `--version` and `--`.
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

/// What keeps the result of a fio job.
fn keep_args(words: &[OsString]) -> Result<KeepArgs, clap::Error> {
    #[derive(Parser)]
    #[command(name = "iosonde", no_binary_name = true, disable_help_flag = true)]
    struct Keep {
        #[command(flatten)]
        keep: KeepArgs,
    }
    Ok(Keep::try_parse_from(words)?.keep)
}

/// Keeps the result of a study beside its runs, and says under which name.
fn keep_study(keeper: &mut Keeper, result: &impl Serialize) -> Result<(), Failure> {
    let document = serde_json::to_value(result).map_err(anyhow::Error::from)?;
    if let Some(id) = keeper.finish(Some(&document)) {
        eprintln!("kept in the history as {id}");
    }
    keeper.tell_notes();
    Ok(())
}

/// Removes from the history what a study has left there that ends without a result.
fn discard(keeper: &mut Keeper) {
    keeper.discard();
    keeper.tell_notes();
}

/// How a command ends: by the first of what failed at its end, which are writing its result, keeping it, what is in it, and leaving
/// targets as they were. The others are told before.
fn end<const N: usize>(
    ended: [Result<(), Failure>; N],
    closed: Result<(), RunError>,
) -> Result<(), Failure> {
    let (first, others) = failed(ended, closed);
    others.iter().for_each(Failure::warn);
    first.map_or(Ok(()), Err)
}

/// The first failure, and the others.
fn failed<const N: usize>(
    ended: [Result<(), Failure>; N],
    closed: Result<(), RunError>,
) -> (Option<Failure>, Vec<Failure>) {
    let left = closed.err().map(Failure::from);
    let mut failures = ended.into_iter().filter_map(Result::err).chain(left);
    (failures.next(), failures.collect())
}

/// Why a study found nothing. What was made for it is removed, and what could not be is told first.
fn nothing_found(
    error: impl Into<Failure>,
    keeper: &mut Keeper,
    session: Box<dyn Session + '_>,
) -> Failure {
    discard(keeper);
    if let Err(left) = session.close() {
        Failure::from(left).warn();
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_keeps_a_fio_job_stands_before_it() {
        let words = ["--label", "a=b", "--store=s.db"].map(OsString::from);
        let keep = keep_args(&words).unwrap();
        assert_eq!(keep.labels, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(keep.store.as_deref(), Some(Path::new("s.db")));
        assert!(keep_args(&[OsString::from("--label=a")]).is_err());
    }

    /// A disk that is full must not hide what was left in a cluster.
    #[test]
    fn all_that_fails_at_the_end_is_told() {
        let left = || RunError::Left {
            what: "the job iosonde-1".to_owned(),
            cause: "the cluster does not answer".to_owned(),
            remedy: "delete it".to_owned(),
        };
        let full = || {
            Err(Failure::Output(
                "out".into(),
                std::io::ErrorKind::StorageFull.into(),
            ))
        };
        let io = || Err(Failure::Io("EIO".to_owned()));
        let statuses = |ended, closed| {
            let (first, others) = failed::<3>(ended, closed);
            let others: Vec<u8> = others.iter().map(Failure::status).collect();
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
