//! The bare client: small writes at the cost of librados and little else.
//!
//! The client is a process of its own, as `client.admin`, with iosonde's settings for I/O on
//! objects.

use super::super::sys::rados_calls::{ObjectWrites, write_objects};
use anyhow::Result;
use std::time::Duration;

/// Options of `cargo xtask bare-client`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The pool; the cluster is that of CEPH_CONF
    #[arg(long)]
    pool: String,
    /// Prefix of the names of objects
    #[arg(long)]
    prefix: String,
    /// Length of an object
    #[arg(long)]
    op_bytes: usize,
    /// Writes in flight
    #[arg(long)]
    concurrent: u32,
    /// How long to run
    #[arg(long)]
    seconds: u64,
    /// Most objects
    #[arg(long)]
    max_objects: u64,
}

/// Runs the client and prints its result with the JSON keys of `rados bench`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let (writes, elapsed_s) = write_objects(&ObjectWrites {
        pool: &arguments.pool,
        prefix: &arguments.prefix,
        op_bytes: arguments.op_bytes,
        concurrent: arguments.concurrent,
        max_objects: arguments.max_objects,
        length: Duration::from_secs(arguments.seconds),
    })?;
    println!("{{\"total_writes_made\": {writes}, \"total_time_run\": {elapsed_s}}}");
    Ok(true)
}
