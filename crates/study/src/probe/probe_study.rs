//! Runs the phases of a probe in sequence.

use super::class::classify;
use super::early_stop::EarlyStop;
use super::evidence::ClassEvidence;
use super::knee;
use super::phase::{self, ProbeJobs};
use super::probe_result::{FORMAT, ProbeOptions, ProbeResult};
use super::second_size::measure_second_size;
use super::slow::{self, SlowTarget};
use crate::announcement::{Announcement, ProbeAnnouncement};
use crate::driver::{
    DirectIo, MAY_BE_CACHED, RepeatableRun, Study, StudyDriver, StudyEnding, first_failure,
    is_direct_refused, run_study,
};
use crate::event::{StudyEvent, StudyFinding, StudyObserver, StudyStep};
use crate::figures::pattern_knee::Knee;
use crate::figures::phase_figure::PhaseFigure;
use crate::figures::phase_run::PhaseRun;
use crate::figures::saturation_result::LongerRun;
use crate::job_template::JobTemplate;
use crate::probe_budget::ProbeBudget;
use crate::probe_phase::ProbePhase;
use crate::run_hook::RunPurpose;
use crate::study_target::{StudyTarget, StudyTargetKind};
use crate::working_set::{StudyWorkingSet, laid_out_bytes, planned_bytes};
use crate::{StudyError, ceiling};
use iosonde_job::plan::{Direction, Plan};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// The largest size of the working set in bytes.
///
/// # Errors
/// Fails if the target has too little space.
pub fn working_set(target: &StudyTarget, options: &ProbeOptions) -> Result<u64, StudyError> {
    let planned = planned_bytes(&target.kind, options.size_bytes, &options.budget);
    planned.map_err(|source| StudyError::WorkingSet {
        target: target.name.clone(),
        source,
    })
}

/// Probes one target.
///
/// # Errors
/// Fails when nothing was measured. An I/O error ends only its phase: see [`ProbeResult::failure`].
pub fn probe(
    session: &mut dyn Session,
    target: &StudyTarget,
    options: &ProbeOptions,
    observer: &mut dyn StudyObserver,
) -> Result<ProbeResult, StudyError> {
    run_probe(&mut StudyDriver::new(session, observer), target, options)
}

/// Probes one target with a driver, which may have hooks.
///
/// # Errors
/// As [`probe`].
pub fn run_probe(
    driver: &mut StudyDriver<'_>,
    target: &StudyTarget,
    options: &ProbeOptions,
) -> Result<ProbeResult, StudyError> {
    run_study(ProbeStudy::new(target, options)?, driver)
}

/// A probe of one target.
struct ProbeStudy<'a> {
    target: &'a StudyTarget,
    options: &'a ProbeOptions,
    phases: Vec<ProbePhase>,
    /// Bytes that phases may use at most.
    planned_bytes: u64,
    /// Bytes that phases use: fewer if layout ran out of time.
    bytes: u64,
    figures: Vec<PhaseFigure>,
    knees: Vec<Knee>,
    runs: Vec<PhaseRun>,
    slow: Option<SlowTarget>,
    /// Phases that were skipped.
    left_out: usize,
    /// Sums of the longest times of all steps so far, and of the times that they took.
    planned_ns: u64,
    spent_ns: u64,
}

impl Study for ProbeStudy<'_> {
    type Outcome = ProbeResult;

    fn announcement(&self) -> Announcement<'_> {
        Announcement::Probe(ProbeAnnouncement {
            target: self.target,
            bytes: self.bytes,
            phases: &self.phases,
            budget: &self.options.budget,
            direct: self.options.direct,
        })
    }

    fn measure(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        driver.set_direct(vec![DirectIo {
            is_used: self.options.direct,
            note_if_refused: MAY_BE_CACHED.to_owned(),
        }]);
        self.try_out(driver);
        let measured = self.measure_phases(driver);
        // Phases that have completed still count.
        let has_figures = !self.figures.is_empty();
        match &measured {
            // An interrupt can arrive just before a run begins.
            Err(StudyError::Run(RunError::Interrupted)) => {}
            Err(StudyError::Run(error)) if has_figures => {
                driver.note(format!("ended by an error: {error}; {}", error.remedy()));
            }
            _ => {}
        }
        if has_figures || measured.is_ok() && !driver.is_interrupted() {
            self.remark_on_devices(driver);
        }
        measured
    }

    fn conclude(self, ending: StudyEnding) -> Result<ProbeResult, StudyError> {
        let is_cut = self.runs.len() + self.left_out < self.phases.len() && ending.error.is_none();
        let interrupted = is_cut || ending.is_interrupted;
        if self.figures.is_empty() && (interrupted || ending.error.is_some()) {
            return Err(ending.into_error(&self.target.name));
        }
        let evidence = ClassEvidence::from_figures(self.target, &self.figures, &self.runs);
        let ceilings = ceiling::probe_ceilings(&self.knees, &self.figures, &self.runs, &[]);
        Ok(ProbeResult {
            format: FORMAT,
            target: self.target.name.clone(),
            path: self.target.path.clone(),
            kind: self.target.kind.clone(),
            options: self.options.clone(),
            working_set: StudyWorkingSet {
                planned_bytes: self.planned_bytes,
                bytes: self.bytes,
            },
            interrupted,
            error: ending.error.map(Into::into),
            classification: classify(&evidence),
            figures: self.figures,
            ceilings,
            knees: self.knees,
            notes: ending.notes,
            expected: Vec::new(),
            runs: self.runs,
        })
    }
}

