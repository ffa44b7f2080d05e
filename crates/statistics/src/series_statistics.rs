//! Statistics of a time series such as IOPS: confidence interval of the mean, and steady state.

mod falling_root;
mod spectrum;

use spectrum::{Posterior, Spectra};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanEstimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half-width of the confidence interval `mean - half_width ..= mean + half_width`.
    pub half_width: f64,
    /// Ratio of the interval for the mean of another run of the same length to this one. At least
    /// 1. It accounts for slow variation that the series shows, or is too short to exclude.
    pub repeat_factor: f64,
    /// Number of independent samples that would give an interval of the same width.
    pub effective_samples: f64,
    /// Degrees of freedom of Student's t with the same ratio of the 95 % and 99 % intervals.
    pub freedom: f64,
    /// Property of the series that determines the width.
    pub evidence: SeriesEvidence,
}

/// Property of a series that determines the width of the interval of its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesEvidence {
    /// The variance and autocorrelation of the samples.
    Autocorrelation,
    /// The spread of the means of thirds, as the series is too short for its autocorrelation.
    TooShort,
    /// The series drifted: its slowest variation is as long as the series, or it is not steady.
    Drift,
}

/// Fewest samples for which [`mean_with_confidence`] returns an estimate.
pub const FEWEST_SAMPLES: usize = 5;

