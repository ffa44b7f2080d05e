//! Variance of the mean of a correlated series, estimated from its periodogram.
//!
//! Whittle's likelihood compares the periodogram at the Fourier frequencies with a set of spectra
//! (P. Whittle, Estimation and information in stationary time series, Arkiv foer Matematik 2,
//! 1953). The expected periodogram of n samples replaces the spectral density (A. M. Sykulski and
//! others, The debiased Whittle likelihood, Biometrika 106, 2019), which matters if a correlation
//! time is about as long as the series. The scale of each spectrum is integrated out, so the error
//! of the mean is a mixture of Student's t distributions, weighted by the posterior probabilities.

use super::falling_root::bisect_falling;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::erf::erfc;
use std::f64::consts::{SQRT_2, TAU};

/// The set of spectra and their prior probabilities.
struct Prior {
    /// Prior probability of white noise.
    white: f64,
    /// Prior weight of slow spectra, if all others together have 1: noise with correlation times of
    /// one and three lengths, and flicker noise.
    slow: f64,
    /// Shortest correlation time in samples, and longest one as a share of the series.
    shortest_samples: f64,
    longest_share: f64,
    /// Number of correlation times, from the shortest to the longest.
    times: usize,
    /// Exponent of the power law by which the weight of a correlation time decreases, for noise
    /// that is half of the variance. A larger share changes it by `decay_by_share` per unit. Long
    /// correlations are visible if they are the whole variance, and hidden if they are a small
    /// part.
    decay: f64,
    decay_by_share: f64,
}

impl Prior {
    /// Returns the weights of all correlation times for noise of this share. They sum to the weight
    /// of all stationary spectra except white noise, divided by the number of shares.
    fn weights(&self, times: &[f64], share: f64) -> Vec<f64> {
        let decay = self.decay + self.decay_by_share * (share - 0.5);
        let weights: Vec<f64> = times.iter().map(|time| time.powf(-decay)).collect();
        let total = weights.iter().sum::<f64>() * SHARES.len() as f64;
        let scale = (1.0 - self.white) / total;
        weights.into_iter().map(|weight| weight * scale).collect()
    }
}

const PRIOR: Prior = Prior {
    white: 0.5,
    slow: 0.035,
    shortest_samples: 1.4,
    longest_share: 0.5,
    times: 10,
    decay: 0.3,
    decay_by_share: 0.9,
};

/// Shares of the variance in the correlated part of a spectrum.
const SHARES: [f64; 6] = [0.1, 0.25, 0.45, 0.7, 0.85, 1.0];
const SLOW_SHARES: [f64; 3] = [0.2, 0.5, 0.95];
const FLICKER_SHARES: [f64; 4] = [0.3, 0.6, 0.8, 1.0];
/// Ratio of successive correlation times of flicker noise.
const FLICKER_STEP: f64 = 3.0;
/// Correlation times of slow spectra, as multiples of the length of the series.
const SLOW_LENGTHS: [f64; 2] = [1.0, 3.0];
/// Components of a mixture with a lower probability are left out.
const PROBABILITY_MIN: f64 = 1e-4;

/// Spectra for series of one length.
pub(super) struct Spectra {
    samples: usize,
    /// Types of noise with variance 1.
    noises: Vec<Noise>,
    shapes: Vec<NoiseShape>,
}

/// Noise with variance 1, described by its expected periodogram.
struct Noise {
    /// Value at frequency zero: n times the variance of the mean.
    at_zero: f64,
    at_frequencies: Vec<f64>,
}

/// White noise plus a share of correlated noise.
struct NoiseShape {
    /// Index of the correlated noise in `noises`.
    noise: usize,
    share: f64,
    log_prior: f64,
    is_slow: bool,
}

