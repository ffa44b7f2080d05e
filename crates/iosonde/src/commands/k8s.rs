//! `iosonde k8s`: commands for Kubernetes clusters alone.

mod attach;
mod collect;
mod collected_documents;
mod csi;
mod image;
mod in_pod;
pub(crate) mod k8s_fio;
mod lifecycle;
mod renamed_volume;

use crate::args::{K8sArgs, K8sCommand};
use crate::failure::CommandError;

/// Runs the subcommand.
pub(crate) fn run(args: &K8sArgs) -> Result<(), CommandError> {
    match &args.command {
        K8sCommand::Fio(args) => k8s_fio::run(args),
        K8sCommand::Lifecycle(args) => lifecycle::run(args),
        K8sCommand::Csi(args) => csi::run(args),
        K8sCommand::Attach(args) => attach::run(args),
        K8sCommand::Collect(args) => collect::run(args),
        K8sCommand::InPod(args) => in_pod::run(args),
        K8sCommand::Image(args) => image::run(args),
    }
}
