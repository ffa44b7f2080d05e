//! Running statistics that can be merged: moments of latencies and of samples.

use crate::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Count, extremes, mean and variance of a set of values. Merging gives the moments of the union.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Smallest value, 0 if there is none.
    pub min: f64,
    /// Largest value, 0 if there is none.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub m2: f64,
}

impl Moments {
    /// Adds one value (Welford's update).
    pub fn record(&mut self, value: f64) {
        self.merge(&Moments {
            count: 1,
            min: value,
            max: value,
            mean: value,
            m2: 0.0,
        });
        debug_assert!(value.is_nan() || (self.min..=self.max).contains(&value));
    }

    /// Adds another set (update of Chan, Golub and LeVeque).
    pub fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.mean += delta * m / (n + m);
        self.m2 += other.m2 + delta * delta * n * m / (n + m);
        self.count += other.count;
    }

    /// Returns the sample standard deviation (divisor n - 1), or 0 for fewer than two values.
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            0.0
        } else {
            (self.m2 / (self.count - 1) as f64).max(0.0).sqrt()
        }
    }
}

/// Latencies of one kind, as exact moments and a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct LatencyStats {
    /// Exact moments, in nanoseconds.
    pub moments: Moments,
    /// Distribution, in nanoseconds. `None` if only the moments were recorded.
    pub histogram: Option<Histogram>,
}

impl LatencyStats {
    /// Returns a percentile in nanoseconds, at most the longest latency.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let value = self.histogram.as_ref()?.percentile(percent)?;
        Some(value.min(self.moments.max as u64))
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &LatencyStats) {
        self.moments.merge(&other.moments);
        if let Some(theirs) = &other.histogram {
            self.histogram.get_or_insert_default().merge(theirs);
        }
    }
}
