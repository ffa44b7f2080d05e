//! The read x write matrix: which pairs of rates the target sustains, and at what latency.
//!
//! What can be sustained is a staircase: with more of the one there is room for less of the other. So the border is followed
//! cell by cell instead of measuring all, and a coarse lattice inside it gives the latencies. Cells between are predicted
//! from their measured neighbours, and marked so.

use super::plan::Mix;
use super::point::{Offered, Point};
use super::study::{LoadError, Study};
use serde::{Deserialize, Serialize};

/// How fine the matrix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixOptions {
    /// Steps of each rate above 0.
    pub steps: usize,
}

impl MatrixOptions {
    /// Most cells that are measured, the two capacities included.
    pub fn most_cells(self) -> usize {
        2 + 2 * self.steps + 1 + LATTICE * LATTICE
    }
}

/// Lattice points inside the border, in each direction.
const LATTICE: usize = 3;

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

/// Measures the border and a lattice inside it. What was measured before an error is in the study too.
pub(super) fn measure(study: &mut Study<'_>, options: MatrixOptions) -> Result<(), LoadError> {
    let reads = axis(study.capacity(Mix::READ)?, options.steps);
    let writes = axis(study.capacity(Mix::WRITE)?, options.steps);
    let mut points = Vec::new();
    let mut outcome = Ok(());
    let mut cells = fill(options.steps, |read, write| {
        if study.is_over() {
            return None;
        }
        let offered = Offered {
            reads_per_s: reads[read],
            writes_per_s: writes[write],
        };
        let point = match study.offer(offered) {
            Ok(point) if point.interrupted => return None,
            Ok(point) => point,
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
    interpolate(&mut cells);
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
/// lattice inside. `None` ends it.
fn fill(steps: usize, mut ask: impl FnMut(usize, usize) -> Option<Cell>) -> Vec<Vec<Cell>> {
    let unknown = Cell {
        state: CellState::Unknown,
        p99_ns: None,
        of_few: false,
    };
    let mut cells = vec![vec![unknown; steps + 1]; steps + 1];
    let mut highest = vec![None; steps + 1];
    let (mut read, mut write) = (0, steps);
    let mut complete = true;
    while read <= steps {
        if (read, write) == (0, 0) {
            highest[read] = Some(0);
            read += 1;
            continue;
        }
        let Some(cell) = ask(read, write) else {
            complete = false;
            break;
        };
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
        complete = lattice(&highest, &mut cells, &mut ask);
    }
    if complete {
        predict(&highest, &mut cells);
    }
    cells
}

/// Measures some cells well inside the border. Whether it got to the end.
fn lattice(
    highest: &[Option<usize>],
    cells: &mut [Vec<Cell>],
    ask: &mut impl FnMut(usize, usize) -> Option<Cell>,
) -> bool {
    let steps = highest.len() - 1;
    for column in 0..LATTICE {
        let read = column * steps / LATTICE;
        let Some(top) = highest[read] else { continue };
        for row in 0..LATTICE {
            let write = row * top / LATTICE;
            if (read, write) == (0, 0) || cells[write][read].state != CellState::Unknown {
                continue;
            }
            match ask(read, write) {
                Some(cell) => cells[write][read] = cell,
                None => return false,
            }
        }
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

/// Latencies of predicted cells: the mean of the measured ones in logarithms, weighted by the inverse square of the distance.
fn interpolate(cells: &mut [Vec<Cell>]) {
    let known: Vec<(f64, f64, f64)> = cells
        .iter()
        .enumerate()
        .flat_map(|(write, row)| {
            row.iter().enumerate().filter_map(move |(read, cell)| {
                let p99_ns = cell.p99_ns.filter(|ns| *ns > 0.0)?;
                Some((read as f64, write as f64, p99_ns.ln()))
            })
        })
        .collect();
    for (write, row) in cells.iter_mut().enumerate() {
        for (read, cell) in row.iter_mut().enumerate() {
            if cell.state != CellState::Predicted || known.is_empty() {
                continue;
            }
            let (mut sum, mut weights) = (0.0, 0.0);
            for (x, y, value) in &known {
                let weight = 1.0 / ((x - read as f64).powi(2) + (y - write as f64).powi(2));
                sum += weight * value;
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
            let cells = fill(steps, |read, write| {
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
            let most = MatrixOptions { steps }.most_cells();
            prop_assert!(asked.len() <= most);
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
        interpolate(&mut cells);
        assert!((cells[0][1].p99_ns.unwrap() - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn what_an_end_leaves_open_is_unknown() {
        let mut left = 3;
        let cells = fill(4, |_, _| {
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
