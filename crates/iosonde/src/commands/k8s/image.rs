//! `iosonde k8s image`: the agent as an image.

use crate::commands::cluster::agent;
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use iosonde_cluster::AgentProgram;
use iosonde_cluster::image::{archive, carries_agent};
use iosonde_cluster::options::own_arch;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Examples:
  iosonde k8s image registry.example.com/iosonde-agent:0.1.0 -o agent.tar
  skopeo copy docker-archive:agent.tar docker://registry.example.com/iosonde-agent:0.1.0
  docker load -i agent.tar                     or into docker, to be pushed from there
  ctr -n k8s.io images import agent.tar        or onto a node, without any registry
  iosonde fio --target sc://fast --image registry.example.com/iosonde-agent:0.1.0 job.fio";

/// Arguments of `iosonde k8s image`.
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// Name of the image, as in registry.example/tools/iosonde-agent:1
    #[arg(value_name = "IMAGE", default_value = concat!("iosonde-agent:", env!("CARGO_PKG_VERSION")), value_parser = reference)]
    image: String,
    /// File for the archive
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// By its name an image is known to carry the agent.
fn reference(text: &str) -> Result<String, String> {
    match carries_agent(text) && !text.contains('@') {
        true => Ok(text.to_owned()),
        false => Err("the last part must be iosonde-agent, with or without a tag".to_owned()),
    }
}

pub(super) fn run(args: &ImageArgs) -> Result<(), Failure> {
    let bytes = agent()?;
    let agent = AgentProgram {
        bytes: &bytes,
        arch: own_arch(),
    };
    let archive = archive(&agent, &args.image).map_err(anyhow::Error::from)?;
    Output::open(Some(&args.output))?.save_unchanged(&archive)?;
    eprintln!(
        "{}: {} for {}, {} bytes",
        args.output.display(),
        args.image,
        agent.arch,
        archive.len()
    );
    Ok(())
}
