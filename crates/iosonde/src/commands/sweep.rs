//! `iosonde sweep`: how does it depend on ...?

pub(super) mod around;
mod export;
pub(crate) mod journal;
pub(crate) mod quiet;

use super::journal::Beginning;
use super::outside::Outside;
use super::places::{Places, tells};
use super::{beforehand, ceph, cluster, consent, end, keep_study, nothing_found, target};
use crate::args::{SweepArgs, TextFormat};
use crate::failure::{Failure, told_at_once};
use crate::live::sweep::SweepLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use crate::store::{Keeper, KeepingSession, absolute};
use around::Around;
use export::FioFiles;
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::value::{Bytes, bytes};
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::session::Session;
use iosonde_study::CutShort;
use iosonde_study::probe::{Budget, ProbeTarget, TargetKind};
use iosonde_study::sweep::{
    Axis, Base, CurvePlan, Grid, LEAST_BUDGET_NS, Reach, SweepOptions, SweepResult, SweepTarget,
    WORKING_SET, announcement, parse_axes, planned_time, sweep,
};
use journal::Journal;
use quiet::Gate;
use std::path::Path;

/// More cells than anybody means to measure.
const MOST_CELLS: usize = 10_000;
/// Where nothing is said, so many times the measured time of a cell are waited for its caches at most.
const WARM_UP_RUNTIMES: u64 = 5;
/// Free room of a volume that a dry run does not ask a cluster for.
const UNKNOWN_FREE_BYTES: u64 = 1 << 50;
/// A longer file is no job file.
const MOST_JOB_FILE_BYTES: u64 = 1 << 20;

/// Measures the grid and prints what was found.
pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    let is_searched = !args.exhaustive && args.working_set.is_none();
    if is_searched && args.budget.is_some_and(|ns| ns < LEAST_BUDGET_NS) {
        let least_s = LEAST_BUDGET_NS / 1_000_000_000;
        return Err(Failure::usage(
            "no curve can be measured in that budget",
            format!(
                "give --budget {least_s}s at least; a sweep says how long all of it would take when it begins"
            ),
        ));
    }
    let has_pods = args.pods.pods().is_some();
    if has_pods && (!args.exhaustive || args.working_set.is_some()) {
        return Err(Failure::usage(
            "a search is for one pod: what it does not measure cannot be told for several",
            "add --exhaustive, which measures every cell, and leave out --working-set",
        ));
    }
    let asked = Asked::of(args)?;
    let (consent, targets) = (&args.written.consent, &asked.targets);
    consent::refuse_unmatched(consent, targets, asked.job_file.is_some())?;
    if args.dry_run {
        return dry_run(args, &asked);
    }
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.written.output.as_deref())?;
    measure(args, &asked, &stop, &mut keeper, output)
}

fn print(args: &SweepArgs, result: &SweepResult, output: Output) -> Result<(), Failure> {
    let text = match args.written.format {
        TextFormat::Table => report::sweep::table(result),
        TextFormat::Json => report::sweep::json(result)?,
        TextFormat::Csv => report::sweep::csv(result),
        TextFormat::Markdown => report::sweep::markdown(result),
    };
    output.save(&text)
}

/// Shows what would be measured. Nothing is made, read or written.
fn dry_run(args: &SweepArgs, asked: &Asked) -> Result<(), Failure> {
    let (mut targets, mut failures) = (Vec::new(), Vec::new());
    for name in &asked.targets {
        match planned_target(name, args, asked) {
            Ok(target) => targets.push(target),
            Err(failure) => failures.push(failure),
        }
    }
    told_at_once(failures)?;
    let grid = asked.grid(&targets)?;
    let announcement = announcement(&targets, &grid, &options(args))?;
    let output = Output::open(args.written.output.as_deref())?;
    let jobs = grid.curves.iter().map(|curve| &curve.job);
    let text = report::sweep::dry_run(&announcement) + &asked.outside.listed(jobs);
    output.save(&text)
}

