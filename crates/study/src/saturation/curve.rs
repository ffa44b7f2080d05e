//! What measured cells say about the curve they lie on: the best fit that never falls, and a scalability model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps that differ by more than this share are never taken for one.
const MOST_POOLED: f64 = 0.05;

/// A measured point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dot {
    /// I/Os in flight of each job.
    pub(super) iodepth: u32,
    /// I/Os per second.
    pub(super) rate: f64,
    /// Half the width of its 95 % interval, as a share of it.
    pub(super) error: f64,
}

/// Dots of neighbouring depths that have one rate, as far as is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// Index of the first dot.
    pub(super) first: usize,
    /// Index behind the last dot.
    pub(super) end: usize,
    /// Mean rate, each dot weighted by what is known of it.
    pub(super) rate: f64,
    /// Half the width of its 95 % interval, as a share of it.
    pub(super) error: f64,
}

/// The least-squares fit of steps that never fall with the depth, by pooling neighbours that do (isotonic regression;
/// Ayer, Brunk, Ewing, Reid and Silverman, Annals of Mathematical Statistics 26, 1955). Dots deeper than the fastest that
/// are slower for certain are left out: there the curve falls.
pub(super) fn steps(dots: &[Dot]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, dot) in rising(dots).iter().enumerate() {
        let mut step = Step {
            first: index,
            end: index + 1,
            rate: dot.rate,
            error: dot.error,
        };
        while let Some(last) = steps.pop_if(|last| last.rate >= step.rate) {
            step = pooled(&last, &step);
        }
        steps.push(step);
    }
    steps
}

/// The highest rate: of the last step, and of those before it that cannot be told from it. A single fast dot would else be
/// the maximum for no better reason than its luck.
pub(super) fn top(steps: &[Step]) -> Option<Step> {
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

/// By how much the dots of a step differ more than their errors allow, at least 1: Birge's ratio (R. T. Birge, Physical
/// Review 40, 1932). Errors that were estimated while a neighbour of the device was quiet are too small by as much.
pub(super) fn disagreement(dots: &[Dot], step: &Step) -> f64 {
    let members = &dots[step.first..step.end];
    if members.len() < 2 {
        return 1.0;
    }
    let deviation = |dot: &Dot| {
        // Half widths are of 95 %.
        let sigma = (dot.error * dot.rate / 1.96).max(f64::MIN_POSITIVE);
        ((dot.rate - step.rate) / sigma).powi(2)
    };
    let squares: f64 = members.iter().map(deviation).sum();
    let ratio = (squares / (members.len() - 1) as f64).sqrt();
    // Cells that are known exactly may differ by what is of no account.
    let most = members.iter().map(|dot| (dot.rate / step.rate - 1.0).abs());
    let widest = most.fold(0.0, f64::max) / step.error.max(f64::MIN_POSITIVE);
    ratio.min(widest).max(1.0)
}

fn pooled(left: &Step, right: &Step) -> Step {
    let weight = |step: &Step| (step.error * step.rate).max(f64::MIN_POSITIVE).powi(-2);
    let (l, r) = (weight(left), weight(right));
    let rate = (left.rate * l + right.rate * r) / (l + r);
    Step {
        first: left.first,
        end: right.end,
        rate,
        error: (l + r).powf(-0.5) / rate.max(f64::MIN_POSITIVE),
    }
}

/// The dots up to where the curve falls for certain.
fn rising(dots: &[Dot]) -> &[Dot] {
    let Some(best) = (0..dots.len()).max_by(|a, b| dots[*a].rate.total_cmp(&dots[*b].rate)) else {
        return dots;
    };
    let least = dots[best].rate * (1.0 - dots[best].error);
    let falls = |dot: &Dot| dot.rate * (1.0 + dot.error) < least;
    let end = (best + 1..dots.len()).find(|index| falls(&dots[*index]));
    &dots[..end.unwrap_or(dots.len())]
}

/// Throughput over depth: Gunther's universal scalability law (Guerrilla Capacity Planning, 2007, chapter 4), under a
/// ceiling that holds whatever the depth (the asymptotic bound of Denning and Buzen, Computing Surveys 10, 1978):
///
/// `rate(n) = min(ceiling, lambda n / (1 + sigma (n - 1) + kappa n (n - 1)))`
///
/// With `sigma` 0 and `kappa` 0 it is a straight line up to the ceiling, as caps and fixed service times make it; `sigma`
/// is what queueing for something shared costs, `kappa` what makes the curve fall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// I/Os per second at depth 1.
    pub lambda: f64,
    /// Share that is done one at a time.
    pub sigma: f64,
    /// Loss by each pair in flight.
    pub kappa: f64,
    /// The most whatever the depth, where the cells show such a limit.
    pub ceiling: Option<f64>,
    /// Root mean square of what the cells differ from the curve, as a share of its value.
    pub residual: f64,
}

impl Curve {
    /// I/Os per second with so many in flight.
    pub fn at(&self, iodepth: f64) -> f64 {
        let free = self.lambda * iodepth
            / (1.0 + self.sigma * (iodepth - 1.0) + self.kappa * iodepth * (iodepth - 1.0));
        self.ceiling.map_or(free, |ceiling| free.min(ceiling))
    }

