//! `iosonde probe`: how fast is it?

mod target;
mod working_file;

use crate::args::{Format, ProbeArgs};
use crate::failure::Failure;
use crate::live::probe::ProbeLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use iosonde_engine::local::LocalRunner;
use iosonde_result::session::Session;
use iosonde_study::probe::{Budget, ProbeOptions, ProbeResult, probe};
use target::Opened;

/// Probes each target and prints what was found.
pub(crate) fn run(args: &ProbeArgs) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    let mut output = Output::open(args.output.as_deref(), false)?;
    // All targets are looked at before the first is measured: a mistake in the last one should not take minutes to show.
    for name in &args.targets {
        target::check(name, &args.allow_overwrite)?;
    }
    let mut results: Vec<ProbeResult> = Vec::new();
    let mut failed = None;
    for name in &args.targets {
        match probe_one(name, args, &stop) {
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
        None => Ok(()),
    }
}

fn probe_one(name: &str, args: &ProbeArgs, stop: &Stop) -> Result<ProbeResult, Failure> {
    let mut live = ProbeLive::new(stop.clone());
    let opened = Opened::open(name, &args.allow_overwrite, &mut live)?;
    let mut session = LocalRunner {
        consent: args.allow_overwrite.clone(),
        interrupt: stop.interrupt.clone(),
        ..LocalRunner::default()
    }
    .open();
    let outcome = probe(&mut session, &opened.target, &options(args), &mut live);
    live.end();
    let closed = Box::new(session).close();
    // The working file goes before anything is printed: whoever reads the result finds the directory as it was.
    drop(opened);
    let result = outcome?;
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
