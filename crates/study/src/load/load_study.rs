//! The load study: layout, capacity, curve, objectives, matrix.

use super::decision::judged;
use super::load_options::{LoadOptions, MOST_TRIES, SHARES};
use super::load_runner::LoadRunner;
use super::load_times::{planned_time, searches};
use super::matrix;
use super::matrix_cells::Matrix;
use super::objective::Objective;
use super::objective_search::{Answer, RateSearchLimits, search};
use super::step::{LoadRun, LoadStep};
use crate::CutShort;
use crate::announcement::{Announcement, LoadAnnouncement};
use crate::driver::{DirectIo, MAY_BE_CACHED, Study, StudyDriver, StudyEnding, run_study};
use crate::error::{StudyError, WritingStudy};
use crate::event::{StudyEvent, StudyFinding, StudyObserver};
use crate::figures::load_measurement::{LoadMeasurement, Offered};
use crate::probe_budget::ProbeBudget;
use crate::random_order::shuffle;
use crate::study_target::{StudyTarget, StudyTargetKind};
use crate::working_set::planned_bytes;
use iosonde_result::ceph::CephSide;
use iosonde_result::run::IoFailure;
use iosonde_result::session::Session;
use serde::{Deserialize, Serialize};

/// Version of [`LoadResult`] as JSON. It increases when a field changes its meaning.
pub(super) const FORMAT: u32 = 1;

/// Relative width of an objective's interval that ends its search.
const PRECISION: f64 = 0.05;

/// Result of a load study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Version of the format.
    pub format: u32,
    /// The target as the user wrote it.
    pub target: String,
    /// Kind of the target.
    pub kind: StudyTargetKind,
    /// Options of the study.
    pub options: LoadOptions,
    /// Bytes of the working set.
    pub bytes: u64,
    /// Whether the I/O used O_DIRECT.
    pub direct: bool,
    /// Capacity in closed loop, up to depth 128, in I/Os per second. `None`: rates were given.
    pub capacity_iops: Option<f64>,
    /// Points of the curve and of the searches, by offered rate.
    pub points: Vec<LoadMeasurement>,
    /// Highest rate that keeps each objective.
    pub objectives: Vec<ObjectiveAnswer>,
    /// The matrix of read and write rates, if requested.
    pub matrix: Option<Matrix>,
    /// Whether the user stopped the study early.
    pub interrupted: bool,
    /// Error of a run without a result that ended the study early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
    /// I/O error of a capacity run that ended the study early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_failure: Option<IoFailure>,
    /// State and activity of the Ceph cluster during the runs, if the target is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSide>,
    /// The target, if it is in memory: `memory (tmpfs)`. Its data does not survive a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<String>,
    /// Notes for the user, each in one sentence.
    pub notes: Vec<String>,
}

impl LoadResult {
    /// Returns the first I/O error of any run.
    pub fn failure(&self) -> Option<&IoFailure> {
        let matrix = self.matrix.iter().flat_map(|matrix| &matrix.points);
        let mut all = self.points.iter().chain(matrix);
        let of_a_point = all.find_map(|point| point.failure.as_ref());
        of_a_point.or(self.capacity_failure.as_ref())
    }
}

/// Highest rate that keeps an objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveAnswer {
    /// The objective.
    pub objective: Objective,
    /// The rates in I/Os per second.
    pub answer: Answer,
}

/// Measures latency over offered load for one target.
///
/// # Errors
/// If no load was measured. After an I/O error at one point, the study continues: see
/// [`LoadResult::failure`]. A run without a result ends the study early: see [`LoadResult::error`].
pub fn measure_load(
    session: &mut dyn Session,
    target: &StudyTarget,
    options: &LoadOptions,
    observer: &mut dyn StudyObserver,
) -> Result<LoadResult, StudyError> {
    run_load(&mut StudyDriver::new(session, observer), target, options)
}

/// Runs a load study with a driver, which may have hooks.
///
/// # Errors
/// As [`measure_load`].
pub fn run_load(
    driver: &mut StudyDriver<'_>,
    target: &StudyTarget,
    options: &LoadOptions,
) -> Result<LoadResult, StudyError> {
    run_study(LoadStudy::new(target, options)?, driver)
}

/// Returns the bytes of the working set.
///
/// # Errors
/// If the study would write without consent, or if the working set does not fit.
pub fn working_set(target: &StudyTarget, options: &LoadOptions) -> Result<u64, StudyError> {
    let writes = options.mix.writes() || options.matrix.is_some();
    if writes && !target.kind.is_writable() {
        return Err(StudyError::WriteRefused {
            targets: vec![target.name.clone()],
            writer: WritingStudy::Load,
        });
    }
    let planned = planned_bytes(&target.kind, options.size_bytes, &ProbeBudget::NORMAL);
    planned.map_err(|source| StudyError::WorkingSet {
        target: target.name.clone(),
        source,
    })
}

/// Adds a run to the latency curve, and reports all runs at its rate together.
fn add_run(steps: &mut Vec<LoadStep>, driver: &mut StudyDriver<'_>, run: LoadRun) {
    let index = LoadStep::add(steps, run);
    let finding = StudyFinding::RateOfCurve(&steps[index].point);
    driver.emit(&StudyEvent::Found(finding));
}

