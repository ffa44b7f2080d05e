//! Arguments of `iosonde doctor`.

use super::ClusterArgs;
use super::output_file::text_file;
use clap::{Args, ValueEnum};
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

/// Options of pods that have no effect on the trials of `doctor --cluster --trial`.
pub(crate) const UNUSED_BY_TRIALS: [&str; 2] = ["medium", "watch_nodes"];

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
