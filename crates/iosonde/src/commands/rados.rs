//! `iosonde rados`: the command line of Ceph's `rados bench`.

mod bench;
mod bench_plan;
mod cleanup;
mod killed;
mod objects;
mod pool;
#[cfg(test)]
mod tests;

use crate::args::{AccessArgs, BenchArgs, RadosArgs, RadosCommand};
use crate::commands::made_storage::MadeStorage;
use crate::failure::CommandError;
use iosonde_ceph::PoolKind;

/// Runs the subcommand.
pub(crate) fn run(args: &RadosArgs) -> Result<(), CommandError> {
    match &args.command {
        RadosCommand::Bench(bench) => match &bench.made_pool.make_pool {
            None => bench::run(bench, &args.access),
            Some(kind) => in_new_pool(kind, bench, &args.access),
        },
        RadosCommand::Cleanup(cleanup) => cleanup::clean_up(cleanup, &args.access),
    }
}

/// Makes the pool, writes to it, and removes it.
fn in_new_pool(
    kind: &PoolKind,
    bench: &BenchArgs,
    access: &AccessArgs,
) -> Result<(), CommandError> {
    if !bench.mode.is_write() || bench.no_cleanup {
        return Err(CommandError::usage(
            "--make-pool fits only to `write` without --no-cleanup: the pool is new, and removed \
             at the end",
            "leave out --make-pool, and make the pool with `ceph osd pool create`",
        ));
    }
    let mut targets = [format!("rados://{}", access.pool()?)];
    let made = MadeStorage::make(&mut targets, &mut Vec::new(), access.access(), Some(kind))?;
    made.remove_after(bench::run(bench, access))
}
