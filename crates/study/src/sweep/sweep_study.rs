//! Runs the sweep: layout, measurement of the grid, result.

use super::advice::Advice;
use super::announce::{extent, is_laid_out, layout_bytes};
use super::consent::consent;
use super::curve_result::{CurveResult, CurveState, SweepCell};
use super::grid::SweepGrid;
use super::order::spread;
use super::sweep_options::SweepOptions;
use super::sweep_result::{FORMAT, SweepResult};
use super::{cache, predict};
use crate::announcement::{Announcement, SweepAnnouncement};
use crate::driver::{
    DirectIo, MAY_BE_CACHED, Study, StudyDriver, StudyEnding, first_failure, is_direct_refused,
    run_study,
};
use crate::error::StudyError;
use crate::event::{StudyEvent, StudyObserver, StudyStep};
use crate::figures::cell::CellRecord;
use crate::figures::curve_plan::CurvePlan;
use crate::figures::saturation_result::Saturation;
use crate::figures::search_rules::{Ended, SearchRules};
use crate::job_template::{JobTemplate, LAYOUT_BLOCK_BYTES, LAYOUT_DEPTH};
use crate::layout_time::LayoutTime;
use crate::random_order::shuffled;
use crate::saturation::{CurveLog, KneeQuery, SearchProgress, record_option, resume_search};
use crate::study_target::StudyTargetKind;
use crate::sweep_target::SweepTarget;
use iosonde_job::plan::{Direction, Job, Plan, RandomMap};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// Measures a grid. `so_far` has the curves' states from a stopped sweep, in order, or is empty.
///
/// # Errors
/// If nothing was measured. A failed target ends only itself: see [`SweepResult::failure`].
pub fn sweep(
    session: &mut dyn Session,
    targets: &[SweepTarget],
    grid: &SweepGrid,
    options: &SweepOptions,
    so_far: Vec<SearchProgress>,
    observer: &mut dyn StudyObserver,
) -> Result<SweepResult, StudyError> {
    let driver = &mut StudyDriver::new(session, observer);
    run_sweep(driver, targets, grid, options, so_far)
}

/// Runs a sweep with a driver, which may have hooks.
///
/// # Errors
/// As [`sweep`].
pub fn run_sweep(
    driver: &mut StudyDriver<'_>,
    targets: &[SweepTarget],
    grid: &SweepGrid,
    options: &SweepOptions,
    so_far: Vec<SearchProgress>,
) -> Result<SweepResult, StudyError> {
    consent(targets, grid)?;
    let study = SweepStudy::new(targets, grid, options, so_far);
    run_study(study, driver)
}

/// Progress of a curve.
pub(super) struct CurveProgress {
    pub(super) log: CurveLog,
    pub(super) found: Option<Saturation>,
    pub(super) complete: bool,
    /// Whether more time brought no progress.
    pub(super) exhausted: bool,
}

/// Reason why measurements on a target ended.
#[derive(Clone)]
pub(super) struct TargetEnd {
    pub(super) why: String,
    /// Error of the run without a result, if that is the reason.
    pub(super) cause: Option<RunError>,
}

/// A sweep of a grid.
pub(super) struct SweepStudy<'a> {
    pub(super) targets: &'a [SweepTarget],
    pub(super) grid: &'a SweepGrid,
    pub(super) options: &'a SweepOptions,
    pub(super) curves: Vec<CurveProgress>,
    /// Reason why measurements on each target ended. `None` for targets in use.
    pub(super) ended: Vec<Option<TargetEnd>>,
    /// First error that ended a target.
    first_error: Option<StudyError>,
    /// Error that ended the sweep without a result.
    fatal: Option<StudyError>,
    /// Layout time per byte of each target. `None` without layout.
    pub(super) ns_per_byte: Vec<Option<f64>>,
    /// Time of this sweep's runs, without those of a resumed sweep.
    pub(super) spent_ns: u64,
}

