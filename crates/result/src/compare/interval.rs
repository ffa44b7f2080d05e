//! Intervals of means, percentiles and ratios.

use super::figure::{Basis, Bounds};
use crate::histogram::{Histogram, lowest, width};
use crate::littles_law::SlotTime;
use crate::series::{
    Evidence, FEWEST_SAMPLES, MeanEstimate, mean_with_confidence, rate_with_confidence,
};
use crate::stats::Moments;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of every interval that is shown.
pub const LEVEL: f64 = 0.95;

/// Correlation assumed between neighbouring samples of half a second, where only their moments are known. It is that of
/// a device whose speed from second to second has a correlation of 0.5, rounded down.
const ASSUMED_CORRELATION: f64 = 0.7;

/// 95 % of a normal distribution lie within so many standard deviations.
const NORMAL_95: f64 = 1.96;

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Second over first.
    pub value: f64,
    /// Ends of its interval; `None` where one of both has none.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// Whether 1 lies outside of the interval.
    pub fn is_shown(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// How many standard errors an interval of this confidence extends to each side.
pub(super) fn quantile(level: f64, freedom: f64) -> f64 {
    // Fewer degrees than one have no finite meaning; a million is the normal distribution.
    match StudentsT::new(0.0, 1.0, freedom.clamp(1.0, 1e6)) {
        Ok(student) => student.inverse_cdf(0.5 + level / 2.0),
        Err(_) => f64::INFINITY,
    }
}

/// The ratio of two independent values, with an interval of confidence `level`.
///
/// The intervals of both are those that hold for another run ([`Bounds::repeat_factor`]). They are taken to the scale of
/// logarithms and joined by the method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008),
/// which keeps their asymmetry and needs no common degrees of freedom.
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
        (low.exp(), high.exp())
    });
    Ratio {
        value: difference.exp(),
        interval,
    }
}

/// How far an interval extends down and up on the scale of logarithms, widened from [`LEVEL`] to `level`.
fn log_widths(value: f64, bounds: &Bounds, level: f64) -> (f64, f64) {
    let level = quantile(level, bounds.freedom) / quantile(LEVEL, bounds.freedom);
    let wider = level * bounds.repeat_factor;
    let down = value.ln() - bounds.low.ln();
    let up = bounds.high.ln() - value.ln();
    (down * wider, up * wider)
}

/// The interval of a mean rate, from the rates of the intervals it is the mean of. `value` is the rate of the whole run,
/// `ios` its I/Os and `slots` its slot time. `None` where the rate is not known.
pub fn bounds_of_rates(value: f64, rates: &[f64], ios: u64, slots: &SlotTime) -> Option<Bounds> {
    let estimate = rate_with_confidence(rates, ios, LEVEL).filter(|each| each.mean > 0.0)?;
    let error = Error::from(estimate);
    // A rate is never known better than it agrees with its latency.
    let own = error.half_width / estimate.mean;
    let share = own.max(slots.unexplained_share());
    let error = Error {
        repeat_factor: (own * error.repeat_factor / share).max(1.0),
        ..error
    };
    around(value, share, share, error).if_telling(value)
}

/// How far a mean may be off.
#[derive(Debug, Clone, Copy)]
struct Error {
    half_width: f64,
    repeat_factor: f64,
    freedom: f64,
    basis: Basis,
}

impl Error {
    /// Of the mean of a series.
    fn of_mean(series: &[f64]) -> Option<Error> {
        mean_with_confidence(series, LEVEL).map(Error::from)
    }
}

impl From<MeanEstimate> for Error {
    fn from(estimate: MeanEstimate) -> Error {
        Error {
            half_width: estimate.half_width,
            repeat_factor: estimate.repeat_factor,
            freedom: estimate.freedom,
            basis: match estimate.evidence {
                Evidence::Series => Basis::Series,
                Evidence::TooShort => Basis::Thirds,
                Evidence::Drift => Basis::Drift,
            },
        }
    }
}

fn around(value: f64, down: f64, up: f64, error: Error) -> Bounds {
    Bounds {
        low: (value * (1.0 - down)).max(0.0),
        high: value * (1.0 + up),
        freedom: error.freedom,
        repeat_factor: error.repeat_factor,
        basis: error.basis,
    }
}

/// The interval of a mean of `value`, known by number, mean and deviation of samples of it taken twice a second.
/// `slots` is the slot time of the run, as for [`bounds_of_rates`].
pub(crate) fn bounds_of_samples(value: f64, samples: &Moments, slots: &SlotTime) -> Option<Bounds> {
    if (samples.count as usize) < FEWEST_SAMPLES || samples.mean <= 0.0 {
        return None;
    }
    let inflation = (1.0 + ASSUMED_CORRELATION) / (1.0 - ASSUMED_CORRELATION);
    let effective = (samples.count as f64 / inflation).max(1.0);
    let freedom = (effective / 2.0).max(1.0);
    let error = samples.stddev() / samples.mean / effective.sqrt();
    let share = (error * quantile(LEVEL, freedom)).max(slots.unexplained_share());
    let error = Error {
        half_width: share,
        repeat_factor: 1.0,
        freedom,
        basis: Basis::Samples,
    };
    around(value, share, share, error).if_telling(value)
}

/// Shows each histogram of a series, in its order, as often as it is called: there may be more of them than memory holds.
pub type EachHistogram<'a> = &'a dyn Fn(&mut dyn FnMut(&Histogram));

/// The interval of a mean latency: that of the ratio of two sums, latency and I/Os, over the intervals' histograms.
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

/// The interval of a percentile (Woodruff, Journal of the American Statistical Association 47, 1952): the share of values
/// at or below it is a mean with an interval of its own; the percentiles at the ends of that are the ends of this. Where
/// those reach 0 or 100 there is no interval: the slowest value of a run is no bound for those of the next, and where a
/// single slow second makes the percentile, it would be taken for one. The share is never known better than that of
/// independent I/Os.
pub fn bounds_of_percentile(
    value: f64,
    percent: f64,
    each_latency: EachHistogram<'_>,
) -> Option<Bounds> {
    let mut all = Histogram::default();
    each_latency(&mut |latency| all.merge(latency));
    let middle = all.percentile(percent)?;
    // Many values may be alike, up to all of a second: of the bucket that holds the percentile only the part counts that
    // makes up the percentile of all, or else the share would hardly vary.
    let (under, within) = around_value(&all, middle);
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
    // Nothing is known better than to one bucket. A quarter more at each end, so that values on both sides of an edge, which
    // may be alike, are not told apart: intervals of one and a half buckets make that of a ratio two wide.
    let (low, high) = (bucket(low), bucket(high));
    let low = low.0 as f64 - low.1 as f64 / 4.0;
    let high = high.0 as f64 + 1.25 * high.1 as f64;
    let middle = middle.max(1) as f64;
    around(value, 1.0 - low / middle, high / middle - 1.0, error).if_telling(value)
}

/// Lowest value of a value's bucket, and its width.
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

/// How many values lie in the buckets below a value's, and how many in its own.
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

/// Hands over each pair, and may be asked to again.
type EachPair<'a> = &'a dyn Fn(&mut dyn FnMut(f64, f64));

/// Sum over sum, from pairs that belong together, and how far it may be off: the error is that of the mean of the residuals
/// (linearisation). The pairs are seen twice and not held: a run of a week has as many as seconds.
fn ratio_of_sums(each_pair: EachPair<'_>) -> Option<(f64, Error)> {
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
    Some((ratio, Error::of_mean(&residuals)?))
}
