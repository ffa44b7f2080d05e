//! Curves through measured cells: a fit that never falls (isotonic), and a scalability model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest relative difference between plateaus that may be pooled into one.
const MOST_POOLED: f64 = 0.05;

/// A measured point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvePoint {
    /// I/Os in flight of each job.
    pub(crate) iodepth: u32,
    /// I/Os per second.
    pub(crate) rate: f64,
    /// Relative half-width of its 95 % interval.
    pub(crate) error: f64,
}

/// Plateau: points of neighbouring depths with one rate, within their errors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RatePlateau {
    /// Index of the first point.
    pub(crate) first: usize,
    /// Index after the last point.
    pub(crate) end: usize,
    /// Mean rate of the points, weighted by their inverse squared errors.
    pub(crate) rate: f64,
    /// Relative half-width of its 95 % interval.
    pub(crate) error: f64,
}

/// Returns the least-squares fit of plateaus that never fall with the depth, by pooling neighbours
/// that do (isotonic regression; Ayer, Brunk, Ewing, Reid and Silverman, Annals of Mathematical
/// Statistics 26, 1955). Points past the fastest are left out from the first significantly slower.
pub(crate) fn steps(points: &[CurvePoint]) -> Vec<RatePlateau> {
    let mut steps: Vec<RatePlateau> = Vec::new();
    for (index, point) in rising(points).iter().enumerate() {
        let mut step = RatePlateau {
            first: index,
            end: index + 1,
            rate: point.rate,
            error: point.error,
        };
        while let Some(last) = steps.pop_if(|last| last.rate >= step.rate) {
            step = pooled(&last, &step);
        }
        steps.push(step);
    }
    steps
}

/// Returns the highest plateau, pooled with lower ones that do not differ significantly. Otherwise
/// a single point that is fast by chance would be the maximum.
pub(crate) fn highest_plateau(steps: &[RatePlateau]) -> Option<RatePlateau> {
    let (last, before) = steps.split_last()?;
    let mut top = last.clone();
    for step in before.iter().rev() {
        let unsure = (step.error * step.rate).hypot(top.error * top.rate);
        let near = step.rate >= last.rate * (1.0 - MOST_POOLED);
        if !near || top.rate - step.rate > unsure {
            break;
        }
        top = pooled(step, &top);
    }
    Some(top)
}

/// Birge's ratio of the points of a plateau, at least 1: their deviation relative to their errors
/// (R. T. Birge, Physical Review 40, 1932). Load of other users can make errors too small.
pub(crate) fn disagreement(points: &[CurvePoint], step: &RatePlateau) -> f64 {
    let members = &points[step.first..step.end];
    if members.len() < 2 {
        return 1.0;
    }
    let deviation = |point: &CurvePoint| {
        // `error` is the half-width of a 95 % interval, 1.96 standard deviations.
        let sigma = (point.error * point.rate / 1.96).max(f64::MIN_POSITIVE);
        ((point.rate - step.rate) / sigma).powi(2)
    };
    let squares: f64 = members.iter().map(deviation).sum();
    let ratio = (squares / (members.len() - 1) as f64).sqrt();
    // For points with tiny errors, the ratio widens the error at most to the largest deviation.
    let most = members
        .iter()
        .map(|point| (point.rate / step.rate - 1.0).abs());
    let widest = most.fold(0.0, f64::max) / step.error.max(f64::MIN_POSITIVE);
    ratio.min(widest).max(1.0)
}

fn pooled(left: &RatePlateau, right: &RatePlateau) -> RatePlateau {
    let weight = |step: &RatePlateau| (step.error * step.rate).max(f64::MIN_POSITIVE).powi(-2);
    let (l, r) = (weight(left), weight(right));
    let rate = (left.rate * l + right.rate * r) / (l + r);
    RatePlateau {
        first: left.first,
        end: right.end,
        rate,
        error: (l + r).powf(-0.5) / rate.max(f64::MIN_POSITIVE),
    }
}

/// Returns the points up to the first deeper one that is significantly slower than the fastest.
fn rising(points: &[CurvePoint]) -> &[CurvePoint] {
    let Some(best) = (0..points.len()).max_by(|a, b| points[*a].rate.total_cmp(&points[*b].rate))
    else {
        return points;
    };
    let least = points[best].rate * (1.0 - points[best].error);
    let falls = |point: &CurvePoint| point.rate * (1.0 + point.error) < least;
    let end = (best + 1..points.len()).find(|index| falls(&points[*index]));
    &points[..end.unwrap_or(points.len())]
}

