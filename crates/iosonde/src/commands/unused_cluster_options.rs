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

/// Refuses options of pods and volumes that `doctor --cluster` does not create. Its trials create
/// both, and its inspections of nodes only pods.
pub(super) fn refuse_options_without_trial(args: &DoctorArgs) -> Result<(), CommandError> {
    if args.trial {
        return Ok(());
    }
    let place = &args.place;
    if let Some(option) = place.option_of_new_volumes() {
        return Err(CommandError::usage(
            format!("{option} has no effect: doctor --cluster creates volumes only for trials"),
            format!("add --trial, or leave out {option}"),
        ));
    }
    if args.inspect_nodes {
        return Ok(());
    }
    let timeout = place.timeout.map(|_| "--timeout");
    match place.option_of_pod_manifests().or(timeout) {
        None => Ok(()),
        Some(option) => Err(CommandError::usage(
            format!(
                "{option} has no effect: doctor --cluster creates pods only with --trial or \
                 --inspect-nodes"
            ),
            format!("add --trial or --inspect-nodes, or leave out {option}"),
        )),
    }
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

    fn doctor(words: &[&str]) -> DoctorArgs {
        let line = ["iosonde", "doctor", "--cluster"].iter().chain(words);
        match Cli::try_parse_from(line).unwrap().command {
            CliCommand::Doctor(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn doctor_refuses_options_of_volumes_without_trial() {
        for given in [
            ["--claim-size", "50m"],
            ["--volume-mode", "block"],
            ["--access-mode", "rwx"],
        ] {
            let refused = format!(
                "error: {0} has no effect: doctor --cluster creates volumes only for trials\nhelp: \
                 add --trial, or leave out {0}",
                given[0]
            );
            for more in [&["--clean"][..], &["--inspect-nodes"], &[]] {
                let args = doctor(&[&given[..], more].concat());
                assert_usage_error(refuse_options_without_trial(&args), Some(&refused));
            }
            let tried = doctor(&[&given[..], &["--trial"]].concat());
            assert_usage_error(refuse_options_without_trial(&tried), None);
        }
    }

    #[test]
    fn doctor_refuses_options_of_pods_without_pods() {
        for given in [
            &["--image", "busybox"][..],
            &["--node-selector", "disk=ssd"],
            &["--toleration", "*"],
            &["--node-affinity", "zone=a"],
            &["--priority-class", "high"],
            &["--requests", "cpu=1"],
            &["--limits", "cpu=1"],
            &["--image-pull-secret", "registry"],
            &["--service-account", "bench"],
            &["--pod-label", "a=b"],
            &["--pod-annotation", "a=b"],
            &["--pod-patch", "{}"],
            &["--run-as", "0"],
            &["--deadline", "1h"],
            &["--timeout", "20"],
            &["--create-namespace", "-n", "bench"],
        ] {
            let refused = format!(
                "error: {0} has no effect: doctor --cluster creates pods only with --trial or \
                 --inspect-nodes\nhelp: add --trial or --inspect-nodes, or leave out {0}",
                given[0]
            );
            for more in [&["--clean"][..], &[]] {
                let args = doctor(&[given, more].concat());
                assert_usage_error(refuse_options_without_trial(&args), Some(&refused));
            }
            for used in ["--trial", "--inspect-nodes"] {
                let args = doctor(&[given, &[used]].concat());
                assert_usage_error(refuse_options_without_trial(&args), None);
            }
        }
    }

    #[test]
    fn doctor_accepts_options_of_the_cluster_without_trial() {
        let line = "--kubeconfig k --context lab -n bench --ephemeral-storage 1g --watch-node none";
        let args = doctor(&line.split(' ').collect::<Vec<_>>());
        assert_usage_error(refuse_options_without_trial(&args), None);
    }

    #[test]
    fn keep_needs_the_trials_of_a_doctor() {
        let judge = |words: &[&str]| refuse_keep_without_trial(&doctor(words));
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
