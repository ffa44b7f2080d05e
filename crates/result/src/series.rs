//! Statistics of a series of samples taken at equal intervals, such as I/Os per second: how well its mean is known, and
//! whether it had settled.

mod spectrum;

use spectrum::{Posterior, Spectra};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanEstimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half of the confidence interval's width: the interval is `mean - half_width ..= mean + half_width`.
    pub half_width: f64,
    /// Factor by which the interval is wider that holds for the mean of another run of the same length. At least 1. It
    /// comes from slow variation that the series shows, or is too short to exclude.
    pub repeat_factor: f64,
    /// Number of independent samples that would give an interval of this width.
    pub effective_samples: f64,
    /// Degrees of freedom of the Student's t whose 95 and 99 % intervals have the proportion of those of this mean.
    pub freedom: f64,
    /// The property of the series that decides the width.
    pub evidence: Evidence,
}

/// The property of a series that decides how wide the interval of its mean is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The variation from sample to sample, with its correlation.
    Series,
    /// The series is too short for its correlation or its skewness: the spread of its thirds.
    TooShort,
    /// The series drifted: its slowest variation is as long as the series, or longer, or the series is too short and held
    /// no steady state.
    Drift,
}

/// Fewest samples for which [`mean_with_confidence`] has an answer.
pub const FEWEST_SAMPLES: usize = 5;

/// Constants that were chosen by the coverage of simulated series (docs/decisions/intervals.md).
#[derive(Debug, Clone, Copy)]
struct Tuning {
    /// Neighbours are joined while their correlation is higher, and twice as many samples as the least are left.
    correlation_max: f64,
    samples_min: usize,
    /// A series with fewer effective samples is too short.
    effective_samples_min: f64,
    /// A correlated series whose squared skewness is more than this share of the effective samples is too short: a few rare
    /// events decide its mean.
    skewness_max: f64,
    /// Inflation of the variance of the mean above which a series counts as correlated.
    correlated_inflation: f64,
    /// The same as a share of all samples, where that is less.
    effective_share_min: f64,
    /// The mixture of spectra has longer tails than the truth. The share of errors asked of it is larger by this factor.
    error_factor: f64,
    /// Probability of slow spectra above which a series has drifted.
    drift_probability: f64,
}

const TUNING: Tuning = Tuning {
    correlation_max: 0.6,
    samples_min: 24,
    effective_samples_min: 5.0,
    skewness_max: 0.1,
    correlated_inflation: 2.0,
    effective_share_min: 0.45,
    error_factor: 1.12,
    drift_probability: 0.5,
};

/// The normal distribution's 97.5 % quantile.
const NORMAL_97_5: f64 = 1.96;
/// Longer series are reduced to means of neighbouring samples, at most so many.
const SAMPLES_MAX: usize = 300;

/// The mean of a series with its confidence interval; `level` is 0.95 for 95 %. `None` for fewer than [`FEWEST_SAMPLES`]
/// samples, or samples that are not finite.
///
/// Neighbouring samples of a storage device resemble each other, so n of them are worth fewer than n. The variance of their
/// mean is the spectral density at frequency zero over n, and the density is found by Bayes' rule among a set of shapes: white
/// noise, and white noise with autoregressive noise of first order of any correlation time and share (module `spectrum`). The
/// interval is that of the posterior mixture of Student's distributions. A series with too few effective samples, or whose mean
/// a few rare events decide, has the wider of that and Student's interval over its thirds.
///
/// Coverage and width on simulated series, and the alternatives, are in docs/decisions/intervals.md.
pub fn mean_with_confidence(series: &[f64], level: f64) -> Option<MeanEstimate> {
    if series.len() < FEWEST_SAMPLES || series.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    debug_assert!((0.5..1.0).contains(&level), "{level}");
    let mean = mean(series);
    let reduced = reduce(series);
    let moments = Moments::of(series);
    let is_constant = |variance: f64| variance <= f64::EPSILON * f64::EPSILON * mean * mean;
    // What is left out to make groups of equal size may be all that varies.
    if is_constant(moments.variance) || is_constant(Moments::of(&reduced).variance) {
        return Some(MeanEstimate {
            mean,
            half_width: 0.0,
            repeat_factor: 1.0,
            effective_samples: series.len() as f64,
            freedom: FREEDOM_MAX,
            evidence: Evidence::Series,
        });
    }
    let posterior = Spectra::of(reduced.len()).posterior(&reduced);
    let interval = |level: f64| interval(&reduced, &moments, &posterior, level);
    let (half_width, repeat, evidence) = interval(level);
    // By the 95 % interval, whatever the level.
    let half_95 = if level == 0.95 {
        half_width
    } else {
        interval(0.95).0
    };
    let effective_samples = moments.variance * (NORMAL_97_5 / half_95).powi(2);
    Some(MeanEstimate {
        mean,
        half_width,
        repeat_factor: (repeat / half_width).max(1.0),
        effective_samples: effective_samples.min(series.len() as f64),
        freedom: freedom_of(interval(0.99).0 / half_95),
        evidence,
    })
}

