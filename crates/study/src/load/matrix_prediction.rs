//! Latencies of the cells of a matrix that were not measured.
//!
//! A cell whose rates the latency curve has offered takes its latency from there: it was measured.
//! Other latencies are predicted. A prediction lies between the nearest measured latencies of its
//! row and column, or between these ranges if they do not meet. It does not fall with either rate
//! unless measured latencies do.

use super::matrix_cells::{CellState, MatrixCell};

/// Difference in I/Os per second within which a rate is that of a cell: cells have whole rates.
const SAME_RATE_PER_S: f64 = 0.5;
/// Distance in steps within which two places are the same. It covers rounding errors only.
const SAME_PLACE_STEPS: f64 = 1e-6;

/// A measured latency, with its place among the cells in steps by [`place_in_steps`].
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedLatency {
    /// Steps of the read rate.
    pub(super) read: f64,
    /// Steps of the write rate.
    pub(super) write: f64,
    /// 99th percentile in nanoseconds.
    pub(super) p99_ns: f64,
    /// Its interval, if it is known.
    pub(super) interval_ns: Option<(f64, f64)>,
}

impl PlacedLatency {
    /// Whether the latency was measured at the rates of a cell.
    fn is_at(&self, read: f64, write: f64) -> bool {
        (self.read - read).abs() < SAME_PLACE_STEPS && (self.write - write).abs() < SAME_PLACE_STEPS
    }

    /// Signed distance from a cell in steps, if the latency is in its row.
    fn along_row(&self, read: f64, write: f64) -> Option<f64> {
        ((self.write - write).abs() < SAME_PLACE_STEPS).then_some(self.read - read)
    }

    /// Signed distance from a cell in steps, if the latency is in its column.
    fn along_column(&self, read: f64, write: f64) -> Option<f64> {
        ((self.read - read).abs() < SAME_PLACE_STEPS).then_some(self.write - write)
    }
}

/// Returns the place of a rate on an axis of rates from 0, in steps. Only a rate of the axis has a
/// whole number of steps.
pub(super) fn place_in_steps(rate_per_s: f64, axis: &[f64]) -> f64 {
    let difference = |step: &usize| (axis[*step] - rate_per_s).abs();
    let nearest = (0..axis.len()).min_by(|a, b| difference(a).total_cmp(&difference(b)));
    let same = nearest.filter(|step| difference(step) <= SAME_RATE_PER_S);
    same.map_or_else(
        || {
            let highest = axis.last().copied().unwrap_or(rate_per_s).max(1.0);
            rate_per_s * axis.len().saturating_sub(1) as f64 / highest
        },
        |step| step as f64,
    )
}

/// Sets the latencies of cells inside the border that were not measured in the matrix.
pub(super) fn predict_latencies(cells: &mut [Vec<MatrixCell>], curve: &[PlacedLatency]) {
    take_from_curve(cells, curve);
    let mut known = measured_cells(cells);
    let of_cells = known.len();
    for point in curve.iter().filter(|point| point.p99_ns > 0.0) {
        let mut measured = known[..of_cells].iter();
        // Where a cell was measured, its latency is the one that is shown.
        if !measured.any(|cell| cell.is_at(point.read, point.write)) {
            known.push(*point);
        }
    }
    if known.is_empty() {
        return;
    }
    // The cells to the left and below are predicted first.
    for write in 0..cells.len() {
        for read in 0..cells[write].len() {
            if cells[write][read].state != CellState::Predicted {
                continue;
            }
            let left = read.checked_sub(1).map(|left| cells[write][left]);
            let below = write.checked_sub(1).map(|below| cells[below][read]);
            let lower_rates = [left, below].into_iter().flatten();
            let lower_rates = lower_rates.filter(|cell| cell.state == CellState::Predicted);
            let least_ns = lower_rates.filter_map(|cell| cell.p99_ns);
            let place = (read as f64, write as f64);
            let (low_ns, high_ns) = prediction_bounds(&known, place);
            let p99_ns = least_ns.fold(interpolate(&known, place), f64::max);
            cells[write][read].p99_ns = Some(p99_ns.clamp(low_ns, high_ns));
        }
    }
}

