//! `iosonde rbd`: the command line of Ceph's `rbd bench`.

mod image_bench;
mod image_bench_plan;

use crate::args::{RbdArgs, RbdCommand};
use crate::failure::CommandError;

/// Runs the subcommand.
pub(crate) fn run(args: &RbdArgs) -> Result<(), CommandError> {
    match &args.command {
        RbdCommand::Bench(bench) => image_bench::run(bench, &args.access),
    }
}