/// The mean of rates of equal intervals with its confidence interval, as by [`mean_with_confidence`]. It is known to one of
/// the `ios` that ended at best.
pub fn rate_with_confidence(rates: &[f64], ios: u64, level: f64) -> Option<MeanEstimate> {
    let ios = ios.max(1) as f64;
    let one = mean(rates) * rates.len() as f64 / ios;
    let estimate = mean_with_confidence(&join_counts(rates, one), level)?;
    let half_width = estimate.half_width.max(mean(rates) / ios);
    let repeat = estimate.half_width * estimate.repeat_factor;
    Some(MeanEstimate {
        mean: mean(rates),
        half_width,
        repeat_factor: (repeat / half_width).max(1.0),
        ..estimate
    })
}

/// Rates of intervals, joined while the counting of whole I/Os makes more than a tenth of their variation. `one` is the rate
/// of one I/O in an interval.
///
/// An I/O that ends just after an interval is counted in the next one. That makes neighbours differ, by a variance of `one`
/// squared over 6 where I/Os end evenly, and nothing of it is left in the mean: taken for noise, it hides how slowly the
/// device's speed varies.
fn join_counts(rates: &[f64], mut one: f64) -> Vec<f64> {
    let mut rates = rates.to_vec();
    while rates.len() >= 2 * TUNING.samples_min
        && Moments::of(&rates).variance < COUNTING_VARIANCES_MIN * one * one / 6.0
    {
        rates = group(&rates, 2);
        one /= 2.0;
    }
    rates
}

/// Half of the width for the mean of this series, the same for another one, and the evidence that decides.
fn interval(
    series: &[f64],
    moments: &Moments,
    posterior: &Posterior,
    level: f64,
) -> (f64, f64, Evidence) {
    let errors = (1.0 - level) / 2.0;
    let stationary = |factor: f64| posterior.half_width(1.0 - errors * factor, false);
    let usual = stationary(TUNING.error_factor);
    let effective_samples = moments.variance * (quantile_of(level) / usual).powi(2);
    let is_skewed = moments.skewness.powi(2) > TUNING.skewness_max * effective_samples;
    let factor = if is_skewed { 1.0 } else { TUNING.error_factor };
    let half_width = if is_skewed { stationary(1.0) } else { usual };
    let repeat = posterior.half_width(1.0 - errors * factor, true);
    if posterior.drift_probability > TUNING.drift_probability {
        let widest = repeat.max(half_width);
        return (widest, widest, Evidence::Drift);
    }
    let is_correlated = moments.samples > TUNING.correlated_inflation * effective_samples;
    let of_all = moments.samples * TUNING.effective_share_min;
    let effective_samples_min = TUNING.effective_samples_min.min(of_all);
    let is_too_short = effective_samples < effective_samples_min || is_correlated && is_skewed;
    let of_thirds = half_width_of_thirds(series, level);
    if !is_too_short {
        return (half_width, repeat.max(half_width), Evidence::Series);
    }
    let evidence = match held_still(series) {
        Some(false) => Evidence::Drift,
        _ => Evidence::TooShort,
    };
    let half_width = half_width.max(of_thirds);
    (half_width, repeat.max(half_width), evidence)
}

/// With more degrees of freedom Student's t is taken for the normal distribution.
const FREEDOM_MAX: f64 = 1e3;

