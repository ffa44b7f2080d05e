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
use iosonde_study::probe::{Budget, ProbeOptions, ProbeResult, Turns, Watcher, probe};
use std::thread::ScopedJoinHandle;

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
    let (results, failed) = all(args, &promises, &stop, &mut keeper);
    for result in results.iter().filter(|_| args.format == Format::Table) {
        output.write(report::probe::table::text(result).as_bytes())?;
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

/// Probes all targets, in turns. What has been measured counts, also where another target fails.
fn all(
    args: &ProbeArgs,
    promises: &[Promise],
    stop: &Stop,
    keeper: &mut Keeper,
) -> (Vec<ProbeResult>, Option<Failure>) {
    let turns = Turns::new(args.targets.len(), args.seed);
    let one = |who: usize, live: ProbeLive, keeper: &mut Keeper| {
        probe_one(&turns, who, args, promises, live, stop, keeper)
    };
    let outcomes: Vec<Result<ProbeResult, Failure>> = if args.targets.len() == 1 {
        vec![one(0, ProbeLive::new(stop.clone()), keeper)]
    } else {
        eprintln!(
            "{} targets take turns, phase by phase, so that a drift of this machine favours none",
            args.targets.len()
        );
        std::thread::scope(|scope| {
            let begin = |who: usize| {
                let one = &one;
                scope.spawn(move || {
                    let live = ProbeLive::of_several(&args.targets[who], stop.clone());
                    // Each has its own way into the history: studies of several targets go on at once.
                    one(who, live, &mut Keeper::open(&args.keep)?)
                })
            };
            for note in keeper.notes() {
                eprintln!("note: {note}");
            }
            let begun: Vec<_> = (0..args.targets.len()).map(begin).collect();
            begun.into_iter().map(joined).collect()
        })
    };
    let mut results = Vec::new();
    let mut failed = None;
    for outcome in outcomes {
        match outcome {
            Ok(result) => results.push(result),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    (results, failed)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn probe_one(
    turns: &Turns,
    who: usize,
    args: &ProbeArgs,
    promises: &[Promise],
    mut live: ProbeLive,
    stop: &Stop,
    keeper: &mut Keeper,
) -> Result<ProbeResult, Failure> {
    let name = &args.targets[who];
    let mut session = LocalRunner {
        consent: args.allow_overwrite.clone(),
        interrupt: stop.interrupt.clone(),
        ..LocalRunner::default()
    }
    .open();
    let mut taking = turns.taken_by(who, &mut session);
    taking.begin();
    let opened = Opened::open(name, &args.allow_overwrite, &mut |note| live.note(note))?;
    keeper.begin("probe", &opened.target.name);
    let mut keeping = KeepingSession {
        session: &mut taking,
        keeper,
    };
    let outcome = probe(&mut keeping, &opened.target, &options(args), &mut live);
    live.end();
    drop(taking);
    let closed = Box::new(session).close();
    // The working file goes before anything is printed: whoever reads the result finds the directory as it was.
    drop(opened);
    let mut result = outcome?;
    let held = promises.iter().map(|promise| Held::of(promise, &result));
    result.expected = held.collect();
    let id = keeper.finish(probe_document(&mut result).as_ref());
    if let Some(id) = id {
        let of = if args.targets.len() > 1 {
            format!("{name}: ")
        } else {
            String::new()
        };
        eprintln!("{of}kept in the history as {id}");
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
