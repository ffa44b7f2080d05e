//! Verdicts on measured figures.

use super::metric::Metric;
use super::promise::{Promise, PromisedFigure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share of the promise from which a figure counts as kept, if the vendor states no lower delivery.
/// A limiter that works in slices of a second is not exact to one per cent.
const KEPT: f64 = 0.98;
/// Share of the highest promise above which a cache answered or other limits apply.
const EXCEEDED: f64 = 1.02;

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredFigure {
    /// Metric of the figure. A run of one direction has the metrics of reads or of writes only.
    pub metric: Metric,
    /// Operations or bytes per second.
    pub per_s: f64,
    /// Half the width of the 95 % confidence interval, if known.
    pub error: Option<f64>,
    /// Bytes per I/O. Large I/Os count as several, and small I/Os cannot reach the bandwidth.
    pub block_bytes: Option<u64>,
}

/// Verdict on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PromiseVerdict {
    /// As promised.
    Kept,
    /// Above the sustained promise, within the burst or range that the vendor publishes: the bucket
    /// is not empty yet.
    Bursting,
    /// Lower than promised.
    Below,
    /// Higher than any promise: a cache answered, or the limits are those of another product.
    Above,
}

/// Comparison of one measured figure with its promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseComparison {
    /// Metric of the figure.
    pub metric: Metric,
    /// Measured rate.
    pub measured_per_s: f64,
    /// Sustained rate that is promised for I/Os of the measured size.
    pub promised_per_s: f64,
    /// Promised burst rate, if it is higher.
    pub burst_per_s: Option<f64>,
    /// Measured rate divided by the promised rate.
    pub ratio: f64,
    /// Verdict on the figure.
    pub verdict: PromiseVerdict,
    /// Whether the vendor promises the figure on this machine.
    pub firm: bool,
    /// Promise with which the figure was compared.
    pub promised: PromisedFigure,
}

impl Promise {
    /// Judges all figures that have a promise.
    pub fn judge(&self, measured: &[MeasuredFigure]) -> Vec<PromiseComparison> {
        measured
            .iter()
            .filter_map(|measured| self.judge_one(measured))
            .collect()
    }

    fn judge_one(&self, measured: &MeasuredFigure) -> Option<PromiseComparison> {
        // A sum of both directions has no promise if the vendor promises each direction separately.
        let promised = self.figure(measured.metric)?;
        let sustained = self.reachable(measured, |figure| figure.per_s)?;
        // A promise of 0 cannot be broken.
        if sustained <= 0.0 {
            return None;
        }
        let most = self.reachable(measured, PromisedFigure::highest_per_s)?;
        let share = self
            .delivery
            .map_or(KEPT, |delivery| delivery.share.min(KEPT));
        let error = measured.error.unwrap_or(0.0);
        let verdict = if measured.per_s + error < sustained * share {
            PromiseVerdict::Below
        } else if measured.per_s - error > most * EXCEEDED {
            PromiseVerdict::Above
        } else if measured.per_s - error > sustained * EXCEEDED {
            PromiseVerdict::Bursting
        } else {
            PromiseVerdict::Kept
        };
        Some(PromiseComparison {
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

    /// Returns the rate that I/Os of a size can reach: bandwidth limits operations, and vice versa.
    fn reachable(
        &self,
        measured: &MeasuredFigure,
        of: impl Fn(&PromisedFigure) -> f64,
    ) -> Option<f64> {
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
    /// Returns the metric of bytes for that of operations, and vice versa.
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
