//! `iosonde load`: what latency at which load?

use super::places::{Place, Places, tells};
use super::{beforehand, consent, end, keep_study, nothing_found};
use crate::args::{ArrivalKind, LoadArgs, LoadKind, TextFormat};
use crate::failure::Failure;
use crate::live::load::LoadLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use crate::store::{Keeper, KeepingSession};
use iosonde_result::session::Session;
use iosonde_study::load::{
    Arrivals, LoadOptions, LoadResult, LoadWatcher, MatrixOptions, Mix, Pattern, load,
};

/// Measures one target and prints what was found.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.written.output.as_deref())?;

    let mut live = LoadLive::new(stop.clone());
    let names = [args.target.clone()];
    consent::refuse_unmatched(&args.written.consent, &names, false)?;
    beforehand::warn(&names, &args.cluster);
    let (mut tells, interrupts) = (tells(&names), || stop.interrupt.count());
    let mut places = Places::open(
        &names,
        &args.written.consent.noted(),
        (&args.cluster, args.pods.pods(), &args.ceph),
        &stop,
        &interrupts,
        &mut tells,
        &mut |note| live.note(note),
    )?;
    let Place { target, size_bytes } = places.all.remove(0);
    let options = LoadOptions {
        size_bytes: args.size.or(size_bytes),
        parties: places.parties(),
        ..options(args)
    };
    keeper.begin("load", &target.name);
    let mut keeping = KeepingSession {
        session: &mut places,
        keeper: &mut keeper,
    };
    let outcome = load(&mut keeping, &target, &options, &mut live);
    live.end();
    let mut result = match outcome {
        Ok(result) => result,
        Err(error) => return Err(nothing_found(error, &mut keeper, Box::new(places))),
    };
    result.notes.extend(places.notes());
    let kept = keep_study(&mut keeper, &result);
    let written = print(args, &result, output);
    let failure = result.failure().map(|failure| failure.message.clone());
    let concluded = stop.conclude_study(result.error, failure);
    // What was made goes last: that may take long, and fail.
    let closed = Box::new(places).close();
    end([written, kept, concluded], closed)
}

fn print(args: &LoadArgs, result: &LoadResult, output: Output) -> Result<(), Failure> {
    let text = match args.written.format {
        TextFormat::Table => report::load::table(result),
        TextFormat::Json => report::load::json(result)?,
        TextFormat::Csv => report::load::csv(result),
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
        pattern: Pattern {
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
