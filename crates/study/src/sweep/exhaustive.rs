//! Exhaustive sweep: measures every cell.

use super::sweep_study::SweepStudy;
use super::sweep_times::{cell_ns, ramp_ns};
use crate::StudyError;
use crate::driver::{StudyDriver, is_direct_refused_by, is_einval};
use crate::event::{StudyEvent, StudyFinding, StudyStep};
use crate::saturation::{CellRun, WarmTimes, measure_cell, measure_warm_cell};
use iosonde_job::plan::{BytesOrPercent, Direction, Job};
use iosonde_result::run_error::RunError;

/// Share of the measured time at which a cell counts as measured.
const NEARLY_ALL: f64 = 0.9;

impl SweepStudy<'_> {
    pub(super) fn measure_cells(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
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
            if driver.is_interrupted() {
                break;
            }
            let plan = &self.grid.curves[index];
            if self.ended[plan.target].is_some() {
                continue;
            }
            let budget_ns = self.options.budget_ns.unwrap_or(u64::MAX);
            if self.spent_ns.saturating_add(cell_ns) > budget_ns && self.spent_ns > 0 {
                driver.note("the budget was used up before all cells were measured".to_owned());
                break;
            }
            let step = StudyStep::Unit {
                done: known + done,
                units: cells,
                plan,
            };
            driver.emit(&StudyEvent::StepStarted {
                step,
                planned_ns: None,
            });
            let left = self.cells_left(&order[done..], done);
            driver.emit(&StudyEvent::TimeLeft(left));
            self.measure_unit(driver, index, iodepth)?;
        }
        for index in 0..self.curves.len() {
            self.judge(driver, index);
        }
        Ok(())
    }

    /// Returns all cells as curve and depth.
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
        let mut records = self.curves[index].log.so_far.records.iter();
        records.any(|record| {
            record.iodepth() == iodepth && record.cell().measured_ns as f64 >= enough_ns
        })
    }

    fn measure_unit(
        &mut self,
        driver: &mut StudyDriver<'_>,
        index: usize,
        iodepth: u32,
    ) -> Result<(), StudyError> {
        let plan = &self.grid.curves[index];
        let outcome = driver.attempt_direct(
            plan.target,
            |driver, direct| {
                let job = self.job(plan, direct);
                self.measure_job(driver, index, &job, iodepth)
            },
            |outcome| plan.job.io.direct && is_refused(outcome),
        );
        let run = match outcome {
            Ok(run) => run,
            Err(error) => return self.survive(driver, plan.target, error),
        };
        self.spent_ns += run.elapsed_ns;
        let log = &mut self.curves[index].log;
        let spent_ns = log.so_far.spent_ns + run.elapsed_ns;
        if let Some(failure) = run.failure {
            log.failure = Some(failure.clone());
            self.fail_target(driver, plan.target, &failure);
        } else if driver.is_interrupted() {
            // The cell may be incomplete.
        } else if run.record.cell().latency.count == 0 {
            self.note_silence(driver, index, Some(iodepth));
        } else {
            log.record(driver, &run.record, spent_ns);
            let record = &run.record;
            let finding = StudyFinding::Cell { plan, record };
            driver.emit(&StudyEvent::Found(finding));
        }
        Ok(())
    }

    fn measure_job(
        &mut self,
        driver: &mut StudyDriver<'_>,
        index: usize,
        job: &Job,
        iodepth: u32,
    ) -> Result<CellRun, RunError> {
        let runtime_ns = self.options.runtime_ns;
        let log = &mut self.curves[index].log;
        match self.options.most_warmup_ns {
            Some(most_warmup_ns) => {
                let times = WarmTimes {
                    runtime_ns,
                    most_warmup_ns,
                    least_ios: ios_of_one_pass(job),
                };
                measure_warm_cell(driver, job, iodepth, times, log)
            }
            None => {
                let times = (ramp_ns(self.options), runtime_ns);
                measure_cell(driver, job, iodepth, times, log)
            }
        }
    }
}

/// Whether a cell was not measured because of O_DIRECT.
fn is_refused(outcome: &Result<CellRun, RunError>) -> bool {
    match outcome {
        Err(error) => is_direct_refused_by(error),
        Ok(run) => {
            let is_empty = run.record.cell().latency.count == 0;
            is_empty && run.failure.as_ref().is_some_and(is_einval)
        }
    }
}

/// Returns the I/Os of one pass over the working set.
fn ios_of_one_pass(job: &Job) -> u64 {
    let directions = Direction::ALL
        .into_iter()
        .filter(|d| job.workload.rw.has(*d));
    let blocks = directions.map(|d| job.workload.block_size[d].max());
    match job.files.size {
        Some(BytesOrPercent::Bytes(bytes)) => bytes / blocks.max().unwrap_or(1).max(1),
        _ => 0,
    }
}
