//! The bare image client: reads of an image at the cost of librbd and little else.

use super::super::sys::rbd_calls::read_image;
use anyhow::Result;
use std::time::Duration;

/// Options of `cargo xtask bare-image`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The pool; the cluster is that of CEPH_CONF
    #[arg(long)]
    pool: String,
    /// The image
    #[arg(long)]
    image: String,
    /// Length of a read
    #[arg(long)]
    op_bytes: usize,
    /// Reads in flight
    #[arg(long)]
    concurrent: u32,
    /// How long to run
    #[arg(long)]
    seconds: u64,
}

/// Runs the client and prints its result with the JSON keys of `rados bench`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let (reads, elapsed_s) = read_image(
        (arguments.pool.as_str(), arguments.image.as_str()),
        arguments.op_bytes,
        arguments.concurrent,
        Duration::from_secs(arguments.seconds),
    )?;
    println!("{{\"total_reads_made\": {reads}, \"total_time_run\": {elapsed_s}}}");
    Ok(true)
}
