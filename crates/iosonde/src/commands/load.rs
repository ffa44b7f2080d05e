//! `iosonde load`: latency over offered rates.

use super::single_study::run_single_study;
use super::target_session::{SizedTarget, TargetSession, neighbour_on, setup_reporters};
use super::{beforehand, cold, conclude_study, consent, nothing_found, show_command};
use crate::args::{ArrivalKind, LoadArgs, LoadKind};
use crate::failure::CommandError;
use crate::live::load_live::{LoadLive, LoadSteps};
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_history::HistoryWriter;
use iosonde_report as report;
use iosonde_report::format::TextFormat;
use iosonde_study::load::{
    Arrivals, LoadOptions, LoadPattern, LoadResult, MatrixOptions, Mix, run_load,
};

/// Measures one target and prints the result.
pub(crate) fn run(args: &LoadArgs) -> Result<(), CommandError> {
    let names = [args.target.clone()];
    let within = (&args.cluster, &args.written.consent, &args.ceph);
    let neighbour = neighbour_on(&args.beside, &names, within)?;
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.written.output.as_deref())?;
    let mut live = LoadLive::with_steps(stop.clone(), LoadSteps::with_objectives(&args.slo));
    consent::refuse_unmatched(&args.written.consent, &names, false)?;
    let cold = args.cold.layers();
    cold::announce(cold, &names, &args.cluster)?;
    beforehand::warn_of_noise(&names, &args.cluster);
    let (mut reporters, interrupts) = (setup_reporters(&names), || stop.interrupt.count());
    let mut target_session = TargetSession::open(
        &names,
        &args.written.consent.noted(),
        (&args.cluster, args.pods.pods(), &args.ceph, cold),
        &stop,
        &interrupts,
        &mut reporters,
        &mut |note| live.line(&format!("note: {note}")),
    )?;
    let neighbours = target_session.neighbours(neighbour.as_ref())?;
    let SizedTarget { target, size_bytes } = target_session.all.remove(0);
    let options = LoadOptions {
        size_bytes: args.size.or(size_bytes),
        parties: target_session.parties(),
        ..options(args)
    };
    let outcome = run_single_study(
        ("load", target.name.as_str()),
        &mut target_session,
        neighbours,
        &mut live,
        &mut history_writer,
        |driver| run_load(driver, &target, &options),
    );
    live.finish();
    let mut result = match outcome {
        Ok(result) => result,
        Err(error) => {
            return Err(nothing_found(
                error,
                &mut history_writer,
                Box::new(target_session),
            ));
        }
    };
    result.notes.extend(target_session.notes());
    let failure = result.failure().map(|failure| failure.message.clone());
    let pods = target_session.table_of_pods();
    conclude_study(
        &mut history_writer,
        &result,
        |id| print(args, &result, (id, &pods), output),
        |_| stop.conclude_study(result.error.clone(), failure),
        Box::new(target_session),
    )
}

fn print(
    args: &LoadArgs,
    result: &LoadResult,
    (id, pods): (Option<&str>, &str),
    mut output: Output,
) -> Result<(), CommandError> {
    let text = match args.written.format {
        TextFormat::Table if !args.details => {
            let options = show_command::store_options(&args.keep);
            let stored = (id, options.as_str());
            output.write_styled(&report::load::short(result, stored, output.style()))?;
            return output.finish();
        }
        TextFormat::Table => report::load::table(result) + pods,
        TextFormat::Json => report::load::load_result_json(result)?,
        TextFormat::Csv => report::load::load_result_csv(result),
        TextFormat::Markdown => report::load::markdown(result),
    };
    output.save(&text)
}

fn options(args: &LoadArgs) -> LoadOptions {
    let random = matches!(
        args.rw,
        LoadKind::Randread | LoadKind::Randwrite | LoadKind::Randrw
    );
    let mix = match args.rw {
        LoadKind::Randread | LoadKind::Read => Mix::READ,
        LoadKind::Randwrite | LoadKind::Write => Mix::WRITE,
        LoadKind::Randrw | LoadKind::Rw => Mix {
            read_percent: args.rwmixread,
        },
    };
    LoadOptions {
        pattern: LoadPattern {
            block_bytes: args.bs,
            random,
        },
        mix,
        arrivals: match args.arrivals {
            ArrivalKind::Poisson => Arrivals::Poisson,
            ArrivalKind::Constant => Arrivals::Constant,
        },
        rates: args.rates.clone(),
        objectives: args.slo.clone(),
        matrix: args.matrix.map(|steps| MatrixOptions {
            steps: usize::from(steps),
        }),
        runtime_ns: args.runtime,
        ramp_ns: args.ramp,
        numjobs: args.numjobs,
        parties: 1,
        iodepth: args.iodepth,
        size_bytes: args.size,
        direct: args.direct,
        seed: args.seed,
    }
}
