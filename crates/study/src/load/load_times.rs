//! Planned steps and time of a study, and the time left while it runs.

use super::load_options::{LoadOptions, MOST_TRIES, SHARES};
use super::matrix_cells::MatrixOptions;
use crate::TimeRange;
use crate::announcement::StepRange;

/// Steps of a study that have not run yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepsLeft {
    /// Capacity and rates of the curve.
    pub(super) curve: StepRange,
    /// Searches for objectives.
    pub(super) searches: StepRange,
    /// Capacities and cells of the matrix.
    pub(super) matrix: StepRange,
}

impl StepsLeft {
    /// Returns the steps of a study that has not begun.
    pub(super) fn from_options(options: &LoadOptions) -> StepsLeft {
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

/// Returns the steps of the searches. The curve may already decide all objectives.
pub(super) fn searches(objectives: usize) -> StepRange {
    StepRange::new(0, objectives * MOST_TRIES)
}

/// Returns the time of all steps, without the layout and the drain of the last I/Os.
pub fn planned_time(options: &LoadOptions) -> TimeRange {
    StepsLeft::from_options(options)
        .total()
        .time(step_ns(options))
}

/// Returns the time of a step, without the drain of its last I/Os.
pub(super) fn step_ns(options: &LoadOptions) -> u64 {
    options.ramp_ns + options.runtime_ns
}

/// Time of offered loads beyond their plan, until the last I/Os of a backlog completed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overrun {
    late_ns: u64,
    steps: u64,
}

impl Overrun {
    /// Records a step.
    pub(super) fn take(&mut self, planned_ns: u64, elapsed_ns: u64) {
        self.late_ns += elapsed_ns.saturating_sub(planned_ns);
        self.steps += 1;
    }

    /// Returns the mean over the steps so far.
    pub(super) fn mean_ns(self) -> u64 {
        self.late_ns.checked_div(self.steps).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Arrivals, LoadPattern, Mix};

    fn options() -> LoadOptions {
        LoadOptions {
            pattern: LoadPattern {
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
        assert_eq!(
            StepsLeft::from_options(&searched).total(),
            StepRange::new(14, 38)
        );
        let matrix = LoadOptions {
            matrix: Some(MatrixOptions { steps: 10 }),
            ..options()
        };
        // Two capacities, 11 to 21 cells on the border, up to 8 inside.
        assert_eq!(
            StepsLeft::from_options(&matrix).total(),
            StepRange::new(27, 45)
        );
        let time = planned_time(&matrix);
        assert_eq!(time, TimeRange::from_steps(27, 45, 5_000_000_000));
    }

    #[test]
    fn overrun_is_mean_over_steps() {
        let mut overrun = Overrun::default();
        assert_eq!(overrun.mean_ns(), 0);
        overrun.take(100, 100);
        overrun.take(100, 300);
        assert_eq!(overrun.mean_ns(), 100);
    }
}
