//! Measuring cell by cell.

use super::relay::Relay;
use super::study::{Study, SweepError, is_einval};
use super::times::{cell_ns, ramp_ns};
use super::watch::Found;
use crate::saturation::{CellRun, WarmTimes, measure_cell, measure_warm_cell};
use iosonde_job::plan::{Direction, Extent, Job};
use iosonde_result::session::RunError;

/// A cell of which this share has been measured is not measured again.
const NEARLY_ALL: f64 = 0.9;

impl Study<'_> {
    pub(super) fn measure_cells(&mut self) -> Result<(), SweepError> {
        let all = self.cells();
        let places: Vec<Vec<f64>> = all
            .iter()
            .map(|(index, iodepth)| {
                let plan = &self.grid.curves[*index];
                let depths = self.grid.depths_of(plan);
                let at = depths.iter().position(|depth| depth == iodepth);
                let mut place = self.place(plan);
                place.push(at.unwrap_or(0) as f64 / (depths.len().max(2) - 1) as f64);
                place
            })
            .collect();
        let order = self.order(&places).into_iter().map(|cell| all[cell]);
        let mut order: Vec<(usize, u32)> = order.collect();
        let cells = order.len();
        order.retain(|(index, iodepth)| !self.is_known(*index, *iodepth));
        let known = cells - order.len();
        let cell_ns = cell_ns(self.options);
        for (done, (index, iodepth)) in order.iter().copied().enumerate() {
            if self.watcher.is_interrupted() {
                break;
            }
            let plan = &self.grid.curves[index];
            if self.ended[plan.target].is_some() {
                continue;
            }
            let budget_ns = self.options.budget_ns.unwrap_or(u64::MAX);
            if self.spent_ns.saturating_add(cell_ns) > budget_ns && self.spent_ns > 0 {
                self.note("the budget was spent before every cell had been measured".to_owned());
                break;
            }
            self.watcher.unit(known + done, cells, plan);
            self.watcher.left(self.cells_left(&order[done..], done));
            self.measure(index, iodepth)?;
        }
        for index in 0..self.curves.len() {
            self.judge(index);
        }
        Ok(())
    }

    /// All cells: curve and depth.
    pub(super) fn cells(&self) -> Vec<(usize, u32)> {
        let curves = self.grid.curves.iter().enumerate();
        curves
            .flat_map(|(index, plan)| {
                let depths = self.grid.depths_of(plan).iter();
                depths.map(move |depth| (index, *depth))
            })
            .collect()
    }

    pub(super) fn is_known(&self, index: usize, iodepth: u32) -> bool {
        let enough_ns = NEARLY_ALL * self.options.runtime_ns as f64;
        let mut records = self.curves[index].so_far.records.iter();
        records.any(|record| {
            record.iodepth() == iodepth && record.cell().measured_ns as f64 >= enough_ns
        })
    }

    fn measure(&mut self, index: usize, iodepth: u32) -> Result<(), SweepError> {
        let plan = &self.grid.curves[index];
        let mut job = self.job(plan);
        let mut outcome = self.measure_job(index, &job, iodepth);
        let refused = match &outcome {
            Err(error) => error.to_string().contains("O_DIRECT"),
            Ok(run) => is_einval(run.failure.as_ref()) && run.record.cell().latency.count == 0,
        };
        if job.io.direct && refused {
            self.go_buffered(plan.target);
            job.io.direct = false;
            outcome = self.measure_job(index, &job, iodepth);
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
        } else if run.record.cell().latency.count == 0 {
            if !self.watcher.is_interrupted() {
                self.note_silence(index, Some(iodepth));
            }
        } else if !self.watcher.is_interrupted() {
            standing.take(&run.record, spent_ns);
            self.watcher.record(index, &run.record, spent_ns);
            self.watcher.done(plan, &Found::Cell(&run.record));
        }
        Ok(())
    }

    fn measure_job(&mut self, index: usize, job: &Job, iodepth: u32) -> Result<CellRun, RunError> {
        let mut relay = Relay {
            watcher: self.watcher,
            index,
            standing: &mut self.curves[index],
        };
        let runtime_ns = self.options.runtime_ns;
        let outcome = match self.options.most_warmup_ns {
            Some(most_warmup_ns) => {
                let times = WarmTimes {
                    runtime_ns,
                    most_warmup_ns,
                    least_ios: once(job),
                };
                measure_warm_cell(self.session, job, iodepth, times, &mut relay)
            }
            None => {
                let times = (ramp_ns(self.options), runtime_ns);
                measure_cell(self.session, job, iodepth, times, &mut relay)
            }
        };
        self.note_stops(index);
        outcome
    }
}

/// I/Os that it takes to go once through the working set.
fn once(job: &Job) -> u64 {
    let directions = Direction::ALL
        .into_iter()
        .filter(|d| job.workload.rw.has(*d));
    let blocks = directions.map(|d| job.workload.block_size[d].max());
    match job.files.size {
        Some(Extent::Bytes(bytes)) => bytes / blocks.max().unwrap_or(1).max(1),
        _ => 0,
    }
}
