//! Arguments of `iosonde pts`.

use super::{
    BesideArgs, CephArgs, ClusterArgs, KeepArgs, PodsArgs, RenderArgs, WrittenArgs, parse_size,
};
use clap::{Args, ValueEnum};

/// The end of `iosonde pts --help`.
pub(crate) const PTS_EXAMPLES: &str = "\
Examples:
  iosonde pts iops /dev/nvme1n1 --allow-overwrite /dev/nvme1n1 --purge discard
                                                as SNIA specifies: takes a day
  iosonde pts iops /dev/nvme1n1 --allow-overwrite /dev/nvme1n1 --time-scale 0.01
                                                a trial, in minutes
  iosonde pts write-saturation sim:nvme,fresh=4 --size 1g --time-scale 0.01
  iosonde pts latency /mnt/data --size 10g      a file instead of a device

A test overwrites its target, so --allow-overwrite must name an existing file or device too. In a \
directory, iosonde writes a working file and removes it at the end. See docs/snia.md.";

#[derive(Debug, Args)]
pub(crate) struct PtsArgs {
    /// Test to run
    #[arg(value_enum, value_name = "iops|throughput|latency|write-saturation")]
    pub(crate) test: PtsKind,
    /// A block device, file or directory, a target in a Kubernetes cluster, e.g. sc://CLASS, or
    /// sim:NAME, a simulated device; `iosonde probe sim:` lists the names
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Device class of the specification: sets the active range, the I/Os in flight and the block
    /// sizes
    #[arg(long, value_enum, default_value_t = PresetKind::Enterprise)]
    pub(crate) preset: PresetKind,
    /// Factor for all times and amounts, e.g. 0.01 for a trial
    #[arg(long, default_value_t = 1.0, value_parser = scale, value_name = "FACTOR")]
    pub(crate) time_scale: f64,
    /// Maximum number of rounds until five successive rounds are in steady state
    #[arg(
        long,
        default_value_t = 25,
        value_parser = clap::value_parser!(u32).range(5..=1000),
        value_name = "N"
    )]
    pub(crate) rounds: u32,
    /// I/Os in flight per job; always 1 in the latency test [default: 32; with --preset client 16]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=32768), value_name = "N")]
    pub(crate) iodepth: Option<u32>,
    /// Number of jobs; always 1 in the latency test and for sequential I/O [default: 4; with
    /// --preset client 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    pub(crate) numjobs: Option<u32>,
    /// Purge of the device before each series of measurements
    #[arg(long, value_enum, default_value_t = PurgeKind::None)]
    pub(crate) purge: PurgeKind,
    /// Bytes to use, from the start of the target [default: a whole device, with --preset client 75
    /// % of it; in a directory 4g, or a tenth of the free space if that is less]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Seed of the offsets
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) pods: PodsArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) render: RenderArgs,
}

/// The tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PtsKind {
    /// Random I/O with seven mixes of reads and writes and eight block sizes
    Iops,
    /// Sequential reads and writes of 1024 and 128 KiB
    Throughput,
    /// Random I/O, one at a time, with three mixes and three block sizes
    Latency,
    /// Random writes of 4 KiB until four times the capacity is written, or for a day
    WriteSaturation,
}

/// The kinds of device that the specification tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetKind {
    /// Disks of personal computers: 75 % of the capacity, write cache on, fewer I/Os in flight
    Client,
    /// Disks of servers: all of the capacity, write cache off
    Enterprise,
}

/// How the device gets rid of what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PurgeKind {
    /// No purge
    None,
    /// Discard every block (BLKDISCARD), which destroys all data
    Discard,
    /// The user has purged the device, e.g. with nvme format
    Done,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= 10.0 => Ok(factor),
        _ => Err("must be more than 0 and at most 10".to_owned()),
    }
}
