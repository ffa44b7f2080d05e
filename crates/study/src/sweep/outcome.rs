//! What a sweep found.

use super::advice::Advice;
use super::axis::Axis;
use super::cache::CacheFinding;
use super::study::SweepOptions;
use crate::probe::Latency;
use crate::saturation::{Saturation, Warmup};
use iosonde_result::ceph::CephSide;
use iosonde_result::run::IoFailure;
use iosonde_result::session::RunError;
use iosonde_result::storage::StorageUsed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`SweepResult`] as JSON; counts up when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// A sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// The format of the program that wrote it.
    pub format: u32,
    /// Targets as the user wrote them; empty where a job file names its own.
    pub targets: Vec<String>,
    /// The job file, where there was one.
    pub job_file: Option<String>,
    /// How it was done.
    pub options: SweepOptions,
    /// The axes. The last is `iodepth`.
    pub axes: Vec<Axis>,
    /// A curve for each combination of the other axes, the last of them changing fastest.
    pub curves: Vec<CurveResult>,
    /// What follows for whoever has to choose depth, jobs and block size.
    pub advice: Advice,
    /// What the latencies over the working set tell about caches, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheFinding>,
    /// Time of all runs together, layout not included.
    pub spent_ns: u64,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The error that ended it, or ended it for one of its targets.
    pub failure: Option<String>,
    /// The same, where it was a run without a result, for whoever ran the sweep: it is not in a document.
    #[serde(skip)]
    #[schemars(skip)]
    pub cause: Option<RunError>,
    /// What else the user should know, each in one sentence.
    pub notes: Vec<String>,
}

impl SweepResult {
    /// Whether every curve came to its end.
    pub fn is_complete(&self) -> bool {
        let mut curves = self.curves.iter();
        curves.all(|curve| curve.state == CurveState::Complete)
    }

    /// Whether neither the user nor an error ended it early.
    pub fn is_at_its_end(&self) -> bool {
        !self.interrupted && self.failure.is_none()
    }

    /// The ways to storage of all curves, each once.
    pub fn storage(&self) -> Vec<&StorageUsed> {
        let mut found: Vec<&StorageUsed> = Vec::new();
        for used in self
            .curves
            .iter()
            .filter_map(|curve| curve.storage.as_ref())
        {
            if !found.contains(&used) {
                found.push(used);
            }
        }
        found
    }

    /// What each Ceph cluster was and did during all runs.
    pub fn ceph(&self) -> Vec<CephSide> {
        let mut found: Vec<CephSide> = Vec::new();
        for side in self.curves.iter().filter_map(|curve| curve.ceph.as_ref()) {
            let is_same = |known: &&mut CephSide| {
                known.fsid == side.fsid || known.fsid.is_empty() || side.fsid.is_empty()
            };
            match found.iter_mut().find(is_same) {
                Some(known) => known.merge(side),
                None => found.push(side.clone()),
            }
        }
        found
    }

    /// Cells that were measured, and all.
    pub fn measured(&self) -> (usize, usize) {
        let cells = || self.curves.iter().flat_map(|curve| &curve.cells);
        let measured = cells().filter(|cell| cell.basis == Basis::Measured);
        (measured.count(), cells().count())
    }
}

/// A sweep as a JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDocument {
    /// Version of the document; counts up when a member changes its meaning.
    pub format: u32,
    /// `sweep`.
    pub kind: String,
    /// Program and version.
    pub program: String,
    /// What was found.
    pub sweep: SweepResult,
}

impl SweepDocument {
    /// The document that a program writes.
    pub fn of(sweep: SweepResult, program: &str) -> SweepDocument {
        SweepDocument {
            format: FORMAT,
            kind: "sweep".to_owned(),
            program: program.to_owned(),
            sweep,
        }
    }
}

/// JSON Schema of [`SweepDocument`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(SweepDocument).to_value()
}

/// How far a curve came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CurveState {
    /// To its end.
    Complete,
    /// Something was measured before the sweep was ended.
    Partial,
    /// Nothing was measured.
    NotMeasured,
}

/// All depths of one combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveResult {
    /// The value of each axis but the last.
    pub values: Vec<String>,
    /// fio's word for what is done.
    pub rw: String,
    /// Bytes of each I/O; the largest where they vary.
    pub block_bytes: u64,
    /// Jobs at once.
    pub numjobs: u32,
    /// How far it came.
    pub state: CurveState,
    /// Its maximum and its knee.
    pub saturation: Option<Saturation>,
    /// A cell for each depth.
    pub cells: Vec<SweepCell>,
    /// The I/O error that ended it.
    pub failure: Option<IoFailure>,
    /// By which way it came to its storage, and the caches on that way; `None` where no run of this sweep told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageUsed>,
    /// What the Ceph cluster was and did during its runs, where it is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSide>,
}

/// How the figures of a cell came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Measured.
    Measured,
    /// Not measured: drawn from measured cells.
    Predicted,
    /// Not measured, and nothing near it was.
    Unknown,
}

/// A figure and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// The figure.
    pub mean: f64,
    /// Half the width of its 95 % interval; where it is predicted, the most that it may be off if the rate does not fall with
    /// the depth. `None` when too little is known to tell.
    pub error: Option<f64>,
}

impl Value {
    /// The error as a share of the figure.
    pub fn relative_error(&self) -> Option<f64> {
        Some(self.error? / self.mean.max(f64::MIN_POSITIVE))
    }
}

/// One depth of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// Whether it was measured.
    pub basis: Basis,
    /// I/Os per second of all jobs.
    pub iops: Option<Value>,
    /// Bytes per second of all jobs.
    pub bytes_per_s: Option<f64>,
    /// Mean latency of an I/O, submission included; of a predicted cell by Little's law.
    pub mean_latency_ns: Option<f64>,
    /// All that is known of its latency.
    pub latency: Option<Latency>,
    /// Measured time in nanoseconds.
    pub measured_ns: u64,
    /// What was left out at the start, where the working set is an axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
}

impl SweepCell {
    /// How far the rate may be off, as a share of it; `None` where that is not known, as after one short sample.
    pub fn doubt(&self) -> Option<f64> {
        self.iops?.relative_error()
    }

    pub(super) fn unknown(iodepth: u32) -> SweepCell {
        SweepCell {
            iodepth,
            basis: Basis::Unknown,
            iops: None,
            bytes_per_s: None,
            mean_latency_ns: None,
            latency: None,
            measured_ns: 0,
            warmup: None,
        }
    }

    pub(super) fn predicted(iodepth: u32, jobs: u32, block_bytes: f64, iops: Value) -> SweepCell {
        let in_flight = f64::from(jobs) * f64::from(iodepth);
        SweepCell {
            basis: Basis::Predicted,
            iops: Some(iops),
            bytes_per_s: Some(iops.mean * block_bytes),
            mean_latency_ns: Some(in_flight * 1e9 / iops.mean.max(f64::MIN_POSITIVE)),
            ..SweepCell::unknown(iodepth)
        }
    }

    pub(super) fn measured(cell: &crate::saturation::Cell) -> SweepCell {
        SweepCell {
            iodepth: cell.iodepth,
            basis: Basis::Measured,
            iops: Some(Value {
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
