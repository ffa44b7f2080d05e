//! `iosonde probe`: how fast is it?

use super::expect::promises;
use super::target::{self, Opened};
use crate::args::{Format, ProbeArgs};
use crate::failure::Failure;
use crate::live::probe::ProbeLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use crate::store::{Keeper, KeepingSession, probe_document};
use iosonde_engine::local::LocalRunner;
use iosonde_result::session::Session;
use iosonde_study::limits::{Held, Outcome, Promise};
use iosonde_study::probe::{Budget, ProbeOptions, ProbeResult, Watcher, probe};

/// Probes each target and prints what was found.
pub(crate) fn run(args: &ProbeArgs) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    let promises = promises(&args.expect)?;
    let mut keeper = Keeper::open(&args.keep)?;
    let mut output = Output::open(args.output.as_deref(), false)?;
    // All targets are looked at before the first is measured: a mistake in the last one should not take minutes to show.
    for name in &args.targets {
        target::check(name, &args.allow_overwrite)?;
    }
    let mut results: Vec<ProbeResult> = Vec::new();
    let mut failed = None;
    for name in &args.targets {
        match probe_one(name, args, &promises, &stop, &mut keeper) {
            Ok(result) => {
                if args.format == Format::Table {
                    output.write(report::probe::table::text(&result).as_bytes())?;
                }
                results.push(result);
            }
            Err(failure) => failed = Some(failure),
        }
        if stop.signal().is_some() || failed.is_some() {
            break;
        }
    }
    if !results.is_empty() {
        output.write(report::probe::rest(&results, args.format)?.as_bytes())?;
    }
    if let (Some(signal), false) = (stop.signal(), results.is_empty()) {
        return Err(Failure::Interrupted(signal));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    match results.iter().find_map(ProbeResult::failure) {
        Some(failure) => Err(Failure::Io(failure.message.clone())),
        None if args.fail_if_broken => fail_if_broken(&results),
        None => Ok(()),
    }
}

/// The exit status for CI.
fn fail_if_broken(results: &[ProbeResult]) -> Result<(), Failure> {
    let broken: Vec<String> = results
        .iter()
        .flat_map(|result| result.expected.iter().map(move |held| (result, held)))
        .filter(|(_, held)| held.outcome == Outcome::Broken)
        .map(|(result, held)| {
            format!(
                "{}, {}: {}",
                result.target,
                held.promise.product,
                held.sentence()
            )
        })
        .collect();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Broken(broken.join("\n"))),
    }
}

fn probe_one(
    name: &str,
    args: &ProbeArgs,
    promises: &[Promise],
    stop: &Stop,
    keeper: &mut Keeper,
) -> Result<ProbeResult, Failure> {
    let mut live = ProbeLive::new(stop.clone());
    let opened = Opened::open(name, &args.allow_overwrite, &mut |note| live.note(note))?;
    let mut session = LocalRunner {
        consent: args.allow_overwrite.clone(),
        interrupt: stop.interrupt.clone(),
        ..LocalRunner::default()
    }
    .open();
    keeper.begin("probe", &opened.target.name);
    let mut keeping = KeepingSession {
        session: &mut session,
        keeper,
    };
    let outcome = probe(&mut keeping, &opened.target, &options(args), &mut live);
    live.end();
    let closed = Box::new(session).close();
    // The working file goes before anything is printed: whoever reads the result finds the directory as it was.
    drop(opened);
    let mut result = outcome?;
    let held = promises.iter().map(|promise| Held::of(promise, &result));
    result.expected = held.collect();
    let id = keeper.finish(probe_document(&mut result).as_ref());
    if let Some(id) = id {
        eprintln!("kept in the history as {id}");
    }
    for note in keeper.notes() {
        eprintln!("note: {note}");
    }
    closed?;
    Ok(result)
}

fn options(args: &ProbeArgs) -> ProbeOptions {
    let mut budget = if args.quick {
        Budget::QUICK
    } else {
        Budget::NORMAL
    };
    if let Some(runtime_ns) = args.runtime {
        budget.runtime_ns = runtime_ns;
    }
    if let Some(bytes) = args.size {
        budget.size_bytes = bytes;
    }
    ProbeOptions {
        budget,
        size_bytes: args.size,
        direct: args.direct,
        seed: args.seed,
    }
}
