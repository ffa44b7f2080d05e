//! `iosonde sweep`: measures a grid of option values.

mod swept_job_file;

use super::file_name_uris::refuse_broken_uris;
use super::outside::Outside;
use super::target_session::{TargetSession, neighbour_on, refuse_unused_options, setup_reporters};
use super::unused_file_names::{UnusedNames, unused_file_names};
use super::{beforehand, ceph, cluster, cold, conclude_study, consent, nothing_found, target};
use crate::args::SweepArgs;
use crate::failure::{CommandError, report_all};
use crate::hooks::fio_export_hook::FioExportHook;
use crate::hooks::quiet_device_hook::QuietDeviceHook;
use crate::journal::journal_file::{Beginning, directory};
use crate::journal::journal_key::SweepJournalKey;
use crate::journal::sweep_journal::SweepJournal;
use crate::live::sweep_live::SweepLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_history::{HistoryHook, HistoryWriter, StoredRuns, absolute};
use iosonde_job::Neighbour;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::options::find_option;
use iosonde_job::target_scheme::is_simulated_name;
use iosonde_job::value::{Bytes, bytes};
use iosonde_machine::consent::Consent;
use iosonde_machine::system_env::SystemEnv;
use iosonde_report as report;
use iosonde_report::format::TextFormat;
use iosonde_study::probe::{ProbeBudget, StudyTarget, StudyTargetKind};
use iosonde_study::sweep::{
    Axis, Base, CurvePlan, JobExtent, LEAST_BUDGET_NS, SweepGrid, SweepOptions, SweepResult,
    SweepTarget, WORKING_SET, announcement, parse_axes, planned_time, run_sweep,
};
use iosonde_study::{CutShort, StudyDriver};
use swept_job_file::{base_text, is_job_file, read_job_file};

/// Limit on cells without `--yes`.
const MOST_CELLS: usize = 10_000;
/// Default limit on the warm-up of caches, in measured times of a cell.
const WARM_UP_RUNTIMES: u64 = 5;
/// Assumed free space of a volume in a dry run, which does not ask the cluster.
const UNKNOWN_FREE_BYTES: u64 = 1 << 50;

/// Measures the grid and prints the result.
pub(crate) fn run(args: &SweepArgs) -> Result<(), CommandError> {
    let is_searched = !args.exhaustive && args.working_set.is_none();
    if is_searched && args.budget.is_some_and(|ns| ns < LEAST_BUDGET_NS) {
        let least_s = LEAST_BUDGET_NS / 1_000_000_000;
        return Err(CommandError::usage(
            "--budget is too short to measure a curve",
            format!("use --budget {least_s}s or more; --dry-run shows the time of the whole sweep"),
        ));
    }
    refuse_predictions_for_pods(args, args.pods.pods().is_some())?;
    let asked = SweepRequest::parse(args)?;
    let (consent, targets) = (&args.written.consent, &asked.targets);
    consent::refuse_unmatched(consent, targets, asked.job_file.is_some())?;
    refuse_unused_options(targets, &args.cluster)?;
    cold::announce(args.cold.layers(), targets, &args.cluster)?;
    if args.dry_run {
        return dry_run(args, &asked);
    }
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.written.output.as_deref())?;
    measure(args, &asked, &stop, &mut history_writer, output)
}

/// Refuses several pods unless every cell is measured.
fn refuse_predictions_for_pods(args: &SweepArgs, has_pods: bool) -> Result<(), CommandError> {
    if !has_pods || args.exhaustive && args.working_set.is_none() {
        return Ok(());
    }
    Err(CommandError::usage(
        "several pods require --exhaustive: predictions hold for one pod only",
        "add --exhaustive, which measures every cell, and leave out --working-set",
    ))
}

fn print(
    args: &SweepArgs,
    result: &SweepResult,
    id: Option<&str>,
    mut output: Output,
) -> Result<(), CommandError> {
    let text = match args.written.format {
        TextFormat::Table if !args.details => {
            let options = super::show_command::store_options(&args.keep);
            let text = report::sweep::short(result, (id, options.as_str()), output.style());
            output.write_styled(&text)?;
            return output.finish();
        }
        TextFormat::Table => report::sweep::table(result),
        TextFormat::Json => report::sweep::sweep_json(result)?,
        TextFormat::Csv => report::sweep::sweep_cells_csv(result),
        TextFormat::Markdown => report::sweep::markdown(result),
    };
    output.save(&text)
}