/// Fills cells at whose rates the curve has a latency. They count as measured.
fn take_from_curve(cells: &mut [Vec<MatrixCell>], curve: &[PlacedLatency]) {
    for (write, row) in cells.iter_mut().enumerate() {
        for (read, cell) in row.iter_mut().enumerate() {
            if cell.state != CellState::Predicted {
                continue;
            }
            let mut points = curve.iter().filter(|point| point.p99_ns > 0.0);
            if let Some(point) = points.find(|point| point.is_at(read as f64, write as f64)) {
                cell.state = CellState::Measured;
                cell.p99_ns = Some(point.p99_ns);
                cell.p99_interval_ns = point.interval_ns;
            }
        }
    }
}

fn measured_cells(cells: &[Vec<MatrixCell>]) -> Vec<PlacedLatency> {
    let rows = cells.iter().enumerate();
    let measured = rows.flat_map(|(write, row)| {
        row.iter().enumerate().filter_map(move |(read, cell)| {
            let p99_ns = cell.p99_ns.filter(|ns| *ns > 0.0)?;
            Some(PlacedLatency {
                read: read as f64,
                write: write as f64,
                p99_ns,
                interval_ns: cell.p99_interval_ns,
            })
        })
    });
    measured.collect()
}

/// Latency between the measured ones: along an axis by the two nearest, elsewhere by all.
fn interpolate(known: &[PlacedLatency], (read, write): (f64, f64)) -> f64 {
    let along_axis = match (read > 0.0, write > 0.0) {
        (true, false) => nearest(known, |point| point.along_row(read, write)),
        (false, true) => nearest(known, |point| point.along_column(read, write)),
        _ => [None, None],
    };
    match along_axis {
        [Some((before, from_ns)), Some((after, to_ns))] => {
            from_ns * (to_ns / from_ns).powf(-before / (after - before))
        }
        _ => weighted_mean(known, (read, write)),
    }
}

/// Mean of the logarithms of all measured latencies, weighted by the inverse square of the
/// distance.
fn weighted_mean(known: &[PlacedLatency], (read, write): (f64, f64)) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for near in known {
        let square = (near.read - read).powi(2) + (near.write - write).powi(2);
        let weight = 1.0 / square.max(SAME_PLACE_STEPS * SAME_PLACE_STEPS);
        sum += weight * near.p99_ns.ln();
        weights += weight;
    }
    (sum / weights).exp()
}

/// Nearest measured latencies before and after a cell, each with its signed distance.
fn nearest(
    known: &[PlacedLatency],
    distance: impl Fn(&PlacedLatency) -> Option<f64>,
) -> [Option<(f64, f64)>; 2] {
    let mut before: Option<(f64, f64)> = None;
    let mut after: Option<(f64, f64)> = None;
    for point in known {
        match distance(point) {
            Some(steps) if steps < 0.0 && before.is_none_or(|(other, _)| steps > other) => {
                before = Some((steps, point.p99_ns));
            }
            Some(steps) if steps > 0.0 && after.is_none_or(|(other, _)| steps < other) => {
                after = Some((steps, point.p99_ns));
            }
            _ => {}
        }
    }
    [before, after]
}

/// Bounds of a prediction: those of the nearest latencies of its row and column. Within them, it is
/// at least the highest latency of lower rates, and at most the lowest latency of higher rates.
fn prediction_bounds(known: &[PlacedLatency], (read, write): (f64, f64)) -> (f64, f64) {
    let row = latency_range(nearest(known, |point| point.along_row(read, write)));
    let column = latency_range(nearest(known, |point| point.along_column(read, write)));
    let nearest_ns = ordered(row.0.max(column.0), row.1.min(column.1));
    let (mut low, mut high) = (0.0, f64::INFINITY);
    for point in known {
        let (reads, writes) = (point.read - read, point.write - write);
        if reads < SAME_PLACE_STEPS && writes < SAME_PLACE_STEPS {
            low = point.p99_ns.max(low);
        } else if reads > -SAME_PLACE_STEPS && writes > -SAME_PLACE_STEPS {
            high = point.p99_ns.min(high);
        }
    }
    ordered(
        low.clamp(nearest_ns.0, nearest_ns.1),
        high.clamp(nearest_ns.0, nearest_ns.1),
    )
}

