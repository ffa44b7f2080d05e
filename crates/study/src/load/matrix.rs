//! The read x write matrix: which pairs of rates the target sustains, and at what latency.
//!
//! What can be sustained is a staircase: with more of the one there is room for less of the other. So the border is followed
//! cell by cell instead of measuring all, and a few cells inside it give the latencies. Cells between are predicted
//! from their measured neighbours, and marked so.

use super::plan::Mix;
use super::point::{Offered, Point};
use super::study::{LoadError, Study};
use super::times::StepRange;
use serde::{Deserialize, Serialize};

/// How fine the matrix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixOptions {
    /// Steps of each rate above 0.
    pub steps: usize,
}

impl MatrixOptions {
    /// Cells that are measured, the two capacities included.
    pub(super) fn steps(self) -> StepRange {
        StepRange::exactly(CAPACITIES) + self.border_left(0, self.steps, 0)
    }

    /// Cells that are left where the border has come to this one after so many others, and those inside it. From each cell the
    /// border goes one step down or to the right, until it has left the matrix.
    fn border_left(self, read: usize, write: usize, asked: usize) -> StepRange {
        debug_assert!(read <= self.steps && write <= self.steps);
        let right = self.steps - read + 1;
        let longest = right + write;
        StepRange::new(
            right.min(write + 1),
            longest + self.most_inside(asked + longest),
        )
    }

    /// The longest that the border can be: each cell of it is one step down or to the right.
    fn most_of_border(self) -> usize {
        2 * self.steps + 1
    }

    /// How many cells inside the border are measured, once it has taken so many. From 20 steps on all together are a tenth of the cells
    /// at most; fewer steps have a border that is longer than that.
    fn most_inside(self, of_border: usize) -> usize {
        let tenth = (self.steps + 1).pow(2) / 10;
        if CAPACITIES + self.most_of_border() > tenth {
            return INSIDE.len();
        }
        let left = tenth.saturating_sub(CAPACITIES + of_border);
        left.clamp(1, INSIDE.len())
    }
}

/// Runs that find what the rates of both axes end with.
const CAPACITIES: usize = 2;
/// Cells inside the border, in thirds of the reads and of the most writes beside them, what tells most first.
const INSIDE: [(usize, usize); 8] = [
    (1, 1),
    (0, 1),
    (1, 0),
    (2, 1),
    (1, 2),
    (0, 2),
    (2, 0),
    (2, 2),
];

/// How the figures of a cell came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// Measured, and kept up with.
    Measured,
    /// Measured, and not kept up with.
    NotReached,
    /// Not measured; inside the border, so it can be sustained. Its latency is interpolated.
    Predicted,
    /// Not measured; outside the border.
    PredictedNotReached,
    /// Nothing is offered, or the study ended before.
    Unknown,
}

/// One pair of rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What is known.
    pub state: CellState,
    /// 99th percentile of the slower direction, where it is kept up with.
    pub p99_ns: Option<f64>,
    /// Whether it is that of so few I/Os that a longer measurement may have another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_few: bool,
}

impl Cell {
    /// Of a point that came to its end.
    fn of(point: &Point) -> Cell {
        Cell {
            state: match point.kept_up {
                true => CellState::Measured,
                false => CellState::NotReached,
            },
            p99_ns: point.kept_up.then(|| p99(point)),
            of_few: point.kept_up && point.percentile_ns(99.0).is_none(),
        }
    }
}

/// The matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Offered reads per second, by column, from 0.
    pub reads_per_s: Vec<f64>,
    /// Offered writes per second, by row, from 0.
    pub writes_per_s: Vec<f64>,
    /// Rows of cells.
    pub cells: Vec<Vec<Cell>>,
    /// The measured points, in the order they were measured.
    pub points: Vec<Point>,
}

impl Matrix {
    /// Measured cells, and all but the empty one.
    pub fn measured(&self) -> (usize, usize) {
        let all = self.reads_per_s.len() * self.writes_per_s.len();
        let whole = self.points.iter().filter(|point| point.failure.is_none());
        (whole.count(), all - 1)
    }
}

