//! Arguments of `iosonde sweep`: its own, and every option of fio as an axis.

use super::unknown_argument::is_foreign_to_sweep;
use super::{
    BesideArgs, CephArgs, ClusterArgs, ColdArgs, KeepArgs, OutsideArgs, PodsArgs, RenderArgs,
    WrittenArgs, seconds,
};
use clap::{Args, CommandFactory};
use iosonde_job::options::{self, ValueKind};
use std::ffi::OsString;
use std::path::PathBuf;

/// The end of `iosonde sweep --help`.
pub(crate) const SWEEP_EXAMPLES: &str = "\
Examples:
  iosonde sweep /mnt/data --rw randread,randwrite --bs 4k,16k,64k,256k
                                                depths 1 to 256: half a minute per curve
  iosonde sweep /mnt/data --iodepth 1..32+4 --numjobs 1,16
                                                A..B doubles, A..B+STEP adds the step
  iosonde sweep job.fio --iodepth 1..512        a job file: one curve per job
  iosonde sweep /mnt/a /mnt/b --bs 4k,1m        targets are an axis too
  iosonde sweep /mnt/data --budget 5m --export-fio out
  iosonde sweep /mnt/data --working-set 64m..8g --random_distribution random,zipf:1.1 --runtime 10
                                                sizes of caches, and latency of their hits
  iosonde sweep /mnt/data --working-set 1g..64g --direct 0 --warm-up 10m
                                                the same for the page cache

Every option of fio can be an axis: --NAME VALUES, or --axis NAME=VALUES. Without --exhaustive, \
iosonde searches each curve for its maximum and its knee, in a tenth of the time of all cells. \
Cells that were not measured are predicted and marked. See docs/sweep.md.";

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Directories, files, block devices, rados://POOL, rbd://POOL/IMAGE, targets in a Kubernetes
    /// cluster, e.g. sc://CLASS, sim:NAME (a simulated device; `iosonde probe sim:` lists the
    /// names), or a job file
    #[arg(default_value = ".", value_name = "TARGET|JOBFILE")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "Directories, files, block devices, targets in a Kubernetes cluster, e.g. \
                    sc://CLASS, sim:NAME (a simulated device; `iosonde probe sim:` lists the \
                    names), or a job file"
        )
    )]
    pub(crate) targets: Vec<String>,
    /// An option of fio and its values, e.g. --axis iodepth=1..512 or --axis bs=4k,64k, which is
    /// the same as --bs 4k,64k; may be repeated [default: iodepth=1..256]
    #[arg(long = "axis", value_name = "OPTION=VALUES", value_parser = parse_axis)]
    pub(crate) axes: Vec<(String, String)>,
    /// Working-set sizes as an axis, e.g. 64m..8g: iosonde measures each size once caches are warm,
    /// and infers their capacity; iodepth is 1 unless it is an axis too
    #[arg(long, value_name = "SIZES", conflicts_with = "cold")]
    pub(crate) working_set: Option<String>,
    /// Maximum time to wait for caches to warm, per working set, e.g. 10m [default: 5 times
    /// --runtime]
    #[arg(long, value_parser = seconds, requires = "working_set", value_name = "TIME")]
    pub(crate) warm_up: Option<u64>,
    /// Measure every cell for --runtime, instead of a search with predictions
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Measuring time per cell, e.g. 60 (seconds) or 2m; the search of a curve takes a tenth of the
    /// time of its cells
    #[arg(long, default_value = "60", value_parser = seconds, value_name = "TIME")]
    pub(crate) runtime: u64,
    /// Time limit of the sweep, e.g. 20m: the most informative cells are measured first
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) budget: Option<u64>,
    /// Seed of the random order and offsets
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Resume the same sweep where it was stopped
    #[arg(long)]
    pub(crate) resume: bool,
    /// Show the cells, their time and the bytes to be written, and measure nothing
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Allow more than 10000 cells
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print all cells with their latencies, and all advice; `iosonde show` prints them later
    #[arg(long)]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
    /// Write fio's JSON and logs of every measured cell too, named as fio-plot expects
    #[arg(long, value_name = "DIR")]
    pub(crate) export_fio: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    #[command(flatten)]
    pub(crate) cold: ColdArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) pods: PodsArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) render: RenderArgs,
}

fn parse_axis(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        // Missing values are reported later, together with the errors of the other axes.
        Some((name, values)) if !name.is_empty() => Ok((name.to_owned(), values.to_owned())),
        _ => Err("write OPTION=VALUES, e.g. bs=4k,64k".to_owned()),
    }
}

/// Converts fio's options to `--axis`, since clap knows only options of iosonde.
pub(crate) fn with_axes(words: &[OsString]) -> Option<Vec<OsString>> {
    if words.get(1)? != "sweep" {
        return None;
    }
    let command = super::Cli::command();
    let own = command.find_subcommand("sweep")?;
    // Whether an option takes a value; `None`: it is no option of iosonde.
    let takes_value = |name: &str| match name {
        "help" | "version" => Some(false),
        _ => own
            .get_arguments()
            .find(|argument| argument.get_long() == Some(name))
            .map(|argument| argument.get_action().takes_values()),
    };
    let mut made = words[..2].to_vec();
    let mut rest = words[2..].iter().peekable();
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        let Some(option) = text.strip_prefix("--").filter(|name| !name.is_empty()) else {
            made.push(word.clone());
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        match takes_value(name) {
            Some(takes) => {
                made.push(word.clone());
                if takes && value.is_none() {
                    made.extend(rest.next().cloned());
                }
            }
            // clap reports the option with the way of a sweep to the same end.
            None if is_foreign_to_sweep(name) => made.push(word.clone()),
            None => {
                // A flag alone is on: the next argument is not its value.
                let is_flag =
                    options::find_option(name).is_some_and(|row| row.kind == ValueKind::Flag);
                let is_value =
                    |next: &&OsString| !is_flag && !next.to_string_lossy().starts_with("--");
                let next = || Some(rest.next_if(is_value)?.to_string_lossy().into_owned());
                let value = value.or_else(next).unwrap_or_else(|| "1".to_owned());
                made.push("--axis".into());
                made.push(format!("{name}={value}").into());
            }
        }
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, CliCommand};
    use super::*;
    use clap::Parser;

    fn args(line: &str) -> SweepArgs {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let cli = Cli::try_parse_from(with_axes(&words).unwrap()).unwrap();
        match cli.command {
            CliCommand::Sweep(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fio_options_become_axes() {
        let args = args(
            "iosonde sweep /a --bs 4k,8k --iodepth=1..8 --runtime 10 /b --seed=2 --thread /c \
             --direct 0,1 -o x.csv --yes",
        );
        assert_eq!(args.targets, ["/a", "/b", "/c"]);
        let axes: Vec<String> = args.axes.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(axes, ["bs=4k,8k", "iodepth=1..8", "thread=1", "direct=0,1"]);
        assert_eq!(
            (args.runtime, args.seed, args.yes),
            (10_000_000_000, 2, true)
        );
        assert!(with_axes(&["iosonde".into(), "probe".into()]).is_none());
        let foreign = ["iosonde", "sweep", "--quick", "/a"].map(OsString::from);
        assert_eq!(with_axes(&foreign).unwrap(), foreign);
    }

    #[test]
    fn axis_requires_name_and_values() {
        assert_eq!(parse_axis("bs=4k"), Ok(("bs".into(), "4k".into())));
        // The parser of the axes reports missing values.
        assert_eq!(parse_axis("bs="), Ok(("bs".into(), String::new())));
        assert!(parse_axis("bs").is_err() && parse_axis("=4k").is_err());
    }
}
