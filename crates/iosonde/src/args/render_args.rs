//! The argument `--render` of the commands that measure.

use clap::Args;

/// Whether manifests are rendered instead of measuring.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Targets in a Kubernetes cluster")]
pub(crate) struct RenderArgs {
    /// Print manifests for `kubectl apply` instead of measuring: the pods of a Job run this command
    /// on their volumes, and `iosonde k8s collect` reads the results. --image must name an image
    /// whose entry point is iosonde
    #[arg(long)]
    pub(crate) render: bool,
}
