//! How sure a percentile of latency is.
//!
//! Woodruff's interval (R. S. Woodruff, Confidence intervals for medians and other position measures, Journal of the
//! American Statistical Association 47, 1952): the confidence interval of the *share* of I/Os that are slower than the
//! percentile is turned into latencies by reading the distribution at its ends. I/Os that follow each other resemble each
//! other, so the share's interval comes from its course over the intervals of the run, by the same rule as that of a rate
//! ([`half_width`]); it is never narrower than that of independent I/Os.

use super::sure::LEVEL;
use iosonde_result::histogram::Histogram;
use iosonde_result::series::half_width;

/// 95 % of a normal distribution lie within so many standard deviations.
const NORMAL_95: f64 = 1.96;

/// The 95 % confidence interval of a percentile, in the unit of the histograms: `all` is of the whole time, `slices` of
/// each interval of it. `None` where there are too few intervals, or too few I/Os beyond it to bound it from above.
pub(super) fn between(all: &Histogram, slices: &[&Histogram], percent: f64) -> Option<(u64, u64)> {
    let value = all.percentile(percent)?;
    let slower: Vec<f64> = slices
        .iter()
        .filter_map(|slice| slice.share_above(value))
        .collect();
    let share = percent / 100.0;
    let independent = NORMAL_95 * (share * (1.0 - share) / all.total() as f64).sqrt();
    let half = 100.0 * half_width(&slower, LEVEL)?.max(independent);
    let (low, high) = ((percent - half).max(0.0), percent + half);
    if high >= 100.0 {
        return None;
    }
    Some((
        all.percentile_bounds(low)?.0,
        all.percentile_bounds(high)?.1,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 (Steele, Lea and Flood, 2014): from 0 to 1, 0 not included.
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = *state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Slices of a minute of I/Os whose latency is exponential; that of slice `i` is scaled by `scale(i)`.
    fn slices(seed: u64, scale: impl Fn(usize) -> f64) -> Vec<Histogram> {
        let mut state = seed;
        let mut slice = |index: usize| {
            let mut histogram = Histogram::default();
            for _ in 0..200 {
                let exponential = -uniform(&mut state).ln();
                histogram.record((1e6 * scale(index) * exponential) as u64);
            }
            histogram
        };
        (0..60).map(&mut slice).collect()
    }

    fn interval(slices: &[Histogram], percent: f64) -> Option<(u64, u64)> {
        let mut all = Histogram::default();
        slices.iter().for_each(|slice| all.merge(slice));
        between(&all, &slices.iter().collect::<Vec<_>>(), percent)
    }

    #[test]
    fn the_truth_lies_within_in_95_of_100() {
        for (percent, truth) in [(50.0, 0.693_15e6), (99.0, 4.605_2e6)] {
            let mut unbounded = 0;
            let held = |seed: &u64| {
                let Some((low, high)) = interval(&slices(*seed, |_| 1.0), percent) else {
                    unbounded += 1;
                    return true;
                };
                (low as f64..=high as f64).contains(&truth)
            };
            let covered = (0..400).filter(held).count();
            assert!(unbounded <= 8, "p{percent}: {unbounded} of 400");
            // 95 % and four standard deviations of a count; the ends of buckets widen it a little.
            assert!(
                (362..=398).contains(&covered),
                "p{percent}: {covered} of 400"
            );
        }
    }

    #[test]
    fn latencies_that_drift_are_less_sure() {
        let width = |(low, high): (u64, u64)| high - low;
        let even = width(interval(&slices(1, |_| 1.0), 50.0).unwrap());
        let waves = |index: usize| {
            if (index / 10).is_multiple_of(2) {
                0.8
            } else {
                1.2
            }
        };
        let wavy = width(interval(&slices(1, waves), 50.0).unwrap());
        assert!(wavy > 2 * even, "{wavy} {even}");
    }

    #[test]
    fn too_few_beyond_it_bound_nothing() {
        let few = slices(1, |_| 1.0);
        assert_eq!(interval(&few[..20], 99.99), None);
        assert_eq!(interval(&few[..2], 50.0), None);
    }
}
