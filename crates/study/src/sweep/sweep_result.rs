//! [`SweepResult`]: result of a sweep, and its JSON document.

use super::advice::Advice;
use super::cache::CacheFinding;
use super::curve_result::{CellBasis, CurveResult, CurveState};
use super::sweep_options::SweepOptions;
use crate::sweep_axis::Axis;
use iosonde_result::ceph::CephSide;
use iosonde_result::run_error::RunError;
use iosonde_result::storage::StorageUsed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`SweepResult`] as JSON. It increases when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// Result of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// Value of [`FORMAT`] in the program that wrote the result.
    pub format: u32,
    /// Targets as the user named them. Empty if a job file names its own.
    pub targets: Vec<String>,
    /// Name of the job file, if any.
    pub job_file: Option<String>,
    /// Options of the sweep.
    pub options: SweepOptions,
    /// Axes. The last is `iodepth`.
    pub axes: Vec<Axis>,
    /// One curve per combination of the other axes. The last of them changes fastest.
    pub curves: Vec<CurveResult>,
    /// Advice on depth, number of jobs and block size.
    pub advice: Advice,
    /// Caches inferred from the latency over the working set. Empty without a working-set axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheFinding>,
    /// Time of all runs together, without the layout.
    pub spent_ns: u64,
    /// Whether the user interrupted the sweep.
    pub interrupted: bool,
    /// Error that ended the sweep, or ended it for one of its targets.
    pub failure: Option<String>,
    /// Error of the run without a result behind `failure`, for the caller. It is not serialised.
    #[serde(skip)]
    #[schemars(skip)]
    pub cause: Option<RunError>,
    /// Other notes for the user, one sentence each.
    pub notes: Vec<String>,
}

impl SweepResult {
    /// Whether every curve is complete.
    pub fn is_complete(&self) -> bool {
        let mut curves = self.curves.iter();
        curves.all(|curve| curve.state == CurveState::Complete)
    }

    /// Whether the sweep ended without an interrupt or an error.
    pub fn is_at_its_end(&self) -> bool {
        !self.interrupted && self.failure.is_none()
    }

    /// Returns the storage used by all curves, without duplicates.
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

    /// Returns the first target that is in memory, in words.
    pub fn in_memory(&self) -> Option<&String> {
        let mut curves = self.curves.iter();
        curves.find_map(|curve| curve.in_memory.as_ref())
    }

    /// Returns the state and activity of each Ceph cluster during all runs.
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

    /// Returns the number of measured cells and of all cells.
    pub fn measured(&self) -> (usize, usize) {
        let cells = || self.curves.iter().flat_map(|curve| &curve.cells);
        let measured = cells().filter(|cell| cell.basis == CellBasis::Measured);
        (measured.count(), cells().count())
    }
}

/// JSON document of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDocument {
    /// Version of the document. It increases when a member changes its meaning.
    pub format: u32,
    /// Always `sweep`.
    pub kind: String,
    /// Name and version of the program.
    pub program: String,
    /// Result of the sweep.
    pub sweep: SweepResult,
}

impl SweepDocument {
    /// Creates the document of a result.
    pub fn from_result(sweep: SweepResult, program: &str) -> SweepDocument {
        SweepDocument {
            format: FORMAT,
            kind: "sweep".to_owned(),
            program: program.to_owned(),
            sweep,
        }
    }
}

/// Returns the JSON Schema of [`SweepDocument`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(SweepDocument).to_value()
}