/// A target as a sweep would find it, without the file or the pod that would be made for it.
fn planned_target(name: &str, args: &SweepArgs, asked: &Asked) -> Result<SweepTarget, Failure> {
    let (kind, usual_bytes) = match cluster::target_within(name, &args.cluster)? {
        Some((target, cluster)) => {
            let options = cluster::options_of_pods(target, &cluster, args.pods.pods())?;
            let pods = args.pods.pods().and_then(|pods| pods.count);
            let usual_bytes = Budget::NORMAL.size_bytes;
            let free_bytes = UNKNOWN_FREE_BYTES;
            (
                TargetKind::Directory { free_bytes },
                cluster::working_set(&options, pods.unwrap_or(1) as usize, usual_bytes),
            )
        }
        None => {
            let (consent, access) = (&args.written.consent.allow_overwrite, args.ceph.access());
            (target::check(name, consent, &access)?, None)
        }
    };
    let target = ProbeTarget {
        name: name.to_owned(),
        path: name.to_owned(),
        kind,
    };
    Ok(SweepTarget::of_jobs(
        &target,
        asked.reach,
        asked.size(),
        usual_bytes,
    )?)
}

fn options(args: &SweepArgs) -> SweepOptions {
    SweepOptions {
        exhaustive: args.exhaustive,
        runtime_ns: args.runtime,
        budget_ns: args.budget,
        seed: args.seed,
        most_warmup_ns: args
            .working_set
            .as_ref()
            .map(|_| args.warm_up.unwrap_or(WARM_UP_RUNTIMES * args.runtime)),
    }
}

/// What the command line asks for.
struct Asked {
    base: Base,
    job_file: Option<String>,
    targets: Vec<String>,
    axes: Vec<Axis>,
    /// How much the jobs of the file say they use of a target.
    reach: Reach,
    /// What the jobs may do outside of the targets.
    outside: Outside,
    /// Errors of the axes, told with those of the grid.
    errors: Diagnostics,
}

impl Asked {
    fn of(args: &SweepArgs) -> Result<Asked, Failure> {
        let env = SystemEnv::default();
        let (files, targets): (Vec<&String>, Vec<&String>) =
            args.targets.iter().partition(|name| is_job_file(name));
        let (base, job_file) = match files[..] {
            [] => (Base::Plain, None),
            [name] => (read(name, &env)?, Some(name.clone())),
            _ => {
                return Err(Failure::usage(
                    "more than one job file is given",
                    "sweep one at a time, or put the jobs into one file, each with `stonewall`",
                ));
            }
        };
        let mut given = args.axes.clone();
        let is_depth =
            |name: &str| iosonde_job::options::find(name).is_some_and(|row| row.name == "iodepth");
        if let Some(sizes) = &args.working_set {
            if !given.iter().any(|(name, _)| is_depth(name)) {
                // More in flight wait for each other: that is no latency of a cache.
                given.push(("iodepth".to_owned(), "1".to_owned()));
            }
            given.push((WORKING_SET.to_owned(), sizes.clone()));
        }
        let mut errors = Diagnostics::default();
        let axes = parse_axes(&given, &mut errors);
        let lengths = axes.iter().map(|axis| axis.values.len());
        let cells = lengths.fold(targets.len().max(1), |all, length| {
            all.saturating_mul(length)
        });
        let targets: Vec<String> = targets.into_iter().map(|name| absolute(name)).collect();
        for (index, name) in targets.iter().enumerate() {
            if targets[..index].contains(name) {
                errors.push(
                    Diagnostic::error(format!("{name} is given twice")).help(
                        "name each target once; `iosonde probe` compares a target with itself",
                    ),
                );
            }
        }
        let mut asked = Asked {
            base,
            job_file,
            targets,
            axes,
            reach: Reach {
                bytes: 0,
                device_bytes: 0,
                is_open: true,
            },
            outside: Outside::of(&args.outside, std::iter::empty())?,
            errors,
        };
        // The axes alone may be too much to go on with; then the jobs of a file come in, before anything is made for a target.
        asked.bounded(cells, args.yes)?;
        let grid = asked.grid(&[])?;
        asked.bounded(
            grid.cells().saturating_mul(asked.targets.len().max(1)),
            args.yes,
        )?;
        asked.refuse_depth_without_effect(&grid)?;
        let jobs = || grid.curves.iter().map(|curve| &curve.job);
        told_at_once(asked.outside.refused(jobs()))?;
        asked.outside = Outside::of(&args.outside, jobs())?;
        asked.reach = grid.reach();
        Ok(asked)
    }

