//! Arguments of `iosonde doctor`.

use super::output_file::text_file;
use super::{ClusterArgs, ONE_CONTEXT_HELP};
use clap::{Arg, Args, ValueEnum};
use iosonde_result::doctor::Severity;
use std::path::PathBuf;

pub(crate) const DOCTOR_EXAMPLES: &str = "\
Examples:
  iosonde doctor                        this machine, and this directory
  iosonde doctor /mnt/data /dev/nvme1n1 two targets
  iosonde doctor --format json          a JSON document; its schema is docs/schema/doctor.json
  iosonde doctor --fail-on warning && iosonde probe
  iosonde doctor --clean                remove leftovers of killed runs here and in the usual places
  iosonde doctor --clean /mnt/nfs       ... and of other hosts there; stop their runs first
  iosonde doctor --cluster              check storage classes and nodes of a Kubernetes cluster
  iosonde doctor --cluster --trial      ... and try a claim of each class
  iosonde doctor --cluster --ephemeral-storage 200g --inspect-nodes
                                        which nodes have this space, and their disks and mounts

Without --cluster or --clean, doctor writes nothing and sends nothing over the network. The check \
takes about a second, to sample the activity of other processes. docs/doctor.md explains each \
finding.";

/// Arguments of `iosonde doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Directories, files or block devices to check
    ///
    /// Default: this directory.
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Exit with status 8 if there is a finding of this severity or worse
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<FailOn>,
    /// Output format
    #[arg(long, value_enum, default_value_t = DoctorFormat::Table)]
    pub(crate) format: DoctorFormat,
    /// File to write the findings to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    /// Check a Kubernetes cluster instead: its storage classes, its nodes, and leftovers of runs
    #[arg(long, conflicts_with = "targets")]
    pub(crate) cluster: bool,
    /// With --cluster: create a claim of each class, mount it and remove it. Where several nodes
    /// can write one volume, a pod on one node reads what a pod on another has written
    #[arg(long, requires = "cluster")]
    pub(crate) trial: bool,
    /// With --cluster: list disks (model, size, sectors) and mounts of each node, by a short-lived
    /// pod that runs as root with the node's root directory mounted read-only
    #[arg(long, requires = "cluster")]
    pub(crate) inspect_nodes: bool,
    /// Remove working files of killed runs, at the targets and in the usual places, but never a
    /// file that a live process holds. Files of other hosts, of earlier boots and of iosonde 0.1.0
    /// are removed if their directory is a target: make sure that no other host uses them. With
    /// --cluster: remove all runs, also unfinished ones, and volumes left by runs; with -n only in
    /// that namespace
    #[arg(long)]
    pub(crate) clean: bool,
    #[command(flatten)]
    pub(crate) place: ClusterArgs,
}

/// Adapts the options of clusters to `doctor --cluster`: hides those without effect, and gives the
/// others its own meanings and defaults.
pub(crate) fn option_of_doctor(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "medium" | "watch_nodes" => option.hide(true),
        "context" => option.help(ONE_CONTEXT_HELP),
        "namespace" => option.help(
            "Namespace of the pods, and of the runs that are listed and removed [default: that of \
             the context for pods, all namespaces for runs]",
        ),
        "claim_size" => option.help("Size of the claim of each trial [default: 1g]"),
        "timeout" => option.help("Maximum time until the pods run [default: 1m]"),
        "keep_failed" => option.help(
            "With --trial: keep pod and volume if the pod does not start, for `kubectl describe` \
             and `kubectl logs`; --clean removes them",
        ),
        _ => option,
    }
}

/// The mildest finding that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Conditions that make a measurement fail or measure something else
    Problem,
    /// Conditions that make figures wrong or noisy
    Warning,
    /// Facts for reading the figures
    Note,
}

impl FailOn {
    /// The severity of the mildest finding that fails.
    pub(crate) fn severity(self) -> Severity {
        match self {
            FailOn::Problem => Severity::Problem,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
        }
    }
}

/// How an examination is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// Tables for people
    Table,
    /// JSON for programs
    Json,
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;

    /// Returns the help of a command as one line.
    fn help_of(path: &[&str]) -> String {
        let mut root = Cli::command();
        let mut command = &mut root;
        for name in path {
            command = command.find_subcommand_mut(name).unwrap();
        }
        let help = command.render_help().to_string();
        help.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn doctor_help_has_the_defaults_of_trials() {
        let help = help_of(&["doctor"]);
        for text in [
            "Size of the claim of each trial [default: 1g]",
            "Maximum time until the pods run [default: 1m]",
            "all namespaces for runs",
        ] {
            assert!(help.contains(text), "{text}: {help}");
        }
    }

    #[test]
    fn commands_of_one_cluster_offer_only_options_with_an_effect() {
        for path in [&["doctor"][..], &["k8s", "lifecycle"], &["k8s", "csi"]] {
            let help = help_of(path);
            assert!(!help.contains("compare clusters"), "{path:?}: {help}");
            assert!(!help.contains("emptyDir requests"), "{path:?}: {help}");
            assert!(!help.contains("--watch-node"), "{path:?}: {help}");
            let is_offered = help.contains("--ephemeral-storage <SIZE>");
            assert!(is_offered, "{path:?}: {help}");
        }
        assert!(!help_of(&["k8s", "lifecycle"]).contains("--keep"));
        assert!(help_of(&["k8s", "csi"]).contains("--keep"));
        assert!(help_of(&["doctor"]).contains("--keep With --trial: keep pod and volume"));
        assert!(!help_of(&["k8s", "fio"]).contains("--medium"));
        assert!(!help_of(&["k8s", "csi"]).contains("--volume-mode"));
    }
}
