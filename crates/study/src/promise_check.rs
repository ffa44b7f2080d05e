//! [`PromiseCheck`]: a promise compared with a probe: verdicts, doubts about them, and what was not
//! measured.

use crate::probe_phase::ProbePhase;
use iosonde_limits::{Promise, PromiseComparison, PromiseVerdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Comparison of a promise with the figures of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseCheck {
    /// The promise.
    pub promise: Promise,
    /// Verdicts, one for each measured figure with a promise.
    pub rows: Vec<CheckedFigure>,
    /// Overall outcome.
    pub outcome: PromiseOutcome,
    /// Parts of the promise that were not measured or not checked, one sentence each.
    pub conditions: Vec<String>,
}

/// Comparison of one figure with the promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedFigure {
    /// Phase that measured the figure.
    pub phase: ProbePhase,
    /// Verdict on the figure.
    pub judged: PromiseComparison,
    /// Half the width of the 95 % confidence interval of the measured figure.
    pub error_per_s: Option<f64>,
    /// Jobs and depth, if the knee search found a higher figure than that of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<CheckedQueueDepth>,
    /// Reasons to doubt the verdict.
    pub doubts: Vec<PromiseDoubt>,
}

/// Number of I/Os in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedQueueDepth {
    /// Number of jobs.
    pub jobs: u32,
    /// I/Os in flight of each job.
    pub iodepth: u32,
}

/// Outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromiseOutcome {
    /// Every measured figure is as promised.
    Kept,
    /// A figure is shown to be lower than promised.
    Broken,
    /// Neither is shown.
    Unclear,
}

/// Reason why the volume may not be the cause of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromiseDoubt {
    /// A cache answered, not the volume.
    ServedFromCache,
    /// Blocks that were never written answered, not the volume.
    Unwritten,
    /// The load generator had no processor time to spare.
    Generator,
    /// A limit of this machine throttled the I/O: a control group, or a layer above the device.
    Throttled,
    /// Other programs used the device during the measurement.
    Interference,
    /// Too few I/Os were in flight to reach the limit.
    DepthTooLow,
    /// The measurement was too short for a confidence interval.
    NoInterval,
    /// The vendor does not promise its figures on this machine.
    NotFirm,
}

impl PromiseDoubt {
    /// Returns the doubt in words, to follow a verdict.
    pub fn words(self) -> &'static str {
        match self {
            PromiseDoubt::ServedFromCache => "a cache served the I/O, not the volume",
            PromiseDoubt::Unwritten => "reads hit blocks that were never written",
            PromiseDoubt::Generator => "the CPUs of the client were the bottleneck",
            PromiseDoubt::Throttled => "a limit of this machine throttled the I/O",
            PromiseDoubt::Interference => "other programs used the device",
            PromiseDoubt::DepthTooLow => "more I/Os in flight may raise the rate",
            PromiseDoubt::NoInterval => "the measurement was too short",
            PromiseDoubt::NotFirm => "the vendor does not promise its figures on this machine",
        }
    }
}

impl CheckedFigure {
    /// Returns whether the figure is shown to be lower than promised.
    pub(crate) fn is_broken(&self) -> bool {
        self.judged.verdict == PromiseVerdict::Below && self.doubts.is_empty()
    }

    /// Returns whether the figure is shown to be as promised, whatever may have lowered it.
    pub(crate) fn is_kept(&self) -> bool {
        let kept = matches!(
            self.judged.verdict,
            PromiseVerdict::Kept | PromiseVerdict::Bursting
        );
        kept && !self.is_of_cache()
    }

    /// Returns whether a cache or unwritten blocks answered instead of the volume.
    pub(crate) fn is_of_cache(&self) -> bool {
        let of_others = [PromiseDoubt::ServedFromCache, PromiseDoubt::Unwritten];
        self.doubts.iter().any(|doubt| of_others.contains(doubt))
    }
}

impl PromiseCheck {
    /// Returns whether a cache answered all measured I/O, so that nothing is known of the volume.
    pub fn is_of_cache(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(CheckedFigure::is_of_cache)
    }

    /// Returns the outcome in one sentence.
    pub fn sentence(&self) -> String {
        if self.is_of_cache() {
            let doubts = || self.rows.iter().flat_map(|row| &row.doubts);
            let who = match doubts().all(|doubt| *doubt == PromiseDoubt::Unwritten) {
                true => "Blocks that were never written",
                false => "A cache",
            };
            return format!("{who} served the I/O, not the volume: the promise cannot be checked.");
        }
        let listed = |said: &dyn Fn(&CheckedFigure) -> Option<String>| {
            let each: Vec<String> = self.rows.iter().filter_map(said).collect();
            each.join(", ")
        };
        match self.outcome {
            PromiseOutcome::Kept => "The promise is kept in all measured figures.".to_owned(),
            PromiseOutcome::Broken => {
                let broken = listed(&|row| {
                    let percent = (row.judged.ratio * 100.0).round();
                    let said = format!("{} at {percent:.0} %", row.judged.metric);
                    row.is_broken().then_some(said)
                });
                format!("The promise is broken: {broken} of the promised value.")
            }
            PromiseOutcome::Unclear if self.rows.is_empty() => {
                "No promised figure was measured.".to_owned()
            }
            PromiseOutcome::Unclear => {
                let unclear =
                    listed(&|row| (!row.is_kept()).then(|| row.judged.metric.to_string()));
                format!("Cannot tell whether the promise is kept: {unclear}.")
            }
        }
    }
}

#[cfg(test)]
mod tests;
