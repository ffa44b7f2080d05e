//! Arguments of `iosonde k8s lifecycle`.

use super::output_file::text_file;
use super::{ClusterArgs, KeepArgs};
use clap::Args;
use iosonde_report::format::TextFormat;
use std::path::PathBuf;

/// The end of `iosonde k8s lifecycle --help`.
pub(crate) const LIFECYCLE_EXAMPLES: &str = "\
Examples:
  iosonde k8s lifecycle sc://fast                  ten volumes, one after the other
  iosonde k8s lifecycle sc://fast sc://cheap --count 1,10,100 --claim-size 1g
                                                   two classes in turns; where they queue
  iosonde compare latest~1 latest                  two life cycles, e.g. before an upgrade

iosonde creates claims and pods, and removes all of them, also after Ctrl-C. If iosonde is killed, \
the cluster removes them within five minutes. See docs/kubernetes.md.";

/// Help of `--timeout`, which means more than the start of a pod here.
pub(crate) const LIFECYCLE_TIMEOUT_HELP: &str = "\
Maximum time without progress of any volume, after which those that are waited for have failed; \
also the maximum time until the first pod runs [default: 5m]";

/// Options of targets in a cluster that have no effect on a life cycle.
pub(crate) const UNUSED_BY_LIFECYCLE: [&str; 3] = ["medium", "watch_nodes", "keep_failed"];

/// Arguments of `iosonde k8s lifecycle`.
#[derive(Debug, Args)]
pub(crate) struct LifecycleArgs {
    /// Storage classes, as sc://CLASS
    #[arg(required = true, value_name = "CLASS")]
    pub(crate) classes: Vec<String>,
    /// Number of volumes to provision at the same time; several numbers, as in 1,10,100, show which
    /// stages the cluster does for one volume after the other
    #[arg(
        long = "count",
        default_value = "1",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=1000),
        value_name = "N"
    )]
    pub(crate) counts: Vec<u32>,
    /// Rounds of each class and count [default: enough for ten volumes, at least 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) rounds: Option<u32>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::K8sCommand;
    use clap::{Parser, Subcommand};

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        lifecycle: LifecycleArgs,
    }

    #[test]
    fn lifecycle_help_says_that_the_timeout_counts_from_progress() {
        let mut command = K8sCommand::augment_subcommands(clap::Command::new("k8s"));
        let lifecycle = command.find_subcommand_mut("lifecycle").unwrap();
        let help = lifecycle.render_help().to_string();
        let words: Vec<&str> = help.split_whitespace().collect();
        let help = words.join(" ");
        assert!(
            help.contains("time without progress of any volume"),
            "{help}"
        );
    }

    #[test]
    fn counts_are_a_list_of_at_least_one_volume() {
        let read = |line: &str| Words::try_parse_from(line.split(' '));
        let words = read("x sc://a sc://b --count 1,10,100").unwrap();
        assert_eq!(words.lifecycle.classes, ["sc://a", "sc://b"]);
        assert_eq!(words.lifecycle.counts, [1, 10, 100]);
        assert_eq!(read("x sc://a").unwrap().lifecycle.counts, [1]);
        for line in ["x", "x sc://a --count 0", "x sc://a --rounds 0"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
