//! How long curves and cells take: what is announced, and what is left while a sweep goes on.

use super::grid::{CurvePlan, Grid};
use super::study::{Study, SweepOptions};
use crate::TimeRange;
use crate::saturation::Record;
use iosonde_job::plan::Direction;

const SECOND_NS: u64 = 1_000_000_000;
/// A curve that is searched gets this share of the time that its cells would take.
const SHARE: u64 = 10;
/// Less time than this finds nothing.
pub(super) const LEAST_CURVE_NS: u64 = 2 * SECOND_NS;
/// A search whose cells are sure at the first look takes this share of its time.
const SURE_AT_ONCE: f64 = 0.25;

/// What a curve that is searched takes at most.
pub(super) fn curve_ns(grid: &Grid, plan: &CurvePlan, options: &SweepOptions) -> u64 {
    let cells_ns = grid.depths_of(plan).len() as u64 * options.runtime_ns;
    (cells_ns / SHARE).max(LEAST_CURVE_NS)
}

/// What a curve that is searched takes.
pub(super) fn curve_time(grid: &Grid, plan: &CurvePlan, options: &SweepOptions) -> TimeRange {
    let most_ns = curve_ns(grid, plan, options);
    TimeRange {
        least_ns: (SURE_AT_ONCE * most_ns as f64) as u64,
        most_ns,
    }
}

/// What a cell of a grid takes at most, beside the end of its last I/Os.
pub(super) fn cell_ns(options: &SweepOptions) -> u64 {
    cell_time(options).most_ns
}

/// What a cell of a grid takes, beside the end of its last I/Os.
pub(super) fn cell_time(options: &SweepOptions) -> TimeRange {
    let runtime_ns = options.runtime_ns;
    match options.most_warmup_ns {
        Some(most_warmup_ns) => TimeRange {
            least_ns: runtime_ns,
            most_ns: runtime_ns + most_warmup_ns,
        },
        None => TimeRange::exactly(runtime_ns + ramp_ns(options)),
    }
}

/// Not measured, before a cell of a grid.
pub(super) fn ramp_ns(options: &SweepOptions) -> u64 {
    (options.runtime_ns / 20).clamp(SECOND_NS / 5, 3 * SECOND_NS)
}

/// A time that ends with the budget.
pub(super) fn within(time: TimeRange, budget_ns: u64) -> TimeRange {
    TimeRange {
        least_ns: time.least_ns.min(budget_ns),
        most_ns: time.most_ns.min(budget_ns),
    }
}

impl Study<'_> {
    /// Time of all runs that are left, beside layout.
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

    /// So much time, or what is left of the budget.
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

    /// Time left for curves of which so many are done. What an earlier sweep has spent on one is not spent again. What some leave
    /// over is given to those that are not sure, so that no less than all of it may be spent.
    pub(super) fn curves_left(&self, order: &[usize], done: usize) -> TimeRange {
        let is_open = |index: &&usize| {
            let target = self.grid.curves[**index].target;
            self.ended[target].is_none()
        };
        let left = order[done..].iter().filter(is_open).map(|index| {
            let least_ns = curve_time(self.grid, &self.grid.curves[*index], self.options).least_ns;
            least_ns.saturating_sub(self.curves[*index].so_far.spent_ns)
        });
        self.within_budget_time(TimeRange {
            least_ns: left.sum(),
            most_ns: self.unknown_curves_ns(),
        })
    }

    /// What a curve takes at most.
    pub(super) fn most_ns(&self, index: usize) -> u64 {
        curve_ns(self.grid, &self.grid.curves[index], self.options)
    }

    /// Time of all curves at most, beside what an earlier sweep has spent on them.
    pub(super) fn unknown_curves_ns(&self) -> u64 {
        // The time of a target that has ended is nobody's: it may be back when the sweep goes on.
        let is_open = |index: &usize| self.ended[self.grid.curves[*index].target].is_none();
        let open = || (0..self.curves.len()).filter(is_open);
        let all_ns: u64 = open().map(|index| self.most_ns(index)).sum();
        let spent = open().map(|index| self.curves[index].so_far.spent_ns);
        all_ns.saturating_sub(spent.sum())
    }

    // --- cells ---

    /// Time left for these cells, before which so many were done.
    pub(super) fn cells_left(&self, cells: &[(usize, u32)], done: usize) -> TimeRange {
        let planned = cell_time(self.options).times(cells.len() as u64);
        if self.options.most_warmup_ns.is_some() {
            return self.within_budget_time(planned);
        }
        // What the I/O took on average that was in flight at the ends of cells.
        let planned_done_ns = cell_ns(self.options) * done as u64;
        let late_ns = self.spent_ns.saturating_sub(planned_done_ns);
        let usual_ns = late_ns.checked_div(done as u64).unwrap_or(0);
        let ends = cells.iter().map(|(index, iodepth)| {
            let known_ns = self.last_ios_ns(*index, *iodepth);
            known_ns.unwrap_or(usual_ns)
        });
        self.within_budget_time(planned + TimeRange::exactly(ends.sum()))
    }

    /// Time that the I/Os take that are in flight when a cell ends: by Little's law and the best rate of its curve, or by the pace
    /// of the layout. `None` where neither is known.
    fn last_ios_ns(&self, index: usize, iodepth: u32) -> Option<u64> {
        let plan = &self.grid.curves[index];
        let records = self.curves[index].so_far.records.iter();
        let rates = records.map(|record: &Record| record.cell().iops.mean);
        let best = rates.reduce(f64::max).filter(|rate| *rate > 0.0);
        let ns = match best {
            Some(rate) => f64::from(iodepth) * f64::from(plan.job.numjobs) * 1e9 / rate,
            None => last_bytes(plan, iodepth) as f64 * self.ns_per_byte[plan.target]?,
        };
        Some(ns as u64)
    }

    /// Bytes in flight at the ends of all cells that are left, where every cell is measured.
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

/// Bytes in flight when a cell ends.
fn last_bytes(plan: &CurvePlan, iodepth: u32) -> u64 {
    let block = &plan.job.workload.block_size;
    let directions = Direction::ALL
        .into_iter()
        .filter(|direction| plan.job.workload.rw.has(*direction));
    let bytes = directions.map(|direction| block[direction].max()).max();
    bytes.unwrap_or(0) * u64::from(iodepth) * u64::from(plan.job.numjobs)
}
