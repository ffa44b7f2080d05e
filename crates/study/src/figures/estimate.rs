//! [`RateEstimate`] and [`LatencySummary`]: figures with their confidence intervals.

use iosonde_result::compare::{EachHistogram, bounds_of_percentile, bounds_of_rates};
use iosonde_result::littles_law::SlotTime;
use iosonde_result::stats::{LatencyStats, Moments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RateEstimate {
    /// The mean over the whole phase.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` with too few intervals, or if the
    /// interval reaches zero.
    pub error: Option<f64>,
    /// Standard deviation between intervals, as a share of the mean; `None` if `error` is.
    pub spread: Option<f64>,
}

impl RateEstimate {
    /// `rates` are of single intervals, `ios` and `slots` of the whole run.
    pub(crate) fn from_rates(mean: f64, rates: &[f64], ios: u64, slots: &SlotTime) -> RateEstimate {
        let error = bounds_of_rates(mean, rates, ios, slots).map(|bounds| bounds.high - mean);
        let mut moments = Moments::default();
        rates.iter().for_each(|rate| moments.record(*rate));
        RateEstimate {
            mean,
            error,
            spread: error.map(|_| moments.stddev() / mean),
        }
    }

    /// Drops an error that reaches the mean: the mean is unknown then.
    pub fn if_telling(self) -> RateEstimate {
        let is_telling = |error: &f64| *error < self.mean;
        RateEstimate {
            error: self.error.filter(is_telling),
            ..self
        }
    }

    /// The error as a share of the mean.
    pub fn relative_error(&self) -> Option<f64> {
        self.error
            .filter(|_| self.mean > 0.0)
            .map(|error| error / self.mean)
    }
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct LatencySummary {
    /// The number of latencies.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median. A percentile is `None` with fewer than ten values beyond it.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// The longest latency.
    pub max_ns: f64,
    /// 95 % confidence interval of the median; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_between_ns: Option<(u64, u64)>,
    /// 95 % confidence interval of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_between_ns: Option<(u64, u64)>,
    /// 95 % confidence interval of the 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_between_ns: Option<(u64, u64)>,
}

impl LatencySummary {
    /// Summarises recorded latencies, without confidence intervals.
    pub fn from_stats(stats: &LatencyStats) -> LatencySummary {
        let count = stats.moments.count;
        // With fewer than ten values beyond it, one outlier decides a percentile.
        let percentile = |percent: f64| {
            let beyond = count as f64 * (100.0 - percent) / 100.0;
            if beyond + 1e-6 < 10.0 {
                return None;
            }
            stats.percentile(percent)
        };
        LatencySummary {
            count,
            mean_ns: stats.moments.mean,
            p50_ns: percentile(50.0),
            p99_ns: percentile(99.0),
            p99_9_ns: percentile(99.9),
            max_ns: stats.moments.max,
            ..LatencySummary::default()
        }
    }

    /// Adds the confidence intervals of percentiles, from the histograms of the run's intervals.
    pub(super) fn with_intervals(
        self,
        stats: &LatencyStats,
        slices: EachHistogram<'_>,
    ) -> LatencySummary {
        if stats.histogram.is_none() {
            return self;
        }
        let between = |percent, known: Option<u64>| {
            let bounds = bounds_of_percentile(known? as f64, percent, slices)?;
            Some((bounds.low as u64, bounds.high as u64))
        };
        LatencySummary {
            p50_between_ns: between(50.0, self.p50_ns),
            p99_between_ns: between(99.0, self.p99_ns),
            p99_9_between_ns: between(99.9, self.p99_9_ns),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::histogram::Histogram;

    #[test]
    fn estimate_error_that_reaches_mean_is_dropped() {
        let known = RateEstimate {
            mean: 10.0,
            error: Some(1.0),
            spread: None,
        };
        assert_eq!(known.if_telling().error, Some(1.0));
        let unknown = RateEstimate {
            error: Some(10.0),
            ..known
        };
        assert_eq!(unknown.if_telling().error, None);
    }

    #[test]
    fn too_few_intervals_give_no_error() {
        let estimate =
            |rates: &[f64]| RateEstimate::from_rates(10.0, rates, 1000, &SlotTime::default());
        assert_eq!(estimate(&[9.0, 11.0]).error, None);
        let even = estimate(&[10.0; 8]);
        // The error is one I/O of a thousand.
        assert!((even.error.unwrap() - 0.01).abs() < 1e-9, "{even:?}");
        assert_eq!(even.spread, Some(0.0));
        assert!(estimate(&[9.0, 10.0, 11.0, 10.0, 9.0, 11.0, 10.0, 10.0]).error > Some(0.1));
        assert_eq!(estimate(&[0.0, 1.0, 90.0, 0.0, 20.0]).error, None);
    }

    #[test]
    fn percentiles_need_values_beyond_them() {
        let mut stats = LatencyStats {
            histogram: Some(Histogram::default()),
            ..LatencyStats::default()
        };
        for value in 1..=1000u32 {
            stats.moments.record(f64::from(value));
            if let Some(histogram) = &mut stats.histogram {
                histogram.record(u64::from(value));
            }
        }
        let latency = LatencySummary::from_stats(&stats);
        assert!(latency.p50_ns.is_some() && latency.p99_ns.is_some());
        assert_eq!(latency.p99_9_ns, None);
    }
}