/// Measures the border and a few cells inside it. What was measured before an error is in the study too.
pub(super) fn measure(study: &mut Study<'_>, options: MatrixOptions) -> Result<(), LoadError> {
    let reads = axis(study.capacity(Mix::READ)?, options.steps);
    study.left.matrix = study.left.matrix.after_one();
    let writes = axis(study.capacity(Mix::WRITE)?, options.steps);
    let mut points = Vec::new();
    let mut outcome = Ok(());
    let mut cells = fill(options, |read, write, left| {
        if study.is_over() {
            return None;
        }
        study.left.matrix = left;
        let offered = Offered {
            reads_per_s: reads[read],
            writes_per_s: writes[write],
        };
        let point = match study.offer(offered) {
            Ok(run) if run.point.interrupted => return None,
            Ok(run) => run.point,
            Err(error) => {
                outcome = Err(error);
                return None;
            }
        };
        // What an error ended says nothing of the rate, and what comes after it little.
        let cell = point.failure.is_none().then(|| Cell::of(&point));
        points.push(point);
        cell
    });
    let place = |offered: Offered| {
        let share = |rate: f64, axis: &[f64]| {
            rate * options.steps as f64 / axis.last().copied().unwrap_or(rate).max(1.0)
        };
        (
            share(offered.reads_per_s, &reads),
            share(offered.writes_per_s, &writes),
        )
    };
    let curve = study.known().filter(|point| point.kept_up);
    let curve: Vec<Known> = curve
        .filter_map(|point| {
            let (read, write) = place(point.offered);
            let p99_ns = point.percentile_ns(99.0)?;
            Some(Known {
                read,
                write,
                p99_ns,
            })
        })
        .collect();
    interpolate(&mut cells, &curve);
    study.matrix = Some(Matrix {
        reads_per_s: reads,
        writes_per_s: writes,
        cells,
        points,
    });
    outcome
}

fn p99(point: &Point) -> f64 {
    let sides = point.sides();
    sides
        .map(|side| side.latency.at_ns(99.0))
        .fold(0.0, f64::max)
}

fn axis(capacity: f64, steps: usize) -> Vec<f64> {
    (0..=steps)
        .map(|step| (capacity * step as f64 / steps as f64).round())
        .collect()
}

/// Asks for cells (column, row) along the border, from no reads and all writes to all reads and no writes, then for the
/// few inside, and says each time how many are left. `None` ends it.
fn fill(
    options: MatrixOptions,
    mut ask: impl FnMut(usize, usize, StepRange) -> Option<Cell>,
) -> Vec<Vec<Cell>> {
    let steps = options.steps;
    let unknown = Cell {
        state: CellState::Unknown,
        p99_ns: None,
        of_few: false,
    };
    let mut cells = vec![vec![unknown; steps + 1]; steps + 1];
    let mut highest = vec![None; steps + 1];
    let (mut read, mut write) = (0, steps);
    let (mut asked, mut complete) = (0, true);
    while read <= steps {
        if (read, write) == (0, 0) {
            highest[read] = Some(0);
            read += 1;
            continue;
        }
        let left = options.border_left(read, write, asked);
        let Some(cell) = ask(read, write, left) else {
            complete = false;
            break;
        };
        asked += 1;
        cells[write][read] = cell;
        if cell.state == CellState::Measured {
            highest[read] = Some(write);
            read += 1;
        } else if write == 0 {
            // Nor are more reads sustained.
            break;
        } else {
            write -= 1;
        }
    }
    if complete {
        let most = options.most_inside(asked);
        complete = inside(&highest, &mut cells, most, &mut ask);
    }
    if complete {
        predict(&highest, &mut cells);
    }
    cells
}

/// Measures some cells well inside the border, so many at most. Whether it got to the end.
fn inside(
    highest: &[Option<usize>],
    cells: &mut [Vec<Cell>],
    most: usize,
    ask: &mut impl FnMut(usize, usize, StepRange) -> Option<Cell>,
) -> bool {
    let steps = highest.len() - 1;
    let mut asked = 0;
    for (column, row) in INSIDE {
        let read = column * steps / 3;
        let Some(top) = highest[read] else { continue };
        let write = row * top / 3;
        let is_known = cells[write][read].state != CellState::Unknown;
        if asked == most || is_known || (read, write) == (0, 0) {
            continue;
        }
        match ask(read, write, StepRange::new(1, most - asked)) {
            Some(cell) => cells[write][read] = cell,
            None => return false,
        }
        asked += 1;
    }
    true
}

/// Marks what was not measured by the side of the border that it is on.
fn predict(highest: &[Option<usize>], cells: &mut [Vec<Cell>]) {
    for (write, row) in cells.iter_mut().enumerate() {
        for (read, cell) in row.iter_mut().enumerate() {
            if cell.state == CellState::Unknown && (read, write) != (0, 0) {
                cell.state = match highest[read] {
                    Some(top) if write <= top => CellState::Predicted,
                    _ => CellState::PredictedNotReached,
                };
            }
        }
    }
}

