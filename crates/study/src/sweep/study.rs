//! Measuring the grid.

use super::advice::Advice;
use super::announce::{Announcement, announcement, is_laid_out, layout_bytes, writes};
use super::cache;
use super::grid::{CurvePlan, Grid};
use super::order::{shuffled, spread};
use super::outcome::{CurveResult, CurveState, FORMAT, SweepCell, SweepResult};
use super::place::Misplaced;
use super::predict;
use super::target::SweepTarget;
use super::times::LEAST_CURVE_NS;
use super::watch::SweepWatcher;
use crate::layout_time::LayoutTime;
use crate::probe::{TargetKind, WorkingSetError, is_direct_refused};
use crate::saturation::{Ended, Question, Record, Rules, Saturation, SoFar, give, go_on};
use iosonde_job::plan::{
    BlockSize, Direction, Engine, Extent, Job, Mode, PerDirection, Plan, RandomMap, ReadWrite,
};
use iosonde_result::ceph::CephSide;
use iosonde_result::observer::{Control, Observer, Progress};
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::session::{RunError, Session};
use iosonde_result::storage::StorageUsed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The least budget with which anything is measured.
pub const LEAST_BUDGET_NS: u64 = LEAST_CURVE_NS;
/// errno of a system call that refuses its arguments: what O_DIRECT meets where it is not supported.
const EINVAL: i32 = 22;

/// How a sweep is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepOptions {
    /// Whether every cell is measured.
    pub exhaustive: bool,
    /// Measured time of a cell of the grid, in nanoseconds. A curve that is searched takes a tenth of what its cells would.
    pub runtime_ns: u64,
    /// Time of all runs together, in nanoseconds: where it is not enough for all, what tells most comes first.
    pub budget_ns: Option<u64>,
    /// Seed of the order and of the offsets.
    pub seed: u64,
    /// Every cell is measured once its caches are warm, for which so many nanoseconds are waited at most: the working set is
    /// an axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_warmup_ns: Option<u64>,
}

