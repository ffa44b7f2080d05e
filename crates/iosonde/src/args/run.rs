//! Arguments of `iosonde run`.

use super::{CephArgs, ClusterArgs, KeepArgs, OutsideArgs, WrittenArgs};
use clap::Args;
use std::path::PathBuf;

/// What `iosonde run --help` ends with.
pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  iosonde run --list                            the suites that come with iosonde
  iosonde run etcd /var/lib/etcd                is this disk good enough for etcd?
  iosonde run --show etcd > etcd.toml           a suite to start from
  iosonde run suite.toml --check                is it right? Nothing is read or written
  iosonde run suite.toml --junit result.xml     for CI: exit status 11 if an expectation is missed
  iosonde run suite.toml --var size=1g --label build=main /mnt/data
  iosonde run ceph-article rados://pool rbd://pool/image /mnt/cephfs --report ceph.html
  iosonde run etcd sc://fast sc://cheap         storage classes of a cluster, in turns

docs/suites.md describes the files; `iosonde run --schema` prints their JSON Schema for editors.";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A suite: a TOML or YAML file, or the name of a built-in one
    #[arg(value_name = "SUITE", required_unless_present_any = ["list", "show", "schema"])]
    pub(crate) suite: Option<String>,
    /// Directories, files, block devices, rados://POOL or rbd://POOL/IMAGE, or targets in a cluster
    /// such as sc://CLASS, in place of those that the suite names
    #[arg(value_name = "TARGET")]
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
    /// Tell all that is wrong with the suite and its targets, on a cluster too, and measure nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what would be run and how long it takes, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Set a variable of the suite; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = crate::store::split_label)]
    pub(crate) variables: Vec<(String, String)>,
    /// Go on where the same suite was stopped
    #[arg(long)]
    pub(crate) resume: bool,
    /// Also measure workloads of more than 10000 runs or cells
    #[arg(long)]
    pub(crate) yes: bool,
    /// Also write the verdicts as a JUnit file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also write a report of all targets, an HTML file that opens anywhere
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Exit with status 11, not 12, if an expectation is undecided
    #[arg(long)]
    pub(crate) fail_if_unclear: bool,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
    /// A limits file of your own, beside the published one; docs/limits.md describes it
    #[arg(long, value_name = "FILE")]
    pub(crate) limits_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
