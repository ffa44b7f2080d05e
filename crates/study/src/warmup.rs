//! Detects the end of the warm-up of a series: MSER-5.
//!
//! The marginal standard error rule (K. P. White, *An effective truncation heuristic for bias
//! reduction in simulation output*, Simulation 69, 1997) cuts where the standard error of the rest
//! is least. Means of five samples reduce noise (K. P. White, M. J. Cobb and S. C. Spratt, *A
//! comparison of five steady-state truncation heuristics for simulation*, Winter Simulation
//! Conference 2000). At most half is cut, as a few samples may agree by chance. Both halves of the
//! rest must have the same mean, as in J. Geweke, *Evaluating the accuracy of sampling-based
//! approaches to the calculation of posterior moments*, Bayesian Statistics 4, 1992.

/// Samples averaged into one point.
const BATCH: usize = 5;
/// Fewest points for a decision.
const FEWEST_POINTS: usize = 4;
/// Two means that differ by at most this many standard errors count as equal.
const SAME_ERRORS: f64 = 3.0;
/// Means may also differ by this share of the larger one, which is irrelevant in practice.
const SAME_SHARE: f64 = 0.02;

/// Returns the number of samples in the warm-up. `None`: the series is not steady, or too short.
pub(crate) fn truncation(series: &[f64]) -> Option<usize> {
    let points: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    if points.len() < FEWEST_POINTS {
        return None;
    }
    let errors = &squared_errors(&points)[..=points.len() / 2];
    // The first of equal errors, so that a constant series is not cut.
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let noise = f64::EPSILON * points.iter().map(|point| point * point).sum::<f64>();
    let cut = errors.iter().position(|error| *error <= least + noise)?;
    is_at_rest(&points[cut..]).then_some(cut * BATCH)
}

/// Returns, for each point, the squared standard error of the mean of the points from there on.
fn squared_errors(points: &[f64]) -> Vec<f64> {
    let mut errors = vec![0.0; points.len()];
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (point, error) in points.iter().zip(&mut errors).rev() {
        count += 1.0;
        let delta = point - mean;
        mean += delta / count;
        squares += delta * (point - mean);
        *error = squares / (count * count);
    }
    errors
}

/// Whether both halves have the same mean, within their errors.
fn is_at_rest(points: &[f64]) -> bool {
    let (first, second) = points.split_at(points.len() / 2);
    let mean = |half: &[f64]| half.iter().sum::<f64>() / half.len().max(1) as f64;
    let (one, other) = (mean(first), mean(second));
    let error = squared_errors(first).first().unwrap_or(&0.0)
        + squared_errors(second).first().unwrap_or(&0.0);
    (one - other).abs() <= SAME_ERRORS * error.sqrt() + SAME_SHARE * one.abs().max(other.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_order::SplitMix64;
    use proptest::prelude::*;

    /// Sum of twelve uniform numbers, nearly normal.
    fn normal(numbers: &mut SplitMix64) -> f64 {
        let mut uniform = || (numbers.next_number() >> 11) as f64 / (1u64 << 53) as f64;
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    #[test]
    fn truncation_of_constant_series_is_zero() {
        assert_eq!(truncation(&[3.0; 100]), Some(0));
        assert_eq!(truncation(&[3.0; 19]), None, "too short");
    }

    #[test]
    fn truncation_of_rising_series_is_none() {
        let rising: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(truncation(&rising), None);
        let late: Vec<f64> = (0..200).map(|at| f64::from(u8::from(at < 150))).collect();
        assert_eq!(truncation(&late), None);
    }

    proptest! {
        /// The cut removes all samples of the step.
        #[test]
        fn truncation_removes_step_at_start(
            seed in any::<u64>(),
            at in 10usize..100,
            height in 1.5f64..100.0,
        ) {
            let mut numbers = SplitMix64::new(seed);
            let series: Vec<f64> = (0..240)
                .map(|index| {
                    let level = if index < at { 1.0 + height } else { 1.0 };
                    level + 0.05 * normal(&mut numbers)
                })
                .collect();
            let cut = truncation(&series).unwrap();
            prop_assert!((at..=120).contains(&cut), "{} of {}", cut, at);
        }

        /// The rest of an exponential decay does not bias the mean.
        #[test]
        fn truncation_removes_exponential_decay(
            seed in any::<u64>(),
            tau in 2.0f64..40.0,
            height in 0.5f64..50.0,
        ) {
            let mut numbers = SplitMix64::new(seed);
            let series: Vec<f64> = (0..400)
                .map(|index| {
                    let decay = height * (-(index as f64) / tau).exp();
                    1.0 + decay + 0.02 * normal(&mut numbers)
                })
                .collect();
            let cut = truncation(&series);
            prop_assert!(cut.is_some() || tau > 20.0);
            if let Some(cut) = cut {
                let rest = &series[cut..];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                prop_assert!((mean - 1.0).abs() < 0.05, "{} after {}", mean, cut);
            }
        }

        /// The result does not depend on the scale. Noise alone loses at most half of the samples.
        #[test]
        fn truncation_of_noise_keeps_half(seed in any::<u64>(), scale in 1e-6f64..1e6) {
            let mut numbers = SplitMix64::new(seed);
            let series: Vec<f64> = (0..300)
                .map(|_| scale * (10.0 + normal(&mut numbers)))
                .collect();
            if let Some(cut) = truncation(&series) {
                prop_assert!(cut <= 150);
                let rest = &series[cut..];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                prop_assert!((mean / scale - 10.0).abs() < 0.5, "{}", mean);
            }
        }
    }
}