    /// The curve nearest to the dots; `None` for none.
    pub(super) fn fit(dots: &[Dot]) -> Option<Curve> {
        let dots: Vec<Dot> = dots.iter().copied().filter(|dot| dot.rate > 0.0).collect();
        // Each way to say which dots lie at the ceiling, beginning with none of them.
        let free = Curve::through(&dots, None);
        let capped = (1..dots.len()).rev().filter_map(|first| {
            let top = &dots[first..];
            let weights: f64 = top.iter().map(weight).sum();
            let ceiling = top.iter().map(|dot| dot.rate * weight(dot)).sum::<f64>() / weights;
            Curve::through(&dots[..first], Some(ceiling))
        });
        free.into_iter()
            .chain(capped)
            .map(|curve| curve.judged(&dots))
            .min_by(|a, b| a.residual.total_cmp(&b.residual))
    }

    /// Gunther's regression: n / rate is a polynomial in n. Coefficients that would be negative are 0.
    fn through(dots: &[Dot], ceiling: Option<f64>) -> Option<Curve> {
        let curve = |[start, queueing, crosstalk]: [f64; 3]| Curve {
            lambda: 1.0 / start,
            sigma: queueing / start,
            kappa: crosstalk / start,
            ceiling,
            residual: 0.0,
        };
        // Under a ceiling the curve has no reason to fall.
        let most = if ceiling.is_some() { 2 } else { 3 };
        let candidates = (1..=most.min(dots.len())).rev();
        candidates
            .filter_map(|terms| regression(dots, terms))
            .find(|c| c[0] > 0.0 && c[1] >= 0.0 && c[2] >= 0.0)
            .map(curve)
    }

    fn judged(mut self, dots: &[Dot]) -> Curve {
        let squares: f64 = dots
            .iter()
            .map(|dot| (dot.rate / self.at(f64::from(dot.iodepth)) - 1.0).powi(2))
            .sum();
        self.residual = (squares / dots.len() as f64).sqrt();
        self
    }
}

fn weight(dot: &Dot) -> f64 {
    (dot.error.max(1e-4) * dot.rate).powi(-2)
}

/// Weighted least squares of n / rate by the first `terms` of 1, n - 1 and n (n - 1); errors count relative to the value.
fn regression(dots: &[Dot], terms: usize) -> Option<[f64; 3]> {
    let mut matrix = [[0.0; 4]; 3];
    for dot in dots {
        let n = f64::from(dot.iodepth);
        let basis = [1.0, n - 1.0, n * (n - 1.0)];
        let value = n / dot.rate;
        for row in 0..terms {
            for column in 0..terms {
                matrix[row][column] += basis[row] * basis[column] / (value * value);
            }
            matrix[row][3] += basis[row] / value;
        }
    }
    solve(matrix, terms)
}

/// Gaussian elimination of the normal equations, which are positive definite where there are enough dots.
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

    fn dots(curve: impl Fn(f64) -> f64) -> Vec<Dot> {
        let dot = |power: u32| Dot {
            iodepth: 1 << power,
            rate: curve(f64::from(1u32 << power)),
            error: 0.01,
        };
        (0..10).map(dot).collect()
    }

    fn rates(values: &[f64]) -> Vec<Dot> {
        let dot = |(index, rate): (usize, &f64)| Dot {
            iodepth: 1 << index,
            rate: *rate,
            error: 0.01,
        };
        values.iter().enumerate().map(dot).collect()
    }

    #[test]
    fn what_falls_by_chance_is_one_step() {
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
    fn luck_is_not_a_maximum() {
        let mut dots = rates(&[20.0, 40.0, 40.1, 40.3, 41.0]);
        dots[4].error = 0.05;
        let top = top(&steps(&dots)).unwrap();
        assert_eq!(top.first, 1);
        assert!((top.rate - 40.15).abs() < 0.05, "{top:?}");
        // The same rates, known well, are a rise.
        dots.iter_mut().for_each(|dot| dot.error = 0.001);
        assert_eq!(super::top(&steps(&dots)).map(|top| top.first), Some(4));
    }

    #[test]
    fn what_falls_for_certain_is_not_of_the_maximum() {
        let found = steps(&rates(&[10.0, 20.0, 40.0, 39.9, 30.0]));
        assert_eq!(found.last().map(|step| step.end), Some(4));
        assert!(found.last().is_some_and(|step| step.rate > 39.9));
    }

    #[test]
    fn finds_the_curves_it_is_made_of() {
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
            let fitted = Curve::fit(&dots(|n| truth.at(n))).unwrap();
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
    fn few_dots_are_enough() {
        assert_eq!(Curve::fit(&[]), None);
        let one = Curve::fit(&rates(&[50.0])).unwrap();
        assert!((one.at(2.0) - 100.0).abs() < 1e-9);
        let two = Curve::fit(&rates(&[50.0, 50.0])).unwrap();
        assert!((two.at(64.0) - 50.0).abs() < 1e-6, "{two:?}");
    }

    proptest! {
        #[test]
        fn steps_rise_and_hold_every_dot_that_does(values in prop::collection::vec(1.0f64..1e6, 1..12)) {
            let dots = rates(&values);
            let found = steps(&dots);
            prop_assert!(found.windows(2).all(|pair| pair[0].rate < pair[1].rate && pair[0].end == pair[1].first));
            prop_assert_eq!(found.last().map(|step| step.end), Some(rising(&dots).len()));
        }

        #[test]
        fn a_fit_is_a_curve(values in prop::collection::vec(1.0f64..1e6, 1..12), depth in 1.0f64..1e4) {
            let curve = Curve::fit(&rates(&values)).unwrap();
            prop_assert!(curve.at(depth).is_finite() && curve.at(depth) > 0.0, "{:?}", curve);
        }
    }
}
