//! `iosonde k8s image`: a container image of the agent.

use crate::args::ImageArgs;
use crate::commands::embedded_agents::agents;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_cluster::image::archive;

pub(super) fn run(args: &ImageArgs) -> Result<(), CommandError> {
    let agents = agents()?;
    // The first is that of this program's architecture, and there is one.
    let agent = &agents[0];
    let archive = archive(agent, &args.image).map_err(anyhow::Error::from)?;
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