    /// Refuses depths that are all the same, whatever they are. Some targets have an engine of their own.
    fn refuse_depth_without_effect(&self, grid: &Grid) -> Result<(), Failure> {
        let all_keep = self.targets.iter().all(|name| keeps_engine(name));
        let Some(plan) = grid.without_effect_of_depth().filter(|_| all_keep) else {
            return Ok(());
        };
        let file = self.job_file.as_deref().unwrap_or("sweep");
        Err(Failure::usage(
            format!("{file}: {}", depths_are_the_same(plan)),
            "let the engine be one that queues with --ioengine io_uring (or ioengine= in the job file), or vary the jobs \
             instead: --iodepth 1 --numjobs 1..64",
        ))
    }

    /// Refuses more cells than anybody means to measure.
    fn bounded(&self, cells: usize, is_meant: bool) -> Result<(), Failure> {
        if cells <= MOST_CELLS || is_meant {
            return Ok(());
        }
        let mut errors = self.errors.clone();
        errors.push(
            Diagnostic::error(format!(
                "the grid has {cells} cells, more than {MOST_CELLS}"
            ))
            .help("leave out values, or add --yes if you mean it"),
        );
        Err(Failure::Jobs(Box::new(errors)))
    }

    /// The working set: the most that any cell asks for.
    fn size(&self) -> Option<u64> {
        let axis = self.axes.iter().find(|axis| axis.name == WORKING_SET)?;
        let sizes = axis
            .values
            .iter()
            .filter_map(|value| bytes(value, Bytes::Binary).ok());
        sizes.max()
    }

    fn grid(&self, targets: &[SweepTarget]) -> Result<Grid, Failure> {
        let made = Grid::new(&self.base, targets, &self.axes, &SystemEnv::default());
        match (made, self.errors.has_errors()) {
            (Ok(grid), false) => Ok(grid),
            (Ok(_), true) => Err(Failure::Jobs(Box::new(self.errors.clone()))),
            (Err(found), false) => Err(Failure::Jobs(Box::new(found))),
            (Err(mut found), true) => {
                // Errors of axes have no place in a file, those of the grid may have one.
                found.list.splice(0..0, self.errors.list.iter().cloned());
                Err(Failure::Jobs(Box::new(found)))
            }
        }
    }
}

/// Whether jobs on a target have the engine that they name.
pub(super) fn keeps_engine(target: &str) -> bool {
    !target.starts_with("sim:") && !matches!(ceph::target(target), Ok(Some(_)))
}

/// What is wrong with varying the depth of a curve whose engine is synchronous.
pub(super) fn depths_are_the_same(plan: &CurvePlan) -> String {
    format!("{}, so that all depths are the same", plan.one_in_flight())
}

/// A text with a `[section]` is a job file; so is what is called one, even if it cannot be read.
fn is_job_file(name: &str) -> bool {
    let path = Path::new(name);
    let Ok(facts) = std::fs::metadata(path) else {
        return path.extension().is_some_and(|ending| ending == "fio");
    };
    if !facts.is_file() || facts.len() > MOST_JOB_FILE_BYTES {
        return false;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_section = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim();
        line.starts_with('[') && line.contains(']')
    };
    text.lines().any(is_section)
}

