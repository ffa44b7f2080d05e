//! `iosonde k8s`: what only a cluster has.

mod attach;
mod collect;
pub(crate) mod fio;
mod image;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Arguments of `iosonde k8s`.
#[derive(Debug, Args)]
pub(crate) struct K8sArgs {
    #[command(subcommand)]
    command: K8sCommand,
}

#[derive(Debug, Subcommand)]
enum K8sCommand {
    /// fio jobs on storage classes, with kubestr's flags: one class, or several side by side
    #[command(after_help = fio::EXAMPLES)]
    Fio(fio::K8sFioArgs),
    /// Take up the run of an `iosonde fio` whose client is gone: its result, then everything is removed
    Attach(attach::AttachArgs),
    /// The results of pods that `iosonde fio --render` has made manifests for; nothing is removed
    Collect(collect::CollectArgs),
    /// An image that carries the agent, as an archive for your registry: no other tool is needed to make it
    #[command(after_help = image::EXAMPLES)]
    Image(image::ImageArgs),
}

/// Does it.
pub(crate) fn run(args: &K8sArgs) -> Result<(), Failure> {
    match &args.command {
        K8sCommand::Fio(args) => fio::run(args),
        K8sCommand::Attach(args) => attach::run(args),
        K8sCommand::Collect(args) => collect::run(args),
        K8sCommand::Image(args) => image::run(args),
    }
}
