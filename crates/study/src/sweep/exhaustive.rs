//! Measuring cell by cell.

use super::relay::Relay;
use super::study::{Study, SweepError, is_einval, ramp_ns};
use super::watch::Found;
use crate::saturation::measure_cell;

/// A cell of which this share has been measured is not measured again.
const NEARLY_ALL: f64 = 0.9;

impl Study<'_> {
    pub(super) fn measure_cells(&mut self) -> Result<(), SweepError> {
        let depths = self.grid.depths.len();
        let steps = depths.max(2) - 1;
        let places: Vec<Vec<f64>> = (0..self.grid.cells())
            .map(|cell| {
                let mut place = self.place(&self.grid.curves[cell / depths]);
                place.push((cell % depths) as f64 / steps as f64);
                place
            })
            .collect();
        let order = self.order(&places);
        let cell_ns = self.options.runtime_ns + ramp_ns(self.options);
        for (done, cell) in order.iter().copied().enumerate() {
            if self.watcher.is_interrupted() {
                break;
            }
            let (index, iodepth) = (cell / depths, self.grid.depths[cell % depths]);
            let plan = &self.grid.curves[index];
            if self.ended[plan.target].is_some() || self.is_known(index, iodepth) {
                continue;
            }
            let budget_ns = self.options.budget_ns.unwrap_or(u64::MAX);
            if self.spent_ns.saturating_add(cell_ns) > budget_ns && self.spent_ns > 0 {
                self.note("the budget was spent before every cell had been measured".to_owned());
                break;
            }
            let left_ns = self.left_ns(done, order.len());
            self.watcher.unit(done, order.len(), plan, left_ns);
            self.measure(index, iodepth)?;
        }
        for index in 0..self.curves.len() {
            self.judge(index);
        }
        Ok(())
    }

    fn is_known(&self, index: usize, iodepth: u32) -> bool {
        let enough_ns = NEARLY_ALL * self.options.runtime_ns as f64;
        let mut records = self.curves[index].so_far.records.iter();
        records.any(|record| {
            record.iodepth() == iodepth && record.cell().measured_ns as f64 >= enough_ns
        })
    }

    fn measure(&mut self, index: usize, iodepth: u32) -> Result<(), SweepError> {
        let plan = &self.grid.curves[index];
        let times = (ramp_ns(self.options), self.options.runtime_ns);
        let mut job = self.job(plan);
        let mut relay = Relay {
            watcher: self.watcher,
            index,
            standing: &mut self.curves[index],
        };
        let mut outcome = measure_cell(self.session, &job, iodepth, times, &mut relay);
        let refused = match &outcome {
            Err(error) => error.to_string().contains("O_DIRECT"),
            Ok(run) => is_einval(run.failure.as_ref()) && run.record.cell().latency.count == 0,
        };
        if job.io.direct && refused {
            self.go_buffered(plan.target);
            job.io.direct = false;
            let mut relay = Relay {
                watcher: self.watcher,
                index,
                standing: &mut self.curves[index],
            };
            outcome = measure_cell(self.session, &job, iodepth, times, &mut relay);
        }
        let run = match outcome {
            Ok(run) => run,
            Err(error) => return self.survive(plan.target, error),
        };
        self.spent_ns += run.elapsed_ns;
        let standing = &mut self.curves[index];
        let spent_ns = standing.so_far.spent_ns + run.elapsed_ns;
        if let Some(failure) = run.failure {
            standing.failure = Some(failure.clone());
            self.end_target(plan.target, failure.message);
        } else if run.record.cell().latency.count > 0 && !self.watcher.is_interrupted() {
            standing.take(&run.record, spent_ns);
            self.watcher.record(index, &run.record, spent_ns);
            self.watcher.done(plan, &Found::Cell(&run.record));
        }
        Ok(())
    }
}