impl<'a> ProbeStudy<'a> {
    /// Fails if the target has too little space.
    fn new(target: &'a StudyTarget, options: &'a ProbeOptions) -> Result<Self, StudyError> {
        let bytes = working_set(target, options)?;
        Ok(ProbeStudy {
            target,
            options,
            phases: target.kind.phases(),
            planned_bytes: bytes,
            bytes,
            figures: Vec::new(),
            knees: Vec::new(),
            runs: Vec::new(),
            slow: None,
            left_out: 0,
            planned_ns: 0,
            spent_ns: 0,
        })
    }

    /// Measures the speed of the target. An error here recurs in the first phase, which reports it.
    fn try_out(&mut self, driver: &mut StudyDriver<'_>) {
        let direction = match self.phases.first() {
            Some(ProbePhase::Layout) => Direction::Write,
            _ => Direction::Read,
        };
        let plan = slow::trial(&self.jobs(driver.is_direct(0)).template, direction);
        let Ok(result) = driver.run(&plan, RunPurpose::Trial, &mut ()) else {
            return;
        };
        self.slow = SlowTarget::from_result(&result);
        if let Some(slow) = self.slow {
            driver.note(slow.note());
            self.spent_ns += result.elapsed_ns;
        }
    }

    fn measure_phases(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        for phase in self.phases.clone() {
            if driver.is_interrupted() {
                break;
            }
            if let Some(slow) = self.slow.filter(|slow| slow.is_too_large(phase)) {
                self.left_out += 1;
                driver.note(slow.left_out(phase));
                continue;
            }
            self.phase(driver, phase)?;
        }
        Ok(())
    }

    fn phase(&mut self, driver: &mut StudyDriver<'_>, phase: ProbePhase) -> Result<(), StudyError> {
        let outcome = driver.attempt_direct(
            0,
            |driver, direct| self.run(driver, phase, direct),
            is_direct_refused,
        );
        let result = outcome?;
        if phase == ProbePhase::Layout {
            self.laid_out(driver, &result)?;
        } else if let Some(figure) =
            PhaseFigure::from_result(phase, &result, self.options.budget.width)
        {
            driver.emit(&StudyEvent::Found(StudyFinding::Figure(&figure)));
            self.figures.push(figure);
        } else if first_failure(&result).is_none() && !driver.is_interrupted() {
            driver.note(format!(
                "{}: not measured, because no I/O completed in its time",
                phase.title()
            ));
        }
        self.runs.push(PhaseRun { phase, result });
        if self.options.budget.searches(phase) && !driver.is_interrupted() {
            self.search(driver)?;
        }
        Ok(())
    }

