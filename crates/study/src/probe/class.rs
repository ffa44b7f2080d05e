//! The last sentence of a probe: the kind of device, its figures, and its suitability.
//!
//! The kind comes from facts ([`iosonde_result::device_class`]), never from figures, so that two
//! probes of one device name the same kind.

use super::durable_writes::{self, DurableWrites};
use super::evidence::ClassEvidence;
use crate::words;
use iosonde_result::device_class::DeviceClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Under a limit, rates vary less than this share of their mean.
const LIMITED_SPREAD_MAX: f64 = 0.01;
/// Under one limit, reads and writes differ by less than this share of reads.
const LIMITED_DIFFERENCE_MAX: f64 = 0.03;
/// Slower reads are those of a rotating disk, whose reads and writes are equally fast by nature.
const LIMITED_READ_NS_MAX: f64 = 2e6;
/// Lower rates show no limit: a few I/Os are even by chance.
const LIMITED_IOPS_MIN: f64 = 50.0;

/// The kind of a target, and its suitability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classification {
    /// The kind of device, from facts.
    pub class: DeviceClass,
    /// The kind in words, with the facts behind it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Random reads per second under a limit: a control group's, or one seen in even, equal rates.
    pub limit_iops: Option<f64>,
    /// Whether a cache of this machine answered reads, so that the figures are not the device's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub served_from_cache: bool,
    /// Whether reads met blocks that were never written, so that the figures are not the device's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
    /// The figures that the sentence quotes, each in a few words.
    pub reasons: Vec<String>,
    /// Suitability by durable writes; `None` if not measured, or undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_writes: Option<DurableWrites>,
    /// The suitability in a sentence. Empty in results of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suitability: String,
    /// The classification in a few sentences. The first begins with "This is".
    pub sentence: String,
}

impl Classification {
    /// The source that answered reads instead of the device, if any. Memory is its own device.
    pub fn answered_instead(&self) -> Option<&'static str> {
        match (self.class, self.unwritten, self.served_from_cache) {
            (DeviceClass::Memory, ..) => None,
            (_, true, _) => Some("Blocks that were never written"),
            (_, false, true) => Some("A cache"),
            (_, false, false) => None,
        }
    }

    /// Returns the sentence with other texts for its `reasons`. `is_noisy`: see
    /// [`ProbeResult::is_noisy`](super::ProbeResult::is_noisy). A sentence that quotes other
    /// figures or none, and one of an older version, stays as it is.
    #[must_use]
    pub fn sentence_with(&self, figures: &[String], is_noisy: bool) -> String {
        let is_quoted = !figures.is_empty()
            && figures.len() == self.reasons.len()
            && self.answered_instead().is_none();
        let has_parts = !self.device.is_empty() && !self.suitability.is_empty();
        match is_quoted && has_parts {
            true => sentence_with_figures(&self.device, figures, is_noisy, &self.suitability),
            false => self.sentence.clone(),
        }
    }
}

/// Classifies a target by what the probe found.
pub fn classify(evidence: &ClassEvidence) -> Classification {
    let limit = limit(evidence);
    let figures = figures(evidence, limit.as_deref());
    Classification {
        class: evidence.device.class,
        device: evidence.device.words(),
        limit_iops: evidence.random_read_iops.filter(|_| limit.is_some()),
        served_from_cache: evidence.served_from_cache,
        unwritten: evidence.unwritten,
        durable_writes: durable_writes::durable_writes(evidence),
        suitability: suitability(evidence),
        sentence: sentence(evidence, &figures),
        reasons: figures,
    }
}

/// The figures that describe a target best, each in a few words.
fn figures(evidence: &ClassEvidence, limit: Option<&str>) -> Vec<String> {
    let read = evidence.read_p50_ns;
    let read = read.map(|ns| format!("a 4 KiB read takes {} at p50", words::latency(ns)));
    let rate = evidence.random_read_iops;
    let rate = rate.map(|rate| format!("{} random reads/s", words::iops_text(rate)));
    let stream = evidence.sequential_read;
    let stream = stream.map(|rate| format!("sequential reads of {}", words::bandwidth(rate)));
    let rate = limit.map(str::to_owned).or(rate);
    [read, rate, stream].into_iter().flatten().collect()
}

/// The limit on the rate, if a control group has one or rates are too even for a device.
fn limit(evidence: &ClassEvidence) -> Option<String> {
    let reads = evidence.random_read_iops?;
    if evidence.throttled {
        let rate = words::iops_text(reads);
        return Some(format!("a control group limits random reads to {rate}/s"));
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
            "random reads and writes both reach {}/s within 1 %, as with a rate limit",
            words::iops_text(reads)
        )
    })
}

/// The suitability in a sentence with its full stop. Reads from a cache leave it open.
fn suitability(evidence: &ClassEvidence) -> String {
    let is_of_cache = evidence.served_from_cache && !evidence.unwritten;
    if is_of_cache && !evidence.is_in_memory() {
        return "Suitability is not known: a cache served the reads.".to_owned();
    }
    format!("{}.", durable_writes::sentence(evidence))
}

fn sentence(evidence: &ClassEvidence, figures: &[String]) -> String {
    let device = format!("This is {}", evidence.device.words());
    if !evidence.is_in_memory() {
        if evidence.unwritten {
            return format!(
                "{device}. Reads hit blocks that were never written, so their figures do not \
                 describe the device. {}.",
                durable_writes::sentence(evidence)
            );
        }
        if evidence.served_from_cache {
            let flush = evidence.sync_p99_ns;
            let flush = flush.map(|ns| durable_writes::flush_in_words(evidence, ns));
            let flush = flush.map_or(String::new(), |flush| format!("; {flush}"));
            return format!(
                "{device}. A cache served the reads, so the figures describe neither the device \
                 nor its suitability{flush}."
            );
        }
    }
    let suitability = format!("{}.", durable_writes::sentence(evidence));
    let device = evidence.device.words();
    sentence_with_figures(&device, figures, evidence.noisy, &suitability)
}

/// The kind of device with the figures that describe it, and the suitability.
fn sentence_with_figures(
    device: &str,
    figures: &[String],
    is_noisy: bool,
    suitability: &str,
) -> String {
    let figures = figures.join(", ");
    let said = match (figures.is_empty(), is_noisy) {
        (true, _) => device.to_owned(),
        (false, true) => format!("{device}. In this noisy run {figures}"),
        (false, false) => format!("{device}: {figures}"),
    };
    format!("This is {said}. {suitability}")
}

#[cfg(test)]
mod tests;