impl SweepOptions {
    /// Whether every cell is measured.
    pub(super) fn is_exhaustive(&self) -> bool {
        self.exhaustive || self.most_warmup_ns.is_some()
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// Targets that are not to be written.
    #[error("{}: what it holds would be overwritten by {what}", targets.join(", "))]
    Consent {
        /// As the user wrote them.
        targets: Vec<String>,
        /// The pattern that writes.
        what: String,
    },
    /// The working set does not fit.
    #[error("{target}: {source}")]
    WorkingSet {
        /// The target as the user wrote it.
        target: String,
        /// Why.
        source: WorkingSetError,
    },
    /// A job cannot be put on its target.
    #[error(transparent)]
    Misplaced(Misplaced),
    /// A run has no result, and none before it had one.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Nothing could be measured.
    #[error("{}", .0.message)]
    Io(Box<IoFailure>),
}

/// Measures a grid; `so_far` is what an earlier sweep found of each curve, in the grid's order, or empty.
///
/// # Errors
/// When nothing could be measured. A target that fails ends the sweep for itself only; see [`SweepResult::failure`].
pub fn sweep(
    session: &mut dyn Session,
    targets: &[SweepTarget],
    grid: &Grid,
    options: &SweepOptions,
    so_far: Vec<SoFar>,
    watcher: &mut dyn SweepWatcher,
) -> Result<SweepResult, SweepError> {
    let known = so_far
        .into_iter()
        .chain(std::iter::repeat_with(SoFar::default));
    let curves = known.take(grid.curves.len()).map(Standing::of).collect();
    let mut study = Study {
        session,
        targets,
        grid,
        options,
        watcher,
        curves,
        ended: vec![None; targets.len().max(1)],
        first_error: None,
        buffered: vec![false; targets.len().max(1)],
        ns_per_byte: vec![None; targets.len().max(1)],
        notes: Vec::new(),
        spent_ns: 0,
    };
    study.announce()?;
    study.note_one_in_flight();
    study.lay_out()?;
    match options.is_exhaustive() {
        true => study.measure_cells()?,
        false => study.search_curves()?,
    }
    study.conclude()
}

/// Refuses patterns that write to what is somebody's, before anything is run.
///
/// # Errors
/// [`SweepError::Consent`] with all such targets.
pub fn consent(targets: &[SweepTarget], grid: &Grid) -> Result<(), SweepError> {
    let is_kept = |plan: &&CurvePlan| {
        let kind = targets.get(plan.target).map(|target| &target.kind);
        kind.is_some_and(|kind| !kind.is_writable()) && writes(plan)
    };
    let mut refused: Vec<&CurvePlan> = grid.curves.iter().filter(is_kept).collect();
    refused.sort_by_key(|plan| plan.target);
    let Some(first) = refused.first() else {
        return Ok(());
    };
    let mut names: Vec<String> = refused
        .iter()
        .map(|p| targets[p.target].name.clone())
        .collect();
    names.dedup();
    Err(SweepError::Consent {
        targets: names,
        what: first.job.workload.rw.name().to_owned(),
    })
}

/// Where a curve stands.
pub(super) struct Standing {
    pub(super) so_far: SoFar,
    pub(super) found: Option<Saturation>,
    pub(super) failure: Option<IoFailure>,
    pub(super) complete: bool,
    /// More time was of no use.
    pub(super) exhausted: bool,
    /// By which way its runs came to their storage.
    pub(super) storage: Option<StorageUsed>,
    /// The cluster's side of them.
    pub(super) ceph: Option<CephSide>,
    /// Stops of the process that are yet to be told.
    pub(super) stops: Vec<String>,
}

impl Standing {
    fn of(so_far: SoFar) -> Standing {
        Standing {
            so_far,
            found: None,
            failure: None,
            complete: false,
            exhausted: false,
            storage: None,
            ceph: None,
            stops: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, record: &Record, spent_ns: u64) {
        self.so_far
            .records
            .retain(|known| !known.is_of_same_cell(record));
        self.so_far.records.push(record.clone());
        self.so_far.spent_ns = spent_ns;
    }
}

/// Why nothing more can be measured on a target.
#[derive(Clone)]
pub(super) struct Ending {
    why: String,
    /// The run without a result that is behind it.
    cause: Option<RunError>,
}

pub(super) struct Study<'a> {
    pub(super) session: &'a mut dyn Session,
    pub(super) targets: &'a [SweepTarget],
    pub(super) grid: &'a Grid,
    pub(super) options: &'a SweepOptions,
    pub(super) watcher: &'a mut dyn SweepWatcher,
    pub(super) curves: Vec<Standing>,
    /// Of each target: why nothing more can be measured on it.
    pub(super) ended: Vec<Option<Ending>>,
    /// Why the first of them was.
    first_error: Option<SweepError>,
    /// Of each target: whether it refuses O_DIRECT.
    pub(super) buffered: Vec<bool>,
    /// Of each target: what a byte of its layout took, where it was laid out.
    pub(super) ns_per_byte: Vec<Option<f64>>,
    pub(super) notes: Vec<String>,
    /// Of this sweep, not of earlier ones that it goes on from.
    pub(super) spent_ns: u64,
}

impl Study<'_> {
    fn announce(&mut self) -> Result<(), SweepError> {
        let known = self.curves.iter().map(|curve| curve.so_far.records.len());
        let announcement = Announcement {
            planned: self.unknown_time(),
            known_cells: known.sum(),
            ..announcement(self.targets, self.grid, self.options)?
        };
        self.watcher.begin(&announcement);
        Ok(())
    }

    /// Says of which curves the depth is not varied.
    fn note_one_in_flight(&mut self) {
        let grid = self.grid;
        if !grid.leaves_out_depths() {
            return;
        }
        for plan in grid.curves.iter().filter(|plan| plan.is_synchronous()) {
            let why = plan.one_in_flight();
            self.note(format!("{why}, so that it is measured at iodepth 1 alone"));
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.watcher.note(&note);
            self.notes.push(note);
        }
    }

    // --- layout ---

    fn lay_out(&mut self) -> Result<(), SweepError> {
        let targets = self.targets;
        for (index, target) in targets.iter().enumerate() {
            if !is_laid_out(target) || self.watcher.is_interrupted() {
                continue;
            }
            self.watcher.layout(&target.name);
            let bytes_after = layout_bytes(&targets[index + 1..]);
            let mut outcome = self.write(target, true, bytes_after);
            if is_direct_refused(&outcome) {
                self.go_buffered(index);
                outcome = self.write(target, false, bytes_after);
            }
            match outcome {
                Err(RunError::Interrupted) => return Err(RunError::Interrupted.into()),
                Err(error) if targets.len() == 1 => return Err(error.into()),
                Err(error) => {
                    self.lose_target(index, &error);
                    self.first_error.get_or_insert(error.into());
                }
                Ok(result) => match failure_of(&result) {
                    Some(failure) if targets.len() == 1 => {
                        return Err(SweepError::Io(failure.into()));
                    }
                    Some(failure) => {
                        self.end_target(index, failure.message.clone());
                        self.first_error
                            .get_or_insert_with(|| SweepError::Io(failure.into()));
                    }
                    None => {
                        let ns_per_byte = result.elapsed_ns as f64 / target.bytes.max(1) as f64;
                        self.ns_per_byte[index] = Some(ns_per_byte);
                    }
                },
            }
        }
        Ok(())
    }

