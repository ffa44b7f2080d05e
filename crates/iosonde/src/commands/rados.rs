//! `iosonde rados`: the benchmark of Ceph's own client, for those who know it.

mod args;
mod bench;
mod killed;
mod measure;
mod objects;
mod pool;
#[cfg(test)]
mod tests;

use crate::failure::Failure;
pub(crate) use args::RadosArgs;
use args::RadosCommand;

/// Does it.
pub(crate) fn run(args: &RadosArgs) -> Result<(), Failure> {
    match &args.command {
        RadosCommand::Bench(bench) => bench::run(bench, &args.access),
        RadosCommand::Cleanup(cleanup) => pool::clean_up(cleanup, &args.access),
    }
}
