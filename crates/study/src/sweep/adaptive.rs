//! Searching curve by curve.

use super::relay::Relay;
use super::study::{LEAST_CURVE_NS, Study, SweepError, curve_ns, is_einval};
use super::watch::Found;
use crate::saturation::{Ended, Question, Rules, Saturation, go_on};
use iosonde_result::session::RunError;

const SECOND_NS: u64 = 1_000_000_000;
/// A search of less time cannot afford long ramps.
const SHORT_NS: u64 = 5 * SECOND_NS;

impl Study<'_> {
    pub(super) fn search_curves(&mut self) -> Result<(), SweepError> {
        let places: Vec<Vec<f64>> = self
            .grid
            .curves
            .iter()
            .map(|plan| self.place(plan))
            .collect();
        let mut order = self.order(&places);
        // Of those that an earlier sweep has looked at some are soon done: what is left behind them is what takes time.
        order.sort_by_key(|index| self.curves[*index].so_far.records.is_empty());
        for (done, index) in order.iter().copied().enumerate() {
            if self.watcher.is_interrupted() {
                break;
            }
            let plan = &self.grid.curves[index];
            if self.ended[plan.target].is_some() {
                continue;
            }
            let Some(budget_ns) = self.share_ns(index, order.len() - done) else {
                self.note("the budget was spent before every curve had been measured".to_owned());
                break;
            };
            let left_ns = self.curves_left_ns(&order, done);
            self.watcher.unit(done, order.len(), plan, left_ns);
            self.search(index, budget_ns)?;
        }
        Ok(())
    }

    /// Time left for curves, by what those took that are done. What an earlier sweep has spent on one is not spent again.
    fn curves_left_ns(&self, order: &[usize], done: usize) -> u64 {
        let (known, left) = order.split_at(done);
        let spent_ns = |index: &usize| self.curves[*index].so_far.spent_ns;
        let known_ns = known.iter().map(spent_ns).sum::<u64>();
        let left_ns = left.iter().map(|index| {
            let most_ns = self.most_ns(*index);
            let usual_ns = match done {
                0..2 => most_ns,
                done => (known_ns / done as u64).min(most_ns),
            };
            usual_ns.saturating_sub(spent_ns(index))
        });
        self.within_budget(left_ns.sum())
    }

    /// What a curve takes at most.
    fn most_ns(&self, index: usize) -> u64 {
        curve_ns(self.grid, &self.grid.curves[index], self.options)
    }

    /// Time of all curves at most, beside what an earlier sweep has spent on them.
    pub(super) fn unknown_curves_ns(&self) -> u64 {
        let left = self.curves.iter().enumerate();
        left.map(|(index, curve)| self.most_ns(index).saturating_sub(curve.so_far.spent_ns))
            .sum()
    }

    /// Time for the next curve; `None` when there is none worth while.
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

    fn search(&mut self, index: usize, budget_ns: u64) -> Result<(), SweepError> {
        let plan = &self.grid.curves[index];
        let mut outcome = self.search_once(index, budget_ns);
        if self.job(plan).io.direct && self.is_refused(index, &outcome) {
            self.go_buffered(plan.target);
            self.curves[index].failure = None;
            outcome = self.search_once(index, budget_ns);
        }
        if let Some(failure) = &self.curves[index].failure {
            let why = failure.message.clone();
            self.end_target(plan.target, why);
        }
        match outcome {
            Ok(found) => {
                let complete = matches!(found.ended, Ended::Sure | Ended::OutOfTime);
                if complete {
                    self.watcher.done(plan, &Found::Curve(&found));
                }
                self.curves[index].complete = complete;
                self.curves[index].found = Some(found);
                Ok(())
            }
            Err(error) => {
                if matches!(error, RunError::NothingDone) {
                    self.note_silence(index, None);
                }
                self.survive(plan.target, error)
            }
        }
    }

    /// Whether the very first I/O of a curve was refused for O_DIRECT.
    fn is_refused(&self, index: usize, outcome: &Result<Saturation, RunError>) -> bool {
        match outcome {
            Ok(_) => false,
            Err(RunError::NothingDone) => is_einval(self.curves[index].failure.as_ref()),
            Err(error) => error.to_string().contains("O_DIRECT"),
        }
    }

    fn search_once(&mut self, index: usize, budget_ns: u64) -> Result<Saturation, RunError> {
        let plan = &self.grid.curves[index];
        let job = self.job(plan);
        let question = Question {
            job: &job,
            depths: self.grid.depths_of(plan),
            jobs: &[job.numjobs],
            rules: rules(budget_ns),
        };
        let so_far = self.curves[index].so_far.clone();
        let before_ns = so_far.spent_ns;
        let mut relay = Relay {
            watcher: self.watcher,
            index,
            standing: &mut self.curves[index],
        };
        let outcome = go_on(self.session, &question, so_far, &mut relay);
        self.spent_ns += self.curves[index].so_far.spent_ns - before_ns;
        outcome
    }
}

/// How sure a search can be in its time.
fn rules(budget_ns: u64) -> Rules {
    let look_ns = (budget_ns / 50).clamp(SECOND_NS / 5, Rules::THOROUGH.look_ns);
    let long = budget_ns >= Rules::THOROUGH.budget_ns / 2;
    Rules {
        budget_ns,
        // Throttles grant a slice of 100 ms to who was idle.
        ramp_ns: match budget_ns {
            0..SHORT_NS => look_ns / 3,
            _ => Rules::THOROUGH.ramp_ns,
        },
        look_ns,
        least_ns: Rules::THOROUGH.least_ns.min(budget_ns / 6),
        precision: if long {
            Rules::THOROUGH.precision
        } else {
            0.01
        },
        between: false,
        ..Rules::THOROUGH
    }
}