/// Range of the latencies before and after a cell. If one is missing, latency grows with the rate.
fn latency_range([before, after]: [Option<(f64, f64)>; 2]) -> (f64, f64) {
    let latency = |nearest: Option<(f64, f64)>| nearest.map(|(_, ns)| ns);
    match (latency(before), latency(after)) {
        (Some(before), Some(after)) => ordered(before, after),
        (before, after) => (before.unwrap_or(0.0), after.unwrap_or(f64::INFINITY)),
    }
}

/// Measured latencies that fall with the rate leave a range in the reverse order.
fn ordered(one: f64, other: f64) -> (f64, f64) {
    (one.min(other), one.max(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(state: CellState, p99_ns: Option<f64>) -> MatrixCell {
        MatrixCell {
            state,
            p99_ns,
            p99_interval_ns: None,
            of_few: false,
        }
    }

    /// Cells of latencies by row. `None`: not measured.
    fn matrix_cells(rows: &[Vec<Option<f64>>]) -> Vec<Vec<MatrixCell>> {
        let state = |p99_ns: Option<f64>| match p99_ns {
            Some(_) => CellState::Measured,
            None => CellState::Predicted,
        };
        let row = |row: &Vec<Option<f64>>| row.iter().map(|ns| cell(state(*ns), *ns)).collect();
        rows.iter().map(row).collect()
    }

    fn at(read: f64, write: f64, p99_ns: f64) -> PlacedLatency {
        PlacedLatency {
            read,
            write,
            p99_ns,
            interval_ns: Some((0.9 * p99_ns, 1.1 * p99_ns)),
        }
    }

    /// Rows of cells, a share of which is measured.
    fn partly_measured(
        latency: impl Strategy<Value = f64>,
    ) -> impl Strategy<Value = Vec<Vec<Option<f64>>>> {
        let cell = proptest::option::of(latency);
        let rows = proptest::collection::vec(proptest::collection::vec(cell, 6), 6);
        rows.prop_filter("no cell was measured", |rows| {
            rows.iter().flatten().any(Option::is_some)
        })
    }

    /// Measured latencies before and after an index, the nearest first.
    fn neighbours(line: &[Option<f64>], index: usize) -> (Option<f64>, Option<f64>) {
        let before = line[..index].iter().rev().find_map(|ns| *ns);
        (before, line[index + 1..].iter().find_map(|ns| *ns))
    }

    #[test]
    fn prediction_on_axis_lies_on_line_between_nearest_latencies() {
        let mut cells = matrix_cells(&[vec![Some(100.0), None, Some(10_000.0)]]);
        predict_latencies(&mut cells, &[]);
        assert!((cells[0][1].p99_ns.unwrap() - 1_000.0).abs() < 1e-6);
        // The curve is nearer than the next cells.
        let mut cells = matrix_cells(&[vec![Some(100.0), None, Some(10_000.0)]]);
        predict_latencies(&mut cells, &[at(0.5, 0.0, 100.0), at(1.5, 0.0, 400.0)]);
        assert!((cells[0][1].p99_ns.unwrap() - 200.0).abs() < 1e-6);
        assert_eq!(cells[0][1].state, CellState::Predicted);
    }

    /// With two steps, 1.5 % of the capacity was the same rate, and counted as measured.
    #[test]
    fn rate_is_at_cell_within_half_an_io_per_second() {
        // A capacity of 50001 I/Os per second.
        let axis = [0.0, 25_001.0, 50_001.0];
        let places = [0.0, 25_000.5, 25_001.4, 50_001.0].map(|rate| place_in_steps(rate, &axis));
        assert_eq!(places, [0.0, 1.0, 1.0, 2.0]);
        let near = place_in_steps(25_050.0, &axis);
        assert!((1.001..1.01).contains(&near), "{near}");
        let mut cells = matrix_cells(&[vec![Some(100.0), None, Some(400.0)]]);
        predict_latencies(&mut cells, &[at(near, 0.0, 200.0)]);
        assert_eq!(cells[0][1].state, CellState::Predicted);
        predict_latencies(&mut cells, &[at(near, 0.0, 200.0), at(1.0, 0.0, 190.0)]);
        let found = cells[0][1];
        assert_eq!(
            (found.state, found.p99_ns),
            (CellState::Measured, Some(190.0))
        );
    }

    #[test]
    fn cell_at_rates_of_curve_has_measured_latency_of_curve() {
        let rows = [vec![Some(170.0), None, None, Some(10_000.0)]];
        let mut cells = matrix_cells(&rows);
        predict_latencies(&mut cells, &[at(0.0, 0.0, 165.0), at(2.0, 0.0, 260.0)]);
        // A cell that was measured keeps its own latency.
        let found = |index: usize| (cells[0][index].state, cells[0][index].p99_ns.unwrap());
        assert_eq!(found(0), (CellState::Measured, 170.0));
        assert_eq!(found(2), (CellState::Measured, 260.0));
        assert!(cells[0][2].p99_interval_ns.is_some());
        let (state, between_ns) = found(1);
        assert_eq!(state, CellState::Predicted);
        assert!((170.0..=260.0).contains(&between_ns), "{between_ns}");
    }

    #[test]
    fn prediction_between_equal_neighbours_ignores_distant_latency() {
        // Writes alone: 130 us, 140 us. Reads at other rates are much slower.
        let rows = [
            vec![Some(120.0), Some(9_000.0), Some(9_000.0)],
            vec![Some(130.0), None, None],
            vec![None, None, None],
            vec![Some(140.0), None, None],
        ];
        let mut cells = matrix_cells(&rows);
        predict_latencies(&mut cells, &[]);
        let between_ns = cells[2][0].p99_ns.unwrap();
        assert!((130.0..=140.0).contains(&between_ns), "{between_ns}");
    }

    proptest! {
        #[test]
        fn prediction_lies_between_nearest_neighbours(rows in partly_measured(1.0f64..1e6)) {
            let mut predicted = matrix_cells(&rows);
            predict_latencies(&mut predicted, &[]);
            let ns = |write: usize, read: usize| predicted[write][read].p99_ns.unwrap();
            for write in 0..rows.len() {
                for read in 0..rows.len() {
                    if rows[write][read].is_some() {
                        continue;
                    }
                    let column: Vec<Option<f64>> = rows.iter().map(|row| row[read]).collect();
                    let row = neighbours(&rows[write], read);
                    let column = neighbours(&column, write);
                    let (Some(left), Some(right)) = row else { continue };
                    let (Some(below), Some(above)) = column else { continue };
                    let low = left.min(right).max(below.min(above));
                    let high = left.max(right).min(below.max(above));
                    let p99_ns = ns(write, read);
                    // Ranges of row and column that do not meet leave the gap between them.
                    let (low, high) = (low.min(high), low.max(high));
                    prop_assert!((low..=high).contains(&p99_ns), "({}, {})", read, write);
                }
            }
        }

        #[test]
        fn latency_does_not_fall_with_rate(
            is_measured in partly_measured(Just(1.0)),
            curve in proptest::collection::vec(0.0f64..5.0, 0..8),
            bend in 0.5f64..3.0,
        ) {
            // The latency of a queue, which grows with each rate.
            let latency = |read: f64, write: f64| 100.0 + 10.0 * (read + 2.0 * write).powf(bend);
            let rows: Vec<Vec<Option<f64>>> = is_measured
                .iter()
                .enumerate()
                .map(|(write, row)| {
                    let row = row.iter().enumerate();
                    row.map(|(read, known)| known.map(|_| latency(read as f64, write as f64)))
                        .collect()
                })
                .collect();
            let curve: Vec<PlacedLatency> = curve
                .into_iter()
                .filter(|read| (read - read.round()).abs() > SAME_PLACE_STEPS)
                .map(|read| at(read, 0.0, latency(read, 0.0)))
                .collect();
            let mut predicted = matrix_cells(&rows);
            predict_latencies(&mut predicted, &curve);
            let ns = |write: usize, read: usize| predicted[write][read].p99_ns.unwrap();
            for write in 0..rows.len() {
                for read in 0..rows.len() {
                    let here = ns(write, read);
                    let at = (write, read);
                    prop_assert!(read == 0 || ns(write, read - 1) <= here, "{:?}", at);
                    prop_assert!(write == 0 || ns(write - 1, read) <= here, "{:?}", at);
                }
            }
        }
    }
}
