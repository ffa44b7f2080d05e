//! [`CurveResult`]: the cells of one curve of a sweep, measured or predicted.

use crate::figures::cell::{CurveCell, Warmup};
use crate::figures::estimate::LatencySummary;
use crate::figures::saturation_result::Saturation;
use iosonde_result::ceph::CephSide;
use iosonde_result::run::IoFailure;
use iosonde_result::storage::StorageUsed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Progress of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CurveState {
    /// The curve is complete.
    Complete,
    /// The sweep ended before the curve was complete.
    Partial,
    /// No cell was measured.
    NotMeasured,
}

/// Results of one curve: all depths of one combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveResult {
    /// Value of each axis but the last.
    pub values: Vec<String>,
    /// I/O pattern, as in fio's `rw`.
    pub rw: String,
    /// Bytes of each I/O, the largest if they vary.
    pub block_bytes: u64,
    /// Number of jobs.
    pub numjobs: u32,
    /// Progress of the curve.
    pub state: CurveState,
    /// Maximum and knee.
    pub saturation: Option<Saturation>,
    /// One cell per depth.
    pub cells: Vec<SweepCell>,
    /// I/O error that ended the curve.
    pub failure: Option<IoFailure>,
    /// Path to the storage and the caches on it. `None` if no run of this sweep reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageUsed>,
    /// The target, if it is in memory: `memory (tmpfs)`. Its data does not survive a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<String>,
    /// State and activity of the Ceph cluster during its runs. `None` on other storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSide>,
}

/// Origin of the figures of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellBasis {
    /// Measured.
    Measured,
    /// Not measured, but predicted from measured cells.
    Predicted,
    /// Neither measured nor predictable.
    Unknown,
}

/// Figure with its error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRate {
    /// The figure.
    pub mean: f64,
    /// Half-width of the 95 % interval. For a prediction, the largest error if the rate does not
    /// fall with the depth. `None` if unknown.
    pub error: Option<f64>,
}

impl CellRate {
    /// Error as a share of the figure.
    pub fn relative_error(&self) -> Option<f64> {
        Some(self.error? / self.mean.max(f64::MIN_POSITIVE))
    }
}

/// Results of one depth of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// Origin of the figures.
    pub basis: CellBasis,
    /// I/Os per second of all jobs.
    pub iops: Option<CellRate>,
    /// Bytes per second of all jobs.
    pub bytes_per_s: Option<f64>,
    /// Mean latency of an I/O, submission included. For predictions it follows from Little's law.
    pub mean_latency_ns: Option<f64>,
    /// Latency statistics. `None` if not measured.
    pub latency: Option<LatencySummary>,
    /// Measured time in nanoseconds.
    pub measured_ns: u64,
    /// Warm-up that was left out, if the working set is an axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
}

impl SweepCell {
    /// Relative error of the rate. `None` if unknown, for example after one short sample.
    pub fn doubt(&self) -> Option<f64> {
        self.iops?.relative_error()
    }

    /// Half the 95 % interval of the mean latency, in nanoseconds. The number of I/Os in flight is
    /// fixed, so the mean is this number divided by the rate (Little's law), and half the interval
    /// is the same share of the figure for both. `None` if the interval of the rate is unknown or
    /// includes zero.
    #[must_use]
    pub fn mean_latency_error_ns(&self) -> Option<f64> {
        let share = self.doubt().filter(|share| *share < 1.0)?;
        Some(self.mean_latency_ns? * share)
    }

    pub(super) fn unknown(iodepth: u32) -> SweepCell {
        SweepCell {
            iodepth,
            basis: CellBasis::Unknown,
            iops: None,
            bytes_per_s: None,
            mean_latency_ns: None,
            latency: None,
            measured_ns: 0,
            warmup: None,
        }
    }

    pub(super) fn predicted(
        iodepth: u32,
        jobs: u32,
        block_bytes: f64,
        iops: CellRate,
    ) -> SweepCell {
        let in_flight = f64::from(jobs) * f64::from(iodepth);
        SweepCell {
            basis: CellBasis::Predicted,
            iops: Some(iops),
            bytes_per_s: Some(iops.mean * block_bytes),
            mean_latency_ns: Some(in_flight * 1e9 / iops.mean.max(f64::MIN_POSITIVE)),
            ..SweepCell::unknown(iodepth)
        }
    }

    /// Returns a measured cell.
    #[must_use]
    pub fn measured(cell: &CurveCell) -> SweepCell {
        SweepCell {
            iodepth: cell.iodepth,
            basis: CellBasis::Measured,
            iops: Some(CellRate {
                mean: cell.iops.mean,
                error: cell.iops.error,
            }),
            bytes_per_s: Some(cell.bytes_per_s.mean),
            mean_latency_ns: Some(cell.latency.mean_ns),
            latency: Some(cell.latency),
            measured_ns: cell.measured_ns,
            warmup: cell.warmup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_latency_is_as_well_known_as_its_rate() {
        let cell = |error| {
            let iops = CellRate {
                mean: 1000.0,
                error,
            };
            // Four I/Os in flight take 4 ms each.
            SweepCell::predicted(4, 1, 4096.0, iops)
        };
        let error = cell(Some(200.0)).mean_latency_error_ns().unwrap();
        // 20 % of the latency, as of the rate.
        assert!((error - 0.8e6).abs() < 1e-3, "{error}");
        // A rate with a known interval has a latency with one.
        let wide = cell(Some(990.0)).mean_latency_error_ns();
        assert!(wide.is_some_and(|error| error < 4e6), "{wide:?}");
        for unknown in [None, Some(1000.0), Some(f64::INFINITY)] {
            assert_eq!(cell(unknown).mean_latency_error_ns(), None);
        }
    }
}
