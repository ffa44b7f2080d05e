//! Means and ratios of a few runs, with confidence intervals.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

const LEVEL: f64 = 0.95;

/// An estimate with its 95 % confidence interval; a single run has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct IntervalEstimate {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
}

impl IntervalEstimate {
    /// The mean of runs, assumed independent and normally distributed.
    pub(super) fn mean(samples: &[f64]) -> IntervalEstimate {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        if samples.len() < 2 {
            return IntervalEstimate {
                value: mean,
                interval: None,
            };
        }
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        let student = StudentsT::new(0.0, 1.0, n - 1.0).expect("a positive number of freedoms");
        let half_width = student.inverse_cdf(0.5 + LEVEL / 2.0) * error;
        IntervalEstimate {
            value: mean,
            interval: Some((mean - half_width, mean + half_width)),
        }
    }

    /// The mean of `left - right`, run by run.
    pub(super) fn difference(left: &[f64], right: &[f64]) -> IntervalEstimate {
        let pairs = left.iter().zip(right);
        let differences: Vec<f64> = pairs.map(|(left, right)| left - right).collect();
        IntervalEstimate::mean(&differences)
    }

    /// The geometric mean of `left / right`, run by run. Pairs of runs cancel drift of the machine.
    /// The geometric mean makes the ratio of `right` to `left` the exact inverse.
    pub(super) fn ratio(left: &[f64], right: &[f64]) -> IntervalEstimate {
        // User time below one clock tick is reported as 0. The floor keeps the logarithm finite.
        let log = |value: f64| value.max(1e-9).ln();
        let logs: Vec<f64> = left
            .iter()
            .zip(right)
            .map(|(left, right)| log(*left) - log(*right))
            .collect();
        let mean = IntervalEstimate::mean(&logs);
        IntervalEstimate {
            value: mean.value.exp(),
            interval: mean.interval.map(|(low, high)| (low.exp(), high.exp())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_interval_follows_student_t() {
        // t(0.975, 3) = 3.18245; standard error of 1, 2, 3, 4 is sqrt(5/3/4).
        let estimate = IntervalEstimate::mean(&[1.0, 2.0, 3.0, 4.0]);
        let (low, high) = estimate.interval.unwrap();
        assert_eq!(estimate.value, 2.5);
        assert!((high - 2.5 - 3.18245 * (5.0f64 / 12.0).sqrt()).abs() < 1e-4);
        assert!((high - 2.5 - (2.5 - low)).abs() < 1e-12);
        assert_eq!(IntervalEstimate::mean(&[7.0]).interval, None);
    }

    #[test]
    fn difference_is_computed_run_by_run() {
        let difference = IntervalEstimate::difference(&[3.0, 13.0, 23.0], &[1.0, 11.0, 21.0]);
        assert_eq!(difference.value, 2.0);
        assert_eq!(difference.interval, Some((2.0, 2.0)));
    }

    #[test]
    fn ratio_is_computed_run_by_run() {
        // Both series drift threefold, but the ratio is constant.
        let ratio = IntervalEstimate::ratio(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        let (low, high) = ratio.interval.unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-12 && high - low < 1e-9);
        let inverse = IntervalEstimate::ratio(&[1.0, 3.0], &[4.0, 5.0]);
        let straight = IntervalEstimate::ratio(&[4.0, 5.0], &[1.0, 3.0]);
        assert!((inverse.value * straight.value - 1.0).abs() < 1e-12);
    }
}
