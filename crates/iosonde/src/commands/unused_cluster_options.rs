//! Refuses options of clusters that have no effect on one command.

use crate::args::{ClusterArgs, DoctorArgs};
use crate::failure::CommandError;

/// Refuses the name of a node in `--watch-node` for a command that watches no nodes. `none` asks
/// for that, and is accepted.
pub(super) fn refuse_watched_nodes(args: &ClusterArgs, command: &str) -> Result<(), CommandError> {
    if args.watch_nodes.iter().all(|node| node == "none") {
        return Ok(());
    }
    Err(CommandError::usage(
        format!("--watch-node has no effect: {command} watches no nodes"),
        "leave out --watch-node; `iosonde watch node/NAME` shows a node meanwhile",
    ))
}

/// Refuses `--keep` for a life cycle, which removes all volumes: their removal is measured.
pub(super) fn refuse_keep_of_volumes(args: &ClusterArgs) -> Result<(), CommandError> {
    if !args.keep_failed {
        return Ok(());
    }
    Err(CommandError::usage(
        "--keep has no effect: k8s lifecycle removes all pods and volumes that it creates",
        "leave out --keep; `iosonde probe sc://CLASS --keep` keeps a pod that does not start",
    ))
}

/// Refuses `--keep` without the trials whose pods and volumes it keeps.
pub(super) fn refuse_keep_without_trial(args: &DoctorArgs) -> Result<(), CommandError> {
    if !args.place.keep_failed || args.trial {
        return Ok(());
    }
    Err(CommandError::usage(
        "--keep has no effect: doctor --cluster keeps only the pods and volumes of trials",
        "add --trial, or leave out --keep",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    /// Checks that the outcome is a usage error with this text, or none.
    fn assert_usage_error(outcome: Result<(), CommandError>, expected: Option<&str>) {
        match (outcome, expected) {
            (Ok(()), None) => {}
            (Err(failure), Some(expected)) => {
                assert_eq!(failure.status(), 2);
                assert_eq!(failure.text(false), expected);
            }
            (outcome, expected) => panic!("{outcome:?}, not {expected:?}"),
        }
    }

    #[test]
    fn named_node_is_refused_by_a_command_that_watches_no_nodes() {
        let judge = |nodes: &[&str]| {
            let args = ClusterArgs {
                watch_nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
                ..ClusterArgs::default()
            };
            refuse_watched_nodes(&args, "k8s csi")
        };
        let refused = "error: --watch-node has no effect: k8s csi watches no nodes\n\
             help: leave out --watch-node; `iosonde watch node/NAME` shows a node meanwhile";
        for nodes in [&["n1"][..], &["none", "n1"]] {
            assert_usage_error(judge(nodes), Some(refused));
        }
        for nodes in [&["none"][..], &[]] {
            assert_usage_error(judge(nodes), None);
        }
    }

    #[test]
    fn keep_is_refused_by_a_life_cycle() {
        let mut args = ClusterArgs::default();
        assert_usage_error(refuse_keep_of_volumes(&args), None);
        args.keep_failed = true;
        let refused = "error: --keep has no effect: k8s lifecycle removes all pods and volumes \
             that it creates\nhelp: leave out --keep; `iosonde probe sc://CLASS --keep` keeps a \
             pod that does not start";
        assert_usage_error(refuse_keep_of_volumes(&args), Some(refused));
    }

    #[test]
    fn keep_needs_the_trials_of_a_doctor() {
        let judge = |words: &[&str]| {
            let line = ["iosonde", "doctor", "--cluster"].iter().chain(words);
            match Cli::try_parse_from(line).unwrap().command {
                CliCommand::Doctor(args) => refuse_keep_without_trial(&args),
                other => panic!("{other:?}"),
            }
        };
        let refused = "error: --keep has no effect: doctor --cluster keeps only the pods and \
             volumes of trials\nhelp: add --trial, or leave out --keep";
        for words in [&["--keep"][..], &["--keep", "--inspect-nodes"]] {
            assert_usage_error(judge(words), Some(refused));
        }
        for words in [&["--keep", "--trial"][..], &[]] {
            assert_usage_error(judge(words), None);
        }
    }
}