/// Prints the planned measurement. Creates, reads and writes nothing on targets.
fn dry_run(args: &SweepArgs, asked: &SweepRequest) -> Result<(), CommandError> {
    let (mut targets, mut failures) = (Vec::new(), Vec::new());
    for name in &asked.targets {
        match planned_target(name, args, asked) {
            Ok(target) => targets.push(target),
            Err(failure) => failures.push(failure),
        }
    }
    report_all(failures)?;
    let grid = asked.grid(&targets)?;
    let announcement = announcement(&targets, &grid, &options(args))?;
    let output = Output::open_report(args.written.output.as_deref())?;
    let jobs = grid.curves.iter().map(|curve| &curve.job);
    let text = report::sweep::dry_run(&announcement, &crate::live::overwrite_warning)
        + &asked.outside.listed(jobs);
    output.save(&report::text_table::fit_lines(&text))
}

/// A target as a sweep would find it, without creating its file or pod.
fn planned_target(
    name: &str,
    args: &SweepArgs,
    asked: &SweepRequest,
) -> Result<SweepTarget, CommandError> {
    let (kind, usual_bytes) = match cluster::target_within(name, &args.cluster)? {
        Some((target, cluster)) => {
            let options = cluster::options_of_pods(target, &cluster, args.pods.pods())?;
            let pods = args.pods.pods().and_then(|pods| pods.count);
            let usual_bytes = ProbeBudget::NORMAL.size_bytes;
            let free_bytes = UNKNOWN_FREE_BYTES;
            (
                StudyTargetKind::Directory { free_bytes },
                cluster::working_set(&options, pods.unwrap_or(1) as usize, usual_bytes),
            )
        }
        None => {
            let (consent, access) = (&args.written.consent.allow_overwrite, args.ceph.access());
            (target::check(name, consent, &access)?, None)
        }
    };
    let target = StudyTarget {
        name: name.to_owned(),
        path: name.to_owned(),
        kind,
    };
    Ok(SweepTarget::for_jobs(
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

/// The parsed command line.
struct SweepRequest {
    base: Base,
    job_file: Option<String>,
    targets: Vec<String>,
    axes: Vec<Axis>,
    /// Extent of a target that the jobs of the file use.
    reach: JobExtent,
    /// Permitted accesses outside of the targets.
    outside: Outside,
    /// The neighbour of each cell.
    neighbour: Option<Neighbour>,
    /// Errors of the axes, which are reported with those of the grid.
    errors: Diagnostics,
}

impl SweepRequest {
    fn parse(args: &SweepArgs) -> Result<SweepRequest, CommandError> {
        let env = SystemEnv::default();
        let (files, targets): (Vec<&String>, Vec<&String>) =
            args.targets.iter().partition(|name| is_job_file(name));
        let (base, job_file) = match files[..] {
            [] => (Base::Plain, None),
            [name] => (read_job_file(name, &env)?, Some(name.clone())),
            _ => {
                return Err(CommandError::usage(
                    "more than one job file is given",
                    "sweep one job file at a time, or put the jobs into one file, each with \
                     `stonewall`",
                ));
            }
        };
        let mut given = args.axes.clone();
        let is_depth = |name: &str| find_option(name).is_some_and(|row| row.name == "iodepth");
        if let Some(sizes) = &args.working_set {
            if !given.iter().any(|(name, _)| is_depth(name)) {
                // At higher iodepth, latency includes queueing.
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
        refuse_repeated_targets(&targets, &mut errors);
        let within = (&args.cluster, &args.written.consent, &args.ceph);
        let mut asked = SweepRequest {
            neighbour: neighbour_on(&args.beside, &targets, within)?,
            base,
            job_file,
            targets,
            axes,
            reach: JobExtent {
                bytes: 0,
                device_bytes: 0,
                is_open: true,
            },
            outside: Outside::from_args(&args.outside, std::iter::empty())?,
            errors,
        };
        // Limits the cells of the axes, then of the grid, before anything is created.
        asked.bounded(cells, args.yes)?;
        let grid = asked.grid(&[])?;
        asked.bounded(
            grid.cells().saturating_mul(asked.targets.len().max(1)),
            args.yes,
        )?;
        asked.refuse_depth_without_effect(&grid)?;
        let jobs = || grid.curves.iter().map(|curve| &curve.job);
        report_all(asked.outside.refused(jobs()))?;
        asked.outside = Outside::from_args(&args.outside, jobs())?;
        asked.reach = grid.reach();
        if asked.targets.is_empty() {
            refuse_broken_uris(jobs())?;
        }
        let replaced = (&asked.targets[..], UnusedNames::All);
        if let Some(note) = unused_file_names(asked.job_file.as_deref(), replaced, jobs()) {
            eprintln!("note: {note}");
        }
        Ok(asked)
    }

    /// Refuses axes over iodepth with an engine that ignores it, unless a target sets the engine.
    fn refuse_depth_without_effect(&self, grid: &SweepGrid) -> Result<(), CommandError> {
        let all_keep = self.targets.iter().all(|name| keeps_engine(name));
        let Some(plan) = grid.without_effect_of_depth().filter(|_| all_keep) else {
            return Ok(());
        };
        let file = self.job_file.as_deref().unwrap_or("sweep");
        Err(CommandError::usage(
            format!("{file}: {}", depths_are_the_same(plan)),
            "use an asynchronous engine with --ioengine io_uring (or ioengine= in the job file), \
             or vary numjobs instead: --iodepth 1 --numjobs 1..64",
        ))
    }

    /// Refuses grids with too many cells.
    fn bounded(&self, cells: usize, is_meant: bool) -> Result<(), CommandError> {
        if cells <= MOST_CELLS || is_meant {
            return Ok(());
        }
        let mut errors = self.errors.clone();
        errors.push(
            Diagnostic::error(format!(
                "the grid has {cells} cells; the limit is {MOST_CELLS}"
            ))
            .help("leave out values, or permit this number with --yes"),
        );
        Err(CommandError::Jobs(Box::new(errors)))
    }

    /// The name of the study in the history: the job file, or the targets.
    fn study_name(&self) -> String {
        match &self.job_file {
            Some(file) => file.clone(),
            None => self.targets.join(" "),
        }
    }

    /// The largest working set of the cells.
    fn size(&self) -> Option<u64> {
        let axis = self.axes.iter().find(|axis| axis.name == WORKING_SET)?;
        let sizes = axis
            .values
            .iter()
            .filter_map(|value| bytes(value, Bytes::Binary).ok());
        sizes.max()
    }

    fn grid(&self, targets: &[SweepTarget]) -> Result<SweepGrid, CommandError> {
        let made = SweepGrid::new(&self.base, targets, &self.axes, &SystemEnv::default());
        match (made, self.errors.has_errors()) {
            (Ok(grid), false) => Ok(grid),
            (Ok(_), true) => Err(CommandError::Jobs(Box::new(self.errors.clone()))),
            (Err(found), false) => Err(CommandError::Jobs(Box::new(found))),
            (Err(mut found), true) => {
                // Errors of axes have no position in a file and go first.
                found.list.splice(0..0, self.errors.list.iter().cloned());
                Err(CommandError::Jobs(Box::new(found)))
            }
        }
    }
}

fn refuse_repeated_targets(targets: &[String], errors: &mut Diagnostics) {
    for (index, name) in targets.iter().enumerate() {
        if targets[..index].contains(name) {
            errors.push(
                Diagnostic::error(format!("{name} is given twice"))
                    .help("name each target once; `iosonde probe` compares a target with itself"),
            );
        }
    }
}

/// Whether jobs on a target use the engine that they name.
pub(super) fn keeps_engine(target: &str) -> bool {
    !is_simulated_name(target) && !matches!(ceph::target(target), Ok(Some(_)))
}

/// The problem with axes over iodepth for a synchronous engine.
pub(super) fn depths_are_the_same(plan: &CurvePlan) -> String {
    format!("{}, so iodepth has no effect", plan.one_in_flight())
}

fn measure(
    args: &SweepArgs,
    asked: &SweepRequest,
    stop: &StopSignal,
    history_writer: &mut HistoryWriter,
    output: Output,
) -> Result<(), CommandError> {
    let mut live = SweepLive::new(stop.clone());
    let (mut reporters, interrupts) = (setup_reporters(&asked.targets), || stop.interrupt.count());
    let (consent, cold) = (args.written.consent.noted(), args.cold.layers());
    let mut session = TargetSession::open(
        &asked.targets,
        &consent,
        (&args.cluster, args.pods.pods(), &args.ceph, cold),
        stop,
        &interrupts,
        &mut reporters,
        &mut |note| live.line(note),
    )?;
    // How many pods a selector matches is known only now.
    refuse_predictions_for_pods(args, session.parties() > 1)?;
    let neighbours = session.neighbours(asked.neighbour.as_ref())?;
    let (targets, grid) = plan_grid(asked, &mut session, &consent)?;
    let options = options(args);
    let of_sweep = (&grid, &options, session.parties());
    let journal = open_journal(args, asked, of_sweep, &consent, &live)?;
    let so_far = journal.so_far();
    live.journal(journal);
    history_writer.begin("sweep", &asked.study_name());
    let mut history_hook = HistoryHook {
        writer: history_writer,
        stored: StoredRuns::All,
    };
    beforehand::warn_of_noise(&asked.targets, &args.cluster);
    let (most_ns, access) = (planned_time(&grid, &options).most_ns, args.ceph.access());
    let mut quiet_device = QuietDeviceHook::new(&targets, &access, stop.clone(), most_ns);
    let root = args.export_fio.as_deref();
    let mut fio_export = root.map(|root| FioExportHook::new(root, &targets, &grid, stop.clone()));
    let driver = StudyDriver::new(&mut session, &mut live).with_neighbours(neighbours);
    let mut driver = driver.with_hook(&mut quiet_device);
    if let Some(fio_export) = &mut fio_export {
        driver = driver.with_hook(fio_export);
    }
    let mut driver = driver.with_hook(&mut history_hook);
    let outcome = run_sweep(&mut driver, &targets, &grid, &options, so_far);
    drop(driver);
    let mut notes = quiet_device.notes();
    notes.extend(fio_export.iter().flat_map(FioExportHook::notes));
    live.finish();
    notes.extend(session.notes());
    let mut result = match outcome {
        Ok(result) => result,
        Err(error) => {
            live.give_up();
            return Err(nothing_found(error, history_writer, Box::new(session)));
        }
    };
    result.job_file.clone_from(&asked.job_file);
    result.notes.extend(notes);
    conclude(
        args,
        (stop, &mut live),
        (history_writer, output),
        session,
        result,
    )
}

/// Plans the cells on the opened targets. Permits and relocates what the jobs access elsewhere.
fn plan_grid(
    asked: &SweepRequest,
    session: &mut TargetSession<'_>,
    consent: &Consent,
) -> Result<(Vec<SweepTarget>, SweepGrid), CommandError> {
    let targets: Vec<SweepTarget> = session
        .all
        .iter()
        .map(|place| {
            SweepTarget::for_jobs(&place.target, asked.reach, asked.size(), place.size_bytes)
        })
        .collect::<Result<_, _>>()?;
    let mut grid = asked.grid(&targets)?;
    session.permit_outside(&asked.outside, &grid)?;
    for curve in &mut grid.curves {
        asked.outside.relocate(&mut curve.job);
    }
    if targets.is_empty() {
        session.keep_what_is_there(&grid, consent);
    }
    Ok((targets, grid))
}

/// Opens the journal of the sweep. It belongs to these targets, jobs, axes, options and pods.
fn open_journal(
    args: &SweepArgs,
    asked: &SweepRequest,
    (grid, options, parties): (&SweepGrid, &SweepOptions, u32),
    consent: &Consent,
    live: &SweepLive,
) -> Result<SweepJournal, CommandError> {
    SweepJournal::open(
        directory(args.keep.store.as_deref(), "sweeps").as_deref(),
        &SweepJournalKey::new(
            &asked.targets,
            base_text(&asked.base),
            (grid, options),
            args.pods.pods().map(|pods| (pods, parties)),
        )
        .beside(asked.neighbour.as_ref())
        .cold(args.cold.layers()),
        grid.curves.len(),
        (Beginning::of_flag(args.resume), &consent.targets),
        &mut |note| live.line(note),
    )
}

/// Stores and prints the result, then removes the resources of the targets.
fn conclude(
    args: &SweepArgs,
    (stop, live): (&StopSignal, &mut SweepLive),
    (history_writer, output): (&mut HistoryWriter, Output),
    session: TargetSession<'_>,
    result: SweepResult,
) -> Result<(), CommandError> {
    let status = |is_written: bool| {
        // A spent budget keeps the journal, so that the sweep can be resumed.
        let is_spent = args.budget.is_some() && !result.is_complete();
        live.conclude(&result, is_spent || !is_written);
        let cause = result.cause.clone().map(CutShort::from);
        stop.conclude_study(cause, result.failure.clone())
    };
    conclude_study(
        history_writer,
        &result,
        |id| print(args, &result, id, output),
        status,
        Box::new(session),
    )
}