    /// Searches the knee of the phase that has just run.
    fn search(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), RunError> {
        let Some(PhaseRun { phase, result }) = self.runs.last() else {
            return Ok(());
        };
        // An error at one depth recurs at others.
        if first_failure(result).is_some() {
            return Ok(());
        }
        let (phase, budget) = (*phase, self.budget());
        driver.emit(&StudyEvent::StepStarted {
            step: StudyStep::KneeSearch(phase),
            planned_ns: Some(budget.search_ns(phase)),
        });
        let jobs = self.jobs(driver.is_direct(0));
        let mut knee = match knee::search(driver, phase, &jobs, &budget, result) {
            Ok(knee) => knee,
            Err(RunError::Interrupted | RunError::NoCompletions) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.planned_ns += self.options.budget.search_ns(phase);
        if let Some(figure) = PhaseFigure::from_result(phase, result, budget.width) {
            let (iodepth, iops) = (figure.iodepth, figure.iops);
            knee.saturation.raise_to(LongerRun { iodepth, iops });
        }
        driver.emit(&StudyEvent::Found(StudyFinding::Knee(&knee)));
        // The next step makes up for the time of this one.
        match measure_second_size(driver, &knee, &jobs, &budget) {
            Ok(found) => knee.second_size = found,
            Err(RunError::Interrupted | RunError::NoCompletions) => {}
            Err(error) => return Err(error),
        }
        self.spent_ns += knee.spent_ns();
        self.knees.push(knee);
        Ok(())
    }

    fn run(
        &mut self,
        driver: &mut StudyDriver<'_>,
        phase: ProbePhase,
        direct: bool,
    ) -> Result<RunResult, RunError> {
        let budget = self.budget();
        let plan = phase::phase_plan(phase, &self.jobs(direct), &budget);
        let result = match phase {
            ProbePhase::Layout => {
                let mut rule = begin_phase(driver, phase, &budget);
                driver.run(&plan, RunPurpose::Layout, &mut rule)?
            }
            _ => run_measured(driver, phase, &plan, &budget)?,
        };
        self.planned_ns += self.options.budget.phase_ns(phase);
        self.spent_ns += result.elapsed_ns;
        Ok(result)
    }

    /// The time limits of the next step, shortened by earlier overruns to keep the total time.
    fn budget(&self) -> ProbeBudget {
        let late_ns = self.spent_ns.saturating_sub(self.planned_ns);
        self.options.budget.made_up(late_ns)
    }

    /// Limits later phases to the bytes that layout has written.
    fn laid_out(
        &mut self,
        driver: &mut StudyDriver<'_>,
        result: &RunResult,
    ) -> Result<(), StudyError> {
        let workers = result.workers.iter();
        let written: u64 = workers.map(|worker| worker.directions.write.io_bytes).sum();
        if let Some(failure) = first_failure(result) {
            return Err(StudyError::Layout {
                target: self.target.name.clone(),
                failure: Box::new(failure),
            });
        }
        let usable = match self.slow {
            Some(slow) => slow.laid_out_bytes(written),
            None => laid_out_bytes(written),
        };
        if usable == 0 {
            return Err(RunError::without_figures(driver.is_interrupted()).into());
        }
        if usable < self.bytes && !driver.is_interrupted() {
            driver.note(format!(
                "layout ended after {}: {} of the planned {} were written and are the working set",
                crate::words::whole_seconds_text(self.options.budget.layout_ns),
                crate::words::bytes(usable),
                crate::words::bytes(self.bytes),
            ));
        }
        self.bytes = usable;
        Ok(())
    }

    /// The options that all runs share.
    fn jobs(&self, direct: bool) -> ProbeJobs<'a> {
        ProbeJobs {
            template: JobTemplate::on(self.target, self.bytes, direct, self.options.seed),
            slow: self.slow,
        }
    }

    fn remark_on_devices(&self, driver: &mut StudyDriver<'_>) {
        if let StudyTargetKind::Existing { consent: false, .. } = self.target.kind {
            driver.note(
                "existing data is left alone, so only reads are measured; reads of never-written \
                 blocks may not reach the medium"
                    .to_owned(),
            );
        }
    }
}

/// Reports the begin of a phase, and returns the rule that ends it.
fn begin_phase(driver: &mut StudyDriver<'_>, phase: ProbePhase, budget: &ProbeBudget) -> EarlyStop {
    driver.emit(&StudyEvent::StepStarted {
        step: StudyStep::Phase(phase),
        planned_ns: Some(budget.phase_ns(phase)),
    });
    EarlyStop::new(phase, budget)
}

/// Runs a phase, and again if the process was stopped meanwhile.
fn run_measured(
    driver: &mut StudyDriver<'_>,
    phase: ProbePhase,
    plan: &Plan,
    budget: &ProbeBudget,
) -> Result<RunResult, RunError> {
    let run = RepeatableRun {
        plan,
        purpose: RunPurpose::Phase,
        name: Some(phase.title().to_owned()),
    };
    let begin = |driver: &mut StudyDriver<'_>| begin_phase(driver, phase, budget);
    let (result, _) = driver.run_repeatable(&run, begin, |_| {})?;
    Ok(result)
}

#[cfg(test)]
pub(super) mod tests;