/// Throughput over depth: Gunther's universal scalability law (Guerrilla Capacity Planning, 2007,
/// chapter 4), below an asymptotic bound (Denning and Buzen, Computing Surveys 10, 1978):
///
/// `rate(n) = min(ceiling, lambda n / (1 + sigma (n - 1) + kappa n (n - 1)))`
///
/// With `sigma` and `kappa` 0 the curve is a straight line up to the ceiling, as with rate caps and
/// fixed service times. `sigma` is contention for shared resources. `kappa` makes the curve fall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// I/Os per second at depth 1.
    pub lambda: f64,
    /// Serial share of the work (contention).
    pub sigma: f64,
    /// Loss per pair of I/Os in flight (crosstalk).
    pub kappa: f64,
    /// Highest rate at any depth, in I/Os per second. `None` if the cells show no limit.
    pub ceiling: Option<f64>,
    /// Root mean square of the relative differences between cells and curve.
    pub residual: f64,
}

impl Curve {
    /// Returns the I/Os per second at a depth.
    pub fn at(&self, iodepth: f64) -> f64 {
        let free = self.lambda * iodepth
            / (1.0 + self.sigma * (iodepth - 1.0) + self.kappa * iodepth * (iodepth - 1.0));
        self.ceiling.map_or(free, |ceiling| free.min(ceiling))
    }

    /// Returns the curve with the smallest residual. `None` without points.
    pub(crate) fn fit(points: &[CurvePoint]) -> Option<Curve> {
        let points: Vec<CurvePoint> = points
            .iter()
            .copied()
            .filter(|point| point.rate > 0.0)
            .collect();
        // Candidates: no ceiling, then a ceiling through the last 1, 2, ... points.
        let free = Curve::through(&points, None);
        let capped = (1..points.len()).rev().filter_map(|first| {
            let top = &points[first..];
            let weights: f64 = top.iter().map(weight).sum();
            let ceiling = top
                .iter()
                .map(|point| point.rate * weight(point))
                .sum::<f64>()
                / weights;
            Curve::through(&points[..first], Some(ceiling))
        });
        free.into_iter()
            .chain(capped)
            .map(|curve| curve.judged(&points))
            .min_by(|a, b| a.residual.total_cmp(&b.residual))
    }

    /// Gunther's regression: n / rate as a polynomial in n, with fewer terms if one is negative.
    fn through(points: &[CurvePoint], ceiling: Option<f64>) -> Option<Curve> {
        let curve = |[start, queueing, crosstalk]: [f64; 3]| Curve {
            lambda: 1.0 / start,
            sigma: queueing / start,
            kappa: crosstalk / start,
            ceiling,
            residual: 0.0,
        };
        // A curve with a ceiling has no crosstalk term, since it does not fall.
        let most = if ceiling.is_some() { 2 } else { 3 };
        let candidates = (1..=most.min(points.len())).rev();
        candidates
            .filter_map(|terms| regression(points, terms))
            .find(|c| c[0] > 0.0 && c[1] >= 0.0 && c[2] >= 0.0)
            .map(curve)
    }

    fn judged(mut self, points: &[CurvePoint]) -> Curve {
        let squares: f64 = points
            .iter()
            .map(|point| (point.rate / self.at(f64::from(point.iodepth)) - 1.0).powi(2))
            .sum();
        self.residual = (squares / points.len() as f64).sqrt();
        self
    }
}

fn weight(point: &CurvePoint) -> f64 {
    (point.error.max(1e-4) * point.rate).powi(-2)
}

/// Weighted least squares of n / rate over `terms` of 1, n - 1, n (n - 1), with relative errors.
fn regression(points: &[CurvePoint], terms: usize) -> Option<[f64; 3]> {
    let mut matrix = [[0.0; 4]; 3];
    for point in points {
        let n = f64::from(point.iodepth);
        let basis = [1.0, n - 1.0, n * (n - 1.0)];
        let value = n / point.rate;
        for row in 0..terms {
            for column in 0..terms {
                matrix[row][column] += basis[row] * basis[column] / (value * value);
            }
            matrix[row][3] += basis[row] / value;
        }
    }
    solve(matrix, terms)
}

