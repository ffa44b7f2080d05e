//! Arguments of `iosonde watch`.

use super::ClusterAccessArgs;
use super::output_file::{OutputFileKind, output_file};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub(crate) const WATCH_EXAMPLES: &str = "\
Examples:
  iosonde watch                     all active disks, every second, until Ctrl-C
  iosonde watch nvme0n1 5 12        one disk, every 5 seconds, 12 times
  iosonde watch /mnt/data           the disk below a directory
  iosonde watch --format csv 1 60 > disks.csv
  iosonde watch -x                  the columns of iostat -x, then CPUs, PSI, network and NFS
  iosonde watch --columns r,await,%util --sort await
  iosonde watch --total 1           one line per interval for all disks together
  iosonde watch --record disks.jsonl 1 600
  iosonde watch --replay disks.jsonl -x sda
  iosonde watch node/worker-1 node/worker-2 5

Columns and units are those of sar -d: requests per second; kB read, written and discarded per \
second (1 kB is 1024 bytes); mean request size in kB; mean number of requests in flight; mean time \
of a request in ms; percentage of the time with requests in flight. With -x they are those of \
iostat -x, for reads, writes, discards and flushes separately.";

/// Arguments of `iosonde watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Devices by name or path, or directories and files on them [default: all disks, on a terminal
    /// only active ones]; then the interval in seconds [default: 1] and the number of intervals
    /// [default: until Ctrl-C]. node/NAME watches a node of a Kubernetes cluster, by a pod that
    /// only reads counters
    #[arg(value_name = "DEVICE... [INTERVAL [COUNT]]")]
    pub(crate) words: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = WatchFormat::Table)]
    pub(crate) format: WatchFormat,
    /// Show the columns of iostat -x, and all sections of --show
    #[arg(long, short = 'x', conflicts_with = "columns")]
    pub(crate) extended: bool,
    /// Columns of disks, by name (r/s, w_await, %util, ...) or group: sar, iostat, r, w, d, f
    /// [default: sar]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) columns: Vec<String>,
    /// Sort the disks by a column, the largest figure first, or by `name`
    #[arg(long, value_name = "COLUMN", conflicts_with = "total")]
    pub(crate) sort: Option<String>,
    /// Show all disks together, in one line per interval
    #[arg(long)]
    pub(crate) total: bool,
    /// Sections to show [default: disks; all with -x or --format json]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SECTION")]
    pub(crate) show: Vec<WatchSection>,
    /// Also write each interval to a file of JSON lines, with all figures
    #[arg(long, value_name = "FILE", value_parser = output_file(OutputFileKind::Recording))]
    pub(crate) record: Option<PathBuf>,
    /// Show the intervals of a recording instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(crate) replay: Option<PathBuf>,
    /// Image of the pods that watch nodes [default: an image that is present on a node, else
    /// busybox]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    #[command(flatten)]
    pub(crate) cluster: ClusterAccessArgs,
}

/// A part of the output of `iosonde watch`, in the order of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchSection {
    /// Disks
    Disks,
    /// Processors
    Cpu,
    /// Pressure stall information: shares of the time that tasks waited
    Psi,
    /// Share of the time that control groups throttled the processors of iosonde
    Cgroup,
    /// Network interfaces, TCP, and storage connections
    Net,
    /// NFS mounts
    Nfs,
}

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchFormat {
    /// Lines for people, as sar prints them
    Table,
    /// One line per interval, which is a JSON object
    Json,
    /// One line per device and interval
    Csv,
}
