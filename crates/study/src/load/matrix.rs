//! The matrix of read and write rates: the pairs that the target sustains, and their latencies.
//!
//! More reads leave room for fewer writes, so the border of the sustained cells is a staircase. The
//! study measures the cells along the border, and a few inside it for their latencies. Other cells
//! are predicted from measured latencies, and marked as predicted.

use super::load_plan::Mix;
use super::load_runner::LoadRunner;
use super::matrix_cells::{CellState, INSIDE, Matrix, MatrixCell, MatrixOptions};
use super::matrix_prediction::{PlacedLatency, place_in_steps, predict_latencies};
use crate::StudyError;
use crate::announcement::StepRange;
use crate::driver::StudyDriver;
use crate::figures::load_measurement::{LoadMeasurement, Offered};

/// Measures the border and a few cells inside it. `known` has the points of the curve. After an
/// error at a cell, `found` has the cells so far; after one at a capacity it is unchanged.
pub(super) fn measure<'p>(
    runner: &mut LoadRunner<'_>,
    driver: &mut StudyDriver<'_>,
    options: MatrixOptions,
    known: impl Iterator<Item = &'p LoadMeasurement>,
    found: &mut Option<Matrix>,
) -> Result<(), StudyError> {
    let reads = rate_axis(runner.capacity(driver, Mix::READ)?, options.steps);
    runner.left.matrix = runner.left.matrix.after_one();
    let writes = rate_axis(runner.capacity(driver, Mix::WRITE)?, options.steps);
    let mut points = Vec::new();
    let mut outcome = Ok(());
    let mut cells = measure_cells(options, |read, write, left| {
        if driver.is_interrupted() {
            return None;
        }
        runner.left.matrix = left;
        let offered = Offered {
            reads_per_s: reads[read],
            writes_per_s: writes[write],
        };
        let point = match runner.offer(driver, offered) {
            Ok(run) if run.point.interrupted => return None,
            Ok(run) => run.point,
            Err(error) => {
                outcome = Err(error);
                return None;
            }
        };
        // An error makes this rate unknown, and the next ones doubtful.
        let cell = point
            .failure
            .is_none()
            .then(|| MatrixCell::from_measurement(&point));
        points.push(point);
        cell
    });
    let curve = known.filter(|point| point.kept_up);
    let curve: Vec<PlacedLatency> = curve
        .filter_map(|point| {
            Some(PlacedLatency {
                read: place_in_steps(point.offered.reads_per_s, &reads),
                write: place_in_steps(point.offered.writes_per_s, &writes),
                p99_ns: point.percentile_ns(99.0)?,
                interval_ns: point.percentile_interval_ns(99.0),
            })
        })
        .collect();
    predict_latencies(&mut cells, &curve);
    *found = Some(Matrix {
        reads_per_s: reads,
        writes_per_s: writes,
        cells,
        points,
    });
    outcome
}

fn rate_axis(capacity: f64, steps: usize) -> Vec<f64> {
    (0..=steps)
        .map(|step| (capacity * step as f64 / steps as f64).round())
        .collect()
}

/// Measures cells (column, row) along the border, from writes only to reads only, then a few
/// inside. `ask` gets the number of cells left, and returns `None` to end.
fn measure_cells(
    options: MatrixOptions,
    mut ask: impl FnMut(usize, usize, StepRange) -> Option<MatrixCell>,
) -> Vec<Vec<MatrixCell>> {
    let steps = options.steps;
    let unknown = MatrixCell {
        state: CellState::Unknown,
        p99_ns: None,
        p99_interval_ns: None,
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
            // No further column is sustained.
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

/// Measures at most `most` cells inside the border. Returns whether it completed.
fn inside(
    highest: &[Option<usize>],
    cells: &mut [Vec<MatrixCell>],
    most: usize,
    ask: &mut impl FnMut(usize, usize, StepRange) -> Option<MatrixCell>,
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

/// Marks cells that were not measured, by their side of the border.
fn predict(highest: &[Option<usize>], cells: &mut [Vec<MatrixCell>]) {
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

#[cfg(test)]
mod tests {
    use super::super::matrix_cells::CAPACITIES;
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
        fn matrix_border_is_exact_within_planned_steps(steps in 2usize..24, bend in 0.3f64..3.0) {
            let mut asked = HashSet::new();
            let mut promises = Vec::new();
            let cells = measure_cells(MatrixOptions { steps }, |read, write, left| {
                promises.push((asked.len(), left));
                assert!(asked.insert((read, write)), "asked twice");
                let state = match sustains(steps, bend, read, write) {
                    true => CellState::Measured,
                    false => CellState::NotReached,
                };
                Some(MatrixCell { state, p99_ns: None, p99_interval_ns: None, of_few: false })
            });
            for (write, row) in cells.iter().enumerate() {
                for (read, cell) in row.iter().enumerate() {
                    if (read, write) == (0, 0) {
                        prop_assert_eq!(cell.state, CellState::Unknown);
                        continue;
                    }
                    let expected = sustains(steps, bend, read, write);
                    let is_sustained =
                        matches!(cell.state, CellState::Measured | CellState::Predicted);
                    prop_assert_eq!(is_sustained, expected, "({}, {})", read, write);
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
    fn cells_after_early_end_are_unknown() {
        let mut left = 3;
        let cells = measure_cells(MatrixOptions { steps: 4 }, |_, _, _| {
            left -= 1;
            let cell = MatrixCell {
                state: CellState::NotReached,
                p99_ns: None,
                p99_interval_ns: None,
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
