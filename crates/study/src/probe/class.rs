//! The last sentence of a probe: what the target is, what was measured of it, and what it suits.
//!
//! What it is comes from facts ([`iosonde_result::device_class`]), never from a measured figure: two probes of one device name
//! the same kind. Figures are quoted as figures.

use super::durable_writes::{self, DurableWrites};
use super::evidence::Evidence;
use crate::words;
use iosonde_result::device_class::DeviceClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rates vary less than this, as a share of their mean, where a limit holds them.
const LIMITED_SPREAD_MAX: f64 = 0.01;
/// Reads and writes differ by less than this, as a share of reads, where one limit holds both.
const LIMITED_DIFFERENCE_MAX: f64 = 0.03;
/// Slower reads than this are those of a disk that turns, which is as fast both ways by its nature.
const LIMITED_READ_NS_MAX: f64 = 2e6;
/// A lower rate shows no limit: so few I/Os are even by chance.
const LIMITED_IOPS_MIN: f64 = 50.0;

/// What a target is, and what it suits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classification {
    /// What kind of device it is, by facts.
    pub class: DeviceClass,
    /// The same in words, with the facts that say so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Random reads per second, where they and random writes stay at one rate, as under a limit, or a control group holds them.
    pub limit_iops: Option<f64>,
    /// Whether a cache of this machine answered reads: then the figures are not the device's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub served_from_cache: bool,
    /// Whether reads met blocks that were never written: then the figures are not the device's either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
    /// Figures of the probe, each in a few words.
    pub reasons: Vec<String>,
    /// What the time of durable writes is fit for; `None` where that was not measured, or is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_writes: Option<DurableWrites>,
    /// All of it in a few sentences, of which the first begins with "This is".
    pub sentence: String,
}

impl Classification {
    /// What answered reads instead of the device; `None` where the device did. Memory is its own device.
    pub fn answered_instead(&self) -> Option<&'static str> {
        match (self.class, self.unwritten, self.served_from_cache) {
            (DeviceClass::Memory, ..) => None,
            (_, true, _) => Some("Blocks that were never written"),
            (_, false, true) => Some("A cache"),
            (_, false, false) => None,
        }
    }
}

/// Puts what is known of a target into words.
pub fn classify(evidence: &Evidence) -> Classification {
    let limit = limit(evidence);
    let figures = figures(evidence, limit.as_deref());
    Classification {
        class: evidence.device.class,
        device: evidence.device.words(),
        limit_iops: evidence.random_read_iops.filter(|_| limit.is_some()),
        served_from_cache: evidence.served_from_cache,
        unwritten: evidence.unwritten,
        durable_writes: durable_writes::durable_writes(evidence),
        sentence: sentence(evidence, &figures),
        reasons: figures,
    }
}

/// The figures that describe a target best, each in a few words.
fn figures(evidence: &Evidence, limit: Option<&str>) -> Vec<String> {
    let read = evidence.read_p50_ns;
    let read = read.map(|ns| format!("a 4 KiB read takes {} at p50", words::latency(ns)));
    let rate = evidence.random_read_iops;
    let rate = rate.map(|rate| format!("{} random reads/s", words::iops(rate)));
    let stream = evidence.sequential_read;
    let stream = stream.map(|rate| format!("sequential reads of {}", words::bandwidth(rate)));
    let rate = limit.map(str::to_owned).or(rate);
    [read, rate, stream].into_iter().flatten().collect()
}

/// A limit on the rate: what a control group says, or rates as even as devices never have, and the same both ways.
fn limit(evidence: &Evidence) -> Option<String> {
    let reads = evidence.random_read_iops?;
    if evidence.throttled {
        let rate = words::iops(reads);
        return Some(format!("a control group holds random reads at {rate}/s"));
    }
    let is_slow = |ns| ns >= LIMITED_READ_NS_MAX;
    if evidence.is_in_memory() || evidence.read_p50_ns.is_some_and(is_slow) {
        return None;
    }
    let writes = evidence.random_write_iops?;
    let even = |spread: Option<f64>| spread.is_some_and(|spread| spread < LIMITED_SPREAD_MAX);
    let is_even = even(evidence.random_read_spread) && even(evidence.random_write_spread);
    let is_equal = (reads - writes).abs() < LIMITED_DIFFERENCE_MAX * reads;
    (is_even && is_equal && reads >= LIMITED_IOPS_MIN).then(|| {
        format!(
            "random reads and writes both stay at {}/s within 1 %, as under a limit",
            words::iops(reads)
        )
    })
}

fn sentence(evidence: &Evidence, figures: &[String]) -> String {
    let device = format!("This is {}", evidence.device.words());
    if !evidence.is_in_memory() {
        if evidence.unwritten {
            return format!(
                "{device}. Reads met blocks that were never written, so their figures say nothing about it. {}.",
                durable_writes::sentence(evidence)
            );
        }
        if evidence.served_from_cache {
            let flush = evidence.sync_p99_ns;
            let flush = flush.map(|ns| durable_writes::flush_in_words(evidence, ns));
            let flush = flush.map_or(String::new(), |flush| format!("; {flush}"));
            return format!(
                "{device}. Reads did not reach it: a cache answered, so the figures say nothing about it, nor about what it suits{flush}."
            );
        }
    }
    let figures = figures.join(", ");
    let said = match (figures.is_empty(), evidence.noisy) {
        (true, _) => device,
        (false, true) => format!("{device}. In this noisy run {figures}"),
        (false, false) => format!("{device}: {figures}"),
    };
    format!("{said}. {}.", durable_writes::sentence(evidence))
}

#[cfg(test)]
mod tests;
