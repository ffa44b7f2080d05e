//! `iosonde pts`: preconditioning and steady state, after SNIA's specification.

use super::single_study::run_single_study;
use super::target_session::{SizedTarget, TargetSession, neighbour_on, setup_reporters};
use super::{beforehand, conclude_study, consent, nothing_found};
use crate::args::{PresetKind, PtsArgs, PtsKind, PurgeKind};
use crate::failure::CommandError;
use crate::live::pts_live::PtsLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_history::HistoryWriter;
use iosonde_report as report;
use iosonde_report::format::TextFormat;
use iosonde_result::cache_state::ColdLayers;
use iosonde_study::pts::{PtsOptions, PtsPreset, PtsResult, PtsTest, Purge, run_pts};

/// Runs one test on one target and prints the result.
pub(crate) fn run(args: &PtsArgs) -> Result<(), CommandError> {
    let names = [args.target.clone()];
    let within = (&args.cluster, &args.written.consent, &args.ceph);
    let neighbour = neighbour_on(&args.beside, &names, within)?;
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.written.output.as_deref())?;
    let mut live = PtsLive::new(stop.clone());
    consent::refuse_unmatched(&args.written.consent, &names, false)?;
    beforehand::warn_of_noise(&names, &args.cluster);
    let (mut reporters, interrupts) = (setup_reporters(&names), || stop.interrupt.count());
    // The rounds of the test precondition the device: its caches are part of the steady state.
    let cold = ColdLayers::default();
    let mut target_session = TargetSession::open(
        &names,
        &args.written.consent.noted(),
        (&args.cluster, args.pods.pods(), &args.ceph, cold),
        &stop,
        &interrupts,
        &mut reporters,
        &mut |note| live.line(note),
    )?;
    let neighbours = target_session.neighbours(neighbour.as_ref())?;
    let SizedTarget { target, size_bytes } = target_session.all.remove(0);
    let options = options(args, size_bytes);
    let outcome = run_single_study(
        ("pts", target.name.as_str()),
        &mut target_session,
        neighbours,
        &mut live,
        &mut history_writer,
        |driver| run_pts(driver, &target, &options),
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
    let failure = result.failure.as_ref();
    let failure = failure.map(|failure| failure.message.clone());
    let pods = target_session.table_of_pods();
    conclude_study(
        &mut history_writer,
        &result,
        |_| print(args, &result, &pods, output),
        |_| stop.conclude_study(result.error.clone(), failure),
        Box::new(target_session),
    )
}

fn print(
    args: &PtsArgs,
    result: &PtsResult,
    pods: &str,
    output: Output,
) -> Result<(), CommandError> {
    let text = match args.written.format {
        TextFormat::Table => report::pts::table(result) + pods,
        TextFormat::Json => report::pts::pts_json(result)?,
        TextFormat::Csv => report::pts::pts_csv(result),
        TextFormat::Markdown => report::pts::markdown(result),
    };
    output.save(&text)
}

fn options(args: &PtsArgs, size_bytes: Option<u64>) -> PtsOptions {
    let preset = match args.preset {
        PresetKind::Client => PtsPreset::Client,
        PresetKind::Enterprise => PtsPreset::Enterprise,
    };
    let (iodepth, numjobs) = preset.in_flight();
    PtsOptions {
        test: match args.test {
            PtsKind::Iops => PtsTest::Iops,
            PtsKind::Throughput => PtsTest::Throughput,
            PtsKind::Latency => PtsTest::Latency,
            PtsKind::WriteSaturation => PtsTest::WriteSaturation,
        },
        preset,
        time_scale: args.time_scale,
        most_rounds: args.rounds,
        iodepth: args.iodepth.unwrap_or(iodepth),
        numjobs: args.numjobs.unwrap_or(numjobs),
        purge: match args.purge {
            PurgeKind::None => Purge::None,
            PurgeKind::Discard => Purge::Discard,
            PurgeKind::Done => Purge::Done,
        },
        size_bytes: args.size.or(size_bytes),
        seed: args.seed,
    }
}