/// Degrees of freedom of the Student's t whose 99 % interval is wider than its 95 % interval by this ratio.
fn freedom_of(ratio: f64) -> f64 {
    let (mut low, mut high) = (1.0, FREEDOM_MAX);
    while high / low > 1.01 {
        let middle = f64::sqrt(low * high);
        let is_wider = StudentsT::new(0.0, 1.0, middle)
            .is_ok_and(|t| t.inverse_cdf(0.995) / t.inverse_cdf(0.975) > ratio);
        if is_wider {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The normal distribution's quantile of a two-sided interval.
fn quantile_of(level: f64) -> f64 {
    spectrum::normal_quantile(0.5 + level / 2.0)
}

/// Means of neighbouring samples: at most [`SAMPLES_MAX`], and no more than show the correlation. Of a slowly varying series
/// the high frequencies say how it moves from sample to sample, in steps or smoothly, and nothing of its mean; a spectrum that
/// is made to fit them misses the low ones.
fn reduce(series: &[f64]) -> Vec<f64> {
    let mut reduced = group(series, series.len().div_ceil(SAMPLES_MAX));
    while reduced.len() >= 2 * TUNING.samples_min && correlation(&reduced) > TUNING.correlation_max
    {
        reduced = group(&reduced, 2);
    }
    reduced
}

/// The variance of rates is at least so many times that of counting.
const COUNTING_VARIANCES_MIN: f64 = 10.0;

/// Means of so many neighbours. A remainder at the start is left out.
fn group(series: &[f64], size: usize) -> Vec<f64> {
    let mut grouped: Vec<f64> = series.rchunks_exact(size).map(mean).collect();
    grouped.reverse();
    grouped
}

/// Correlation of neighbouring samples; 0 where they do not vary.
fn correlation(series: &[f64]) -> f64 {
    let mean = mean(series);
    let squares: f64 = series.iter().map(|sample| (sample - mean).powi(2)).sum();
    let products = series
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let products: f64 = products.sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

/// Half of the width of Student's interval of the mean of three thirds.
fn half_width_of_thirds(series: &[f64], level: f64) -> f64 {
    let n = series.len();
    let thirds = [0, 1, 2].map(|index| mean(&series[index * n / 3..(index + 1) * n / 3]));
    let middle = mean(&thirds);
    let squares: f64 = thirds.iter().map(|third| (third - middle).powi(2)).sum();
    // Student's quantile for two degrees of freedom, in closed form.
    let errors = 1.0 - level;
    let student = level * (2.0 / (errors * (2.0 - errors))).sqrt();
    student * (squares / 2.0 / 3.0).sqrt()
}

/// Number, variance and skewness of the samples as they were taken.
struct Moments {
    samples: f64,
    variance: f64,
    skewness: f64,
}

impl Moments {
    fn of(series: &[f64]) -> Moments {
        let n = series.len() as f64;
        let mean = mean(series);
        let sum = |power: i32| {
            series
                .iter()
                .map(|sample| (sample - mean).powi(power))
                .sum::<f64>()
        };
        let squares = sum(2);
        let skewness = match squares > 0.0 {
            true => sum(3) / n / (squares / n).powf(1.5),
            false => 0.0,
        };
        Moments {
            samples: n,
            variance: squares / (n - 1.0),
            skewness,
        }
    }
}

fn mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len() as f64
}

/// The steady-state test of the SNIA Solid State Storage Performance Test Specification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyStateTest {
    /// Mean over the window.
    pub mean: f64,
    /// Largest minus smallest sample, as a share of the mean.
    pub range: f64,
    /// How far the fitted line rises or falls over the window, as a share of the mean.
    pub excursion: f64,
}

impl SteadyStateTest {
    /// Most that the samples may range over.
    pub const RANGE_LIMIT: f64 = 0.20;
    /// Most that the fitted line may rise or fall.
    pub const EXCURSION_LIMIT: f64 = 0.10;

    /// Tests a window of samples; `None` for fewer than two, for samples that are not finite, and for a mean that is not
    /// above zero.
    pub fn of(window: &[f64]) -> Option<SteadyStateTest> {
        if window.len() < 2 || window.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mean = mean(window);
        if mean <= 0.0 {
            return None;
        }
        let largest = window.iter().copied().fold(f64::MIN, f64::max);
        let smallest = window.iter().copied().fold(f64::MAX, f64::min);
        let rise = slope(window, mean) * (window.len() - 1) as f64;
        Some(SteadyStateTest {
            mean,
            range: (largest - smallest) / mean,
            excursion: rise.abs() / mean,
        })
    }

    /// Whether both limits are kept.
    pub fn is_steady(&self) -> bool {
        self.range <= Self::RANGE_LIMIT && self.excursion <= Self::EXCURSION_LIMIT
    }
}

/// Slope of the least-squares line through the samples, per interval.
fn slope(window: &[f64], mean: f64) -> f64 {
    let middle = (window.len() - 1) as f64 / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, sample) in window.iter().enumerate() {
        let x = index as f64 - middle;
        products += x * (sample - mean);
        squares += x * x;
    }
    products / squares
}

/// Rounds of SNIA's measurement window. A run is cut into as many: what varies faster is noise, not drift.
const ROUNDS: usize = 5;

/// Whether the rate of a run held still, by SNIA's test over its rounds; `None` when there are too few intervals to tell.
pub fn held_still(rates: &[f64]) -> Option<bool> {
    if rates.len() < ROUNDS {
        return None;
    }
    let bound = |round: usize| round * rates.len() / ROUNDS;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| mean(&rates[bound(round)..bound(round + 1)]))
        .collect();
    SteadyStateTest::of(&rounds).map(|test| test.is_steady())
}

#[cfg(test)]
pub(crate) mod families;
#[cfg(test)]
mod tests;