impl Study for SweepStudy<'_> {
    type Outcome = SweepResult;

    fn announcement(&self) -> Announcement<'_> {
        let known = self
            .curves
            .iter()
            .map(|curve| curve.log.so_far.records.len());
        Announcement::Sweep(SweepAnnouncement {
            planned: self.unknown_time(),
            known_cells: known.sum(),
            ..extent(self.targets, self.grid, self.options)
        })
    }

    fn measure(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        driver.set_direct(self.direct_io());
        driver.note_each_once();
        self.note_one_in_flight(driver);
        // The results of a stopped sweep do not count after such an error.
        self.fatal = self.measure_grid(driver).err();
        self.note_cached_reads(driver);
        self.note_changed_cells(driver);
        if self.fatal.is_none() && !self.options.is_exhaustive() {
            self.judge_unsearched(driver);
        }
        Ok(())
    }

    fn conclude(mut self, ending: StudyEnding) -> Result<SweepResult, StudyError> {
        if let Some(error) = self.fatal.take() {
            return Err(error);
        }
        let mut curves = self.curves.iter();
        if curves.all(|curve| curve.log.so_far.records.is_empty()) {
            return Err(self.nothing_measured(ending.is_interrupted));
        }
        let axes = &self.grid.axes[..self.grid.axes.len() - 1];
        let depths = self.grid.all_depths();
        let plans = self.grid.curves.iter().zip(&mut self.curves);
        let mut curves: Vec<CurveResult> = plans
            .map(|(plan, progress)| curve_result(plan, progress, &depths))
            .collect();
        let warm = self.options.most_warmup_ns.is_some();
        let (advice, caches) = match warm {
            // Advice compares depths, and here there is one.
            true => (
                Advice::default(),
                cache::infer(&self.grid.curves, &curves, axes),
            ),
            false => (Advice::from_curves(&curves, axes), Vec::new()),
        };
        predict::across(&mut curves, axes);
        let end = self.ended.into_iter().flatten().next();
        let (failure, cause) = end.map(|end| (end.why, end.cause)).unzip();
        let names = self.targets.iter().map(|target| target.name.clone());
        Ok(SweepResult {
            format: FORMAT,
            targets: names.collect(),
            job_file: None,
            options: self.options.clone(),
            axes: self.grid.axes.clone(),
            curves,
            advice,
            caches,
            spent_ns: self.spent_ns,
            interrupted: ending.is_interrupted,
            failure,
            cause: cause.flatten(),
            notes: ending.notes,
        })
    }
}

