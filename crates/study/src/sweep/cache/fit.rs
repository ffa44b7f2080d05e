//! Fits cache size, hit latency and miss latency to measured latencies.
//!
//! For each size, relative least squares gives both latencies. The best size has the least squares.
//! Intervals cover all sizes that are not significantly worse (profile likelihood: D. M. Bates and
//! D. G. Watts, *Nonlinear Regression Analysis and Its Applications*, 1988, section 6.1).

use super::Between;
use super::popularity::HitCurve;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Number of sizes tried.
const STEPS: usize = 1500;
/// Ratio of the smallest working set to the smallest cache size tried.
const BELOW: f64 = 16.0;
/// Smallest relative error of a latency, for histogram buckets and the simplicity of the model.
const LEAST_ERROR: f64 = 0.01;
/// Quantile for a two-sided 95 % interval.
const QUANTILE: f64 = 0.975;

/// Model of the hits in a working set.
#[derive(Debug, Clone)]
pub(super) enum Hits {
    /// Hits of random draws.
    Drawn(HitCurve),
    /// Hits of repeated sequential reads of this number of blocks.
    Whole(u64),
}

impl Hits {
    fn at(&self, blocks: f64) -> f64 {
        match self {
            Hits::Drawn(curve) => curve.at(blocks),
            Hits::Whole(all) if blocks >= *all as f64 => 1.0,
            Hits::Whole(_) => 0.0,
        }
    }
}

/// Latency of one working set.
#[derive(Debug, Clone)]
pub(super) struct WorkingSetLatency {
    pub(super) bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) latency_ns: f64,
    /// Relative half-width of the 95 % interval. `None` if unknown.
    pub(super) error: Option<f64>,
    pub(super) hits: Hits,
}

/// Best fit of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    pub(super) size_bytes: Between,
    pub(super) hit_ns: Between,
    pub(super) miss_ns: Between,
    pub(super) misfit: f64,
}

/// One size with the best latencies for it.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    bytes: f64,
    hit_ns: f64,
    miss_ns: f64,
    /// Sum of the squared relative errors.
    squares: f64,
}

/// Returns the best fit. `None` if the latency does not rise with the working set.
pub(super) fn fitted(samples: &[WorkingSetLatency]) -> Option<Fit> {
    let sizes = samples.iter().map(|sample| sample.bytes as f64);
    let (smallest, largest) = sizes.fold((f64::MAX, 0f64), |(low, high), size| {
        (low.min(size), high.max(size))
    });
    let first = smallest / BELOW;
    let step = (largest / first).powf(1.0 / (STEPS - 1) as f64);
    let all: Vec<Option<Candidate>> = (0..STEPS)
        .map(|index| candidate(samples, first * step.powi(index as i32)))
        .collect();
    let by_squares = |a: &&Candidate, b: &&Candidate| a.squares.total_cmp(&b.squares);
    let best = *all.iter().flatten().min_by(by_squares)?;
    let limit = best.squares + tolerance(samples, best.squares);
    let accepted: Vec<usize> = (0..STEPS)
        .filter(|index| all[*index].is_some_and(|one| one.squares <= limit))
        .collect();
    let held: Vec<Candidate> = accepted.iter().filter_map(|index| all[*index]).collect();
    let is_open = (
        accepted.first() == Some(&0),
        accepted.last() == Some(&(STEPS - 1)),
    );
    // Of equally good sizes, as between two working sets of sequential reads, the middle one.
    let ties: Vec<Candidate> = held
        .iter()
        .copied()
        .filter(|one| one.squares <= best.squares * 1.0001 + 1e-12)
        .collect();
    let best = ties.get(ties.len() / 2).copied().unwrap_or(best);
    Some(Fit {
        size_bytes: between(&held, best, is_open, |one| one.bytes),
        // The upper bound of a miss is open if even the largest working set may nearly fit.
        hit_ns: between(&held, best, (false, false), |one| one.hit_ns),
        miss_ns: between(&held, best, (false, is_open.1), |one| one.miss_ns),
        misfit: (best.squares / samples.len() as f64).sqrt(),
    })
}

fn between(
    held: &[Candidate],
    best: Candidate,
    is_open: (bool, bool),
    figure: fn(&Candidate) -> f64,
) -> Between {
    let low = held.iter().map(figure).fold(figure(&best), f64::min);
    let high = held.iter().map(figure).fold(figure(&best), f64::max);
    Between {
        mean: figure(&best),
        low: (!is_open.0).then_some(low),
        high: (!is_open.1).then_some(high),
    }
}

/// Returns the acceptable excess over the least sum of squares.
fn tolerance(samples: &[WorkingSetLatency], least: f64) -> f64 {
    let n = samples.len() as f64;
    let known: f64 = samples
        .iter()
        .map(|sample| {
            (sample.error.unwrap_or(0.0) / 2.0)
                .max(LEAST_ERROR / 2.0)
                .powi(2)
        })
        .sum();
    let freedom = n - 3.0;
    let student = StudentsT::new(0.0, 1.0, freedom.max(1.0))
        .map_or(1.96, |student| student.inverse_cdf(QUANTILE));
    let normal = 1.96f64;
    (known / n * normal.powi(2)).max(least / freedom.max(1.0) * student.powi(2))
}

