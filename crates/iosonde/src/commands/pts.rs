//! `iosonde pts`: preconditioning and steady state, after SNIA's specification.

use super::places::{Place, Places, tells};
use super::{beforehand, consent, end, keep_study, nothing_found};
use crate::args::{PresetKind, PtsArgs, PtsKind, PurgeKind, TextFormat};
use crate::failure::Failure;
use crate::live::pts::PtsLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use crate::store::{Keeper, KeepingSession};
use iosonde_result::session::Session;
use iosonde_study::pts::{Preset, PtsOptions, PtsResult, PtsTest, Purge, pts};

/// Runs one test on one target and prints what was found.
pub(crate) fn run(args: &PtsArgs) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.written.output.as_deref())?;
    let mut live = PtsLive::new(stop.clone());
    let names = [args.target.clone()];
    consent::refuse_unmatched(&args.written.consent, &names, false)?;
    beforehand::warn(&names, &args.cluster);
    let (mut tells, interrupts) = (tells(&names), || stop.interrupt.count());
    let mut places = Places::open(
        &names,
        &args.written.consent.noted(),
        (&args.cluster, None, &args.ceph),
        &stop,
        &interrupts,
        &mut tells,
        &mut |note| live.line(note),
    )?;
    let Place { target, size_bytes } = places.all.remove(0);
    let options = options(args, size_bytes);
    keeper.begin("pts", &target.name);
    let mut keeping = KeepingSession {
        session: &mut places,
        keeper: &mut keeper,
    };
    let outcome = pts(&mut keeping, &target, &options, &mut live);
    live.end();
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return Err(nothing_found(error, &mut keeper, Box::new(places))),
    };
    let kept = keep_study(&mut keeper, &result);
    let written = print(args, &result, output);
    let failure = result.failure.map(|failure| failure.message);
    let concluded = stop.conclude_study(result.error, failure);
    // What was made goes last: that may take long, and fail.
    let closed = Box::new(places).close();
    end([written, kept, concluded], closed)
}

fn print(args: &PtsArgs, result: &PtsResult, output: Output) -> Result<(), Failure> {
    let text = match args.written.format {
        TextFormat::Table => report::pts::table(result),
        TextFormat::Json => report::pts::json(result)?,
        TextFormat::Csv => report::pts::csv(result),
        TextFormat::Markdown => report::pts::markdown(result),
    };
    output.save(&text)
}

fn options(args: &PtsArgs, size_bytes: Option<u64>) -> PtsOptions {
    let preset = match args.preset {
        PresetKind::Client => Preset::Client,
        PresetKind::Enterprise => Preset::Enterprise,
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
