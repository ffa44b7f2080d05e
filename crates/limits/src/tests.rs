//! Tests of the published file against the vendors' examples, and of rules that hold for all of it.

mod history;
mod machines;
mod properties;
mod user_file;
mod verdicts;
mod worked;

use super::{Limits, LimitsError, Metric, Promise, VendorUnit};

/// Evaluates a query in its text form.
fn ask(query: &str) -> Promise {
    try_ask(query).unwrap_or_else(|error| panic!("{query}: {error}; {}", error.remedy()))
}

fn try_ask(query: &str) -> Result<Promise, LimitsError> {
    Limits::published().evaluate(&query.parse()?)
}

/// Returns an error and its remedy as they are printed.
fn refusal(query: &str) -> String {
    let error = try_ask(query).expect_err(query);
    format!("{error}\n  {}", error.remedy())
}

/// Returns a figure in a unit, rounded to six decimals.
fn figure(promise: &Promise, metric: Metric, unit: VendorUnit) -> f64 {
    let figure = promise.figure(metric).expect("there is no such figure");
    round(figure.per_s / unit.factor())
}

/// Returns the burst rate in a unit.
fn burst(promise: &Promise, metric: Metric, unit: VendorUnit) -> Option<f64> {
    let burst = promise.figure(metric)?.burst.as_ref()?;
    Some(round(burst.per_s / unit.factor()))
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Returns read and write IOPS, and read and write bandwidth.
fn four(promise: &Promise, unit: VendorUnit) -> [f64; 4] {
    [
        figure(promise, Metric::ReadIops, VendorUnit::Iops),
        figure(promise, Metric::WriteIops, VendorUnit::Iops),
        figure(promise, Metric::ReadBandwidth, unit),
        figure(promise, Metric::WriteBandwidth, unit),
    ]
}

/// Returns IOPS and bandwidth of both directions together.
fn two(promise: &Promise, unit: VendorUnit) -> [f64; 2] {
    [
        figure(promise, Metric::Iops, VendorUnit::Iops),
        figure(promise, Metric::Bandwidth, unit),
    ]
}
