//! Arguments of `iosonde run`.

use super::output_file::{OutputFileKind, output_file};
use super::{
    BesideArgs, CephArgs, ClusterArgs, ColdArgs, KeepArgs, OutsideArgs, PodsArgs, RenderArgs,
    WrittenArgs,
};
use clap::Args;
use std::path::PathBuf;

/// The end of `iosonde run --help`.
pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  iosonde run --list                            list the built-in suites
  iosonde run etcd /var/lib/etcd                check whether this disk is fast enough for etcd
  iosonde run etcd --beside 'rw=write bs=64k rate=50m'
                                                alone and beside a neighbour, with the ratios
  iosonde run --show etcd > etcd.toml           copy a built-in suite, to be changed
  iosonde run suite.toml --check                report errors of the suite, without any I/O
  iosonde run suite.toml --junit result.xml     for CI: exit status 11 if an expectation is missed
  iosonde run suite.toml --var size=1g --label build=main /mnt/data
  iosonde run ceph-article rados://pool rbd://pool/image /mnt/cephfs --report ceph.html
  iosonde run etcd sc://fast sc://cheap         compare storage classes of a cluster
  iosonde run suite.toml sc://fast --pods 4     four pods at the same time, with a volume each

docs/suites.md describes the files; `iosonde run --schema` prints their JSON Schema for editors.";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Suite: a TOML or YAML file, or the name of a built-in suite
    #[arg(value_name = "SUITE", required_unless_present_any = ["list", "show", "schema"])]
    pub(crate) suite: Option<String>,
    /// Directories, files, block devices, rados://POOL or rbd://POOL/IMAGE, targets in a
    /// Kubernetes cluster, e.g. sc://CLASS, or sim:NAME, a simulated device (`iosonde probe sim:`
    /// lists the names); they replace the targets that the suite names
    #[arg(value_name = "TARGET")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "Directories, files, block devices, targets in a Kubernetes cluster, e.g. \
                    sc://CLASS, or sim:NAME, a simulated device (`iosonde probe sim:` lists the \
                    names); they replace the targets that the suite names"
        )
    )]
    pub(crate) targets: Vec<String>,
    /// List the built-in suites
    #[arg(long)]
    pub(crate) list: bool,
    /// Print the file of a built-in suite
    #[arg(long, value_name = "SUITE")]
    pub(crate) show: Option<String>,
    /// Print the JSON Schema of suite files
    #[arg(long)]
    pub(crate) schema: bool,
    /// Report all errors of the suite and its targets, also in a cluster, and measure nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Show the steps and the time that they take, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Set a variable of the suite; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = iosonde_history::split_label)]
    pub(crate) variables: Vec<(String, String)>,
    /// Resume the same suite where it was stopped
    #[arg(long)]
    pub(crate) resume: bool,
    /// Allow workloads of more than 10000 runs or cells
    #[arg(long)]
    pub(crate) yes: bool,
    /// Write the verdicts as a JUnit file too
    #[arg(long, value_name = "FILE", value_parser = output_file(OutputFileKind::Junit))]
    pub(crate) junit: Option<PathBuf>,
    /// Write a report of all targets too: an HTML file that works offline
    #[arg(long, value_name = "FILE", value_parser = output_file(OutputFileKind::Page))]
    pub(crate) report: Option<PathBuf>,
    /// Exit with status 11 instead of 12 if an expectation is undecided
    #[arg(long)]
    pub(crate) fail_if_unclear: bool,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
    /// File with further limits, added to the published ones; docs/limits.md describes the format
    #[arg(long, value_name = "FILE")]
    pub(crate) limits_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    #[command(flatten)]
    pub(crate) cold: ColdArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) pods: PodsArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) render: RenderArgs,
}
