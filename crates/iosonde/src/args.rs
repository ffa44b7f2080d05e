//! The command line, in clap's terms. `iosonde fio` does not come here: its words are fio's.

mod ceph;
mod cluster;
mod consent;
#[cfg(test)]
mod documented_commands;
mod expect;
mod history;
mod load;
mod outside;
mod pts;
mod run;
mod sweep;
mod written;
pub(crate) mod wrong;

pub(crate) use ceph::*;
pub(crate) use cluster::*;
pub(crate) use consent::*;
pub(crate) use expect::*;
pub(crate) use history::*;
pub(crate) use load::*;
pub(crate) use outside::*;
pub(crate) use pts::*;
pub(crate) use run::*;
pub(crate) use sweep::*;
pub(crate) use written::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use iosonde_job::value::{Bytes, TimeUnit, bytes, time_ns};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  iosonde probe                     how fast is this directory? (about a minute and a half)
  iosonde probe --quick /mnt/data   a first impression in 20 seconds
  iosonde probe /srv /mnt/nfs       two targets, side by side
  iosonde doctor /mnt/data          what would spoil a measurement there?
  iosonde fio job.fio               run a fio job file, unchanged
  iosonde fio --name=t --rw=randread --bs=4k --size=1g --direct=1 --runtime=10

Everything iosonde prints as a result goes to standard output; messages and progress go to \
standard error. The exit status is 0 if all went well; see docs/exit-status.md for the others.";

/// Measures storage the way it will be used.
#[derive(Debug, Parser)]
#[command(name = "iosonde", version, about, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// How fast is it? The headline figures of directories, files or block devices
    #[command(after_help = PROBE_EXAMPLES)]
    Probe(ProbeArgs),
    /// Run a fio job: fio's command line and job files, unchanged
    ///
    /// Every argument is read as fio reads it, so `iosonde fio --help` lists fio's options. A link named `fio` to
    /// iosonde behaves as `iosonde fio`. What keeps the result stands before the word fio:
    /// `iosonde --label disk=new fio job.fio`, with --label, --store or --no-save as `iosonde probe` has them.
    #[command(disable_help_flag = true)]
    Fio {
        /// fio's command line
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGS"
        )]
        args: Vec<std::ffi::OsString>,
    },
    /// How does it depend on ...? A workload over any of its options: depth, block size, jobs
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// What latency at which load? Latency over offered rate, and the rate that keeps an objective
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadArgs),
    /// How fast is it once it is full? Preconditioning and steady state after SNIA's PTS
    #[command(after_help = PTS_EXAMPLES)]
    Pts(PtsArgs),
    /// Measure all this, every time, the same way: a suite kept in a file, or a built-in one
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// What is the disk doing now? The columns of sar -d, live
    #[command(after_help = crate::commands::watch::EXAMPLES)]
    Watch(crate::commands::watch::WatchArgs),
    /// Is this machine fit to be measured? What the target is, and what would spoil a measurement
    #[command(after_help = crate::commands::doctor::EXAMPLES)]
    Doctor(crate::commands::doctor::DoctorArgs),
    /// Storage classes of a Kubernetes cluster, with kubestr's flags
    K8s(crate::commands::k8s::K8sArgs),
    /// The benchmark of a Ceph pool, with the command line of `rados bench`
    Rados(crate::commands::rados::RadosArgs),
    /// What was promised? The limits that a vendor publishes for a volume
    #[command(after_help = crate::commands::limits::EXAMPLES)]
    Limits(crate::commands::limits::LimitsArgs),
    /// What has been measured: results in the history
    List(ListArgs),
    /// One result of the history, as it was printed; or figures of all, by their labels
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Is B faster than A? Ratios with their intervals
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Write one result of the history as JSON, CSV, Markdown or fio's JSON
    Export(ExportArgs),
    /// Take results from files into the history: of iosonde, or of fio
    Import(ImportArgs),
    /// Remove results from the history
    Rm(RmArgs),
    /// One HTML file of results, that opens anywhere, offline
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Print a completion script for a shell
    ///
    /// For example: iosonde completions bash > /etc/bash_completion.d/iosonde
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, to be read with `man -l -`
    #[command(hide = true)]
    Man,
}

const PROBE_EXAMPLES: &str = "\
Examples:
  iosonde probe                                 this directory
  iosonde probe /mnt/data --format json         for programs
  iosonde probe /mnt/data --precision 0.5% --runtime 30
                                                surer: at most 30 s for each phase
  iosonde probe /dev/nvme1n1                    a block device: only read
  iosonde probe /dev/nvme1n1 --allow-overwrite /dev/nvme1n1
                                                also written: destroys what is on it
  iosonde probe /mnt/data --expect aws-gp3:100GiB
                                                is it what was bought? See `iosonde limits`
  iosonde probe sc://fast sc://cheap --claim-size 10g
                                                storage classes of a Kubernetes cluster