impl Spectra {
    /// Builds the spectra for series of `samples` samples.
    pub(super) fn new(samples: usize) -> Spectra {
        let mut spectra = Spectra {
            samples,
            noises: Vec::new(),
            shapes: Vec::new(),
        };
        let length = samples as f64;
        let white = spectra.add_noise(&[1.0]);
        spectra.add_shape(white, 0.0, PRIOR.white, false);
        let longest = (PRIOR.longest_share * length).max(2.0);
        let times = (0..PRIOR.times).map(|index| {
            let step = index as f64 / (PRIOR.times - 1) as f64;
            PRIOR.shortest_samples * (longest / PRIOR.shortest_samples).powf(step)
        });
        let times: Vec<f64> = times.collect();
        let noises: Vec<usize> = times
            .iter()
            .map(|time| spectra.add_noise(&[*time]))
            .collect();
        for share in SHARES {
            for (noise, weight) in noises.iter().zip(PRIOR.weights(&times, share)) {
                spectra.add_shape(*noise, share, weight, false);
            }
        }
        let each = PRIOR.slow / 2.0 / (SLOW_LENGTHS.len() * SLOW_SHARES.len()) as f64;
        for lengths in SLOW_LENGTHS {
            let noise = spectra.add_noise(&[lengths * length]);
            for share in SLOW_SHARES {
                spectra.add_shape(noise, share, each, true);
            }
        }
        let longest = SLOW_LENGTHS[SLOW_LENGTHS.len() - 1] * length;
        let times = std::iter::successors(Some(2.0), |time| Some(time * FLICKER_STEP));
        let times: Vec<f64> = times.take_while(|time| *time < longest).collect();
        let noise = spectra.add_noise(&times);
        for share in FLICKER_SHARES {
            let each = PRIOR.slow / 2.0 / FLICKER_SHARES.len() as f64;
            spectra.add_shape(noise, share, each, true);
        }
        assert!(
            (spectra.prior(false) - 1.0).abs() < 1e-9,
            "the prior probabilities of stationary spectra add up"
        );
        assert!(
            (spectra.prior(true) - PRIOR.slow).abs() < 1e-9,
            "so do those of slow ones"
        );
        spectra
    }

    /// Returns the sum of the prior weights.
    fn prior(&self, is_slow: bool) -> f64 {
        let shapes = self.shapes.iter().filter(|shape| shape.is_slow == is_slow);
        shapes.map(|shape| shape.log_prior.exp()).sum()
    }

    /// Adds the mean of autoregressive noises with these integrated correlation times, in samples.
    fn add_noise(&mut self, times: &[f64]) -> usize {
        let length = self.samples as f64;
        let at = |frequency: f64| {
            let each = times.iter().map(|time| {
                let phi = (time - 1.0) / (time + 1.0);
                expected_periodogram(phi, length, frequency)
            });
            each.sum::<f64>() / times.len() as f64
        };
        let frequencies = 1..=frequencies(self.samples);
        self.noises.push(Noise {
            at_zero: at(0.0),
            at_frequencies: frequencies.map(|k| at(TAU * k as f64 / length)).collect(),
        });
        self.noises.len() - 1
    }

    fn add_shape(&mut self, noise: usize, share: f64, prior: f64, is_slow: bool) {
        self.shapes.push(NoiseShape {
            noise,
            share,
            log_prior: prior.ln(),
            is_slow,
        });
    }

    /// Returns the distribution of the error of the mean of `series`, which must not be constant.
    pub(super) fn posterior(&self, series: &[f64]) -> Posterior {
        debug_assert_eq!(series.len(), self.samples);
        let periodogram = periodogram(series);
        let half_freedom = periodogram.len() as f64;
        let components = self.shapes.iter().map(|shape| {
            let noise = &self.noises[shape.noise];
            let density = |noise: f64| 1.0 - shape.share + shape.share * noise;
            let (mut sum, mut logs) = (0.0, LogOfProduct::default());
            for (power, noise) in periodogram.iter().zip(&noise.at_frequencies) {
                let expected = density(*noise);
                sum += power / expected;
                logs.multiply(expected);
            }
            let variance = density(noise.at_zero) * sum / half_freedom / self.samples as f64;
            Component {
                log_weight: shape.log_prior
                    - logs.total()
                    - half_freedom * (sum / half_freedom).ln(),
                scale: variance.sqrt(),
                is_slow: shape.is_slow,
            }
        });
        let components: Vec<Component> = components.collect();
        let of_slow = log_sum(components.iter().filter(|each| each.is_slow));
        let drift_probability = (of_slow - log_sum(components.iter())).exp();
        debug_assert!(
            drift_probability.is_nan() || drift_probability <= 1.0 + 1e-9,
            "slow spectra are a part of all: {drift_probability}"
        );
        Posterior {
            drift_probability,
            components,
            freedom: 2.0 * half_freedom,
        }
    }
}