fn read(name: &str, env: &dyn Env) -> Result<Base, Failure> {
    match env.read_file(name) {
        Ok(text) => Ok(Base::File {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }),
        Err(error) => Err(Failure::usage(
            format!("job file {name}: {error}"),
            "name a job file that can be read",
        )),
    }
}

fn measure(
    args: &SweepArgs,
    asked: &Asked,
    stop: &Stop,
    keeper: &mut Keeper,
    output: Output,
) -> Result<(), Failure> {
    let mut live = SweepLive::new(stop.clone());
    let (mut tells, interrupts) = (tells(&asked.targets), || stop.interrupt.count());
    let consent = args.written.consent.noted();
    let mut places = Places::open(
        &asked.targets,
        &consent,
        (&args.cluster, args.pods.pods(), &args.ceph),
        stop,
        &interrupts,
        &mut tells,
        &mut |note| live.line(note),
    )?;
    let targets: Vec<SweepTarget> = places
        .all
        .iter()
        .map(|place| {
            SweepTarget::of_jobs(&place.target, asked.reach, asked.size(), place.size_bytes)
        })
        .collect::<Result<_, _>>()?;
    let mut grid = asked.grid(&targets)?;
    places.permit_outside(&asked.outside, &grid)?;
    for curve in &mut grid.curves {
        asked.outside.relocate(&mut curve.job);
    }
    if targets.is_empty() {
        places.keep_what_is_there(&grid, &consent);
    }
    let options = options(args);
    let journal = Journal::open(
        super::journal::directory(args.keep.store.as_deref(), "sweeps").as_deref(),
        &(
            &asked.targets,
            &base_text(&asked.base),
            &grid.axes,
            options.exhaustive,
            options.runtime_ns,
            options.seed,
            options.most_warmup_ns,
            args.pods
                .pods()
                .map(|pods| (format!("{pods:?}"), places.parties())),
        ),
        grid.curves.len(),
        (Beginning::of_flag(args.resume), &consent.targets),
        &mut |note| live.line(note),
    )?;
    let so_far = journal.so_far();
    live.journal(journal);
    let study_name = match &asked.job_file {
        Some(file) => file.clone(),
        None => asked.targets.join(" "),
    };
    keeper.begin("sweep", &study_name);
    let mut keeping = KeepingSession {
        session: &mut places,
        keeper,
    };
    beforehand::warn(&asked.targets, &args.cluster);
    let mut around = Around {
        session: &mut keeping,
        gate: Gate::new(
            &targets,
            stop.clone(),
            planned_time(&grid, &options).most_ns,
        ),
        files: args
            .export_fio
            .as_deref()
            .map(|root| FioFiles::new(root, &targets, &grid)),
        stop: stop.clone(),
    };
    let outcome = sweep(&mut around, &targets, &grid, &options, so_far, &mut live);
    let mut notes = around.gate.notes();
    notes.extend(around.files.iter().flat_map(FioFiles::notes));
    live.end();
    notes.extend(places.notes());
    let mut result = match outcome {
        Ok(result) => result,
        Err(error) => {
            live.give_up();
            return Err(nothing_found(error, keeper, Box::new(places)));
        }
    };
    result.job_file.clone_from(&asked.job_file);
    result.notes.extend(notes);
    let kept = keep_study(keeper, &result);
    let written = print(args, &result, output);
    // A budget that was spent is no end: with more of it the rest can be measured.
    let is_spent = args.budget.is_some() && !result.is_complete();
    live.conclude(&result, is_spent || written.is_err());
    let concluded = stop.conclude_study(result.cause.map(CutShort::from), result.failure);
    // What was made goes last: that may take long, and fail.
    let closed = Box::new(places).close();
    end([written, kept, concluded], closed)
}

fn base_text(base: &Base) -> &str {
    match base {
        Base::Plain => "",
        Base::File { text, .. } => text,
    }
}