/// Constants chosen by the coverage of simulated series (docs/decisions/intervals.md).
#[derive(Debug, Clone, Copy)]
struct Tuning {
    /// Adjacent samples are averaged while their correlation is higher and enough are left.
    correlation_max: f64,
    samples_min: usize,
    /// A series with fewer effective samples is too short.
    effective_samples_min: f64,
    /// Largest squared skewness of a correlated series, as a share of the effective samples.
    skewness_max: f64,
    /// A series is correlated if its autocorrelation inflates the variance of its mean by more.
    correlated_inflation: f64,
    /// Bound that replaces `effective_samples_min` if it is smaller, as a share of all samples.
    effective_share_min: f64,
    /// The mixture has too heavy tails, so its error probability is larger by this factor.
    error_factor: f64,
    /// A series has drifted if the probability of slow spectra exceeds this value.
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

/// The 97.5 % quantile of the normal distribution.
const NORMAL_97_5: f64 = 1.96;
/// Longer series are reduced to at most this many means of adjacent samples.
const SAMPLES_MAX: usize = 300;

/// Returns the mean of a series with its confidence interval. `level` is 0.95 for 95 %.
///
/// Returns `None` for fewer than `FEWEST_SAMPLES` samples, or if a sample is not finite.
///
/// Adjacent samples of a storage device are correlated, so n samples hold less information than n
/// independent ones. The variance of their mean is the spectral density at frequency zero divided
/// by n. The density is estimated by Bayes' rule over a set of spectra: white noise, and white
/// noise plus first-order autoregressive noise with various correlation times and shares (module
/// `spectrum`). The interval is that of the posterior mixture of Student's t distributions. If a
/// series has too few effective samples, or if a few rare events determine its mean, the result is
/// the wider of this interval and Student's over its thirds.
///
/// docs/decisions/intervals.md has the coverage and width on simulated series, and the
/// alternatives.
pub fn mean_with_confidence(series: &[f64], level: f64) -> Option<MeanEstimate> {
    if series.len() < FEWEST_SAMPLES || series.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    debug_assert!((0.5..1.0).contains(&level), "{level}");
    let mean = series_mean(series);
    let reduced = reduce(series);
    let moments = SampleMoments::from_samples(series);
    let is_constant = |variance: f64| variance <= f64::EPSILON * f64::EPSILON * mean * mean;
    // The remainder that grouping leaves out may contain all of the variation.
    if is_constant(moments.variance) || is_constant(SampleMoments::from_samples(&reduced).variance)
    {
        return Some(MeanEstimate {
            mean,
            half_width: 0.0,
            repeat_factor: 1.0,
            effective_samples: series.len() as f64,
            freedom: FREEDOM_MAX,
            evidence: SeriesEvidence::Autocorrelation,
        });
    }
    let posterior = Spectra::new(reduced.len()).posterior(&reduced);
    let interval = |level: f64| interval(&reduced, &moments, &posterior, level);
    let (half_width, repeat, evidence) = interval(level);
    // The effective samples are those of the 95 % interval, for any `level`.
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

/// Returns the mean rate of equal intervals with its confidence interval. The half-width is at
/// least the rate of one of the `ios` completed I/Os.
pub fn rate_with_confidence(rates: &[f64], ios: u64, level: f64) -> Option<MeanEstimate> {
    let ios = ios.max(1) as f64;
    let one = series_mean(rates) * rates.len() as f64 / ios;
    let estimate = mean_with_confidence(&join_counts(rates, one), level)?;
    let half_width = estimate.half_width.max(series_mean(rates) / ios);
    let repeat = estimate.half_width * estimate.repeat_factor;
    Some(MeanEstimate {
        mean: series_mean(rates),
        half_width,
        repeat_factor: (repeat / half_width).max(1.0),
        ..estimate
    })
}

/// Averages adjacent rates while counting whole I/Os causes more than a tenth of their variance.
/// `one` is the rate of one I/O in an interval.
///
/// An I/O that ends just after an interval counts in the next one. Adjacent rates therefore differ,
/// by a variance of `one` squared over 6 if I/Os end evenly. This difference cancels out in the
/// mean. Treated as noise, it would hide slow variation of the device.
fn join_counts(rates: &[f64], mut one: f64) -> Vec<f64> {
    let mut rates = rates.to_vec();
    while rates.len() >= 2 * TUNING.samples_min
        && SampleMoments::from_samples(&rates).variance < COUNTING_VARIANCES_MIN * one * one / 6.0
    {
        rates = group(&rates, 2);
        one /= 2.0;
    }
    rates
}

/// Returns the half-widths for the means of this and of another series, and their evidence.
fn interval(
    series: &[f64],
    moments: &SampleMoments,
    posterior: &Posterior,
    level: f64,
) -> (f64, f64, SeriesEvidence) {
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
        return (widest, widest, SeriesEvidence::Drift);
    }
    let is_correlated = moments.samples > TUNING.correlated_inflation * effective_samples;
    let of_all = moments.samples * TUNING.effective_share_min;
    let effective_samples_min = TUNING.effective_samples_min.min(of_all);
    let is_too_short = effective_samples < effective_samples_min || is_correlated && is_skewed;
    let of_thirds = half_width_of_thirds(series, level);
    if !is_too_short {
        return (
            half_width,
            repeat.max(half_width),
            SeriesEvidence::Autocorrelation,
        );
    }
    let evidence = match is_rate_steady(series) {
        Some(false) => SeriesEvidence::Drift,
        _ => SeriesEvidence::TooShort,
    };
    let half_width = half_width.max(of_thirds);
    (half_width, repeat.max(half_width), evidence)
}

/// Student's t with more degrees of freedom is treated as the normal distribution.
const FREEDOM_MAX: f64 = 1e3;

/// Returns the degrees of freedom of Student's t with this ratio of 99 % to 95 % interval.
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
    assert!(
        (1.0..=FREEDOM_MAX).contains(&high),
        "Student's t exists for {high} degrees"
    );
    high
}

/// Returns the quantile of the normal distribution for a two-sided interval.
fn quantile_of(level: f64) -> f64 {
    spectrum::normal_quantile(0.5 + level / 2.0)
}

/// Averages adjacent samples until at most [`SAMPLES_MAX`] are left and they are not strongly
/// correlated.
///
/// The high frequencies of a slowly varying series describe the change from sample to sample, not
/// the mean. A spectrum fitted to them would miss the low frequencies.
fn reduce(series: &[f64]) -> Vec<f64> {
    let mut reduced = group(series, series.len().div_ceil(SAMPLES_MAX));
    while reduced.len() >= 2 * TUNING.samples_min && correlation(&reduced) > TUNING.correlation_max
    {
        reduced = group(&reduced, 2);
    }
    assert!(
        reduced.len() <= SAMPLES_MAX,
        "spectra have at most {SAMPLES_MAX} samples"
    );
    reduced
}

