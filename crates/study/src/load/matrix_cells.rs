//! The cells of a matrix of read and write rates, and which of them are measured.

use crate::announcement::StepRange;
use crate::figures::load_measurement::LoadMeasurement;
use serde::{Deserialize, Serialize};

/// Runs that measure the capacities, the ends of both axes.
pub(super) const CAPACITIES: usize = 2;

/// Cells inside the border, in thirds of its reads and writes. The most informative come first.
pub(super) const INSIDE: [(usize, usize); 8] = [
    (1, 1),
    (0, 1),
    (1, 0),
    (2, 1),
    (1, 2),
    (0, 2),
    (2, 0),
    (2, 2),
];

/// Resolution of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixOptions {
    /// Steps of each rate above 0.
    pub steps: usize,
}

impl MatrixOptions {
    /// Returns the number of cells to measure, including the two capacities.
    pub(super) fn steps(self) -> StepRange {
        StepRange::exactly(CAPACITIES) + self.border_left(0, self.steps, 0)
    }

    /// Returns the number of cells left, if the border is at this cell after `asked` others. The
    /// border goes one cell down or right at a time, until it leaves the matrix.
    pub(super) fn border_left(self, read: usize, write: usize, asked: usize) -> StepRange {
        debug_assert!(read <= self.steps && write <= self.steps);
        let right = self.steps - read + 1;
        let longest = right + write;
        StepRange::new(
            right.min(write + 1),
            longest + self.most_inside(asked + longest),
        )
    }

    /// Returns the maximum length of the border: each cell is one step down or right.
    fn most_of_border(self) -> usize {
        2 * self.steps + 1
    }

    /// Returns how many cells inside the border are measured. From 20 steps, all measured cells are
    /// at most a tenth of the matrix. With fewer steps, the border alone is longer than that.
    pub(super) fn most_inside(self, of_border: usize) -> usize {
        let tenth = (self.steps + 1).pow(2) / 10;
        if CAPACITIES + self.most_of_border() > tenth {
            return INSIDE.len();
        }
        let left = tenth.saturating_sub(CAPACITIES + of_border);
        left.clamp(1, INSIDE.len())
    }
}

/// Source of a cell's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// Measured, and sustained.
    Measured,
    /// Measured, and not sustained.
    NotReached,
    /// Not measured. Inside the border, so the target sustains it. The latency is interpolated.
    Predicted,
    /// Not measured. Outside the border.
    PredictedNotReached,
    /// The cell offers no I/O, or the study ended early.
    Unknown,
}

/// One pair of rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// Source of the figures.
    pub state: CellState,
    /// 99th percentile of the slower direction in nanoseconds, if the rates are sustained.
    pub p99_ns: Option<f64>,
    /// 95 % confidence interval of the 99th percentile in nanoseconds. `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_interval_ns: Option<(f64, f64)>,
    /// Whether too few I/Os exceed the percentile for a stable figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_few: bool,
}

impl MatrixCell {
    /// Returns the cell of a point without an error.
    pub(super) fn from_measurement(point: &LoadMeasurement) -> MatrixCell {
        MatrixCell {
            state: match point.kept_up {
                true => CellState::Measured,
                false => CellState::NotReached,
            },
            p99_ns: point.kept_up.then(|| worst_p99_ns(point)),
            p99_interval_ns: (point.percentile_interval_ns(99.0)).filter(|_| point.kept_up),
            of_few: point.kept_up && point.percentile_ns(99.0).is_none(),
        }
    }
}

fn worst_p99_ns(point: &LoadMeasurement) -> f64 {
    let sides = point.sides();
    sides
        .map(|side| side.latency.at_ns(99.0))
        .fold(0.0, f64::max)
}

/// Cells over read and write rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Offered reads per second, by column, from 0.
    pub reads_per_s: Vec<f64>,
    /// Offered writes per second, by row, from 0.
    pub writes_per_s: Vec<f64>,
    /// Cells by row and column.
    pub cells: Vec<Vec<MatrixCell>>,
    /// Measured points, in the order of measurement.
    pub points: Vec<LoadMeasurement>,
}

impl Matrix {
    /// Returns the numbers of measured cells and of all cells that offer I/O.
    pub fn measured(&self) -> (usize, usize) {
        let all = self.reads_per_s.len() * self.writes_per_s.len();
        let is_measured =
            |cell: &&MatrixCell| matches!(cell.state, CellState::Measured | CellState::NotReached);
        let measured = self.cells.iter().flatten().filter(is_measured);
        (measured.count(), all - 1)
    }
}
