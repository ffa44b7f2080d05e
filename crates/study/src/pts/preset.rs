//! The tests of the specification as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const KIB: u64 = 1024;
/// Blocks of the sequential fill.
const FILL: u64 = 128 * KIB;

/// A test of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PtsTest {
    /// Random I/O of seven mixes and eight block sizes.
    Iops,
    /// Sequential reads and writes of large blocks.
    Throughput,
    /// Random I/O one at a time, of three mixes and three block sizes.
    Latency,
    /// Random writes of 4 KiB from the empty device on, until four times its capacity is written.
    WriteSaturation,
}

/// The kind of device that a test is for: parameters of a test that are not the same for both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// PTS-C: three quarters of the capacity, the write cache on.
    Client,
    /// PTS-E: all of the capacity, the write cache off.
    #[default]
    Enterprise,
}

impl Preset {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Client => "client",
            Preset::Enterprise => "enterprise",
        }
    }

    /// The share of the device's capacity that is used: the active range, in per cent.
    pub fn active_percent(self) -> u64 {
        match self {
            Preset::Client => 75,
            Preset::Enterprise => 100,
        }
    }

    /// The active range of a device: the share of its capacity, in whole blocks of the largest of all workloads.
    pub(super) fn active_bytes(self, whole: u64) -> u64 {
        const BLOCK: u64 = 1024 * KIB;
        match self.active_percent() {
            100 => whole,
            percent => whole / BLOCK * percent / 100 * BLOCK,
        }
    }

    /// I/Os in flight of each job, and jobs, that the specification recommends to whoever has no reason for others.
    pub fn in_flight(self) -> (u32, u32) {
        match self {
            Preset::Client => (16, 2),
            Preset::Enterprise => (32, 4),
        }
    }
}

/// What a steady state is told from.
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
pub struct Workload {
    /// Share of reads in per cent.
    pub read_percent: u8,
    /// Bytes of each I/O.
    pub block_bytes: u64,
}

/// Rounds of the same workloads, with a purge and a fill before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Mixes of the outer loop: shares of reads in per cent.
    pub mixes: &'static [u8],
    /// Block sizes of the inner loop, in bytes.
    pub blocks: &'static [u64],
    /// Random rather than sequential offsets.
    pub random: bool,
    /// Blocks of the fill before it; `None` where the workload itself is what saturates the device.
    pub fill_block_bytes: Option<u64>,
    /// Workloads whose values over the last rounds must agree.
    pub tracked: &'static [(u8, u64)],
    /// Of which figure.
    pub value: Tracked,
}

impl Series {
    /// The workloads of a round, in the order of the specification.
    pub fn workloads(&self) -> Vec<Workload> {
        let of_mix = |read_percent: &u8| {
            let read_percent = *read_percent;
            self.blocks.iter().map(move |block| Workload {
                read_percent,
                block_bytes: *block,
            })
        };
        self.mixes.iter().flat_map(of_mix).collect()
    }
}

impl PtsTest {
    /// Its series, each on a device that was purged and filled anew.
    pub fn series(self, preset: Preset) -> Vec<Series> {
        match self {
            PtsTest::Iops => vec![Series {
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
                    Preset::Client => vec![large],
                    Preset::Enterprise => {
                        vec![large, throughput(&[FILL], &[(100, FILL), (0, FILL)])]
                    }
                }
            }
            PtsTest::Latency => vec![Series {
                mixes: &[100, 65, 0],
                blocks: &[8 * KIB, 4 * KIB, 512],
                random: true,
                fill_block_bytes: Some(FILL),
                tracked: &[(0, 4 * KIB)],
                value: Tracked::Latency,
            }],
            PtsTest::WriteSaturation => vec![Series {
                mixes: &[0],
                blocks: &[4 * KIB],
                random: true,
                fill_block_bytes: None,
                tracked: &[(0, 4 * KIB)],
                value: Tracked::Iops,
            }],
        }
    }

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            PtsTest::Iops => "iops",
            PtsTest::Throughput => "throughput",
            PtsTest::Latency => "latency",
            PtsTest::WriteSaturation => "write-saturation",
        }
    }
}

fn throughput(blocks: &'static [u64], tracked: &'static [(u8, u64)]) -> Series {
    Series {
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
    fn clients_use_three_quarters_of_a_device() {
        let whole = (1 << 30) + 512;
        assert_eq!(Preset::Client.active_bytes(whole), 768 << 20);
        assert_eq!(Preset::Enterprise.active_bytes(whole), whole);
    }

    #[test]
    fn every_series_tracks_what_it_runs() {
        for test in [
            PtsTest::Iops,
            PtsTest::Throughput,
            PtsTest::Latency,
            PtsTest::WriteSaturation,
        ] {
            for series in test.series(Preset::Enterprise) {
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
        assert_eq!(count(PtsTest::Iops, Preset::Enterprise), [56]);
        assert_eq!(count(PtsTest::Latency, Preset::Client), [9]);
        assert_eq!(count(PtsTest::Throughput, Preset::Enterprise), [2, 2]);
        assert_eq!(count(PtsTest::Throughput, Preset::Client), [2]);
    }
}
