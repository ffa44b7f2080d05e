//! Means and ratios of a few runs, and how sure they are.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

const LEVEL: f64 = 0.95;

/// An estimate with its 95 % confidence interval; none from a single run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The mean of runs, taken to be independent and normally distributed.
    pub(super) fn mean(samples: &[f64]) -> Estimate {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        if samples.len() < 2 {
            return Estimate {
                value: mean,
                interval: None,
            };
        }
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        let student = StudentsT::new(0.0, 1.0, n - 1.0).expect("a positive number of freedoms");
        let half_width = student.inverse_cdf(0.5 + LEVEL / 2.0) * error;
        Estimate {
            value: mean,
            interval: Some((mean - half_width, mean + half_width)),
        }
    }

    /// How much larger `left` is than `right`, run by run.
    pub(super) fn difference(left: &[f64], right: &[f64]) -> Estimate {
        let pairs = left.iter().zip(right);
        let differences: Vec<f64> = pairs.map(|(left, right)| left - right).collect();
        Estimate::mean(&differences)
    }

    /// How many times larger `left` is than `right`, run by run: neighbours in time share the machine's mood. The mean
    /// is geometric, so that the ratio the other way round is its inverse.
    pub(super) fn ratio(left: &[f64], right: &[f64]) -> Estimate {
        // A share of user time too small for the kernel's clock is seen as 0; it is as good as the smallest step.
        let log = |value: f64| value.max(1e-9).ln();
        let logs: Vec<f64> = left
            .iter()
            .zip(right)
            .map(|(left, right)| log(*left) - log(*right))
            .collect();
        let mean = Estimate::mean(&logs);
        Estimate {
            value: mean.value.exp(),
            interval: mean.interval.map(|(low, high)| (low.exp(), high.exp())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_students_interval() {
        // t(0.975, 3) = 3.18245; standard error of 1, 2, 3, 4 is sqrt(5/3/4).
        let estimate = Estimate::mean(&[1.0, 2.0, 3.0, 4.0]);
        let (low, high) = estimate.interval.unwrap();
        assert_eq!(estimate.value, 2.5);
        assert!((high - 2.5 - 3.18245 * (5.0f64 / 12.0).sqrt()).abs() < 1e-4);
        assert!((high - 2.5 - (2.5 - low)).abs() < 1e-12);
        assert_eq!(Estimate::mean(&[7.0]).interval, None);
    }

    #[test]
    fn a_difference_is_taken_run_by_run() {
        let difference = Estimate::difference(&[3.0, 13.0, 23.0], &[1.0, 11.0, 21.0]);
        assert_eq!(difference.value, 2.0);
        assert_eq!(difference.interval, Some((2.0, 2.0)));
    }

    #[test]
    fn a_ratio_is_taken_run_by_run() {
        // Both drift threefold, yet one is always twice the other.
        let ratio = Estimate::ratio(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        let (low, high) = ratio.interval.unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-12 && high - low < 1e-9);
        let inverse = Estimate::ratio(&[1.0, 3.0], &[4.0, 5.0]);
        let straight = Estimate::ratio(&[4.0, 5.0], &[1.0, 3.0]);
        assert!((inverse.value * straight.value - 1.0).abs() < 1e-12);
    }
}
