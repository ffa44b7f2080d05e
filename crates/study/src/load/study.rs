//! The study: layout, capacity, the curve, the objectives, the matrix.

use super::decision::judged;
use super::matrix::{self, Matrix, MatrixOptions};
use super::objective::Objective;
use super::plan::{Arrivals, Ground, Mix, Pattern};
use super::point::{Offered, Point};
use super::search::{Answer, Effort, search};
use super::step::{LoadRun, LoadStep};
use super::times::{LoadAnnouncement, Overrun, StepsLeft, planned_time, searches, step_ns};
use crate::layout_time::LayoutTime;
use crate::probe::{
    Budget, ProbeTarget, TargetKind, WorkingSetError, is_direct_refused, planned_bytes,
};
use crate::stopped::{self, MOST_REPEATS, stopped_ns};
use crate::words;
use crate::{CutShort, TimeRange};
use iosonde_job::plan::{Job, Plan};
use iosonde_result::ceph::{self, CephSide};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, INTERVAL_NS_MAX, Observer, Progress};
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::session::{RunError, Session};
use serde::{Deserialize, Serialize};

/// Version of [`LoadResult`] as JSON; counts up when a field changes its meaning.
pub(super) const FORMAT: u32 = 1;
/// The offered rates of a curve, as shares of the capacity.
pub(super) const SHARES: [f64; 13] = [
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1,
];
/// An objective's border is known well enough where the ends of its interval are this near, as a share.
const PRECISION: f64 = 0.05;
/// Most further runs for one objective.
pub(super) const MOST_TRIES: usize = 12;
/// Intervals of a run, as far as they are not too short or too long: they tell how slow I/Os come in clumps.
const INTERVALS: u64 = 20;
const SHORTEST_INTERVAL_NS: u64 = 100_000_000;

/// How a load study is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadOptions {
    /// Which I/O.
    pub pattern: Pattern,
    /// How much of it reads.
    pub mix: Mix,
    /// When I/Os arrive.
    pub arrivals: Arrivals,
    /// Offered rates in I/Os per second; empty chooses them by the capacity.
    pub rates: Vec<f64>,
    /// Latencies to be kept.
    pub objectives: Vec<Objective>,
    /// The read x write matrix, if it is wanted.
    pub matrix: Option<MatrixOptions>,
    /// Measured time of each point.
    pub runtime_ns: u64,
    /// Run before it and not measured.
    pub ramp_ns: u64,
    /// Threads for each direction.
    pub numjobs: u32,
    /// Places that run each plan at the same time, such as pods: the offered rate is shared between them.
    #[serde(default = "alone")]
    pub parties: u32,
    /// Most I/Os in flight for each thread.
    pub iodepth: u32,
    /// Bytes of the working set; `None` chooses.
    pub size_bytes: Option<u64>,
    /// Whether to ask for O_DIRECT.
    pub direct: bool,
    /// Seed of offsets, arrivals and the order of the points.
    pub seed: u64,
}

fn alone() -> u32 {
    1
}

impl LoadOptions {
    /// fio's name of the I/O that is offered.
    pub fn rw(&self) -> &'static str {
        match (self.mix.read_percent, self.pattern.random) {
            (100.., true) => "randread",
            (100.., false) => "read",
            (0, true) => "randwrite",
            (0, false) => "write",
            (_, true) => "randrw",
            (_, false) => "rw",
        }
    }
}

/// One step of the study, for displays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// The working set is written.
    Layout,
    /// The capacity is looked for.
    Capacity,
    /// A load is offered.
    Offer(Offered),
}

/// Sees a study while it goes on.
pub trait LoadWatcher {
    /// Nothing has been written yet.
    fn begin(&mut self, target: &ProbeTarget, announcement: &LoadAnnouncement) {
        let _ = (target, announcement);
    }

    /// How long all of it will still take, once the target has shown how fast it is: during the layout, and as a step begins.
    fn left(&mut self, left: TimeRange) {
        let _ = left;
    }

    /// A step begins, which takes this long at most, if that is known.
    fn step(&mut self, step: Step, planned_ns: Option<u64>) {
        let _ = (step, planned_ns);
    }

    /// Called several times a second.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// The capacity, in I/Os per second.
    fn capacity(&mut self, iops: f64) {
        let _ = iops;
    }

    /// A point is complete.
    fn point(&mut self, point: &Point) {
        let _ = point;
    }