    /// Writes the working set of a target; those of others follow.
    fn write(
        &mut self,
        target: &SweepTarget,
        direct: bool,
        bytes_after: u64,
    ) -> Result<RunResult, RunError> {
        let rest = self.unknown_time();
        let bytes_after = bytes_after + self.unknown_last_bytes();
        let mut observer = Watched {
            watcher: self.watcher,
            time: LayoutTime::new(target.bytes, bytes_after, Some(rest)),
        };
        self.session.run(&layout(target, direct), &mut observer)
    }

    pub(super) fn go_buffered(&mut self, target: usize) {
        self.buffered[target] = true;
        let name = self
            .targets
            .get(target)
            .map_or("the job's files", |target| &target.name);
        self.note(format!(
            "{name}: O_DIRECT is refused here, so all I/O goes through the page cache: reads may come from memory"
        ));
    }

    /// Tells of stops of the process while a curve was measured.
    pub(super) fn note_stops(&mut self, index: usize) {
        let pairs = self.grid.axes.iter().zip(&self.grid.curves[index].values);
        let varied = pairs.filter(|(axis, _)| axis.values.len() > 1);
        let place: String = varied.map(|(_, value)| format!("{value}, ")).collect();
        for note in std::mem::take(&mut self.curves[index].stops) {
            self.note(format!("{place}{note}"));
        }
    }

    /// Says where nothing was completed; one unit without a figure says nothing about the next.
    pub(super) fn note_silence(&mut self, index: usize, iodepth: Option<u32>) {
        let pairs = self.grid.axes.iter().zip(&self.grid.curves[index].values);
        let varied = pairs.filter(|(axis, _)| axis.values.len() > 1);
        let mut place: Vec<String> = varied.map(|(_, value)| value.clone()).collect();
        place.extend(iodepth.map(|iodepth| format!("iodepth {iodepth}")));
        if !place.is_empty() {
            let place = place.join(", ");
            self.note(format!(
                "{place}: no I/O was completed in the time that there was"
            ));
        }
    }

    /// After a run without a result nothing more is measured on a target.
    fn lose_target(&mut self, target: usize, error: &RunError) {
        self.end_target(target, format!("{error}; {}", error.remedy()));
        if let Some(ending) = &mut self.ended[target] {
            ending.cause = Some(error.clone());
        }
    }

    pub(super) fn end_target(&mut self, target: usize, why: String) {
        let why = match self.targets.get(target) {
            Some(named) if !why.contains(&named.name) => format!("{}: {why}", named.name),
            _ => why,
        };
        self.watcher.note(&why);
        self.ended[target] = Some(Ending { why, cause: None });
    }

    // --- order and time ---

    /// Place of a curve along each axis, from 0 to 1.
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

    pub(super) fn job(&self, plan: &CurvePlan) -> Job {
        let mut job = plan.job.clone();
        job.io.direct &= !self.buffered[plan.target];
        job.workload.randseed = job.workload.randseed.or(Some(self.options.seed));
        if self.options.most_warmup_ns.is_some() {
            // Blocks that come once in each pass would find a cache that keeps the last ones empty of them.
            job.workload.random_map = RandomMap::None;
            give(&mut job, "norandommap", String::new());
        }
        job
    }

    /// A run without a result: the end of its target, unless nothing at all has been measured.
    pub(super) fn survive(&mut self, target: usize, error: RunError) -> Result<(), SweepError> {
        let anything = self
            .curves
            .iter()
            .any(|curve| !curve.so_far.records.is_empty());
        match error {
            RunError::Interrupted | RunError::NothingDone => Ok(()),
            error if !anything && self.ended.len() == 1 => Err(error.into()),
            error => {
                self.lose_target(target, &error);
                self.first_error.get_or_insert(error.into());
                Ok(())
            }
        }
    }

    // --- the result ---

