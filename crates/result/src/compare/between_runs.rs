//! Spread of runs of the same plan on the same target beyond their own intervals, estimated by the
//! one-way random-effects model (DerSimonian and Laird, Controlled Clinical Trials 7, 1986).

use super::confidence_interval::{LEVEL, quantile};
use super::figure::{Bounds, Figure};
use serde::{Deserialize, Serialize};

/// Fewest earlier runs whose spread is used.
const EARLIER_RUNS_MIN: usize = 3;

/// Spread of earlier runs of a target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BetweenRuns {
    /// Number of earlier runs that have the figure with an interval.
    pub runs: usize,
    /// Standard deviation between runs beyond their intervals, as a share of the figure.
    pub spread: f64,
}

impl BetweenRuns {
    /// Estimates the spread. Returns `None` for fewer than [`EARLIER_RUNS_MIN`] intervals.
    pub(super) fn from_figures<'a>(
        figures: impl Iterator<Item = &'a Figure>,
    ) -> Option<BetweenRuns> {
        let known: Vec<(f64, f64)> = figures
            .filter_map(|figure| {
                let variance = standard_error(&figure.bounds?).powi(2);
                Some((figure.value.ln(), variance.max(VARIANCE_MIN)))
            })
            .collect();
        if known.len() < EARLIER_RUNS_MIN {
            return None;
        }
        Some(BetweenRuns {
            runs: known.len(),
            spread: variance_between(&known).sqrt(),
        })
    }

    fn freedom(&self) -> f64 {
        (self.runs - 1) as f64
    }

    /// Returns the bounds with the factor that holds for another run. It combines the error of the
    /// mean with the spread between runs, with the degrees of freedom of Welch and Satterthwaite.
    pub(super) fn widen(&self, bounds: &Bounds) -> Bounds {
        let of_mean = standard_error(bounds).powi(2);
        let between = self.spread.powi(2);
        let half = quantile(LEVEL, bounds.freedom) * of_mean.sqrt();
        if between <= 0.0 || half <= 0.0 {
            return *bounds;
        }
        let variance = of_mean + between;
        let freedom = variance.powi(2)
            / (of_mean.powi(2) / bounds.freedom.max(1.0) + between.powi(2) / self.freedom());
        let fewest = self.freedom().min(bounds.freedom.max(1.0));
        debug_assert!(freedom.is_nan() || freedom >= 0.999 * fewest);
        let factor = quantile(LEVEL, freedom) * variance.sqrt() / half;
        if factor <= bounds.repeat_factor {
            return *bounds;
        }
        Bounds {
            repeat_factor: factor,
            freedom: freedom.min(bounds.freedom),
            ..*bounds
        }
    }
}

/// Variance of a run whose interval has no width: the square of a millionth of the figure.
const VARIANCE_MIN: f64 = 1e-12;

/// Returns the standard error of the logarithm of a figure.
fn standard_error(bounds: &Bounds) -> f64 {
    let half = (bounds.high.ln() - bounds.low.ln()) / 2.0;
    half / quantile(LEVEL, bounds.freedom)
}

/// Returns the variance between runs, from their means and the variances of these means.
fn variance_between(runs: &[(f64, f64)]) -> f64 {
    let weights: f64 = runs.iter().map(|(_, variance)| 1.0 / variance).sum();
    let squares: f64 = runs.iter().map(|(_, variance)| variance.powi(-2)).sum();
    let sum: f64 = runs.iter().map(|(mean, variance)| mean / variance).sum();
    let mean = sum / weights;
    let deviation = |(value, variance): &(f64, f64)| (value - mean).powi(2) / variance;
    let q: f64 = runs.iter().map(deviation).sum();
    let freedom = (runs.len() - 1) as f64;
    ((q - freedom) / (weights - squares / weights)).max(0.0)
}