/// The variance of the rates is at least this multiple of the variance of counting.
const COUNTING_VARIANCES_MIN: f64 = 10.0;

/// Averages groups of `size` adjacent samples. A remainder at the start is left out.
fn group(series: &[f64], size: usize) -> Vec<f64> {
    let mut grouped: Vec<f64> = series.rchunks_exact(size).map(series_mean).collect();
    debug_assert_eq!(
        grouped.len(),
        series.len() / size,
        "less than one group is left out"
    );
    grouped.reverse();
    grouped
}

/// Returns the correlation of adjacent samples, or 0 if the samples are constant.
fn correlation(series: &[f64]) -> f64 {
    let mean = series_mean(series);
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

/// Returns half of the width of Student's interval over the means of three thirds.
fn half_width_of_thirds(series: &[f64], level: f64) -> f64 {
    let n = series.len();
    assert!(n >= 3, "{n} samples have no three thirds");
    let thirds = [0, 1, 2].map(|index| series_mean(&series[index * n / 3..(index + 1) * n / 3]));
    let middle = series_mean(&thirds);
    let squares: f64 = thirds.iter().map(|third| (third - middle).powi(2)).sum();
    // Student's quantile for two degrees of freedom, in closed form.
    let errors = 1.0 - level;
    let student = level * (2.0 / (errors * (2.0 - errors))).sqrt();
    student * (squares / 2.0 / 3.0).sqrt()
}

/// Number, variance and skewness of the samples before reduction.
struct SampleMoments {
    samples: f64,
    variance: f64,
    skewness: f64,
}

impl SampleMoments {
    fn from_samples(series: &[f64]) -> SampleMoments {
        assert!(series.len() >= 2, "one sample has no variance");
        let n = series.len() as f64;
        let mean = series_mean(series);
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
        SampleMoments {
            samples: n,
            variance: squares / (n - 1.0),
            skewness,
        }
    }
}

fn series_mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len() as f64
}

/// Steady-state test of the SNIA Solid State Storage Performance Test Specification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyStateTest {
    /// Mean of the window.
    pub mean: f64,
    /// Largest minus smallest sample, as a share of the mean.
    pub range: f64,
    /// Change of the fitted line over the window, as a share of the mean.
    pub excursion: f64,
}

impl SteadyStateTest {
    /// Largest permitted range.
    const RANGE_LIMIT: f64 = 0.20;
    /// Largest permitted excursion.
    const EXCURSION_LIMIT: f64 = 0.10;

    /// Tests a window of at least two finite samples with a mean above zero. `None` for others.
    pub fn from_window(window: &[f64]) -> Option<SteadyStateTest> {
        if window.len() < 2 || window.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mean = series_mean(window);
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

    /// Returns whether range and excursion are within their limits.
    pub fn is_steady(&self) -> bool {
        self.range <= Self::RANGE_LIMIT && self.excursion <= Self::EXCURSION_LIMIT
    }
}

/// Returns the slope of the least-squares line through the samples, per interval.
fn slope(window: &[f64], mean: f64) -> f64 {
    let middle = (window.len() - 1) as f64 / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, sample) in window.iter().enumerate() {
        let x = index as f64 - middle;
        products += x * (sample - mean);
        squares += x * x;
    }
    assert!(squares > 0.0, "one sample has no slope");
    products / squares
}

/// Rounds of SNIA's measurement window. Variation within a round is noise, not drift.
const ROUNDS: usize = 5;

/// Returns whether a rate was steady over `ROUNDS`, or `None` if there are too few intervals.
pub fn is_rate_steady(rates: &[f64]) -> Option<bool> {
    if rates.len() < ROUNDS {
        return None;
    }
    let bound = |round: usize| round * rates.len() / ROUNDS;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| series_mean(&rates[bound(round)..bound(round + 1)]))
        .collect();
    SteadyStateTest::from_window(&rounds).map(|test| test.is_steady())
}

#[cfg(test)]
mod families;
#[cfg(test)]
mod tests;
