//! Tests of the specification as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const KIB: u64 = 1024;
/// Block size of the sequential fill, in bytes.
const FILL: u64 = 128 * KIB;

/// A test of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PtsTest {
    /// Random I/O of seven mixes and eight block sizes.
    Iops,
    /// Sequential reads and writes of large blocks.
    Throughput,
    /// Random I/O at depth 1, of three mixes and three block sizes.
    Latency,
    /// Random writes of 4 KiB to an empty device, until four times its capacity is written.
    WriteSaturation,
}

/// Kind of device, which determines some parameters of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PtsPreset {
    /// PTS-C: three quarters of the capacity, write cache on.
    Client,
    /// PTS-E: all of the capacity, write cache off.
    #[default]
    Enterprise,
}

impl PtsPreset {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PtsPreset::Client => "client",
            PtsPreset::Enterprise => "enterprise",
        }
    }

    /// Returns the active range as a share of the device's capacity, in per cent.
    pub(crate) fn active_percent(self) -> u64 {
        match self {
            PtsPreset::Client => 75,
            PtsPreset::Enterprise => 100,
        }
    }

    /// Returns the active range in bytes: a multiple of 1 MiB, the largest block of all workloads.
    pub(crate) fn active_bytes(self, whole: u64) -> u64 {
        const BLOCK: u64 = 1024 * KIB;
        match self.active_percent() {
            100 => whole,
            percent => whole / BLOCK * percent / 100 * BLOCK,
        }
    }

    /// Returns the I/Os in flight of each job, and the jobs, that the specification recommends.
    pub fn in_flight(self) -> (u32, u32) {
        match self {
            PtsPreset::Client => (16, 2),
            PtsPreset::Enterprise => (32, 4),
        }
    }
}

/// Figure of which the steady state is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tracked {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency.
    Latency,
}

/// One workload of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtsWorkload {
    /// Share of reads, in per cent.
    pub read_percent: u8,
    /// Bytes per I/O.
    pub block_bytes: u64,
}

/// Rounds of the same workloads, after a purge and a fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtsSeries {
    /// Mixes of the outer loop: shares of reads, in per cent.
    pub mixes: &'static [u8],
    /// Block sizes of the inner loop, in bytes.
    pub blocks: &'static [u64],
    /// Whether offsets are random.
    pub random: bool,
    /// Block size of the fill. `None`: the workload itself saturates the device.
    pub fill_block_bytes: Option<u64>,
    /// Workloads whose steady state is tested: share of reads, block size.
    pub tracked: &'static [(u8, u64)],
    /// Figure of which the steady state is tested.
    pub value: Tracked,
}

impl PtsSeries {
    /// Returns the workloads of a round, in the order of the specification.
    pub fn workloads(&self) -> Vec<PtsWorkload> {
        let of_mix = |read_percent: &u8| {
            let read_percent = *read_percent;
            self.blocks.iter().map(move |block| PtsWorkload {
                read_percent,
                block_bytes: *block,
            })
        };
        self.mixes.iter().flat_map(of_mix).collect()
    }
}

impl PtsTest {
    /// Returns the series of the test. Each begins with a purge and a fill.
    pub fn series(self, preset: PtsPreset) -> Vec<PtsSeries> {
        match self {
            PtsTest::Iops => vec![PtsSeries {
                mixes: &[100, 95, 65, 50, 35, 5, 0],
                blocks: &[
                    1024 * KIB,
                    128 * KIB,
                    64 * KIB,
                    32 * KIB,
                    16 * KIB,
                    8 * KIB,
                    4 * KIB,
                    512,
                ],
                random: true,
                fill_block_bytes: Some(FILL),
                tracked: &[(0, 4 * KIB), (65, 64 * KIB), (100, 1024 * KIB)],
                value: Tracked::Iops,
            }],
            PtsTest::Throughput => {
                let large = throughput(&[1024 * KIB], &[(100, 1024 * KIB), (0, 1024 * KIB)]);
                match preset {
                    PtsPreset::Client => vec![large],
                    PtsPreset::Enterprise => {
                        vec![large, throughput(&[FILL], &[(100, FILL), (0, FILL)])]
                    }
                }
            }
            PtsTest::Latency => vec![PtsSeries {
                mixes: &[100, 65, 0],
                blocks: &[8 * KIB, 4 * KIB, 512],
                random: true,
                fill_block_bytes: Some(FILL),
                tracked: &[(0, 4 * KIB)],
                value: Tracked::Latency,
            }],
            PtsTest::WriteSaturation => vec![PtsSeries {
                mixes: &[0],
                blocks: &[4 * KIB],
                random: true,
                fill_block_bytes: None,
                tracked: &[(0, 4 * KIB)],
                value: Tracked::Iops,
            }],
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PtsTest::Iops => "iops",
            PtsTest::Throughput => "throughput",
            PtsTest::Latency => "latency",
            PtsTest::WriteSaturation => "write-saturation",
        }
    }
}

fn throughput(blocks: &'static [u64], tracked: &'static [(u8, u64)]) -> PtsSeries {
    PtsSeries {
        mixes: &[100, 0],
        blocks,
        random: false,
        fill_block_bytes: Some(blocks[0]),
        tracked,
        value: Tracked::Bandwidth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_preset_uses_75_percent_of_device() {
        let whole = (1 << 30) + 512;
        assert_eq!(PtsPreset::Client.active_bytes(whole), 768 << 20);
        assert_eq!(PtsPreset::Enterprise.active_bytes(whole), whole);
    }

    #[test]
    fn series_track_workloads_that_they_run() {
        for test in [
            PtsTest::Iops,
            PtsTest::Throughput,
            PtsTest::Latency,
            PtsTest::WriteSaturation,
        ] {
            for series in test.series(PtsPreset::Enterprise) {
                let workloads = series.workloads();
                let runs = |(mix, block): &(u8, u64)| {
                    workloads
                        .iter()
                        .any(|one| (one.read_percent, one.block_bytes) == (*mix, *block))
                };
                assert!(
                    !series.tracked.is_empty() && series.tracked.iter().all(runs),
                    "{test:?}"
                );
            }
        }
        let count = |test: PtsTest, preset| -> Vec<usize> {
            let series = test.series(preset);
            series.iter().map(|one| one.workloads().len()).collect()
        };
        assert_eq!(count(PtsTest::Iops, PtsPreset::Enterprise), [56]);
        assert_eq!(count(PtsTest::Latency, PtsPreset::Client), [9]);
        assert_eq!(count(PtsTest::Throughput, PtsPreset::Enterprise), [2, 2]);
        assert_eq!(count(PtsTest::Throughput, PtsPreset::Client), [2]);
    }
}