impl<'a> SweepStudy<'a> {
    fn new(
        targets: &'a [SweepTarget],
        grid: &'a SweepGrid,
        options: &'a SweepOptions,
        so_far: Vec<SearchProgress>,
    ) -> SweepStudy<'a> {
        let known = so_far
            .into_iter()
            .chain(std::iter::repeat_with(SearchProgress::default));
        let plans = grid.curves.iter().enumerate();
        let curves = plans.zip(known).map(|((curve, plan), so_far)| {
            let varied: String = varied_values(grid, plan)
                .map(|value| format!("{value}, "))
                .collect();
            CurveProgress {
                log: CurveLog {
                    curve,
                    name: Some(varied),
                    ..CurveLog::resuming(so_far)
                },
                found: None,
                complete: false,
                exhausted: false,
            }
        });
        // Without targets, all jobs use their own files.
        let count = targets.len().max(1);
        SweepStudy {
            targets,
            grid,
            options,
            curves: curves.collect(),
            ended: vec![None; count],
            first_error: None,
            fatal: None,
            ns_per_byte: vec![None; count],
            spent_ns: 0,
        }
    }

    /// Returns the use of O_DIRECT on each target, or for the files of the jobs.
    fn direct_io(&self) -> Vec<DirectIo> {
        let names = self.targets.iter().map(|target| target.name.as_str());
        let files = self.targets.is_empty().then_some("the job's files");
        let each = names.chain(files).map(|name| DirectIo {
            is_used: true,
            note_if_refused: format!("{name}: {MAY_BE_CACHED}"),
        });
        each.collect()
    }

    fn measure_grid(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        self.lay_out(driver)?;
        match self.options.is_exhaustive() {
            true => self.measure_cells(driver),
            false => self.search_curves(driver),
        }
    }

    /// Returns the error of a sweep that measured nothing.
    fn nothing_measured(self, is_interrupted: bool) -> StudyError {
        let mut failures = self
            .curves
            .into_iter()
            .filter_map(|curve| curve.log.failure);
        let failure = failures.next().map(|failure| StudyError::Io {
            target: None,
            failure: failure.into(),
        });
        let of_target = self.first_error.filter(|_| !is_interrupted);
        let nothing = || RunError::without_figures(is_interrupted).into();
        failure.or(of_target).unwrap_or_else(nothing)
    }

    /// Reports curves whose depth is not varied.
    fn note_one_in_flight(&self, driver: &mut StudyDriver<'_>) {
        let grid = self.grid;
        if !grid.leaves_out_depths() {
            return;
        }
        for plan in grid.curves.iter().filter(|plan| plan.is_synchronous()) {
            let why = plan.one_in_flight();
            driver.note(format!("{why}, so only iodepth 1 is measured"));
        }
    }

    // --- layout ---

    fn lay_out(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        let targets = self.targets;
        for (index, target) in targets.iter().enumerate() {
            if !is_laid_out(target) || driver.is_interrupted() {
                continue;
            }
            let is_only = targets.len() == 1;
            let error = match self.write(driver, index) {
                Err(RunError::Interrupted) => return Err(RunError::Interrupted.into()),
                Err(error) if is_only => return Err(error.into()),
                Err(error) => {
                    self.lose_target(driver, index, &error);
                    error.into()
                }
                Ok(result) => {
                    let Some(failure) = first_failure(&result) else {
                        let ns_per_byte = result.elapsed_ns as f64 / target.bytes.max(1) as f64;
                        self.ns_per_byte[index] = Some(ns_per_byte);
                        continue;
                    };
                    if !is_only {
                        self.fail_target(driver, index, &failure);
                    }
                    StudyError::Io {
                        target: None,
                        failure: failure.into(),
                    }
                }
            };
            if is_only {
                return Err(error);
            }
            self.first_error.get_or_insert(error);
        }
        Ok(())
    }

    /// Writes the working set of a target.
    fn write(&self, driver: &mut StudyDriver<'_>, index: usize) -> Result<RunResult, RunError> {
        let target = &self.targets[index];
        let step = StudyStep::Layout {
            target: &target.name,
        };
        driver.emit(&StudyEvent::StepStarted {
            step,
            planned_ns: None,
        });
        let later_bytes = layout_bytes(&self.targets[index + 1..]) + self.unknown_last_bytes();
        driver.attempt_direct(
            index,
            |driver, direct| {
                let time = LayoutTime::new(target.bytes, later_bytes, Some(self.unknown_time()));
                driver.run_layout(&layout(target, direct), time, &mut ())
            },
            is_direct_refused,
        )
    }

    /// Reports a unit without completions. The sweep continues with the next unit.
    pub(super) fn note_silence(
        &self,
        driver: &mut StudyDriver<'_>,
        index: usize,
        iodepth: Option<u32>,
    ) {
        let varied = varied_values(self.grid, &self.grid.curves[index]);
        let mut place: Vec<String> = varied.cloned().collect();
        place.extend(iodepth.map(|iodepth| format!("iodepth {iodepth}")));
        if !place.is_empty() {
            let place = place.join(", ");
            driver.note(format!("{place}: no I/O completed in the available time"));
        }
    }

    // --- order and time ---

    /// Returns the position of a curve along each axis, from 0 to 1.
    pub(super) fn place(&self, plan: &CurvePlan) -> Vec<f64> {
        let pairs = self.grid.axes.iter().zip(&plan.at);
        pairs
            .map(|(axis, at)| *at as f64 / (axis.values.len().max(2) - 1) as f64)
            .collect()
    }

    pub(super) fn order(&self, places: &[Vec<f64>]) -> Vec<usize> {
        let order = shuffled(places.len(), self.options.seed);
        match self.options.budget_ns {
            Some(_) => spread(places, order),
            None => order,
        }
    }

    /// Returns the job of a curve, with O_DIRECT only if the target does not refuse it.
    pub(super) fn job(&self, plan: &CurvePlan, direct: bool) -> Job {
        let mut job = plan.job.clone();
        job.io.direct &= direct;
        job.workload.randseed = job.workload.randseed.or(Some(self.options.seed));
        if self.options.most_warmup_ns.is_some() {
            // A random map would return to a block only after a pass: LRU caches have evicted it.
            job.workload.random_map = RandomMap::None;
            record_option(&mut job, "norandommap", String::new());
        }
        job
    }

    /// Ends the target of a run without a result, or the sweep if nothing has been measured.
    pub(super) fn survive(
        &mut self,
        driver: &mut StudyDriver<'_>,
        target: usize,
        error: RunError,
    ) -> Result<(), StudyError> {
        let mut curves = self.curves.iter();
        let anything = curves.any(|curve| !curve.log.so_far.records.is_empty());
        match error {
            RunError::Interrupted | RunError::NoCompletions => Ok(()),
            error if !anything && self.ended.len() == 1 => Err(error.into()),
            error => {
                self.lose_target(driver, target, &error);
                self.first_error.get_or_insert(error.into());
                Ok(())
            }
        }
    }

    /// Judges a curve from its records: resumes its search without time to measure more.
    pub(super) fn judge(&mut self, driver: &mut StudyDriver<'_>, index: usize) {
        let plan = &self.grid.curves[index];
        let depths = self.grid.depths_of(plan);
        let progress = &mut self.curves[index];
        if progress.log.so_far.records.is_empty() {
            return;
        }
        let query = KneeQuery {
            job: &plan.job,
            depths,
            jobs: &[plan.job.numjobs],
            rules: SearchRules {
                budget_ns: 0,
                between: false,
                ..SearchRules::THOROUGH
            },
            most_cell_ns: None,
            continues_region: false,
        };
        let mut log = progress.log.clone();
        log.so_far.records.sort_by_key(CellRecord::iodepth);
        log.so_far.spent_ns = log.so_far.spent_ns.max(1);
        progress.complete = log.so_far.records.len() == depths.len();
        progress.found = resume_search(driver, &query, &mut log).ok();
        if let Some(found) = progress.found.as_mut().filter(|_| progress.complete) {
            found.ended = Ended::Sure;
        }
    }

    /// Judges curves of a resumed sweep that this sweep did not reach.
    fn judge_unsearched(&mut self, driver: &mut StudyDriver<'_>) {
        for index in 0..self.curves.len() {
            if self.curves[index].found.is_none() {
                self.judge(driver, index);
                self.curves[index].complete = false;
            }
        }
    }
}

