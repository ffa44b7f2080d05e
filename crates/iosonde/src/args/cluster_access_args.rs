//! Options that select a Kubernetes cluster.

use clap::Args;
use iosonde_cluster::ClusterOptions;
use iosonde_job::TargetUri;
use std::path::PathBuf;

/// Options that select a cluster and a namespace, for commands that create nothing.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Kubernetes cluster")]
pub(crate) struct ClusterAccessArgs {
    /// Kubeconfig file [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of the run [default: the namespace of the context]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
}

impl ClusterAccessArgs {
    /// Whether no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.kubeconfig.is_none() && self.context.is_none() && self.namespace.is_none()
    }

    /// Returns the options of the cluster. Their target is not used.
    pub(crate) fn options(&self) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespace: self.namespace.clone(),
            ..ClusterOptions::new(TargetUri::EmptyDir)
        }
    }
}
