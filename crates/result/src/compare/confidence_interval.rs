//! Confidence intervals of means, percentiles and ratios.

use super::figure::{Bounds, IntervalBasis};
use crate::histogram::{Histogram, lowest, width};
use crate::littles_law::SlotTime;
use crate::series_statistics::{
    FEWEST_SAMPLES, MeanEstimate, SeriesEvidence, mean_with_confidence, rate_with_confidence,
};
use crate::stats::Moments;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of all intervals shown.
pub const LEVEL: f64 = 0.95;

/// Correlation assumed between adjacent samples of half a second, if only their moments are known.
/// It is that of a device whose speed has a correlation of 0.5 between seconds, rounded down.
const ASSUMED_CORRELATION: f64 = 0.7;

/// 95 % of a normal distribution lie within this number of standard deviations.
const NORMAL_95: f64 = 1.96;

/// A ratio with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Second value divided by the first.
    pub value: f64,
    /// Ends of the interval. `None` if one of the values has no interval.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// Returns whether a difference is shown: 1 lies outside of the interval.
    pub fn is_shown(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// Returns the half-width of an interval of this confidence level, in standard errors.
pub(super) fn quantile(level: f64, freedom: f64) -> f64 {
    debug_assert!(
        (0.0..1.0).contains(&level),
        "{level} is not a confidence level"
    );
    // Student's t needs at least one degree of freedom. A million is the normal distribution.
    match StudentsT::new(0.0, 1.0, freedom.clamp(1.0, 1e6)) {
        Ok(student) => student.inverse_cdf(0.5 + level / 2.0),
        Err(_) => f64::INFINITY,
    }
}

/// Returns the ratio of two independent values, with an interval of confidence `level`.
///
/// Both intervals are widened to hold for another run ([`Bounds::repeat_factor`]). They are
/// combined on a logarithmic scale by the method of variance estimates recovery (Zou and Donner,
/// Statistics in Medicine 27, 2008), which keeps asymmetry and needs no common degrees of freedom.
pub(super) fn ratio(
    first: (f64, Option<&Bounds>),
    second: (f64, Option<&Bounds>),
    level: f64,
) -> Ratio {
    let difference = second.0.ln() - first.0.ln();
    let interval = first.1.zip(second.1).map(|(a, b)| {
        let (a_down, a_up) = log_widths(first.0, a, level);
        let (b_down, b_up) = log_widths(second.0, b, level);
        let low = difference - b_down.hypot(a_up);
        let high = difference + b_up.hypot(a_down);
        debug_assert!(
            low <= high || low.is_nan() || high.is_nan(),
            "the ends are in order: {low}, {high}"
        );
        (low.exp(), high.exp())
    });
    Ratio {
        value: difference.exp(),
        interval,
    }
}

/// Returns the logarithmic half-widths down and up, converted from [`LEVEL`] to `level`.
fn log_widths(value: f64, bounds: &Bounds, level: f64) -> (f64, f64) {
    let level = quantile(level, bounds.freedom) / quantile(LEVEL, bounds.freedom);
    let wider = level * bounds.repeat_factor;
    let down = value.ln() - bounds.low.ln();
    let up = bounds.high.ln() - value.ln();
    (down * wider, up * wider)
}

/// Returns the interval of a mean rate, from the rates of its intervals. `value` is the rate of the
/// whole run, `ios` its I/Os and `slots` its slot time. `None` if it is not informative.
pub fn bounds_of_rates(value: f64, rates: &[f64], ios: u64, slots: &SlotTime) -> Option<Bounds> {
    let estimate = rate_with_confidence(rates, ios, LEVEL).filter(|each| each.mean > 0.0)?;
    let error = MeanError::from(estimate);
    // The uncertainty of a rate is at least its disagreement with the latency.
    let own = error.half_width / estimate.mean;
    let share = own.max(slots.unexplained_share());
    let error = MeanError {
        repeat_factor: (own * error.repeat_factor / share).max(1.0),
        ..error
    };
    around(value, share, share, error).if_telling(value)
}

/// Error of a mean.
#[derive(Debug, Clone, Copy)]
struct MeanError {
    half_width: f64,
    repeat_factor: f64,
    freedom: f64,
    basis: IntervalBasis,
}

impl MeanError {
    fn from_series(series: &[f64]) -> Option<MeanError> {
        mean_with_confidence(series, LEVEL).map(MeanError::from)
    }
}

impl From<MeanEstimate> for MeanError {
    fn from(estimate: MeanEstimate) -> MeanError {
        MeanError {
            half_width: estimate.half_width,
            repeat_factor: estimate.repeat_factor,
            freedom: estimate.freedom,
            basis: match estimate.evidence {
                SeriesEvidence::Autocorrelation => IntervalBasis::Series,
                SeriesEvidence::TooShort => IntervalBasis::Thirds,
                SeriesEvidence::Drift => IntervalBasis::Drift,
            },
        }
    }
}

fn around(value: f64, down: f64, up: f64, error: MeanError) -> Bounds {
    debug_assert!(
        !(down < 0.0 || up < 0.0),
        "the interval contains its value: {down} below, {up} above"
    );
    Bounds {
        low: (value * (1.0 - down)).max(0.0),
        high: value * (1.0 + up),
        freedom: error.freedom,
        repeat_factor: error.repeat_factor,
        basis: error.basis,
    }
}

/// Returns the interval of a mean, from moments of samples taken twice a second.
pub(crate) fn bounds_of_samples(value: f64, samples: &Moments, slots: &SlotTime) -> Option<Bounds> {
    if (samples.count as usize) < FEWEST_SAMPLES || samples.mean <= 0.0 {
        return None;
    }
    let inflation = (1.0 + ASSUMED_CORRELATION) / (1.0 - ASSUMED_CORRELATION);
    let effective = (samples.count as f64 / inflation).max(1.0);
    let freedom = (effective / 2.0).max(1.0);
    let error = samples.stddev() / samples.mean / effective.sqrt();
    let share = (error * quantile(LEVEL, freedom)).max(slots.unexplained_share());
    let error = MeanError {
        half_width: share,
        repeat_factor: 1.0,
        freedom,
        basis: IntervalBasis::Samples,
    };
    around(value, share, share, error).if_telling(value)
}

/// Passes each histogram in order, at every call, as they may not fit into memory together.
pub type EachHistogram<'a> = &'a dyn Fn(&mut dyn FnMut(&Histogram));

/// Returns the interval of a mean latency, the ratio of latency sum to I/Os over intervals.
pub(super) fn bounds_of_mean(value: f64, each_latency: EachHistogram<'_>) -> Option<Bounds> {
    let (mean, error) = ratio_of_sums(&|see: &mut dyn FnMut(f64, f64)| {
        each_latency(&mut |latency| {
            let (sum, count) = sum_and_count(latency);
            see(sum, count);
        });
    })?;
    let share = error.half_width / mean;
    around(value, share, share, error).if_telling(value)
}

/// Returns the interval of a percentile (Woodruff, Journal of the American Statistical Association
/// 47, 1952).
///
/// The share of values at or below the percentile is a mean with a confidence interval. The
/// percentiles at the ends of that interval are the ends of the result. If they reach 0 or 100,
/// there is no interval: the slowest value of a run is no bound for the next run. A single slow
/// second that determines the percentile would otherwise produce such a bound. The error of the
/// share is at least that of independent I/Os.
pub fn bounds_of_percentile(
    value: f64,
    percent: f64,
    each_latency: EachHistogram<'_>,
) -> Option<Bounds> {
    let mut all = Histogram::default();
    each_latency(&mut |latency| all.merge(latency));
    let middle = all.percentile(percent)?;
    // Many values may be equal, even all of a second. Only the fraction of the percentile's bucket
    // that completes the percentile of all values counts, or the share would hardly vary.
    let (under, within) = around_value(&all, middle);
    debug_assert!(within > 0.0, "the bucket of a percentile has values");
    let part = (percent / 100.0 * all.total() as f64 - under) / within;
    let (share, error) = ratio_of_sums(&|see: &mut dyn FnMut(f64, f64)| {
        each_latency(&mut |latency| {
            let (under, within) = around_value(latency, middle);
            see(under + part * within, latency.total() as f64);
        });
    })?;
    let independent = (share * (1.0 - share).max(0.0) / all.total() as f64).sqrt();
    let half = 100.0 * error.half_width.max(NORMAL_95 * independent);
    let ends = (percent - half, percent + half);
    if ends.0 <= 0.0 || ends.1 >= 100.0 {
        return None;
    }
    let low = all.percentile(ends.0)?;
    let high = all.percentile(ends.1)?;
    debug_assert!((low..=high).contains(&middle), "percentiles ascend");
    // The resolution is one bucket. A quarter is added at each end, so that nearly equal values on
    // both sides of a boundary show no difference: the interval of a ratio is two buckets wide.
    let (low, high) = (bucket(low), bucket(high));
    let low = low.0 as f64 - low.1 as f64 / 4.0;
    let high = high.0 as f64 + 1.25 * high.1 as f64;
    let middle = middle.max(1) as f64;
    around(value, 1.0 - low / middle, high / middle - 1.0, error).if_telling(value)
}

/// Returns the lowest value and the width of the bucket of a value.
fn bucket(value: u64) -> (u64, u64) {
    let index = crate::histogram::index_of(value);
    (lowest(index), width(index))
}

fn sum_and_count(histogram: &Histogram) -> (f64, f64) {
    let each = histogram
        .buckets()
        .map(|(index, count)| crate::histogram::middle(index) as f64 * count as f64);
    (each.sum(), histogram.total() as f64)
}

/// Returns the number of values in the buckets below the bucket of `value`, and in that bucket.
fn around_value(histogram: &Histogram, value: u64) -> (f64, f64) {
    let own = crate::histogram::index_of(value);
    let mut found = (0.0, 0.0);
    for (index, count) in histogram.buckets() {
        if index < own {
            found.0 += count as f64;
        } else if index == own {
            found.1 += count as f64;
        }
    }
    found
}

/// Passes each pair to the callback. The function can be called repeatedly.
type EachPair<'a> = &'a dyn Fn(&mut dyn FnMut(f64, f64));

/// Returns the ratio of two sums over pairs. By linearisation its error is that of the mean of the
/// residuals. The pairs are generated twice, because a run of a week has one per second.
fn ratio_of_sums(each_pair: EachPair<'_>) -> Option<(f64, MeanError)> {
    let (mut over, mut under, mut count) = (0.0, 0.0, 0);
    each_pair(&mut |one, other| {
        over += one;
        under += other;
        count += 1;
    });
    if under <= 0.0 || over <= 0.0 {
        return None;
    }
    let ratio = over / under;
    let usual = under / f64::from(count);
    let mut residuals = Vec::new();
    each_pair(&mut |one, other| residuals.push((one - ratio * other) / usual));
    Some((ratio, MeanError::from_series(&residuals)?))
}