/// Latency over offered load for one target.
struct LoadStudy<'a> {
    runner: LoadRunner<'a>,
    capacity_iops: Option<f64>,
    /// Steps of the curve so far.
    steps: Vec<LoadStep>,
    objectives: Vec<ObjectiveAnswer>,
    matrix: Option<Matrix>,
}

impl Study for LoadStudy<'_> {
    type Outcome = LoadResult;

    fn announcement(&self) -> Announcement<'_> {
        let is_laid_out = self.runner.target.kind.is_writable();
        Announcement::Load {
            target: self.runner.target,
            extent: LoadAnnouncement {
                bytes: self.runner.bytes,
                layout_bytes: if is_laid_out { self.runner.bytes } else { 0 },
                steps: self.runner.left.total(),
                planned: planned_time(self.runner.options),
            },
        }
    }

    fn measure(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        driver.set_direct(vec![DirectIo {
            is_used: self.runner.options.direct,
            note_if_refused: MAY_BE_CACHED.to_owned(),
        }]);
        if self.runner.target.kind.is_writable() {
            self.runner.lay_out(driver)?;
        }
        if self.runner.options.rates.is_empty() {
            self.capacity_iops = Some(self.runner.capacity(driver, self.runner.options.mix)?);
            self.runner.left.curve = self.runner.left.curve.after_one();
        }
        for rate in self.rates() {
            if driver.is_interrupted() {
                break;
            }
            let run = self
                .runner
                .offer(driver, self.runner.options.mix.split(rate))?;
            add_run(&mut self.steps, driver, run);
            self.runner.left.curve = self.runner.left.curve.after_one();
        }
        self.answer_objectives(driver)?;
        match self.runner.options.matrix {
            Some(wanted) if !driver.is_interrupted() => {
                let known = self.steps.iter().map(|step| &step.point);
                matrix::measure(&mut self.runner, driver, wanted, known, &mut self.matrix)
            }
            _ => Ok(()),
        }
    }

    fn conclude(self, ending: StudyEnding) -> Result<LoadResult, StudyError> {
        if self.steps.is_empty() && self.matrix.is_none() {
            return Err(ending.into_error(&self.runner.target.name));
        }
        let steps = self.steps.into_iter();
        let mut points: Vec<LoadMeasurement> = steps.map(|step| step.point).collect();
        points.sort_by(|a, b| a.offered.total().total_cmp(&b.offered.total()));
        Ok(LoadResult {
            format: FORMAT,
            target: self.runner.target.name.clone(),
            kind: self.runner.target.kind.clone(),
            options: self.runner.options.clone(),
            bytes: self.runner.bytes,
            direct: ending.is_direct(),
            capacity_iops: self.capacity_iops,
            points,
            objectives: self.objectives,
            matrix: self.matrix,
            interrupted: ending.is_interrupted,
            error: ending.error.map(Into::into),
            capacity_failure: ending.failure,
            ceph: self.runner.ceph,
            in_memory: self.runner.in_memory,
            notes: ending.notes,
        })
    }
}

impl<'a> LoadStudy<'a> {
    /// Fails if the target must not be written, or is too small.
    fn new(target: &'a StudyTarget, options: &'a LoadOptions) -> Result<LoadStudy<'a>, StudyError> {
        let bytes = working_set(target, options)?;
        Ok(LoadStudy {
            runner: LoadRunner::new(target, options, bytes),
            capacity_iops: None,
            steps: Vec::new(),
            objectives: Vec::new(),
            matrix: None,
        })
    }

    /// Returns the rates in an order in which drift is no trend. Rates near or above the capacity
    /// come last, since their effects (full caches, spent credits) would distort the others.
    fn rates(&self) -> Vec<f64> {
        let Some(capacity) = self.capacity_iops else {
            return self.runner.options.rates.clone();
        };
        let (mut below, above): (Vec<f64>, Vec<f64>) =
            SHARES.iter().partition(|share| **share < 0.95);
        shuffle(&mut below, self.runner.options.seed);
        below
            .into_iter()
            .chain(above)
            .map(|share| (share * capacity).max(1.0))
            .collect()
    }

    fn answer_objectives(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        let objectives = self.runner.options.objectives.clone();
        for (index, objective) in objectives.iter().enumerate() {
            self.runner.left.searches = searches(objectives.len() - index);
            let effort = RateSearchLimits {
                precision: PRECISION,
                most: MOST_TRIES,
                least: self.least_rate(objective),
            };
            let mut failed = None;
            let tried = judged(objective, &self.steps);
            let answer = search(tried, effort, |rate| {
                if driver.is_interrupted() {
                    return None;
                }
                match self
                    .runner
                    .offer(driver, self.runner.options.mix.split(rate))
                {
                    Ok(run) => {
                        let is_whole = !run.point.interrupted;
                        add_run(&mut self.steps, driver, run);
                        self.runner.left.searches = self.runner.left.searches.after_one();
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
        self.runner.left.searches = searches(0);
        Ok(())
    }

    /// Returns the rate below which a run is too short to decide on an objective.
    fn least_rate(&self, objective: &Objective) -> f64 {
        let Offered {
            reads_per_s: reads,
            writes_per_s: writes,
        } = self.runner.options.mix.split(1.0);
        let fewest = match reads.min(writes) > 0.0 {
            true => reads.min(writes),
            false => 1.0,
        };
        objective.least_rate(self.runner.options.runtime_ns, fewest)
    }
}
