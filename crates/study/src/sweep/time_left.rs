//! Time left of a sweep, while it runs.

use super::sweep_study::SweepStudy;
use super::sweep_times::{cell_ns, cell_time, curve_ns, curve_time};
use crate::figures::cell::CellRecord;
use crate::figures::curve_plan::CurvePlan;
use crate::time_range::TimeRange;
use iosonde_job::plan::Direction;

impl SweepStudy<'_> {
    /// Returns the time of all remaining runs, without the layout.
    pub(super) fn unknown_time(&self) -> TimeRange {
        match self.options.is_exhaustive() {
            true => {
                let cells = self.cells().into_iter();
                let unknown = cells.filter(|(index, iodepth)| !self.is_known(*index, *iodepth));
                let count = unknown.count() as u64;
                self.within_budget_time(cell_time(self.options).times(count))
            }
            false => {
                let order: Vec<usize> = (0..self.curves.len()).collect();
                self.curves_left(&order, 0)
            }
        }
    }

    /// Limits a time to the rest of the budget.
    pub(super) fn within_budget(&self, left_ns: u64) -> u64 {
        match self.options.budget_ns {
            Some(budget_ns) => left_ns.min(budget_ns.saturating_sub(self.spent_ns)),
            None => left_ns,
        }
    }

    fn within_budget_time(&self, left: TimeRange) -> TimeRange {
        TimeRange {
            least_ns: self.within_budget(left.least_ns),
            most_ns: self.within_budget(left.most_ns),
        }
    }

    // --- curves ---

    /// Returns the time left after `done` curves, less the time of a resumed sweep. Leftover time
    /// goes to uncertain curves, so all of it may be used.
    pub(super) fn curves_left(&self, order: &[usize], done: usize) -> TimeRange {
        let is_open = |index: &&usize| {
            let target = self.grid.curves[**index].target;
            self.ended[target].is_none()
        };
        let left = order[done..].iter().filter(is_open).map(|index| {
            let least_ns = curve_time(self.grid, &self.grid.curves[*index], self.options).least_ns;
            least_ns.saturating_sub(self.curves[*index].log.so_far.spent_ns)
        });
        self.within_budget_time(TimeRange {
            least_ns: left.sum(),
            most_ns: self.unknown_curves_ns(),
        })
    }

    /// Returns the longest time of a curve.
    pub(super) fn most_ns(&self, index: usize) -> u64 {
        curve_ns(self.grid, &self.grid.curves[index], self.options)
    }

    /// Returns the longest time of all curves, less the time of a resumed sweep.
    pub(super) fn unknown_curves_ns(&self) -> u64 {
        // A failed target's time is not given to others: it may work again after a resume.
        let is_open = |index: &usize| self.ended[self.grid.curves[*index].target].is_none();
        let open = || (0..self.curves.len()).filter(is_open);
        let all_ns: u64 = open().map(|index| self.most_ns(index)).sum();
        let spent = open().map(|index| self.curves[index].log.so_far.spent_ns);
        all_ns.saturating_sub(spent.sum())
    }

    // --- cells ---

    /// Returns the time left for these cells, after `done` others.
    pub(super) fn cells_left(&self, cells: &[(usize, u32)], done: usize) -> TimeRange {
        let planned = cell_time(self.options).times(cells.len() as u64);
        if self.options.most_warmup_ns.is_some() {
            return self.within_budget_time(planned);
        }
        // Mean drain time of the cells so far.
        let planned_done_ns = cell_ns(self.options) * done as u64;
        let late_ns = self.spent_ns.saturating_sub(planned_done_ns);
        let usual_ns = late_ns.checked_div(done as u64).unwrap_or(0);
        let ends = cells.iter().map(|(index, iodepth)| {
            let known_ns = self.last_ios_ns(*index, *iodepth);
            known_ns.unwrap_or(usual_ns)
        });
        self.within_budget_time(planned + TimeRange::exactly(ends.sum()))
    }

    /// Returns the drain time at the end of a cell, by Little's law from the curve's best rate,
    /// else from the rate of the layout. `None` if neither is known.
    fn last_ios_ns(&self, index: usize, iodepth: u32) -> Option<u64> {
        let plan = &self.grid.curves[index];
        let records = self.curves[index].log.so_far.records.iter();
        let rates = records.map(|record: &CellRecord| record.cell().iops.mean);
        let best = rates.reduce(f64::max).filter(|rate| *rate > 0.0);
        let ns = match best {
            Some(rate) => f64::from(iodepth) * f64::from(plan.job.numjobs) * 1e9 / rate,
            None => last_bytes(plan, iodepth) as f64 * self.ns_per_byte[plan.target]?,
        };
        Some(ns as u64)
    }

    /// Returns the bytes in flight at the ends of all remaining cells of an exhaustive sweep.
    pub(super) fn unknown_last_bytes(&self) -> u64 {
        if !self.options.is_exhaustive() {
            return 0;
        }
        let cells = self.cells().into_iter();
        let unknown = cells.filter(|(index, iodepth)| !self.is_known(*index, *iodepth));
        let bytes = unknown.map(|(index, iodepth)| last_bytes(&self.grid.curves[index], iodepth));
        bytes.sum()
    }
}

/// Returns the bytes in flight when a cell ends.
fn last_bytes(plan: &CurvePlan, iodepth: u32) -> u64 {
    let block = &plan.job.workload.block_size;
    let directions = Direction::ALL
        .into_iter()
        .filter(|direction| plan.job.workload.rw.has(*direction));
    let bytes = directions.map(|direction| block[direction].max()).max();
    bytes.unwrap_or(0) * u64::from(iodepth) * u64::from(plan.job.numjobs)
}
