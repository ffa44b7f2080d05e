//! How many steps a study takes and how long: what is said before it begins, and what is left while it goes on.

use super::matrix::MatrixOptions;
use super::study::{LoadOptions, MOST_TRIES, SHARES};
use crate::TimeRange;
use std::ops::Add;

/// What a study will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadAnnouncement {
    /// Bytes of the working set.
    pub bytes: u64,
    /// Bytes that are written before the first step.
    pub layout_bytes: u64,
    /// Steps after the layout.
    pub steps: StepRange,
    /// Time of these steps, beside the end of their last I/Os.
    pub planned: TimeRange,
}

/// Fewest and most steps of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepRange {
    /// It takes so many steps at least.
    pub least: u64,
    /// And so many at most.
    pub most: u64,
}

impl StepRange {
    pub(super) fn exactly(count: usize) -> StepRange {
        StepRange::new(count, count)
    }

    pub(super) fn new(least: usize, most: usize) -> StepRange {
        debug_assert!(least <= most);
        StepRange {
            least: least as u64,
            most: most as u64,
        }
    }

    /// What is left of it after one step.
    pub(super) fn after_one(self) -> StepRange {
        StepRange {
            least: self.least.saturating_sub(1),
            most: self.most.saturating_sub(1),
        }
    }

    /// Time of steps that take so long each.
    pub(super) fn time(self, step_ns: u64) -> TimeRange {
        TimeRange::of_steps(self.least, self.most, step_ns)
    }
}

impl Add for StepRange {
    type Output = StepRange;

    fn add(self, other: StepRange) -> StepRange {
        StepRange {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }
}

/// The steps that a study has not taken yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepsLeft {
    /// The capacity and the rates of the curve.
    pub(super) curve: StepRange,
    /// The searches for objectives.
    pub(super) searches: StepRange,
    /// The capacities and cells of the matrix.
    pub(super) matrix: StepRange,
}

impl StepsLeft {
    /// Those of a study that has not begun.
    pub(super) fn of(options: &LoadOptions) -> StepsLeft {
        let curve = match options.rates.len() {
            0 => 1 + SHARES.len(),
            given => given,
        };
        StepsLeft {
            curve: StepRange::exactly(curve),
            searches: searches(options.objectives.len()),
            matrix: options.matrix.map(MatrixOptions::steps).unwrap_or_default(),
        }
    }

    pub(super) fn total(self) -> StepRange {
        self.curve + self.searches + self.matrix
    }
}

/// Steps of the searches for so many objectives: the curve may have decided all of them.
pub(super) fn searches(objectives: usize) -> StepRange {
    StepRange::new(0, objectives * MOST_TRIES)
}

/// Time of all steps, beside layout and the end of their last I/Os.
pub fn planned_time(options: &LoadOptions) -> TimeRange {
    StepsLeft::of(options).total().time(step_ns(options))
}

/// Time of a step, beside the end of its last I/Os.
pub(super) fn step_ns(options: &LoadOptions) -> u64 {
    options.ramp_ns + options.runtime_ns
}

/// Time that offered loads have taken beyond their plan: until the last I/Os of a backlog have ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overrun {
    late_ns: u64,
    steps: u64,
}

impl Overrun {
    /// A step of this plan took so long.
    pub(super) fn take(&mut self, planned_ns: u64, elapsed_ns: u64) {
        self.late_ns += elapsed_ns.saturating_sub(planned_ns);
        self.steps += 1;
    }

    /// Its mean over the steps so far.
    pub(super) fn mean_ns(self) -> u64 {
        self.late_ns.checked_div(self.steps).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Arrivals, Mix, Pattern};

    fn options() -> LoadOptions {
        LoadOptions {
            pattern: Pattern {
                block_bytes: 4096,
                random: true,
            },
            mix: Mix::READ,
            arrivals: Arrivals::Poisson,
            rates: Vec::new(),
            objectives: Vec::new(),
            matrix: None,
            runtime_ns: 4_000_000_000,
            ramp_ns: 1_000_000_000,
            numjobs: 1,
            parties: 1,
            iodepth: 1024,
            size_bytes: None,
            direct: true,
            seed: 1,
        }
    }

    #[test]
    fn planned_time_is_exact_without_searches() {
        assert_eq!(planned_time(&options()), TimeRange::exactly(70_000_000_000));
        let given = LoadOptions {
            rates: vec![100.0, 200.0],
            ..options()
        };
        assert_eq!(planned_time(&given), TimeRange::exactly(10_000_000_000));
    }

    #[test]
    fn planned_time_ends_with_all_steps_of_searches_and_matrix() {
        let objective = "p99=2ms".parse().unwrap();
        let searched = LoadOptions {
            objectives: vec![objective, objective],
            ..options()
        };
        assert_eq!(StepsLeft::of(&searched).total(), StepRange::new(14, 38));
        let matrix = LoadOptions {
            matrix: Some(MatrixOptions { steps: 10 }),
            ..options()
        };
        // Two capacities, 11 to 21 cells of the border, up to 8 inside it.
        assert_eq!(StepsLeft::of(&matrix).total(), StepRange::new(27, 45));
        let time = planned_time(&matrix);
        assert_eq!(time, TimeRange::of_steps(27, 45, 5_000_000_000));
    }

    #[test]
    fn overrun_is_a_mean() {
        let mut overrun = Overrun::default();
        assert_eq!(overrun.mean_ns(), 0);
        overrun.take(100, 100);
        overrun.take(100, 300);
        assert_eq!(overrun.mean_ns(), 100);
    }
}
