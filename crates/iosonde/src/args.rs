//! The command line, parsed by clap. `iosonde fio` is not parsed here: its arguments are fio's.

pub(crate) mod argument_error;
mod beside_args;
mod ceph_args;
mod cluster_access_args;
mod cluster_args;
mod cold_args;
mod consent_args;
mod csi_args;
mod doctor_args;
#[cfg(test)]
mod documented_commands;
mod expect_args;
mod first_examples;
mod given_cluster_options;
mod history;
mod k8s_args;
mod lifecycle_args;
mod limits_args;
mod load_args;
mod merge_args;
#[cfg(test)]
mod option_help;
mod output_file;
mod outside_args;
mod plot_args;
mod pts_args;
mod rados_args;
mod rbd_args;
mod render_args;
mod run_args;
mod sweep_args;
mod unknown_argument;
mod watch_args;
mod without_ceph;
mod written;
pub(crate) mod wrong;

pub(crate) use beside_args::*;
pub(crate) use ceph_args::*;
pub(crate) use cluster_access_args::*;
pub(crate) use cluster_args::*;
pub(crate) use cold_args::*;
pub(crate) use consent_args::*;
pub(crate) use csi_args::*;
pub(crate) use doctor_args::*;
pub(crate) use expect_args::*;
pub(crate) use history::*;
pub(crate) use k8s_args::*;
pub(crate) use lifecycle_args::*;
pub(crate) use limits_args::*;
pub(crate) use load_args::*;
pub(crate) use merge_args::*;
pub(crate) use outside_args::*;
pub(crate) use plot_args::*;
pub(crate) use pts_args::*;
pub(crate) use rados_args::*;
pub(crate) use rbd_args::*;
pub(crate) use render_args::*;
pub(crate) use run_args::*;
pub(crate) use sweep_args::*;
pub(crate) use watch_args::*;
pub(crate) use without_ceph::*;
pub(crate) use written::*;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use iosonde_job::value::{Bytes, TimeUnit, bytes, time_ns};
use iosonde_report::format::Format;
use output_file::{OutputFileKind, output_file, text_file};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  iosonde probe                     measure this directory, in about a minute and a half
  iosonde probe --quick /mnt/data   a first estimate, in about 20 seconds
  iosonde probe /srv /mnt/nfs       compare two targets
  iosonde doctor /mnt/data          find conditions that would distort a measurement
  iosonde fio job.fio               run an unchanged fio job file
  iosonde fio --name=t --rw=randread --bs=4k --size=1g --direct=1 --runtime=10

Results go to standard output; messages and progress go to standard error. The exit status is 0 on \
success; docs/exit-status.md lists the others.";

/// The version that `--version` prints. A build without Ceph or for clusters only says so.
const VERSION: &str = match (cfg!(feature = "local"), WITHOUT_CEPH) {
    (false, _) => concat!(env!("CARGO_PKG_VERSION"), " (only for clusters)"),
    (true, true) => concat!(env!("CARGO_PKG_VERSION"), " (without Ceph)"),
    (true, false) => env!("CARGO_PKG_VERSION"),
};