    /// Something that the user should know.
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Whether the user wants it to end now.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl LoadWatcher for () {}

/// What a load study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// The format of the program that wrote it.
    pub format: u32,
    /// The target as the user wrote it.
    pub target: String,
    /// What the target is.
    pub kind: TargetKind,
    /// How it was to be done.
    pub options: LoadOptions,
    /// Bytes of the working set.
    pub bytes: u64,
    /// Whether O_DIRECT was in force.
    pub direct: bool,
    /// I/Os per second in closed loop at depth 128: what the rates are shares of. `None` where rates were given.
    pub capacity_iops: Option<f64>,
    /// The curve, by offered rate, with what searches added.
    pub points: Vec<Point>,
    /// The highest rate that keeps each objective.
    pub objectives: Vec<ObjectiveAnswer>,
    /// The read x write matrix, if it was wanted.
    pub matrix: Option<Matrix>,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The error of a run without a result that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
    /// The I/O error of the search for a capacity that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_failure: Option<IoFailure>,
    /// What the Ceph cluster was and did during the runs, where it is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSide>,
    /// What else the user should know, each in one sentence.
    pub notes: Vec<String>,
}

impl LoadResult {
    /// The first I/O error of any run.
    pub fn failure(&self) -> Option<&IoFailure> {
        let matrix = self.matrix.iter().flat_map(|matrix| &matrix.points);
        let mut all = self.points.iter().chain(matrix);
        let of_a_point = all.find_map(|point| point.failure.as_ref());
        of_a_point.or(self.capacity_failure.as_ref())
    }
}

/// Up to which rate an objective is kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveAnswer {
    /// The objective.
    pub objective: Objective,
    /// The rates, in I/Os per second.
    pub answer: Answer,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The working set does not fit.
    #[error("{target}: {source}")]
    WorkingSet {
        /// The target as the user wrote it.
        target: String,
        /// Why.
        source: WorkingSetError,
    },
    /// The target is not to be written.
    #[error("{target}: it exists, and writing to it would destroy what it holds")]
    Consent {
        /// The target as the user wrote it.
        target: String,
    },
    /// A run has no result.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The working set could not be written, or no capacity be found.
    #[error("{target}: {}", failure.message)]
    Io {
        /// The target as the user wrote it.
        target: String,
        /// What went wrong.
        failure: Box<IoFailure>,
    },
}

/// Finds latency over offered load for one target.
///
/// # Errors
/// When no load could be measured. An I/O error at one point does not end the others; see [`LoadResult::failure`]. A run without
/// a result ends the study with what is known; see [`LoadResult::error`].
pub fn load(
    session: &mut dyn Session,
    target: &ProbeTarget,
    options: &LoadOptions,
    watcher: &mut dyn LoadWatcher,
) -> Result<LoadResult, LoadError> {
    let bytes = working_set(target, options)?;
    let mut study = Study {
        session,
        target,
        options,
        watcher,
        bytes,
        direct: options.direct,
        capacity_iops: None,
        steps: Vec::new(),
        runs: 0,
        objectives: Vec::new(),
        matrix: None,
        ceph: None,
        notes: Vec::new(),
        left: StepsLeft::of(options),
        overrun: Overrun::default(),
    };
    study.announce();
    study.run()
}

/// Bytes of the working set, where the target may be used at all.
///
/// # Errors
/// Without consent to what the study would write, or without the room for it.
pub fn working_set(target: &ProbeTarget, options: &LoadOptions) -> Result<u64, LoadError> {
    let writes = options.mix.writes() || options.matrix.is_some();
    if writes && !target.kind.is_writable() {
        return Err(LoadError::Consent {
            target: target.name.clone(),
        });
    }
    let planned = planned_bytes(&target.kind, options.size_bytes, &Budget::NORMAL);
    planned.map_err(|source| LoadError::WorkingSet {
        target: target.name.clone(),
        source,
    })
}

/// Length of the intervals of each run.
fn interval_ns(options: &LoadOptions) -> u64 {
    (options.runtime_ns / INTERVALS).clamp(SHORTEST_INTERVAL_NS, INTERVAL_NS_MAX)
}

