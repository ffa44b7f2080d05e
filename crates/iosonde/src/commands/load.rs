//! `iosonde load`: what latency at which load?

use super::target::Opened;
use crate::args::{ArrivalKind, LoadArgs, LoadKind, TextFormat};
use crate::failure::Failure;
use crate::live::load::LoadLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use crate::store::{Keeper, KeepingSession};
use iosonde_engine::local::LocalRunner;
use iosonde_result::session::Session;
use iosonde_study::load::{
    Arrivals, LoadOptions, LoadResult, LoadWatcher, MatrixOptions, Mix, Pattern, load,
};

/// Measures one target and prints what was found.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let mut output = Output::open(args.output.as_deref(), false)?;
    let result = measure(args, &stop, &mut keeper)?;
    let text = match args.format {
        TextFormat::Table => report::load::table(&result),
        TextFormat::Json => report::load::json(&result)?,
        TextFormat::Csv => report::load::csv(&result),
        TextFormat::Markdown => report::load::markdown(&result),
    };
    output.write(text.as_bytes())?;
    stop.conclude(result.failure().map(|failure| failure.message.clone()))
}

fn measure(args: &LoadArgs, stop: &Stop, keeper: &mut Keeper) -> Result<LoadResult, Failure> {
    let mut live = LoadLive::new(stop.clone());
    let opened = Opened::open(&args.target, &args.allow_overwrite, &mut |note| {
        live.note(note)
    })?;
    let mut session = LocalRunner {
        consent: args.allow_overwrite.clone(),
        interrupt: stop.interrupt.clone(),
        ..LocalRunner::default()
    }
    .open();
    keeper.begin("load", &opened.target.name);
    let mut keeping = KeepingSession {
        session: &mut session,
        keeper,
    };
    let outcome = load(&mut keeping, &opened.target, &options(args), &mut live);
    live.end();
    let closed = Box::new(session).close();
    // The working file goes before anything is printed: whoever reads the result finds the directory as it was.
    drop(opened);
    let result = outcome?;
    let document = serde_json::to_value(&result).map_err(anyhow::Error::from)?;
    if let Some(id) = keeper.finish(Some(&document)) {
        eprintln!("kept in the history as {id}");
    }
    for note in keeper.notes() {
        eprintln!("note: {note}");
    }
    closed?;
    Ok(result)
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
        iodepth: args.iodepth,
        size_bytes: args.size,
        direct: args.direct,
        seed: args.seed,
    }
}