/// Measures storage the way it will be used.
#[derive(Debug, Parser)]
#[command(
    name = "iosonde",
    version = VERSION,
    about,
    after_help = EXAMPLES,
    max_term_width = 100,
    mut_subcommands(first_examples::with_first_examples)
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Measure how fast directories, files, block devices or volumes are
    #[command(after_help = PROBE_EXAMPLES)]
    Probe(ProbeArgs),
    /// Run fio jobs, with fio's command line and unchanged job files
    ///
    /// iosonde reads all arguments as fio does: `iosonde fio --help` lists fio's options, and those
    /// of targets in a cluster (--target, --pods, --render, ...). A link to iosonde with the name
    /// `fio` behaves as `iosonde fio`. The options that store the result, --label, --store and
    /// --no-save, are those of `iosonde probe` and precede the word fio:
    /// `iosonde --label disk=new fio job.fio`.
    #[command(after_help = FIO_EXAMPLES, disable_help_flag = true)]
    Fio {
        /// fio's command line
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGS"
        )]
        args: Vec<std::ffi::OsString>,
    },
    /// Measure a workload over values of its options: iodepth, block size, number of jobs
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// Measure latency over the offered rate, and the rate that keeps a latency objective
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadArgs),
    /// Measure a full device in steady state, after preconditioning, as SNIA's PTS specifies
    #[command(after_help = PTS_EXAMPLES)]
    Pts(PtsArgs),
    /// Run a suite, from a file or built in, and judge the results
    #[command(after_help = examples_of_build(RUN_EXAMPLES))]
    Run(RunArgs),
    /// Show the activity of disks, network and NFS live, in the columns of sar and iostat -x
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Identify targets, and find conditions that would distort a measurement
    #[command(
        after_help = DOCTOR_EXAMPLES,
        mut_args(option_of_doctor)
    )]
    Doctor(DoctorArgs),
    /// Measure storage classes of a Kubernetes cluster, with kubestr's flags
    #[command(after_help = K8S_EXAMPLES)]
    K8s(K8sArgs),
    /// Benchmark a Ceph pool, with the command line of `rados bench`
    #[command(after_help = RADOS_EXAMPLES)]
    #[cfg_attr(
        not(feature = "ceph"),
        command(
            hide = true,
            about = "Benchmark a Ceph pool (not in this build, which is without Ceph)"
        )
    )]
    Rados(RadosArgs),
    /// Benchmark an image of a Ceph pool, with the command line of `rbd bench`
    #[command(after_help = RBD_EXAMPLES)]
    #[cfg_attr(
        not(feature = "ceph"),
        command(
            hide = true,
            about = "Benchmark a Ceph image (not in this build, which is without Ceph)"
        )
    )]
    Rbd(RbdArgs),
    /// Print the limits that a vendor publishes for a volume
    #[command(after_help = LIMITS_EXAMPLES)]
    Limits(LimitsArgs),
    /// List the results in the history
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Print a stored result, or figures of all stored results by their labels and facts
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Compare two results: ratios with their 95 % intervals
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Add runs of one workload, by their histograms, to one result
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Write a stored result as JSON, CSV, Markdown or fio's JSON, or the whole history
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Import results of iosonde or fio from files, or whole histories, into the history
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Remove results from the history
    #[command(after_help = RM_EXAMPLES)]
    Rm(RmArgs),
    /// Write a report of results: one HTML file that works offline
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Draw one chart of results as an SVG or PNG file
    #[command(after_help = PLOT_EXAMPLES)]
    Plot(PlotArgs),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page; `man -l -` displays it
    #[command(hide = true)]
    Man {
        /// Write the page of each command into this directory instead
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

const FIO_EXAMPLES: &str = "\
Examples:
  iosonde fio job.fio                           an unchanged job file
  iosonde fio --name=t --rw=randread --bs=4k --size=1g --direct=1 --runtime=10
  iosonde fio --target sc://fast job.fio        in a pod, on a volume of a storage class";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  iosonde completions bash > /etc/bash_completion.d/iosonde
  iosonde completions fish > ~/.config/fish/completions/iosonde.fish";

const PROBE_EXAMPLES: &str = "\
Examples:
  iosonde probe                                 this directory
  iosonde probe /mnt/data --format json         a JSON document, for programs
  iosonde probe /mnt/data --precision 0.5% --runtime 30
                                                narrower intervals: at most 30 s per phase
  iosonde probe /mnt/data --repeat 5            mean and spread of five probes, outliers named
  iosonde probe /dev/nvme1n1                    a block device, which is only read
  iosonde probe /dev/nvme1n1 --allow-overwrite /dev/nvme1n1
                                                also written: destroys the data on it
  iosonde probe /mnt/data --expect aws-gp3:100GiB
                                                compared with the limits of `iosonde limits`
  iosonde probe sc://fast sc://cheap --claim-size 10g
                                                storage classes of a Kubernetes cluster

In a directory, iosonde writes a working file named .iosonde-probe-* and removes it at the end, \
also after Ctrl-C. An existing file or block device is only read, unless --allow-overwrite names \
it.";

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Directories, files or block devices; rados://POOL[/NAMESPACE],
    /// rbd://POOL/[NAMESPACE/]IMAGE[@SNAPSHOT] or rbd://POOL/?size=SIZE (an image that is made and
    /// removed) in a Ceph cluster; or volumes of a Kubernetes cluster: sc://CLASS,
    /// pvc://[NAMESPACE/]NAME, emptydir://, hostpath:///PATH, ephemeral://CLASS, pods://SELECTOR
    /// (pods that exist); or sim:NAME, a simulated device: `iosonde probe sim:` lists the names
    #[arg(default_value = ".", value_name = "TARGET")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "Directories, files or block devices; or volumes of a Kubernetes cluster: \
                    sc://CLASS, pvc://[NAMESPACE/]NAME, emptydir://, hostpath:///PATH, \
                    ephemeral://CLASS, pods://SELECTOR (pods that exist); or sim:NAME, a \
                    simulated device: `iosonde probe sim:` lists the names"
        )
    )]
    pub(crate) targets: Vec<String>,
    /// Make a first estimate, in about 20 seconds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Size of the working set, e.g. 512m or 10g [default: 4g, but at most a tenth of the free
    /// space and the bytes that 16 s of writing take]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Maximum measuring time per phase, e.g. 30 or 2m [default: 6 s]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) runtime: Option<u64>,
    /// End a phase early once its rate is steady and its 95 % confidence interval is no wider than
    /// plus or minus this share; 0 never ends a phase early [default: 1%; with --quick 5%]
    #[arg(long, value_parser = share, value_name = "PERCENT")]
    pub(crate) precision: Option<f64>,
    /// Probe each target this number of times, 2 to 20, and print the mean of all runs with the
    /// interval between them, the lowest and the highest run, and outliers
    #[arg(
        long,
        value_parser = clap::value_parser!(u32).range(2..=20),
        conflicts_with = "render",
        value_name = "N"
    )]
    pub(crate) repeat: Option<u32>,
    /// Whether to bypass the page cache with O_DIRECT, 0 or 1
    #[arg(
        long,
        default_value = "1",
        value_parser = switch,
        action = clap::ArgAction::Set,
        value_name = "0|1"
    )]
    pub(crate) direct: bool,
    /// Seed of the random offsets
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print all details: intervals of latencies, device, machine, cluster and all notes; `iosonde
    /// show` prints them later
    #[arg(long, conflicts_with = "brief")]
    pub(crate) details: bool,
    /// Print only the table, the maximum and the verdict
    #[arg(long)]
    pub(crate) brief: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// File to write results to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    /// Exit with status 7 if the measurements prove a promise broken
    #[arg(long, requires = "expect")]
    pub(crate) fail_if_broken: bool,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    #[command(flatten)]
    pub(crate) cold: ColdArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) pods: PodsArgs,
    #[command(flatten)]
    pub(crate) render: RenderArgs,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  iosonde report 3f2a -o report.html            a stored result, as `iosonde list` shows it
  iosonde report disk=old disk=new -o report.html
                                                all results with these labels
  iosonde report 'kernel=6.8*' -o report.html   all results with this fact
  iosonde probe /mnt/data --format json | iosonde report - -o report.html
  iosonde report disk.json --expect gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8 -o report.html

