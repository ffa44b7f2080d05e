//! Arguments of `iosonde pts`.

use super::{CephArgs, ClusterArgs, KeepArgs, WrittenArgs, size};
use clap::{Args, ValueEnum};

/// What `iosonde pts --help` ends with.
pub(crate) const PTS_EXAMPLES: &str = "\
Examples:
  iosonde pts iops /dev/nvme1n1 --allow-overwrite /dev/nvme1n1 --purge discard
                                                as SNIA asks for it: takes a day
  iosonde pts iops /dev/nvme1n1 --allow-overwrite /dev/nvme1n1 --time-scale 0.01
                                                a trial, in minutes
  iosonde pts write-saturation sim:nvme,fresh=4 --size 1g --time-scale 0.01
  iosonde pts latency /mnt/data --size 10g      a file instead of a device

Everything on the target is overwritten, so a file or device that exists must be named once more by
--allow-overwrite. A directory gets a working file, which is removed at the end. See docs/snia.md.";

#[derive(Debug, Args)]
pub(crate) struct PtsArgs {
    /// The test
    #[arg(value_enum, value_name = "iops|throughput|latency|write-saturation")]
    pub(crate) test: PtsKind,
    /// A block device, file or directory, or a target in a cluster such as sc://CLASS
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// The kind of device: what is used of it, what is in flight, and which blocks
    #[arg(long, value_enum, default_value_t = PresetKind::Enterprise)]
    pub(crate) preset: PresetKind,
    /// What times and amounts are multiplied by, e.g. 0.01 for a trial
    #[arg(long, default_value_t = 1.0, value_parser = scale, value_name = "FACTOR")]
    pub(crate) time_scale: f64,
    /// Most rounds until five in a row agree
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(5..=1000), value_name = "N")]
    pub(crate) rounds: u32,
    /// I/Os in flight of each job; one in the latency test [default: 32; of clients 16]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=32768), value_name = "N")]
    pub(crate) iodepth: Option<u32>,
    /// Jobs at once; one in the latency test and for sequential I/O [default: 4; of clients 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    pub(crate) numjobs: Option<u32>,
    /// How the device gets rid of what it holds before each series
    #[arg(long, value_enum, default_value_t = PurgeKind::None)]
    pub(crate) purge: PurgeKind,
    /// Bytes from the start that are used [default: all of a device, of a client's 75 %; of a
    /// directory 4g, or a tenth of the free space]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Seed of the offsets
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
}

/// The tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PtsKind {
    /// Random I/O: seven mixes of reads and writes, eight block sizes
    Iops,
    /// Sequential reads and writes of 1024 and 128 KiB
    Throughput,
    /// Random I/O one at a time: three mixes, three block sizes
    Latency,
    /// Random writes of 4 KiB until four times the capacity is written, or for a day
    WriteSaturation,
}

/// The kinds of device that the specification tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetKind {
    /// Disks of personal machines: 75 % of the capacity, write cache on, fewer I/Os in flight
    Client,
    /// Disks of servers: all of the capacity, write cache off
    Enterprise,
}

/// How the device gets rid of what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PurgeKind {
    /// It does not
    None,
    /// Discard every block (BLKDISCARD): all data are lost
    Discard,
    /// It was done by hand, e.g. with nvme format
    Done,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= 10.0 => Ok(factor),
        _ => Err("must be more than 0 and at most 10".to_owned()),
    }
}