pub(super) struct Study<'a> {
    session: &'a mut dyn Session,
    target: &'a ProbeTarget,
    pub(super) options: &'a LoadOptions,
    watcher: &'a mut dyn LoadWatcher,
    bytes: u64,
    direct: bool,
    capacity_iops: Option<f64>,
    /// The curve so far.
    steps: Vec<LoadStep>,
    /// Loads that were offered so far, those of the matrix included.
    runs: u64,
    objectives: Vec<ObjectiveAnswer>,
    pub(super) matrix: Option<Matrix>,
    /// What the Ceph cluster was and did so far.
    ceph: Option<CephSide>,
    notes: Vec<String>,
    /// Steps that are left, the one that runs included.
    pub(super) left: StepsLeft,
    /// What offered loads take beyond their plan.
    overrun: Overrun,
}

impl Study<'_> {
    fn announce(&mut self) {
        let is_laid_out = self.target.kind.is_writable();
        let announcement = LoadAnnouncement {
            bytes: self.bytes,
            layout_bytes: if is_laid_out { self.bytes } else { 0 },
            steps: self.left.total(),
            planned: planned_time(self.options),
        };
        self.watcher.begin(self.target, &announcement);
    }

    /// Announces a step after the layout, and the time left with it.
    fn begin_step(&mut self, step: Step) {
        let step_ns = step_ns(self.options);
        self.watcher.step(step, Some(step_ns));
        let mut steps = self.left.total();
        // A search may end at any step, but not before this one.
        steps.least = steps.least.max(1);
        debug_assert!(steps.most >= steps.least);
        let left = steps.time(step_ns + self.overrun.mean_ns());
        self.watcher.left(left);
    }

    fn run(mut self) -> Result<LoadResult, LoadError> {
        if self.target.kind.is_writable() {
            self.lay_out()?;
        }
        let outcome = self.measure();
        self.conclude(outcome)
    }

    /// All that is wanted. What was measured before an error stays.
    fn measure(&mut self) -> Result<(), LoadError> {
        if self.options.rates.is_empty() {
            self.capacity_iops = Some(self.capacity(self.options.mix)?);
            self.left.curve = self.left.curve.after_one();
        }
        for rate in self.rates() {
            if self.watcher.is_interrupted() {
                break;
            }
            let run = self.offer(self.options.mix.split(rate))?;
            LoadStep::add(&mut self.steps, run);
            self.left.curve = self.left.curve.after_one();
        }
        self.answer_objectives()?;
        match self.options.matrix {
            Some(wanted) if !self.watcher.is_interrupted() => matrix::measure(self, wanted),
            _ => Ok(()),
        }
    }

    fn lay_out(&mut self) -> Result<(), LoadError> {
        self.watcher.step(Step::Layout, None);
        let result = self.run_plan(|ground| ground.layout())?;
        self.fail_on_error(&result)
    }

    /// I/Os per second in closed loop.
    pub(super) fn capacity(&mut self, mix: Mix) -> Result<f64, LoadError> {
        self.begin_step(Step::Capacity);
        let (ramp_ns, runtime_ns) = (self.options.ramp_ns, self.options.runtime_ns);
        let result = self.run_plan(|ground| ground.closed(mix, ramp_ns, runtime_ns))?;
        self.fail_on_error(&result)?;
        let workers = result.workers.iter().filter(|worker| worker.runtime_ns > 0);
        let iops: f64 = workers
            .map(|worker| {
                let ios: u64 = worker
                    .directions
                    .iter()
                    .map(|(_, d)| d.lat.moments.count)
                    .sum();
                ios as f64 * 1e9 / worker.runtime_ns as f64
            })
            .sum();
        if iops < 1.0 {
            return Err(self.too_slow(iops).into());
        }
        self.watcher.capacity(iops);
        Ok(iops)
    }

    /// The rates to offer, in an order that makes no trend of a drift. Those at capacity and above come last, as what they
    /// leave behind (full caches, spent credits) would fall on the others.
    fn rates(&self) -> Vec<f64> {
        let Some(capacity) = self.capacity_iops else {
            return self.options.rates.clone();
        };
        let (mut below, above): (Vec<f64>, Vec<f64>) =
            SHARES.iter().partition(|share| **share < 0.95);
        shuffle(&mut below, self.options.seed);
        below
            .into_iter()
            .chain(above)
            .map(|share| (share * capacity).max(1.0))
            .collect()
    }

    /// Offers a load. Each run has random numbers of its own: what is offered twice must not be the same I/Os again.
    pub(super) fn offer(&mut self, offered: Offered) -> Result<LoadRun, LoadError> {
        self.runs += 1;
        self.begin_step(Step::Offer(offered));
        let (ramp_ns, runtime_ns) = (self.options.ramp_ns, self.options.runtime_ns);
        let result = self.run_plan(|ground| ground.open(offered, ramp_ns, runtime_ns))?;
        self.overrun.take(step_ns(self.options), result.elapsed_ns);
        let mut run = LoadRun::of(offered, self.options.parties, &result);
        run.point.interrupted = self.watcher.is_interrupted();
        self.watcher.point(&run.point);
        Ok(run)
    }

    /// What was measured of the curve.
    pub(super) fn known(&self) -> impl Iterator<Item = &Point> {
        self.steps.iter().map(|step| &step.point)
    }

    /// Whether the user wants it to end.
    pub(super) fn is_over(&self) -> bool {
        self.watcher.is_interrupted()
    }

    fn answer_objectives(&mut self) -> Result<(), LoadError> {
        let objectives = self.options.objectives.clone();
        for (index, objective) in objectives.iter().enumerate() {
            self.left.searches = searches(objectives.len() - index);
            let effort = Effort {
                precision: PRECISION,
                most: MOST_TRIES,
                least: self.least_rate(objective),
            };
            let mut failed = None;
            let tried = judged(objective, &self.steps);
            let answer = search(tried, effort, |rate| {
                if self.watcher.is_interrupted() {
                    return None;
                }
                match self.offer(self.options.mix.split(rate)) {
                    Ok(run) => {
                        let is_whole = !run.point.interrupted;
                        LoadStep::add(&mut self.steps, run);
                        self.left.searches = self.left.searches.after_one();
                        is_whole.then(|| judged(objective, &self.steps))
                    }
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                }
            });
            self.objectives.push(ObjectiveAnswer {
                objective: *objective,
                answer,
            });
            if let Some(error) = failed {
                return Err(error);
            }
        }
        self.left.searches = searches(0);
        Ok(())
    }

    /// Below this rate a step is too short for an objective to be judged.
    fn least_rate(&self, objective: &Objective) -> f64 {
        let Offered {
            reads_per_s: reads,
            writes_per_s: writes,
        } = self.options.mix.split(1.0);
        let fewest = match reads.min(writes) > 0.0 {
            true => reads.min(writes),
            false => 1.0,
        };
        objective.least_rate(self.options.runtime_ns, fewest)
    }

    /// Runs a plan; without O_DIRECT where that is refused.
    fn run_plan(&mut self, plan: impl Fn(&Ground<'_>) -> Plan) -> Result<RunResult, RunError> {
        let mut outcome = self.run_once(&plan);
        if self.direct && is_direct_refused(&outcome) {
            self.direct = false;
            let note = "O_DIRECT is refused here, so all I/O goes through the page cache: reads may come from memory";
            self.watcher.note(note);
            self.notes.push(note.to_owned());
            outcome = self.run_once(&plan);
        }
        outcome
    }

    fn run_once(&mut self, plan: impl Fn(&Ground<'_>) -> Plan) -> Result<RunResult, RunError> {
        let plan = plan(&self.ground());
        let is_layout = plan.jobs.iter().all(|job| !job.schedule.time_based);
        let mut repeats = if is_layout { 0 } else { MOST_REPEATS };
        let planned = planned_time(self.options);
        let result = loop {
            let mut observer = Watched {
                layout: is_layout.then(|| LayoutTime::new(self.bytes, 0, Some(planned))),
                ends_at_stop: repeats > 0,
                interval_ns: interval_ns(self.options),
                watcher: self.watcher,
            };
            let result = self.session.run(&plan, &mut observer)?;
            let stopped_ns = stopped_ns(&result);
            let is_again = stopped_ns > 0 && repeats > 0 && !self.watcher.is_interrupted();
            if stopped_ns > 0 && !is_layout {
                let note = stopped::note(&point_name(&plan), stopped_ns, is_again);
                self.watcher.note(&note);
                self.notes.push(note);
            }
            if !is_again {
                break result;
            }
            repeats -= 1;
        };
        if let Some(side) = &result.ceph {
            ceph::add(&mut self.ceph, side);
        }
        Ok(result)
    }

    fn ground(&self) -> Ground<'_> {
        let options = self.options;
        Ground {
            path: &self.target.path,
            bytes: self.bytes,
            direct: self.direct,
            seed: options.seed,
            run: self.runs,
            sim: match &self.target.kind {
                TargetKind::Simulated { options } => Some(options),
                _ => None,
            },
            consent: matches!(self.target.kind, TargetKind::Existing { consent: true, .. }),
            pattern: options.pattern,
            arrivals: options.arrivals,
            numjobs: options.numjobs,
            parties: options.parties,
            iodepth: options.iodepth,
        }
    }

    fn fail_on_error(&self, result: &RunResult) -> Result<(), LoadError> {
        let failure = result
            .workers
            .iter()
            .find_map(|worker| worker.error.clone());
        match failure {
            None => Ok(()),
            Some(failure) => Err(LoadError::Io {
                target: self.target.name.clone(),
                failure: Box::new(failure),
            }),
        }
    }

    /// Why no load can be offered.
    fn too_slow(&self, iops: f64) -> RunError {
        if iops == 0.0 || self.watcher.is_interrupted() {
            return RunError::without_figures(self.watcher.is_interrupted());
        }
        RunError::Unsupported {
            problem: format!(
                "{}: it does {iops:.2} I/Os a second at most, too few to offer shares of",
                self.target.name
            ),
            remedy: "use probe for its figures, or a smaller --bs".to_owned(),
        }
    }

    fn conclude(self, outcome: Result<(), LoadError>) -> Result<LoadResult, LoadError> {
        let mut interrupted = self.watcher.is_interrupted();
        let (mut error, mut capacity_failure) = (None, None);
        match outcome {
            outcome if self.steps.is_empty() && self.matrix.is_none() => {
                return Err(match outcome {
                    Err(error) => error,
                    Ok(()) => RunError::without_figures(interrupted).into(),
                });
            }
            Ok(()) => {}
            Err(LoadError::Run(RunError::Interrupted)) => interrupted = true,
            Err(LoadError::Run(told)) => error = Some(told.into()),
            Err(LoadError::Io { failure, .. }) => capacity_failure = Some(*failure),
            Err(refused) => return Err(refused),
        }
        let steps = self.steps.into_iter();
        let mut points: Vec<Point> = steps.map(|step| step.point).collect();
        points.sort_by(|a, b| a.offered.total().total_cmp(&b.offered.total()));
        Ok(LoadResult {
            format: FORMAT,
            target: self.target.name.clone(),
            kind: self.target.kind.clone(),
            options: self.options.clone(),
            bytes: self.bytes,
            direct: self.direct,
            capacity_iops: self.capacity_iops,
            points,
            objectives: self.objectives,
            matrix: self.matrix,
            interrupted,
            error,
            capacity_failure,
            ceph: self.ceph,
            notes: self.notes,
        })
    }
}