/// Returns the number of Fourier frequencies between zero and half of the sampling frequency.
fn frequencies(samples: usize) -> usize {
    assert!(
        samples >= 3,
        "{samples} samples have no frequency between zero and half"
    );
    (samples - 1) / 2
}

/// Returns the expected periodogram of n samples of first-order autoregressive noise with variance
/// 1, at frequency zero or 2 pi k / n. It is the sum over lags of (1 - |lag| / n) phi^|lag|
/// cos(frequency lag), in closed form.
fn expected_periodogram(phi: f64, samples: f64, frequency: f64) -> f64 {
    let (sine, cosine) = frequency.sin_cos();
    let (z_real, z_imaginary) = (phi * cosine, phi * sine);
    // With z = phi e^(i frequency), z^n = phi^n: 2 Re[1 / (1 - z) - z (1 - z^n) / (n (1 - z)^2)] -
    // 1.
    let (real, imaginary) = (1.0 - z_real, -z_imaginary);
    let square = (real * real - imaginary * imaginary, 2.0 * real * imaginary);
    let norm = real * real + imaginary * imaginary;
    let first = real / norm;
    let second = (z_real * square.0 + z_imaginary * square.1) / (norm * norm);
    2.0 * (first - second * (1.0 - phi.powf(samples)) / samples) - 1.0
}

/// Returns the squared amplitudes divided by n, at the Fourier frequencies except zero.
fn periodogram(series: &[f64]) -> Vec<f64> {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let waves: Vec<(f64, f64)> = (0..n)
        .map(|k| (TAU * k as f64 / n as f64).sin_cos())
        .collect();
    let power = |frequency: usize| {
        let (mut real, mut imaginary, mut place) = (0.0, 0.0, 0);
        for sample in series {
            let (sine, cosine) = waves[place];
            real += (sample - mean) * cosine;
            imaginary += (sample - mean) * sine;
            place += frequency;
            if place >= n {
                place -= n;
            }
        }
        (real * real + imaginary * imaginary) / n as f64
    };
    (1..=frequencies(n)).map(power).collect()
}

/// Logarithm of a product of many factors. The product itself would overflow.
struct LogOfProduct {
    product: f64,
    logs: f64,
}

impl Default for LogOfProduct {
    fn default() -> LogOfProduct {
        LogOfProduct {
            product: 1.0,
            logs: 0.0,
        }
    }
}

impl LogOfProduct {
    fn multiply(&mut self, factor: f64) {
        self.product *= factor;
        if !(1e-100..1e100).contains(&self.product) {
            self.logs += self.product.ln();
            self.product = 1.0;
        }
    }

    fn total(&self) -> f64 {
        self.logs + self.product.ln()
    }
}

/// One Student's t distribution of the mixture.
struct Component {
    log_weight: f64,
    scale: f64,
    is_slow: bool,
}

fn log_sum<'a>(components: impl Iterator<Item = &'a Component> + Clone) -> f64 {
    let most = components
        .clone()
        .map(|each| each.log_weight)
        .fold(f64::MIN, f64::max);
    most + components
        .map(|each| (each.log_weight - most).exp())
        .sum::<f64>()
        .ln()
}

