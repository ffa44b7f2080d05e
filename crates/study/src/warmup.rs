//! Where the warm-up of a series ends: MSER-5.
//!
//! The marginal standard error rule (K. P. White, *An effective truncation heuristic for bias reduction in simulation
//! output*, Simulation 69, 1997) cuts a series where the standard error of what remains is least: less is cut while the
//! start differs from the rest, more only costs samples. Means of five neighbours are cut instead of single samples, which
//! noise would mislead (K. P. White, M. J. Cobb and S. C. Spratt, *A comparison of five steady-state truncation heuristics
//! for simulation*, Winter Simulation Conference 2000). At most half is cut, as a few samples at the end agree by chance;
//! whether the rest has come to rest is asked of it as J. Geweke does (*Evaluating the accuracy of sampling-based approaches
//! to the calculation of posterior moments*, Bayesian Statistics 4, 1992): its beginning and its end have the same mean.

/// Samples whose mean is one point of the rule.
const BATCH: usize = 5;
/// Fewer points tell nothing.
const FEWEST_POINTS: usize = 4;
/// Two means are the same if they differ by no more than so many standard errors,
const SAME_ERRORS: f64 = 3.0;
/// and this share of them, which matters to nobody.
const SAME_SHARE: f64 = 0.02;

/// How many samples at the start belong to the warm-up; `None` if the series has not come to rest, or is too short to tell.
pub fn truncation(series: &[f64]) -> Option<usize> {
    let points: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    if points.len() < FEWEST_POINTS {
        return None;
    }
    let errors = &squared_errors(&points)[..=points.len() / 2];
    // Of equal errors the first, so that a series that does not vary is not cut.
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let noise = f64::EPSILON * points.iter().map(|point| point * point).sum::<f64>();
    let cut = errors.iter().position(|error| *error <= least + noise)?;
    is_at_rest(&points[cut..]).then_some(cut * BATCH)
}

/// The square of the standard error of the points from each one on.
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

/// Whether both halves have the same mean.
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
    use proptest::prelude::*;

    /// SplitMix64 (Steele, Lea and Flood, 2014): the sum of twelve uniform numbers, nearly normal.
    fn normal(state: &mut u64) -> f64 {
        let mut uniform = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = *state;
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^= bits >> 31;
            (bits >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    #[test]
    fn what_does_not_vary_is_not_cut() {
        assert_eq!(truncation(&[3.0; 100]), Some(0));
        assert_eq!(truncation(&[3.0; 19]), None, "too short");
    }

    #[test]
    fn what_goes_on_rising_has_not_come_to_rest() {
        let rising: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(truncation(&rising), None);
        let late: Vec<f64> = (0..200).map(|at| f64::from(u8::from(at < 150))).collect();
        assert_eq!(truncation(&late), None);
    }

    proptest! {
        /// Nothing of a step is left that stands out of the noise.
        #[test]
        fn a_step_is_found(seed in any::<u64>(), at in 10usize..100, height in 1.5f64..100.0) {
            let mut state = seed;
            let series: Vec<f64> = (0..240)
                .map(|index| if index < at { 1.0 + height } else { 1.0 } + 0.05 * normal(&mut state))
                .collect();
            let cut = truncation(&series).unwrap();
            prop_assert!((at..=120).contains(&cut), "{} of {}", cut, at);
        }

        /// Of a decay nothing is left that would bias the mean by more than a few standard errors.
        #[test]
        fn a_decay_is_cut_where_it_no_longer_matters(seed in any::<u64>(), tau in 2.0f64..40.0, height in 0.5f64..50.0) {
            let mut state = seed;
            let series: Vec<f64> = (0..400)
                .map(|index| 1.0 + height * (-(index as f64) / tau).exp() + 0.02 * normal(&mut state))
                .collect();
            let cut = truncation(&series);
            prop_assert!(cut.is_some() || tau > 20.0);
            if let Some(cut) = cut {
                let rest = &series[cut..];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                prop_assert!((mean - 1.0).abs() < 0.05, "{} after {}", mean, cut);
            }
        }

        /// Scale and origin do not matter, and noise alone loses at most half.
        #[test]
        fn noise_is_not_a_warm_up(seed in any::<u64>(), scale in 1e-6f64..1e6) {
            let mut state = seed;
            let series: Vec<f64> = (0..300).map(|_| scale * (10.0 + normal(&mut state))).collect();
            if let Some(cut) = truncation(&series) {
                prop_assert!(cut <= 150);
                let rest = &series[cut..];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                prop_assert!((mean / scale - 10.0).abs() < 0.5, "{}", mean);
            }
        }
    }
}