fn curve_result(plan: &CurvePlan, progress: &mut CurveProgress, depths: &[u32]) -> CurveResult {
    let found = progress.found.take();
    let block = &plan.job.workload.block_size;
    let directions = Direction::ALL
        .into_iter()
        .filter(|d| plan.job.workload.rw.has(*d));
    CurveResult {
        values: plan.values.clone(),
        rw: plan.job.workload.rw.name().to_owned(),
        block_bytes: directions.map(|d| block[d].max()).max().unwrap_or(0),
        numjobs: plan.job.numjobs,
        state: match (&found, progress.complete) {
            (None, _) => CurveState::NotMeasured,
            (Some(_), false) => CurveState::Partial,
            (Some(_), true) => CurveState::Complete,
        },
        cells: match &found {
            Some(found) if plan.is_synchronous() => predict::measured(depths, found),
            Some(found) => predict::along(depths, found),
            None => depths.iter().copied().map(SweepCell::unknown).collect(),
        },
        saturation: found,
        failure: progress.log.failure.take(),
        storage: progress.log.storage.take(),
        in_memory: progress.log.in_memory.take(),
        ceph: progress.log.ceph.take(),
    }
}

/// Plan that writes the working set sequentially.
fn layout(target: &SweepTarget, direct: bool) -> Plan {
    let template = JobTemplate {
        path: &target.path,
        bytes: target.bytes,
        direct,
        seed: None,
        sim: None,
        consent: matches!(target.kind, StudyTargetKind::Existing { consent: true, .. }),
    };
    template.sequential_write("layout", LAYOUT_BLOCK_BYTES, LAYOUT_DEPTH)
}

/// Returns the values of a curve along the axes that have several.
pub(super) fn varied_values<'a>(
    grid: &'a SweepGrid,
    plan: &'a CurvePlan,
) -> impl Iterator<Item = &'a String> {
    let pairs = grid.axes.iter().zip(&plan.values);
    let varied = pairs.filter(|(axis, _)| axis.values.len() > 1);
    varied.map(|(_, value)| value)
}