The report is one self-contained file: it can be mailed, stored with the results and opened \
offline. See docs/report.md.";

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Stored results by ID, `latest` or `latest~1`; labels or facts KEY=VALUE; or JSON files of
    /// iosonde or fio; `-` is standard input [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// File to write the report to, instead of standard output
    #[arg(
        long,
        short,
        value_name = "FILE",
        value_parser = output_file(OutputFileKind::Page)
    )]
    pub(crate) output: Option<PathBuf>,
    /// Title of the report [default: the kind of study and its target]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

fn parse_size(text: &str) -> Result<u64, String> {
    bytes(text, Bytes::Binary)
        .map_err(|error| format!("{}; write for example 512m or 4g", error.message))
}

/// Parses a size in the words of Ceph's programs, which must be more than 0.
fn positive_size(text: &str) -> Result<u64, String> {
    match bytes(text, Bytes::Binary) {
        Ok(0) => Err("must be more than 0".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.message),
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    match seconds_or_none(text)? {
        0 => Err("must be more than 0".to_owned()),
        ns => Ok(ns),
    }
}

/// Parses a time, which may be 0.
fn seconds_or_none(text: &str) -> Result<u64, String> {
    time_ns(text, TimeUnit::Seconds)
        .map_err(|error| format!("{}; write for example 30 or 5m", error.message))
}

/// Parses `1%` or `1` as a share.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0 to 50, e.g. 0.5%".to_owned()),
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("write 0 or 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_passes_clap_checks() {
        Cli::command().debug_assert();
    }

    #[test]
    fn invalid_size_and_time_errors_show_example() {
        let example = "; write for example ";
        for said in [parse_size("10q"), seconds("abc"), seconds_or_none("soon")] {
            let error = said.unwrap_err();
            assert!(error.contains(example), "{error}");
        }
        assert!(!seconds("0").unwrap_err().contains(example));
    }

    #[test]
    fn help_texts_match_snapshots() {
        let help = |words: &[&str]| {
            let error = Cli::try_parse_from(words).unwrap_err();
            error.render().to_string()
        };
        insta::assert_snapshot!("help", help(&["iosonde", "--help"]));
        insta::assert_snapshot!("help_probe", help(&["iosonde", "probe", "--help"]));
    }

    #[test]
    fn commands_with_targets_describe_simulated_devices() {
        let root = Cli::command();
        for name in ["probe", "sweep", "load", "pts", "run"] {
            let command = root.find_subcommand(name).unwrap();
            let described = command
                .get_positionals()
                .filter_map(|argument| argument.get_help())
                .any(|help| help.to_string().contains("sim:NAME"));
            assert!(described, "{name}");
        }
    }

    #[test]
    fn probe_parses_sizes_and_times_as_fio() {
        let cli = Cli::try_parse_from(["iosonde", "probe", "--size=512m", "--runtime=2m"]).unwrap();
        let CliCommand::Probe(args) = cli.command else {
            panic!("not a probe");
        };
        assert_eq!(args.size, Some(512 << 20));
        assert_eq!(args.runtime, Some(120_000_000_000));
        assert_eq!(args.precision, None);
        assert_eq!((share("0.5%"), share("2")), (Ok(0.005), Ok(0.02)));
        assert!(share("%").is_err() && share("-1").is_err() && share("nan").is_err());
        assert!(args.direct);
        let buffered = Cli::try_parse_from(["iosonde", "probe", "--direct=0"]).unwrap();
        assert!(matches!(buffered.command, CliCommand::Probe(args) if !args.direct));
        assert_eq!(args.targets, ["."]);
    }
}