    fn conclude(mut self) -> Result<SweepResult, SweepError> {
        if self
            .curves
            .iter()
            .all(|curve| curve.so_far.records.is_empty())
        {
            let failure = self.curves.iter().find_map(|curve| curve.failure.clone());
            let failure = failure.map(|failure| SweepError::Io(failure.into()));
            let interrupted = self.watcher.is_interrupted();
            let of_target = self.first_error.filter(|_| !interrupted);
            return Err(match failure.or(of_target) {
                Some(error) => error,
                None => RunError::without_figures(interrupted).into(),
            });
        }
        if !self.options.is_exhaustive() {
            self.judge_unsearched();
        }
        let axes = &self.grid.axes[..self.grid.axes.len() - 1];
        let depths = self.grid.all_depths();
        let plans = self.grid.curves.iter().zip(&mut self.curves);
        let mut curves: Vec<CurveResult> = plans
            .map(|(plan, standing)| curve_result(plan, standing, &depths))
            .collect();
        let warm = self.options.most_warmup_ns.is_some();
        let (advice, caches) = match warm {
            // Of one depth there is nothing to advise.
            true => (
                Advice::default(),
                cache::infer(&self.grid.curves, &curves, axes),
            ),
            false => (Advice::of(&curves, axes), Vec::new()),
        };
        predict::across(&mut curves, axes);
        let ending = self.ended.into_iter().flatten().next();
        let (failure, cause) = ending.map(|ending| (ending.why, ending.cause)).unzip();
        Ok(SweepResult {
            format: FORMAT,
            targets: self
                .targets
                .iter()
                .map(|target| target.name.clone())
                .collect(),
            job_file: None,
            options: self.options.clone(),
            axes: self.grid.axes.clone(),
            curves,
            advice,
            caches,
            spent_ns: self.spent_ns,
            interrupted: self.watcher.is_interrupted(),
            failure,
            cause: cause.flatten(),
            notes: self.notes,
        })
    }

    /// Maximum and knee of what was measured of a curve: the search's own judgement, without time to measure more.
    pub(super) fn judge(&mut self, index: usize) {
        let plan = &self.grid.curves[index];
        let depths = self.grid.depths_of(plan);
        let standing = &mut self.curves[index];
        if standing.so_far.records.is_empty() {
            return;
        }
        let question = Question {
            job: &plan.job,
            depths,
            jobs: &[plan.job.numjobs],
            rules: Rules {
                budget_ns: 0,
                between: false,
                ..Rules::THOROUGH
            },
            most_cell_ns: None,
            goes_on: false,
        };
        let mut so_far = standing.so_far.clone();
        so_far.records.sort_by_key(Record::iodepth);
        so_far.spent_ns = so_far.spent_ns.max(1);
        standing.complete = so_far.records.len() == depths.len();
        standing.found = go_on(self.session, &question, so_far, &mut ()).ok();
        if let Some(found) = standing.found.as_mut().filter(|_| standing.complete) {
            found.ended = Ended::Sure;
        }
    }

    /// Curves that an earlier sweep began and this one did not come to.
    fn judge_unsearched(&mut self) {
        for index in 0..self.curves.len() {
            if self.curves[index].found.is_none() {
                self.judge(index);
                self.curves[index].complete = false;
            }
        }
    }
}

fn curve_result(plan: &CurvePlan, standing: &mut Standing, depths: &[u32]) -> CurveResult {
    let found = standing.found.take();
    let block = &plan.job.workload.block_size;
    let directions = Direction::ALL
        .into_iter()
        .filter(|d| plan.job.workload.rw.has(*d));
    CurveResult {
        values: plan.values.clone(),
        rw: plan.job.workload.rw.name().to_owned(),
        block_bytes: directions.map(|d| block[d].max()).max().unwrap_or(0),
        numjobs: plan.job.numjobs,
        state: match (&found, standing.complete) {
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
        failure: standing.failure.take(),
        storage: standing.storage.take(),
        ceph: standing.ceph.take(),
    }
}

pub(super) fn is_einval(failure: Option<&IoFailure>) -> bool {
    failure.is_some_and(|failure| failure.errno == EINVAL)
}

fn failure_of(result: &RunResult) -> Option<IoFailure> {
    result
        .workers
        .iter()
        .find_map(|worker| worker.error.clone())
}

/// Writes the working set from its start to its end.
fn layout(target: &SweepTarget, direct: bool) -> Plan {
    let mut job = Job::new("layout");
    job.files.filenames = vec![target.path.clone()];
    job.files.size = Some(Extent::Bytes(target.bytes));
    job.files.allow_mounted_write =
        matches!(target.kind, TargetKind::Existing { consent: true, .. });
    job.workload.rw = ReadWrite {
        mode: Mode::Write,
        random: false,
    };
    job.workload.block_size = PerDirection::all(BlockSize::Fixed(1 << 20));
    job.workload.end_fsync = true;
    job.io.iodepth = 8;
    job.io.direct = direct;
    job.io.engine = Engine::Auto;
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}

struct Watched<'a> {
    watcher: &'a mut dyn SweepWatcher,
    time: LayoutTime,
}

impl Observer for Watched<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.watcher.progress(progress);
        if let Some(left) = self.time.left(progress) {
            self.watcher.left(left);
        }
        match self.watcher.is_interrupted() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}