/// Fisher and Yates, by splitmix64.
fn shuffle(values: &mut [f64], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    for last in (1..values.len()).rev() {
        values.swap(last, (next() % (last as u64 + 1)) as usize);
    }
}

/// A load, as notes call it.
fn point_name(plan: &Plan) -> String {
    let rate = |job: &Job| {
        let rates = job.schedule.rate_iops;
        rates.iter().filter_map(|(_, rate)| *rate).sum::<u64>() * u64::from(job.numjobs)
    };
    match plan.jobs.iter().map(rate).sum::<u64>() {
        0 => "the capacity".to_owned(),
        rate => format!("{} IOPS offered", words::iops(rate as f64)),
    }
}

struct Watched<'a> {
    /// What it takes to see how long all of it lasts, during the layout.
    layout: Option<LayoutTime>,
    /// Whether a run in which the process was stopped ends, as it is measured again.
    ends_at_stop: bool,
    interval_ns: u64,
    watcher: &'a mut dyn LoadWatcher,
}

impl Observer for Watched<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.watcher.progress(progress);
        let layout = self.layout.as_mut();
        if let Some(left) = layout.and_then(|layout| layout.left(progress)) {
            self.watcher.left(left);
        }
        self.control()
    }

    fn interval_ns(&self, _plan: &Plan) -> u64 {
        self.interval_ns
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        match self.ends_at_stop && interval.stopped_ns > 0 {
            true => Control::Stop,
            false => self.control(),
        }
    }
}

impl Watched<'_> {
    fn control(&self) -> Control {
        if self.watcher.is_interrupted() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}
