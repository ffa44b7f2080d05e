//! [`LoadOptions`]: what a load study measures, and for how long.

use super::load_plan::{Arrivals, LoadPattern, Mix};
use super::matrix_cells::MatrixOptions;
use super::objective::Objective;
use serde::{Deserialize, Serialize};

/// Offered rates of a curve, as shares of the capacity.
pub(super) const SHARES: [f64; 13] = [
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1,
];
/// Maximum number of additional runs for one objective.
pub(super) const MOST_TRIES: usize = 12;

/// Options of a load study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadOptions {
    /// Pattern of the I/O.
    pub pattern: LoadPattern,
    /// Mix of reads and writes.
    pub mix: Mix,
    /// Distribution of the arrivals.
    pub arrivals: Arrivals,
    /// Offered rates in I/Os per second. Empty: shares of the capacity.
    pub rates: Vec<f64>,
    /// Latency objectives.
    pub objectives: Vec<Objective>,
    /// The matrix of read and write rates, if requested.
    pub matrix: Option<MatrixOptions>,
    /// Measured time of each point.
    pub runtime_ns: u64,
    /// Ramp time before each point.
    pub ramp_ns: u64,
    /// Threads per direction.
    pub numjobs: u32,
    /// Number of pods that run each plan at the same time, and share the offered rate.
    #[serde(default = "alone")]
    pub parties: u32,
    /// Maximum I/Os in flight per thread.
    pub iodepth: u32,
    /// Bytes of the working set. `None`: chosen by iosonde.
    pub size_bytes: Option<u64>,
    /// Whether to use O_DIRECT.
    pub direct: bool,
    /// Seed of offsets, arrivals and the order of the points.
    pub seed: u64,
}

fn alone() -> u32 {
    1
}

impl LoadOptions {
    /// Returns fio's name of the pattern.
    pub fn rw(&self) -> &'static str {
        match (self.mix.read_percent, self.pattern.random) {
            (100.., true) => "randread",
            (100.., false) => "read",
            (0, true) => "randwrite",
            (0, false) => "write",
            (_, true) => "randrw",
            (_, false) => "rw",
        }
    }
}
