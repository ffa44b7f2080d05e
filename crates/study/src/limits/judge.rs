//! The promise beside what was measured.

use super::promise::{Metric, Promise, Promised};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure counts as kept from this share of the promise on, where the vendor does not say how much it delivers: a
/// limiter that lets through in slices of a second is not exact to the per cent.
const KEPT: f64 = 0.98;
/// Beyond this share of what is promised at most, something else than the product answered: a cache, or another limit.
const EXCEEDED: f64 = 1.02;

/// One measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// What was measured. A run that reads only gives the read metrics, one that does both the ones of both together.
    pub metric: Metric,
    /// Operations or bytes per second.
    pub per_s: f64,
    /// Half the width of its 95 % confidence interval, if known.
    pub error: Option<f64>,
    /// Bytes of each I/O: large ones count as several, and small ones cannot reach the bandwidth.
    pub block_bytes: Option<u64>,
}

/// Whether a promise was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// As promised.
    Kept,
    /// More than can be kept up, within what is promised for a while: the bucket is not empty yet, or the vendor gives
    /// a range.
    Bursting,
    /// Less than promised.
    Below,
    /// More than is promised at all: a cache answered, or the limits are of another product.
    Above,
}

/// The verdict on one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// What was measured.
    pub metric: Metric,
    /// How much of it.
    pub measured_per_s: f64,
    /// What was promised for I/O of that size, kept up.
    pub promised_per_s: f64,
    /// What was promised for a while, if that is more.
    pub burst_per_s: Option<f64>,
    /// Measured over promised.
    pub ratio: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the vendor promises the figure on this machine at all.
    pub firm: bool,
    /// The promise it was held against.
    pub promised: Promised,
}

impl Promise {
    /// Verdicts on all figures of which something is promised.
    pub fn judge(&self, measured: &[Measured]) -> Vec<Judged> {
        measured
            .iter()
            .filter_map(|measured| self.judge_one(measured))
            .collect()
    }

    fn judge_one(&self, measured: &Measured) -> Option<Judged> {
        // Without a figure for both directions together there is nothing that their sum could be held against.
        let promised = self.figure(measured.metric)?;
        let sustained = self.reachable(measured, |figure| figure.per_s)?;
        // Nothing can be less than nothing.
        if sustained <= 0.0 {
            return None;
        }
        let most = self.reachable(measured, Promised::highest_per_s)?;
        let share = self
            .delivery
            .map_or(KEPT, |delivery| delivery.share.min(KEPT));
        let error = measured.error.unwrap_or(0.0);
        let verdict = if measured.per_s + error < sustained * share {
            Verdict::Below
        } else if measured.per_s - error > most * EXCEEDED {
            Verdict::Above
        } else if measured.per_s - error > sustained * EXCEEDED {
            Verdict::Bursting
        } else {
            Verdict::Kept
        };
        Some(Judged {
            metric: measured.metric,
            measured_per_s: measured.per_s,
            promised_per_s: sustained,
            burst_per_s: (most > sustained).then_some(most),
            ratio: measured.per_s / sustained,
            verdict,
            firm: self.firm,
            promised: promised.clone(),
        })
    }

    /// What a metric can reach with I/Os of a size: operations are limited by the bandwidth, and bytes by the operations.
    fn reachable(&self, measured: &Measured, of: impl Fn(&Promised) -> f64) -> Option<f64> {
        let own = of(self.figure(measured.metric)?);
        let Some(block_bytes) = measured.block_bytes else {
            return Some(own);
        };
        let bytes = block_bytes.max(1) as f64;
        let counted = self
            .max_io_bytes
            .map_or(1, |max| block_bytes.max(1).div_ceil(max)) as f64;
        let other = self.figure(measured.metric.other()).map(&of);
        Some(if measured.metric.is_iops() {
            let carried = other.map_or(f64::INFINITY, |bandwidth| bandwidth / bytes);
            (own / counted).min(carried)
        } else {
            let carried = other.map_or(f64::INFINITY, |iops| iops * bytes / counted);
            own.min(carried)
        })
    }
}

impl Metric {
    /// Operations for bytes, and bytes for operations.
    fn other(self) -> Metric {
        match self {
            Metric::Iops => Metric::Bandwidth,
            Metric::ReadIops => Metric::ReadBandwidth,
            Metric::WriteIops => Metric::WriteBandwidth,
            Metric::Bandwidth => Metric::Iops,
            Metric::ReadBandwidth => Metric::ReadIops,
            Metric::WriteBandwidth => Metric::WriteIops,
        }
    }
}
