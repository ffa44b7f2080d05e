//! Adaptive sweep: searches one curve after the other.

use super::sweep_options::LEAST_CURVE_NS;
use super::sweep_study::SweepStudy;
use crate::driver::{StudyDriver, is_direct_refused_by, is_einval};
use crate::event::{StudyEvent, StudyFinding, StudyStep};
use crate::figures::cell::CurveCell;
use crate::figures::saturation_result::Saturation;
use crate::figures::search_rules::{Ended, SearchRules};
use crate::saturation::{KneeQuery, resume_search};
use crate::{StudyError, TimeRange};
use iosonde_result::run_error::RunError;

const SECOND_NS: u64 = 1_000_000_000;
/// Smallest budget of a search with long ramps.
const SHORT_NS: u64 = 5 * SECOND_NS;
/// Relative half-width of the maximum's 95 % interval at which a curve leaves its time to others.
const COARSE: f64 = 0.01;
/// Same half-width for the time that is left once all curves have been searched.
const FINE: f64 = SearchRules::THOROUGH.precision;
/// Least relative error assumed for a maximum whose deepest cell was not measured.
const UNSEEN: f64 = 0.1;
/// Parts of a curve's time in which leftover time is given out.
const PARTS: u64 = 3;

impl SweepStudy<'_> {
    pub(super) fn search_curves(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        let places: Vec<Vec<f64>> = self
            .grid
            .curves
            .iter()
            .map(|plan| self.place(plan))
            .collect();
        let mut order = self.order(&places);
        // Curves begun by an earlier sweep come first: some of them end soon.
        order.sort_by_key(|index| self.curves[*index].log.so_far.records.is_empty());
        for (done, index) in order.iter().copied().enumerate() {
            if driver.is_interrupted() {
                break;
            }
            let plan = &self.grid.curves[index];
            if self.ended[plan.target].is_some() {
                continue;
            }
            let Some(budget_ns) = self.share_ns(index, order.len() - done) else {
                driver.note("the budget was used up before all curves were measured".to_owned());
                break;
            };
            let left = self.curves_left(&order, done);
            let units = order.len();
            driver.emit(&StudyEvent::StepStarted {
                step: StudyStep::Unit { done, units, plan },
                planned_ns: None,
            });
            driver.emit(&StudyEvent::TimeLeft(left));
            self.search(driver, index, budget_ns, COARSE)?;
        }
        self.search_on(driver, &order)
    }

    /// Gives the time left over to the least certain curves, in parts: each part may change the
    /// order.
    fn search_on(
        &mut self,
        driver: &mut StudyDriver<'_>,
        order: &[usize],
    ) -> Result<(), StudyError> {
        let mut again = Vec::new();
        while let Some(index) = self.least_sure(order) {
            let left_ns = self.within_budget(self.unknown_curves_ns());
            let part_ns = (self.most_ns(index) / PARTS).max(LEAST_CURVE_NS);
            let part_ns = part_ns.min(left_ns);
            if part_ns < LEAST_CURVE_NS || driver.is_interrupted() {
                break;
            }
            let (plan, units) = (&self.grid.curves[index], order.len());
            let done = units - 1;
            driver.emit(&StudyEvent::StepStarted {
                step: StudyStep::Unit { done, units, plan },
                planned_ns: None,
            });
            driver.emit(&StudyEvent::TimeLeft(TimeRange {
                least_ns: 0,
                most_ns: left_ns,
            }));
            let before_ns = self.curves[index].log.so_far.spent_ns;
            self.search(driver, index, before_ns + part_ns, FINE)?;
            let spent_ns = self.curves[index].log.so_far.spent_ns - before_ns;
            // A curve whose cells do not fit into a part is not searched again.
            self.curves[index].exhausted = spent_ns < part_ns / 4;
            if spent_ns > 0 && !again.contains(&index) {
                again.push(index);
            }
        }
        for index in again {
            let progress = &self.curves[index];
            if let Some(saturation) = progress.found.as_ref().filter(|_| progress.complete) {
                let plan = &self.grid.curves[index];
                let finding = StudyFinding::Curve {
                    plan,
                    saturation,
                    is_again: true,
                };
                driver.emit(&StudyEvent::Found(finding));
            }
        }
        Ok(())
    }

    /// Returns the curve that gains most from more time: optimal times are proportional to
    /// variation (J. Neyman, Journal of the Royal Statistical Society 97, 1934).
    pub(super) fn least_sure(&self, order: &[usize]) -> Option<usize> {
        let gain = |index: &usize| {
            let spent_s = self.curves[*index].log.so_far.spent_ns.max(1) as f64 / 1e9;
            let enough = rules(self.most_ns(*index), FINE).precision;
            let doubt = self.doubt(*index).filter(|doubt| *doubt > enough)?;
            Some((*index, doubt * doubt / spent_s))
        };
        let gains = order.iter().filter_map(gain);
        let most = gains.max_by(|a, b| a.1.total_cmp(&b.1));
        most.map(|(index, _)| index)
    }

    /// Relative error of a curve's maximum. `None` if more time cannot reduce it.
    fn doubt(&self, index: usize) -> Option<f64> {
        let (progress, plan) = (&self.curves[index], &self.grid.curves[index]);
        let is_open = progress.complete && !progress.exhausted && self.ended[plan.target].is_none();
        let found = progress.found.as_ref().filter(|_| is_open)?;
        let deepest = self.grid.depths_of(plan).last();
        let is_seen = |cell: &CurveCell| Some(&cell.iodepth) == deepest;
        let unseen = match found.cells.iter().any(is_seen) {
            true => 0.0,
            false => UNSEEN,
        };
        let error = found.maximum.error.unwrap_or(found.maximum.mean);
        Some(unseen.max(error / found.maximum.mean.max(f64::MIN_POSITIVE)))
    }

    /// Budget of the next curve. `None` if too little time is left for one.
    fn share_ns(&self, index: usize, curves_left: usize) -> Option<u64> {
        let usual_ns = self.most_ns(index);
        let Some(budget_ns) = self.options.budget_ns else {
            return Some(usual_ns);
        };
        let left_ns = budget_ns.saturating_sub(self.spent_ns);
        let even_ns = left_ns / curves_left.max(1) as u64;
        let share_ns = even_ns.clamp(LEAST_CURVE_NS, usual_ns.max(LEAST_CURVE_NS));
        (left_ns >= LEAST_CURVE_NS).then_some(share_ns)
    }

    fn search(
        &mut self,
        driver: &mut StudyDriver<'_>,
        index: usize,
        budget_ns: u64,
        precision: f64,
    ) -> Result<(), StudyError> {
        let plan = &self.grid.curves[index];
        let (outcome, _) = driver.attempt_direct(
            plan.target,
            |driver, direct| {
                let rules = rules(budget_ns, precision);
                let outcome = self.search_once(driver, index, direct, rules);
                let is_refused = plan.job.io.direct && self.is_refused(index, &outcome);
                (outcome, is_refused)
            },
            |(_, is_refused)| *is_refused,
        );
        if let Some(failure) = self.curves[index].log.failure.clone() {
            self.fail_target(driver, plan.target, &failure);
        }
        match outcome {
            Ok(saturation) => {
                let progress = &mut self.curves[index];
                let before = progress.complete;
                // A complete curve stays complete if it is searched further.
                let is_complete = matches!(saturation.ended, Ended::Sure | Ended::OutOfTime);
                progress.complete = before || is_complete;
                if progress.complete && !before {
                    let finding = StudyFinding::Curve {
                        plan,
                        saturation: &saturation,
                        is_again: false,
                    };
                    driver.emit(&StudyEvent::Found(finding));
                }
                progress.found = Some(saturation);
                Ok(())
            }
            Err(error) => {
                if matches!(error, RunError::NoCompletions) {
                    self.note_silence(driver, index, None);
                }
                self.survive(driver, plan.target, error)
            }
        }
    }

    /// Whether the first I/O of a curve failed because of O_DIRECT.
    fn is_refused(&self, index: usize, outcome: &Result<Saturation, RunError>) -> bool {
        match outcome {
            Ok(_) => false,
            Err(RunError::NoCompletions) => {
                let failure = self.curves[index].log.failure.as_ref();
                failure.is_some_and(is_einval)
            }
            Err(error) => is_direct_refused_by(error),
        }
    }

    fn search_once(
        &mut self,
        driver: &mut StudyDriver<'_>,
        index: usize,
        direct: bool,
        rules: SearchRules,
    ) -> Result<Saturation, RunError> {
        let plan = &self.grid.curves[index];
        let job = self.job(plan, direct);
        let query = KneeQuery {
            job: &job,
            depths: self.grid.depths_of(plan),
            jobs: &[job.numjobs],
            rules,
            most_cell_ns: Some(self.options.runtime_ns),
            // Without targets, the job's region is not known to exist.
            continues_region: !self.targets.is_empty(),
        };
        let log = &mut self.curves[index].log;
        log.failure = None;
        let before_ns = log.so_far.spent_ns;
        let outcome = resume_search(driver, &query, log);
        self.spent_ns += log.so_far.spent_ns - before_ns;
        outcome
    }
}

/// Rules of a search with this budget.
fn rules(budget_ns: u64, precision: f64) -> SearchRules {
    // An interval needs two samples, after a first one that also covers the ramp.
    let look_ns = (budget_ns / 50).clamp(3 * SECOND_NS / 10, SearchRules::THOROUGH.look_ns);
    let long = budget_ns >= SearchRules::THOROUGH.budget_ns / 2;
    SearchRules {
        budget_ns,
        // An idle process gets a slice of 100 ms from throttles.
        ramp_ns: match budget_ns {
            0..SHORT_NS => look_ns / 3,
            _ => SearchRules::THOROUGH.ramp_ns,
        },
        look_ns,
        least_ns: SearchRules::THOROUGH.least_ns.min(budget_ns / 6),
        precision: if long { precision } else { COARSE },
        between: false,
        ..SearchRules::THOROUGH
    }
}
