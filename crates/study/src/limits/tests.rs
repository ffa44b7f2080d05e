//! The published file, held to what the vendors' pages give as examples, and the rules that all of it keeps.

mod file;
mod history;
mod judge;
mod machines;
mod properties;
mod worked;

use super::{Limits, LimitsError, Metric, Promise, Unit};

/// The answer to a query in its text form.
fn ask(query: &str) -> Promise {
    try_ask(query).unwrap_or_else(|error| panic!("{query}: {error}; {}", error.remedy()))
}

fn try_ask(query: &str) -> Result<Promise, LimitsError> {
    Limits::published().evaluate(&query.parse()?)
}

/// An error and its remedy, as they are printed.
fn refusal(query: &str) -> String {
    let error = try_ask(query).expect_err(query);
    format!("{error}\n  {}", error.remedy())
}

/// A figure in some unit; figures are exact to rounding.
fn figure(promise: &Promise, metric: Metric, unit: Unit) -> f64 {
    let figure = promise.figure(metric).expect("there is no such figure");
    round(figure.per_s / unit.factor())
}

/// What is reached for a while.
fn burst(promise: &Promise, metric: Metric, unit: Unit) -> Option<f64> {
    let burst = promise.figure(metric)?.burst.as_ref()?;
    Some(round(burst.per_s / unit.factor()))
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Read and write IOPS, read and write bandwidth.
fn four(promise: &Promise, unit: Unit) -> [f64; 4] {
    [
        figure(promise, Metric::ReadIops, Unit::Iops),
        figure(promise, Metric::WriteIops, Unit::Iops),
        figure(promise, Metric::ReadBandwidth, unit),
        figure(promise, Metric::WriteBandwidth, unit),
    ]
}

/// IOPS and bandwidth of both directions together.
fn two(promise: &Promise, unit: Unit) -> [f64; 2] {
    [
        figure(promise, Metric::Iops, Unit::Iops),
        figure(promise, Metric::Bandwidth, unit),
    ]
}
