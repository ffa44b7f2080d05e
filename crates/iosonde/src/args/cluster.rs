//! Which cluster, which volume, and what the pod is like.

use super::{seconds, size};
use clap::{Args, ValueEnum};
use iosonde_cluster::{ClusterOptions, VolumeMode};
use iosonde_job::Target;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Options of targets in a Kubernetes cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets in a Kubernetes cluster")]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace of the pod [default: the context's]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Size of the claim, or of the space that an emptyDir asks for [default: 5g]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) claim_size: Option<u64>,
    /// A file system, or a block device [default: filesystem]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) volume_mode: Option<Mode>,
    /// Image of the pod: any with `sh` [default: one that a node has, else busybox]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Labels that the node must have, e.g. disk=ssd,zone=a; may be repeated
    #[arg(long, value_parser = label, value_delimiter = ',', value_name = "KEY=VALUE")]
    pub(crate) node_selector: Vec<(String, String)>,
    /// User and group in the pod [default: 65532; root for block devices and hostPath]
    #[arg(long, value_name = "UID")]
    pub(crate) run_as: Option<i64>,
    /// How long the pod may take to run [default: 5m]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) timeout: Option<u64>,
    /// When the cluster ends the run by itself [default: 24h]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) deadline: Option<u64>,
}

/// `--volume-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Mounted
    Filesystem,
    /// Raw
    Block,
}

impl ClusterArgs {
    /// These, for a target.
    pub(crate) fn options(&self, target: Target) -> ClusterOptions {
        let usual = ClusterOptions::new(target);
        let time = |ns: Option<u64>, usual| ns.map_or(usual, Duration::from_nanos);
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespace: self.namespace.clone(),
            claim_bytes: self.claim_size.unwrap_or(usual.claim_bytes),
            volume_mode: match self.volume_mode {
                Some(Mode::Block) => VolumeMode::Block,
                _ => VolumeMode::Filesystem,
            },
            image: self.image.clone(),
            node_selector: self
                .node_selector
                .iter()
                .cloned()
                .collect::<BTreeMap<_, _>>(),
            run_as: self.run_as,
            timeout: time(self.timeout, usual.timeout),
            deadline: time(self.deadline, usual.deadline),
            ..usual
        }
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