/// Gauss-Jordan elimination of the normal equations. `None` if they are singular.
fn solve(mut matrix: [[f64; 4]; 3], terms: usize) -> Option<[f64; 3]> {
    for pivot in 0..terms {
        let lead = matrix[pivot][pivot];
        if lead.abs() < 1e-14 {
            return None;
        }
        for row in (0..terms).filter(|row| *row != pivot) {
            let factor = matrix[row][pivot] / lead;
            let subtracted = matrix[pivot];
            for (cell, value) in matrix[row].iter_mut().zip(subtracted) {
                *cell -= factor * value;
            }
        }
    }
    let mut solution = [0.0; 3];
    for (row, value) in solution.iter_mut().enumerate().take(terms) {
        *value = matrix[row][3] / matrix[row][row];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(curve: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let point = |power: u32| CurvePoint {
            iodepth: 1 << power,
            rate: curve(f64::from(1u32 << power)),
            error: 0.01,
        };
        (0..10).map(point).collect()
    }

    fn rates(values: &[f64]) -> Vec<CurvePoint> {
        let point = |(index, rate): (usize, &f64)| CurvePoint {
            iodepth: 1 << index,
            rate: *rate,
            error: 0.01,
        };
        values.iter().enumerate().map(point).collect()
    }

    #[test]
    fn steps_falling_within_error_are_pooled() {
        let found = steps(&rates(&[10.0, 20.0, 40.2, 40.0, 40.05]));
        let ends: Vec<usize> = found.iter().map(|step| step.end).collect();
        assert_eq!(ends, [1, 2, 5]);
        let top = &found[2];
        assert!(
            (top.rate - 40.08).abs() < 0.01 && top.error < 0.006,
            "{top:?}"
        );
    }

    #[test]
    fn top_pools_uncertain_faster_point() {
        let mut points = rates(&[20.0, 40.0, 40.1, 40.3, 41.0]);
        points[4].error = 0.05;
        let top = highest_plateau(&steps(&points)).unwrap();
        assert_eq!(top.first, 1);
        assert!((top.rate - 40.15).abs() < 0.05, "{top:?}");
        // The same rates with narrow intervals are a rise.
        points.iter_mut().for_each(|point| point.error = 0.001);
        assert_eq!(
            super::highest_plateau(&steps(&points)).map(|top| top.first),
            Some(4)
        );
    }

    #[test]
    fn steps_end_where_rate_falls_significantly() {
        let found = steps(&rates(&[10.0, 20.0, 40.0, 39.9, 30.0]));
        assert_eq!(found.last().map(|step| step.end), Some(4));
        assert!(found.last().is_some_and(|step| step.rate > 39.9));
    }

    #[test]
    fn curve_fit_recovers_known_curves() {
        for truth in [
            Curve {
                lambda: 100.0,
                sigma: 0.05,
                kappa: 0.0,
                ceiling: None,
                residual: 0.0,
            },
            Curve {
                lambda: 7e3,
                sigma: 0.02,
                kappa: 1e-4,
                ceiling: None,
                residual: 0.0,
            },
            Curve {
                lambda: 900.0,
                sigma: 0.0,
                kappa: 0.0,
                ceiling: Some(5000.0),
                residual: 0.0,
            },
            Curve {
                lambda: 80.0,
                sigma: 0.01,
                kappa: 0.0,
                ceiling: Some(1500.0),
                residual: 0.0,
            },
        ] {
            let fitted = Curve::fit(&points(|n| truth.at(n))).unwrap();
            assert!(fitted.residual < 1e-6, "{fitted:?}");
            for depth in [3.0, 24.0, 100.0] {
                assert!(
                    (fitted.at(depth) / truth.at(depth) - 1.0).abs() < 1e-3,
                    "{fitted:?}"
                );
            }
        }
    }

    #[test]
    fn curve_fit_accepts_up_to_two_points() {
        assert_eq!(Curve::fit(&[]), None);
        let one = Curve::fit(&rates(&[50.0])).unwrap();
        assert!((one.at(2.0) - 100.0).abs() < 1e-9);
        let two = Curve::fit(&rates(&[50.0, 50.0])).unwrap();
        assert!((two.at(64.0) - 50.0).abs() < 1e-6, "{two:?}");
    }

    proptest! {
        #[test]
        fn steps_rise_and_cover_all_rising_points(
            values in prop::collection::vec(1.0f64..1e6, 1..12),
        ) {
            let points = rates(&values);
            let found = steps(&points);
            let is_next_above = |pair: &[RatePlateau]| {
                pair[0].rate < pair[1].rate && pair[0].end == pair[1].first
            };
            prop_assert!(found.windows(2).all(is_next_above));
            prop_assert_eq!(found.last().map(|step| step.end), Some(rising(&points).len()));
        }

        #[test]
        fn curve_fit_is_finite_and_positive(
            values in prop::collection::vec(1.0f64..1e6, 1..12),
            depth in 1.0f64..1e4,
        ) {
            let curve = Curve::fit(&rates(&values)).unwrap();
            prop_assert!(curve.at(depth).is_finite() && curve.at(depth) > 0.0, "{:?}", curve);
        }
    }
}
