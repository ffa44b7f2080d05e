//! `iosonde k8s image`: a container image of the agent.

use crate::args::ImageArgs;
use crate::commands::cluster::agent;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_cluster::AgentProgram;
use iosonde_cluster::image::archive;
use iosonde_cluster::options::own_arch;

pub(super) fn run(args: &ImageArgs) -> Result<(), CommandError> {
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
