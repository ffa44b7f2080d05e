//! Searching curve by curve.

use super::relay::Relay;
use super::study::{Study, SweepError, is_einval};
use super::times::LEAST_CURVE_NS;
use super::watch::Found;
use crate::TimeRange;
use crate::saturation::{Cell, Ended, Question, Rules, Saturation, go_on};
use iosonde_result::session::RunError;

const SECOND_NS: u64 = 1_000_000_000;
/// A search of less time cannot afford long ramps.
const SHORT_NS: u64 = 5 * SECOND_NS;
/// Half the width of the maximum's 95 % interval, as a share of it, at which a curve leaves its time to others.
const COARSE: f64 = 0.01;
/// The same where there is time left when all curves are done.
const FINE: f64 = Rules::THOROUGH.precision;
/// What a curve may still hide whose deepest cell was not looked at, as a share of its maximum.
const UNSEEN: f64 = 0.1;
/// Time that was left over is given out in so many parts of what a curve takes.
const PARTS: u64 = 3;

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
            let left = self.curves_left(&order, done);
            self.watcher.unit(done, order.len(), plan);
            self.watcher.left(left);
            self.search(index, budget_ns, COARSE)?;
        }
        self.search_on(&order)
    }

    /// Gives the time that curves have left over to those that are least sure, in parts: what one part shows may make another curve
    /// the one to go on with.
    fn search_on(&mut self, order: &[usize]) -> Result<(), SweepError> {
        let mut again = Vec::new();
        while let Some(index) = self.least_sure(order) {
            let left_ns = self.within_budget(self.unknown_curves_ns());
            let part_ns = (self.most_ns(index) / PARTS).max(LEAST_CURVE_NS);
            let part_ns = part_ns.min(left_ns);
            if part_ns < LEAST_CURVE_NS || self.watcher.is_interrupted() {
                break;
            }
            let (plan, of) = (&self.grid.curves[index], order.len());
            self.watcher.unit(of - 1, of, plan);
            self.watcher.left(TimeRange {
                least_ns: 0,
                most_ns: left_ns,
            });
            let before_ns = self.curves[index].so_far.spent_ns;
            self.search(index, before_ns + part_ns, FINE)?;
            let spent_ns = self.curves[index].so_far.spent_ns - before_ns;
            // What a part was too short for is not tried again.
            self.curves[index].exhausted = spent_ns < part_ns / 4;
            if spent_ns > 0 && !again.contains(&index) {
                again.push(index);
            }
        }
        for index in again {
            let standing = &self.curves[index];
            if let Some(found) = standing.found.as_ref().filter(|_| standing.complete) {
                self.watcher
                    .done(&self.grid.curves[index], &Found::Curve(found));
            }
        }
        Ok(())
    }

    /// The curve that gains most by more time. As the variance of a mean falls with the time that it takes, each gets time in
    /// proportion to how much it varies (J. Neyman, Journal of the Royal Statistical Society 97, 1934).
    pub(super) fn least_sure(&self, order: &[usize]) -> Option<usize> {
        let gain = |index: &usize| {
            let spent_s = self.curves[*index].so_far.spent_ns.max(1) as f64 / 1e9;
            let enough = rules(self.most_ns(*index), FINE).precision;
            let doubt = self.doubt(*index).filter(|doubt| *doubt > enough)?;
            Some((*index, doubt * doubt / spent_s))
        };
        let gains = order.iter().filter_map(gain);
        let most = gains.max_by(|a, b| a.1.total_cmp(&b.1));
        most.map(|(index, _)| index)
    }

    /// How far the maximum of a curve may be off, as a share of it, if more time may tell.
    fn doubt(&self, index: usize) -> Option<f64> {
        let (standing, plan) = (&self.curves[index], &self.grid.curves[index]);
        let is_open = standing.complete && !standing.exhausted && self.ended[plan.target].is_none();
        let found = standing.found.as_ref().filter(|_| is_open)?;
        let deepest = self.grid.depths_of(plan).last();
        let is_seen = |cell: &Cell| Some(&cell.iodepth) == deepest;
        let unseen = match found.cells.iter().any(is_seen) {
            true => 0.0,
            false => UNSEEN,
        };
        let error = found.maximum.error.unwrap_or(found.maximum.mean);
        Some(unseen.max(error / found.maximum.mean.max(f64::MIN_POSITIVE)))
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

    fn search(&mut self, index: usize, budget_ns: u64, precision: f64) -> Result<(), SweepError> {
        let plan = &self.grid.curves[index];
        let mut outcome = self.search_once(index, budget_ns, precision);
        if self.job(plan).io.direct && self.is_refused(index, &outcome) {
            self.go_buffered(plan.target);
            self.curves[index].failure = None;
            outcome = self.search_once(index, budget_ns, precision);
        }
        if let Some(failure) = &self.curves[index].failure {
            let why = failure.message.clone();
            self.end_target(plan.target, why);
        }
        match outcome {
            Ok(found) => {
                let standing = &mut self.curves[index];
                let before = standing.complete;
                // What was complete before more time was given to it stays so.
                standing.complete = before || matches!(found.ended, Ended::Sure | Ended::OutOfTime);
                if standing.complete && !before {
                    self.watcher.done(plan, &Found::Curve(&found));
                }
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

    fn search_once(
        &mut self,
        index: usize,
        budget_ns: u64,
        precision: f64,
    ) -> Result<Saturation, RunError> {
        let plan = &self.grid.curves[index];
        let job = self.job(plan);
        let question = Question {
            job: &job,
            depths: self.grid.depths_of(plan),
            jobs: &[job.numjobs],
            rules: rules(budget_ns, precision),
            most_cell_ns: Some(self.options.runtime_ns),
            // Only what a study keeps to its target is known to be there.
            goes_on: !self.targets.is_empty(),
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
        self.note_stops(index);
        outcome
    }
}

/// How sure a search can be in its time.
fn rules(budget_ns: u64, precision: f64) -> Rules {
    // Three samples are the fewest that leave an interval: the first is of the ramp too.
    let look_ns = (budget_ns / 50).clamp(3 * SECOND_NS / 10, Rules::THOROUGH.look_ns);
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
        precision: if long { precision } else { COARSE },
        between: false,
        ..Rules::THOROUGH
    }
}