/// Least squares of latency = hit + penalty x miss ratio, each divided by the latency.
fn candidate(samples: &[WorkingSetLatency], bytes: f64) -> Option<Candidate> {
    let misses: Vec<f64> = samples
        .iter()
        .map(|sample| 1.0 - sample.hits.at(bytes / sample.block_bytes as f64))
        .collect();
    let (mut s0, mut s1, mut s2, mut y0, mut y1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (sample, miss) in samples.iter().zip(&misses) {
        let weight = sample.latency_ns.powi(-2);
        s0 += weight;
        s1 += weight * miss;
        s2 += weight * miss * miss;
        y0 += weight * sample.latency_ns;
        y1 += weight * sample.latency_ns * miss;
    }
    let determinant = s0 * s2 - s1 * s1;
    if determinant <= 1e-9 * s0 * s2 {
        return None;
    }
    let mut hit_ns = (y0 * s2 - y1 * s1) / determinant;
    let mut penalty_ns = (y1 * s0 - y0 * s1) / determinant;
    if hit_ns < 0.0 {
        (hit_ns, penalty_ns) = (0.0, y1 / s2);
    }
    let squares = samples
        .iter()
        .zip(&misses)
        .map(|(sample, miss)| ((hit_ns + penalty_ns * miss) / sample.latency_ns - 1.0).powi(2));
    (penalty_ns > 0.0).then(|| Candidate {
        bytes,
        hit_ns,
        miss_ns: hit_ns + penalty_ns,
        squares: squares.sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Distribution;
    use proptest::prelude::*;

    const MIB: f64 = 1048576.0;

    fn curve(
        distribution: &Distribution,
        size: f64,
        hit: f64,
        miss: f64,
        noise: impl Fn(usize) -> f64,
    ) -> Vec<WorkingSetLatency> {
        (0..9)
            .map(|index| {
                let bytes = (16u64 << 20) << index;
                let drawn = HitCurve::from_distribution(distribution, bytes / 4096, 4096).unwrap();
                let misses = 1.0 - drawn.at(size / 4096.0);
                WorkingSetLatency {
                    bytes,
                    block_bytes: 4096,
                    latency_ns: (hit + (miss - hit) * misses) * noise(index),
                    error: Some(0.01),
                    hits: Hits::Drawn(drawn),
                }
            })
            .collect()
    }

    #[test]
    fn sequential_reads_bound_cache_size_by_working_sets() {
        let sample = |mib: u64, latency_ns: f64| WorkingSetLatency {
            bytes: mib << 20,
            block_bytes: 1 << 20,
            latency_ns,
            error: Some(0.01),
            hits: Hits::Whole(mib),
        };
        let samples = [
            sample(16, 10.0),
            sample(32, 10.0),
            sample(64, 10.0),
            sample(128, 90.0),
            sample(256, 90.0),
        ];
        let fit = fitted(&samples).unwrap();
        let (low, high) = (
            fit.size_bytes.low.unwrap() / MIB,
            fit.size_bytes.high.unwrap() / MIB,
        );
        assert!(
            (63.9..66.0).contains(&low) && (126.0..128.1).contains(&high),
            "{fit:?}"
        );
        assert!((fit.hit_ns.mean - 10.0).abs() < 0.01 && (fit.miss_ns.mean - 90.0).abs() < 0.01);
    }

    #[test]
    fn falling_latency_shows_no_cache() {
        let falling: Vec<WorkingSetLatency> =
            curve(&Distribution::Random, 100.0 * MIB, 1e3, 1e5, |_| 1.0)
                .into_iter()
                .rev()
                .zip(curve(&Distribution::Random, 100.0 * MIB, 1e3, 1e5, |_| 1.0))
                .map(|(other, sample)| WorkingSetLatency {
                    latency_ns: other.latency_ns,
                    ..sample
                })
                .collect();
        assert!(fitted(&falling).is_none_or(|fit| fit.misfit > 0.25));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Latencies of a simulated cache with 1 % of noise lead back to it. At least two working
        /// sets must exceed the cache, because one alone cannot separate size and miss.
        #[test]
        fn fit_recovers_simulated_cache(
            mib in 20.0f64..1000.0,
            hit in 100.0f64..10_000.0,
            times in 5.0f64..1000.0,
            skewed in any::<bool>(),
            noise in prop::collection::vec(-0.01f64..0.01, 9),
        ) {
            let distribution = match skewed {
                true => Distribution::Zipf { theta: 0.8, center: None },
                false => Distribution::Random,
            };
            let noise_at = |index: usize| 1.0 + noise[index];
            let samples = curve(&distribution, mib * MIB, hit, hit * times, noise_at);
            let fit = fitted(&samples).unwrap();
            prop_assert!((fit.size_bytes.mean / MIB / mib - 1.0).abs() < 0.1, "{:?}", fit);
            prop_assert!((fit.hit_ns.mean / hit - 1.0).abs() < 0.25, "{:?}", fit);
            prop_assert!((fit.miss_ns.mean / hit / times - 1.0).abs() < 0.25, "{:?}", fit);
            prop_assert!(fit.size_bytes.low.is_none_or(|low| low <= fit.size_bytes.mean));
        }
    }
}