/// What lies nearer than this many steps is at the cell: rates of a curve may fall on one.
const NEAREST: f64 = 0.1;

/// A latency that was measured, at a place among the cells.
#[derive(Debug, Clone, Copy)]
struct Known {
    read: f64,
    write: f64,
    p99_ns: f64,
}

/// Latencies of predicted cells: the mean of the measured ones, and of those of the curve, in logarithms, weighted by the inverse square
/// of the distance.
fn interpolate(cells: &mut [Vec<Cell>], curve: &[Known]) {
    let rows = cells.iter().enumerate();
    let measured = rows.flat_map(|(write, row)| {
        row.iter().enumerate().filter_map(move |(read, cell)| {
            Some(Known {
                read: read as f64,
                write: write as f64,
                p99_ns: cell.p99_ns?,
            })
        })
    });
    let known = measured.chain(curve.iter().copied());
    let known: Vec<Known> = known.filter(|known| known.p99_ns > 0.0).collect();
    for (write, row) in cells.iter_mut().enumerate() {
        for (read, cell) in row.iter_mut().enumerate() {
            if cell.state != CellState::Predicted || known.is_empty() {
                continue;
            }
            let (mut sum, mut weights) = (0.0, 0.0);
            for near in &known {
                let square =
                    (near.read - read as f64).powi(2) + (near.write - write as f64).powi(2);
                let weight = 1.0 / square.max(NEAREST * NEAREST);
                sum += weight * near.p99_ns.ln();
                weights += weight;
            }
            cell.p99_ns = Some((sum / weights).exp());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// A device that sustains the cells on one side of a curve.
    fn sustains(steps: usize, bend: f64, read: usize, write: usize) -> bool {
        let share = |step: usize| step as f64 / steps as f64;
        share(read).powf(bend) + share(write).powf(bend) <= 1.0
    }

    proptest! {
        #[test]
        fn the_border_is_exact_and_cheap(steps in 2usize..24, bend in 0.3f64..3.0) {
            let mut asked = HashSet::new();
            let mut promises = Vec::new();
            let cells = fill(MatrixOptions { steps }, |read, write, left| {
                promises.push((asked.len(), left));
                assert!(asked.insert((read, write)), "asked twice");
                let state = match sustains(steps, bend, read, write) {
                    true => CellState::Measured,
                    false => CellState::NotReached,
                };
                Some(Cell { state, p99_ns: None, of_few: false })
            });
            for (write, row) in cells.iter().enumerate() {
                for (read, cell) in row.iter().enumerate() {
                    if (read, write) == (0, 0) {
                        prop_assert_eq!(cell.state, CellState::Unknown);
                        continue;
                    }
                    let expected = sustains(steps, bend, read, write);
                    let told = matches!(cell.state, CellState::Measured | CellState::Predicted);
                    prop_assert_eq!(told, expected, "({}, {})", read, write);
                }
            }
            let all = MatrixOptions { steps }.steps();
            let took = (asked.len() + CAPACITIES) as u64;
            prop_assert!(all.least <= took && took <= all.most, "{} of {:?}", took, all);
            for (before, left) in promises {
                let took = (asked.len() - before) as u64;
                prop_assert!(left.least <= took && took <= left.most, "{} of {:?}", took, left);
            }
            if steps >= 20 {
                prop_assert!(10 * (asked.len() + CAPACITIES) <= (steps + 1).pow(2));
            }
        }
    }

    #[test]
    fn predictions_lie_between_what_was_measured() {
        let cell = |state, p99_ns| Cell {
            state,
            p99_ns,
            of_few: false,
        };
        let mut cells = vec![vec![
            cell(CellState::Measured, Some(100.0)),
            cell(CellState::Predicted, None),
            cell(CellState::Measured, Some(10_000.0)),
        ]];
        interpolate(&mut cells, &[]);
        assert!((cells[0][1].p99_ns.unwrap() - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn what_an_end_leaves_open_is_unknown() {
        let mut left = 3;
        let cells = fill(MatrixOptions { steps: 4 }, |_, _, _| {
            left -= 1;
            let cell = Cell {
                state: CellState::NotReached,
                p99_ns: None,
                of_few: false,
            };
            (left >= 0).then_some(cell)
        });
        let unknown = cells
            .iter()
            .flatten()
            .filter(|cell| cell.state == CellState::Unknown);
        assert_eq!(unknown.count(), 25 - 3);
    }
}
