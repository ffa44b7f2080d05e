//! Arguments of `iosonde limits`.

use super::output_file::text_file;
use clap::{Args, ValueEnum};
use iosonde_limits::ChosenBandwidth;
use std::path::PathBuf;

pub(crate) const LIMITS_EXAMPLES: &str = "\
Examples:
  iosonde limits                                       all products
  iosonde limits gcp-pd-ssd --size 375GiB --machine n1 --vcpus 8
  iosonde limits gcp-pd-ssd --size 375GiB --as-of 2016
  iosonde limits aws-gp3 --size 1TiB --iops 16000 --throughput 500 --machine m5.large
  iosonde limits gcp-local-ssd-nvme --disks 24 --machine n1-standard-8 --service gke
  iosonde limits --machine e2-medium                   whether this machine takes local SSDs
  iosonde limits azure-premium-ssd:size=1TiB,with=performance-plus

The last form is the syntax of `probe --expect`. docs/limits.md describes the limits file.";

/// Arguments of `iosonde limits`.
#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    /// Product, e.g. gcp-pd-ssd, or with parameters PRODUCT:KEY=VALUE,... [default: list all
    /// products]
    #[arg(value_name = "PRODUCT")]
    pub(crate) product: Option<String>,
    /// Size of each volume, e.g. 375GiB or 2TiB; a number without unit is in GiB
    #[arg(long, value_parser = iosonde_limits::size_gib, value_name = "SIZE")]
    pub(crate) size: Option<f64>,
    /// Number of volumes or local disks, all on one machine
    #[arg(long, visible_alias = "count", value_parser = iosonde_limits::count, value_name = "N")]
    pub(crate) disks: Option<u32>,
    /// Machine type or family, e.g. n1-standard-8, n1, m5.large
    #[arg(long, value_name = "TYPE")]
    pub(crate) machine: Option<String>,
    /// Number of vCPUs of the machine, if its type does not determine it
    #[arg(long, value_parser = iosonde_limits::count, value_name = "N")]
    pub(crate) vcpus: Option<u32>,
    /// Processor of the machine, if its type does not determine it, e.g. "Ice Lake"
    #[arg(long, value_name = "NAME")]
    pub(crate) cpu: Option<String>,
    /// Provisioned IOPS of each volume, e.g. 16000 or 16k
    #[arg(long, value_parser = iosonde_limits::parse_iops, value_name = "IOPS")]
    pub(crate) iops: Option<f64>,
    /// Provisioned bandwidth of each volume, e.g. 500MiB/s; a number without unit is in the
    /// vendor's unit
    #[arg(long, value_parser = iosonde_limits::bandwidth, value_name = "BANDWIDTH")]
    pub(crate) throughput: Option<ChosenBandwidth>,
    /// A purchased option, e.g. performance-plus; may be repeated
    #[arg(long, value_name = "OPTION")]
    pub(crate) with: Vec<String>,
    /// Service that provides the machine, e.g. gke
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Date of the limits: a year, month or day, e.g. 2016 or 2016-08-12 [default: the newest
    /// limits]
    #[arg(long, value_parser = iosonde_limits::parse_date, value_name = "DATE")]
    pub(crate) as_of: Option<String>,
    /// File with further limits, added to the published ones
    #[arg(long, visible_alias = "limits-file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = LimitsFormat::Table)]
    pub(crate) format: LimitsFormat,
    /// File to write the limits to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
}

impl LimitsArgs {
    /// The first given option that needs a product.
    pub(crate) fn about_a_product(&self) -> Option<&'static str> {
        [
            (self.size.is_some(), "size"),
            (self.disks.is_some(), "disks"),
            (self.machine.is_some(), "machine"),
            (self.vcpus.is_some(), "vcpus"),
            (self.cpu.is_some(), "cpu"),
            (self.iops.is_some(), "iops"),
            (self.throughput.is_some(), "throughput"),
            (!self.with.is_empty(), "with"),
            (self.service.is_some(), "service"),
            (self.as_of.is_some(), "as-of"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// How limits are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitsFormat {
    /// Tables for people
    Table,
    /// The complete result, for programs
    Json,
    /// One line per figure
    Csv,
    /// Tables for a report or an issue
    Markdown,
}
