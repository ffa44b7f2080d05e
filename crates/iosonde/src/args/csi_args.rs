//! Arguments of `iosonde k8s csi`.

use super::output_file::text_file;
use super::{ClusterArgs, KeepArgs, parse_size, seconds};
use clap::{Args, ValueEnum};
use iosonde_report::format::TextFormat;
use iosonde_result::data_service::DataService;
use std::path::PathBuf;

/// The end of `iosonde k8s csi --help`.
pub(crate) const CSI_EXAMPLES: &str = "\
Examples:
  iosonde k8s csi sc://fast                        all services with 64 MiB and 256 MiB of data
  iosonde k8s csi sc://fast --data-size 64m,1g,4g --claim-size 10g
                                                   durations over the size of the data
  iosonde k8s csi sc://fast --services clone,expand --app 'rw=randwrite bs=4k fsync=1'
                                                   no snapshots, beside another application

iosonde creates claims, pods and snapshots, and removes all of them, also after Ctrl-C. If iosonde \
is killed, the cluster removes them within five minutes, but not volumes that the class retains: \
iosonde doctor --cluster --clean does that. See docs/kubernetes.md.";

/// Options of targets in a cluster that have no effect on data services.
pub(crate) const UNUSED_BY_CSI: [&str; 3] = ["medium", "watch_nodes", "volume_mode"];

/// Arguments of `iosonde k8s csi`.
#[derive(Debug, Args)]
pub(crate) struct CsiArgs {
    /// Storage class, as sc://CLASS
    #[arg(value_name = "CLASS")]
    pub(crate) class: String,
    /// Data services of the CSI driver to measure
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "snapshot,restore,clone,expand",
        value_name = "SERVICE"
    )]
    pub(crate) services: Vec<ServiceArg>,
    /// Sizes of the data that are written and compared by checksum, in whole MiB
    #[arg(
        long = "data-size",
        value_parser = parse_size,
        value_delimiter = ',',
        default_value = "64m,256m",
        value_name = "SIZE"
    )]
    pub(crate) data_sizes: Vec<u64>,
    /// Rounds of each size
    #[arg(
        long,
        default_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=100),
        value_name = "N"
    )]
    pub(crate) rounds: u32,
    /// Time before and after each service in which only the application runs
    #[arg(
        long = "window",
        default_value = "5s",
        value_parser = seconds,
        value_name = "TIME"
    )]
    pub(crate) window_ns: u64,
    /// The application that runs on the volume meanwhile, as options of a fio job
    #[arg(
        long = "app",
        default_value = "rw=randrw bs=4k rate_iops=200 rate_process=poisson",
        value_name = "OPTIONS"
    )]
    pub(crate) application: String,
    /// VolumeSnapshotClass of the snapshots [default: the default class of the driver, else its
    /// first]
    #[arg(long, value_name = "NAME")]
    pub(crate) snapshot_class: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// `--services`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceArg {
    /// Take a snapshot of the volume
    Snapshot,
    /// Make a volume from a snapshot
    Restore,
    /// Make a volume from another
    Clone,
    /// Expand the volume by 1 GiB
    Expand,
}

impl ServiceArg {
    /// Returns the service.
    pub(crate) fn service(self) -> DataService {
        match self {
            ServiceArg::Snapshot => DataService::Snapshot,
            ServiceArg::Restore => DataService::Restore,
            ServiceArg::Clone => DataService::Clone,
            ServiceArg::Expand => DataService::Expand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        csi: CsiArgs,
    }

    #[test]
    fn services_and_sizes_are_lists_with_defaults() {
        let read = |line: &str| Words::try_parse_from(line.split(' '));
        let usual = read("x sc://a").unwrap().csi;
        assert_eq!(usual.data_sizes, [64 << 20, 256 << 20]);
        assert_eq!((usual.services.len(), usual.rounds), (4, 3));
        assert_eq!(usual.window_ns, 5_000_000_000);
        let given = read("x sc://a --services clone,expand --data-size 1g --window 1m").unwrap();
        let services: Vec<_> = given.csi.services.iter().map(|one| one.service()).collect();
        assert_eq!(services, [DataService::Clone, DataService::Expand]);
        assert_eq!(given.csi.data_sizes, [1 << 30]);
        assert_eq!(given.csi.window_ns, 60_000_000_000);
        for line in ["x", "x sc://a --services backup", "x sc://a --rounds 0"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
