//! [`PtsOptions`]: the test that runs, and its scale.

use crate::figures::preset::{PtsPreset, PtsSeries, PtsTest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runtime of each workload of a round.
pub const MINUTE_NS: u64 = 60_000_000_000;
/// Shortest runtime, whatever the time scale: shorter runs measure nothing.
const SHORTEST_NS: u64 = 200_000_000;
/// Write saturation ends after this multiple of the capacity, or after 24 hours of rounds.
pub(super) const SATURATION_FILLS: f64 = 4.0;
const SATURATION_ROUNDS: u32 = 24 * 60;

/// Options of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsOptions {
    /// The test to run.
    pub test: PtsTest,
    /// Kind of device.
    #[serde(default)]
    pub preset: PtsPreset,
    /// Factor of times and amounts: 1 for a test, less for a trial.
    pub time_scale: f64,
    /// Maximum number of rounds.
    pub most_rounds: u32,
    /// I/Os in flight of each job. The latency test has one.
    pub iodepth: u32,
    /// Number of jobs. Tests of sequential I/O and of latency have one.
    pub numjobs: u32,
    /// How the target is purged.
    pub purge: Purge,
    /// Bytes of the active range. `None`: the preset's share of a device, or a probe's default.
    pub size_bytes: Option<u64>,
    /// Seed of the offsets.
    pub seed: u64,
}

/// How the target is purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purge {
    /// No purge.
    None,
    /// Discards all blocks before each series.
    Discard,
    /// The user has purged the target, with a tool of the vendor.
    Done,
}

impl PtsOptions {
    /// Returns the runtime of a workload of a round.
    pub(super) fn cell_ns(&self) -> u64 {
        ((MINUTE_NS as f64 * self.time_scale) as u64).max(SHORTEST_NS)
    }

    /// Returns depth and number of jobs of a series.
    pub fn in_flight(&self, series: &PtsSeries) -> (u32, u32) {
        match (self.test, series.random) {
            (PtsTest::Latency, _) => (1, 1),
            // Several sequential jobs would begin at the same offset.
            (_, false) => (self.iodepth * self.numjobs, 1),
            (_, true) => (self.iodepth, self.numjobs),
        }
    }
}

/// Returns the maximum number of rounds of a series.
pub(super) fn longest_rounds(options: &PtsOptions) -> u32 {
    match options.test {
        PtsTest::WriteSaturation => SATURATION_ROUNDS,
        _ => options.most_rounds,
    }
}
