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
    pub fn series(self) -> Vec<Series> {
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
                tracked: &[(0, 4 * KIB)],
                value: Tracked::Iops,
            }],
            PtsTest::Throughput => vec![
                throughput(&[1024 * KIB], &[(100, 1024 * KIB), (0, 1024 * KIB)]),
                throughput(&[FILL], &[(100, FILL), (0, FILL)]),
            ],
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
    fn every_series_tracks_what_it_runs() {
        for test in [
            PtsTest::Iops,
            PtsTest::Throughput,
            PtsTest::Latency,
            PtsTest::WriteSaturation,
        ] {
            for series in test.series() {
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
        assert_eq!(PtsTest::Iops.series()[0].workloads().len(), 56);
        assert_eq!(PtsTest::Latency.series()[0].workloads().len(), 9);
    }
}