A directory gets a working file named .iosonde-probe-*, which is removed at the end, also after
Ctrl-C. A file or block device that exists is only read, unless --allow-overwrite names it.";

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Directories, files or block devices; rados://POOL[/NAMESPACE] or rbd://POOL/IMAGE of a Ceph
    /// cluster; or volumes of a Kubernetes cluster: sc://CLASS,
    /// pvc://[NAMESPACE/]NAME, emptydir://, hostpath:///PATH, ephemeral://CLASS
    #[arg(default_value = ".", value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// A first impression in about 20 seconds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Size of the working set, e.g. 512m or 10g [default: 4g, or less: a tenth of the free
    /// space, and what can be written in 16 s]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Most measured time of each of the seven phases, e.g. 30 or 2m [default: 6 s]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) runtime: Option<u64>,
    /// A phase ends before its time when its rate holds still and is known to this, with 95 %
    /// confidence; 0 runs each to its end [default: 1%; with --quick 5%]
    #[arg(long, value_parser = share, value_name = "PERCENT")]
    pub(crate) precision: Option<f64>,
    /// Whether to bypass the page cache with O_DIRECT, 0 or 1
    #[arg(long, default_value = "1", value_parser = switch, action = clap::ArgAction::Set, value_name = "0|1")]
    pub(crate) direct: bool,
    /// Seed of the random offsets
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How results are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// File to write results to, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    /// Exit with status 7 if a promise is shown to be broken
    #[arg(long, requires = "expect")]
    pub(crate) fail_if_broken: bool,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) pods: PodsArgs,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  iosonde report 3f2a -o report.html            a stored result, as `iosonde list` shows it
  iosonde report disk=old disk=new -o report.html
                                                all results with these labels
  iosonde probe /mnt/data --format json | iosonde report - -o report.html
  iosonde report disk.json --expect gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8 -o report.html

The file needs nothing else: it can be mailed, kept beside the results, and opened without a
network. See docs/report.md.";

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Stored results by their ids or `latest`, `latest~1`; labels key=value; or files: iosonde's
    /// JSON or fio's; `-` is standard input [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// File to write the report to, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Title of the report [default: what was measured]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// All that is known, for programs
    Json,
    /// One line for each figure
    Csv,
    /// Tables for a report or an issue
    Markdown,
    /// As fio prints it, one job for each phase
    FioJson,
}

fn size(text: &str) -> Result<u64, String> {
    bytes(text, Bytes::Binary)
        .map_err(|error| format!("{}; write for example 512m or 4g", error.message))
}

fn seconds(text: &str) -> Result<u64, String> {
    match seconds_or_none(text)? {
        0 => Err("must be more than 0".to_owned()),
        ns => Ok(ns),
    }
}

/// A time that may be 0.
fn seconds_or_none(text: &str) -> Result<u64, String> {
    time_ns(text, TimeUnit::Seconds)
        .map_err(|error| format!("{}; write for example 30 or 5m", error.message))
}

/// `1%` or `1`, as a share.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write per cent from 0 to 50, e.g. 0.5%".to_owned()),
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
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_times_that_are_none_say_how_to_write_one() {
        let example = "; write for example ";
        for said in [size("10q"), seconds("abc"), seconds_or_none("soon")] {
            let error = said.unwrap_err();
            assert!(error.contains(example), "{error}");
        }
        assert!(!seconds("0").unwrap_err().contains(example));
    }

    #[test]
    fn help_is_what_a_new_user_reads() {
        let help = |words: &[&str]| {
            let error = Cli::try_parse_from(words).unwrap_err();
            error.render().to_string()
        };
        insta::assert_snapshot!("help", help(&["iosonde", "--help"]));
        insta::assert_snapshot!("help_probe", help(&["iosonde", "probe", "--help"]));
        insta::assert_snapshot!("usage_size", help(&["iosonde", "probe", "--size", "4x"]));
    }

    #[test]
    fn sizes_and_times_are_written_as_in_fio() {
        let cli = Cli::try_parse_from(["iosonde", "probe", "--size=512m", "--runtime=2m"]).unwrap();
        let Command::Probe(args) = cli.command else {
            panic!("not a probe");
        };
        assert_eq!(args.size, Some(512 << 20));
        assert_eq!(args.runtime, Some(120_000_000_000));
        assert_eq!(args.precision, None);
        assert_eq!((share("0.5%"), share("2")), (Ok(0.005), Ok(0.02)));
        assert!(share("%").is_err() && share("-1").is_err() && share("nan").is_err());
        assert!(args.direct);
        let buffered = Cli::try_parse_from(["iosonde", "probe", "--direct=0"]).unwrap();
        assert!(matches!(buffered.command, Command::Probe(args) if !args.direct));
        assert_eq!(args.targets, ["."]);
    }
}