/// Distribution of the error of a mean: a mixture of Student's t distributions.
pub(super) struct Posterior {
    components: Vec<Component>,
    freedom: f64,
    /// Posterior probability of the slow spectra.
    pub(super) drift_probability: f64,
}

impl Posterior {
    /// Returns a quantile above one half, with slow spectra for the mean of another series.
    pub(super) fn half_width(&self, probability: f64, with_slow: bool) -> f64 {
        let used = || {
            self.components
                .iter()
                .filter(|each| with_slow || !each.is_slow)
        };
        debug_assert!(probability >= 0.5, "{probability} is below the median");
        let total = log_sum(used());
        let weighted = used().map(|each| ((each.log_weight - total).exp(), each.scale));
        let weighted: Vec<(f64, f64)> = weighted.filter(|each| each.0 > PROBABILITY_MIN).collect();
        let kept: f64 = weighted.iter().map(|each| each.0).sum();
        debug_assert!(
            kept.is_nan() || kept <= 1.0 + 1e-9,
            "the weights are probabilities: {kept}"
        );
        let beyond = |width: f64| {
            let each = weighted
                .iter()
                .map(|(weight, scale)| weight * self.tail(width / scale));
            each.sum::<f64>() / kept
        };
        let widest = weighted.iter().map(|each| each.1).fold(0.0, f64::max);
        let end = WIDEST_QUANTILE * widest;
        bisect_falling(beyond, 1.0 - probability, end, BISECTIONS)
    }

    /// Returns the probability that Student's t exceeds a value, approximated by the normal
    /// distribution (D. L. Wallace, Bounds on normal approximations to Student's and the chi-square
    /// distributions, Annals of Mathematical Statistics 30, 1959).
    fn tail(&self, value: f64) -> f64 {
        let freedom = self.freedom;
        let factor = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0);
        let normal = factor * (freedom * (value * value / freedom).ln_1p()).sqrt();
        erfc(normal / SQRT_2) / 2.0
    }
}

/// Upper bound of the search for a quantile, as a multiple of the largest scale.
const WIDEST_QUANTILE: f64 = 20.0;
const BISECTIONS: usize = 30;

pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_periodogram_is_the_sum_it_stands_for() {
        for (samples, phi) in [(5, 0.5f64), (17, 0.9), (100, 0.0)] {
            for frequency in 0..=frequencies(samples) {
                let frequency = TAU * frequency as f64 / samples as f64;
                let terms = (1..samples).map(|lag| {
                    let weight = 1.0 - lag as f64 / samples as f64;
                    weight * phi.powi(lag as i32) * (frequency * lag as f64).cos()
                });
                let sum = 1.0 + 2.0 * terms.sum::<f64>();
                let closed = expected_periodogram(phi, samples as f64, frequency);
                assert!((closed - sum).abs() < 1e-9, "{samples} {phi} {frequency}");
            }
        }
    }

    #[test]
    fn periodogram_holds_the_variance() {
        let series: Vec<f64> = (0..101).map(|index| f64::from(index * 37 % 101)).collect();
        let mean = 50.0;
        let squares: f64 = series
            .iter()
            .map(|sample| (sample - mean) * (sample - mean))
            .sum();
        let power: f64 = periodogram(&series).iter().sum();
        assert!(
            (2.0 * power / squares - 1.0).abs() < 1e-9,
            "{power} {squares}"
        );
    }

    #[test]
    fn posterior_tail_approximates_students_t() {
        use statrs::distribution::StudentsT;
        for freedom in [4.0, 10.0, 28.0, 300.0] {
            let student = StudentsT::new(0.0, 1.0, freedom).unwrap();
            let posterior = Posterior {
                components: Vec::new(),
                freedom,
                drift_probability: 0.0,
            };
            for value in [0.5, 2.0, 3.0] {
                let (near, exact) = (posterior.tail(value), 1.0 - student.cdf(value));
                assert!(
                    (near / exact - 1.0).abs() < 0.02,
                    "{freedom} {value}: {near} {exact}"
                );
            }
        }
    }
}
