//! The bare loops of the engines libaio and psync: their system calls and little else.
//!
//! As the bare loop of io_uring, they read 4 KiB at random from a file of O_DIRECT and O_NOATIME,
//! without statistics and nearly without clock, as processes of their own.

use super::aligned_block::{AlignedBlock, BLOCK_BYTES};
use super::bare_loop::{BareLoopResult, open_file, time_rounds};
use super::sys::aio_calls::AioReads;
use super::xorshift::next_xorshift;
use anyhow::{Context, Result, ensure};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// System calls of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BareEngine {
    /// io_submit(2) and io_getevents(2)
    Libaio,
    /// pread(2)
    Psync,
}

/// Options of `cargo xtask bare-calls`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The system calls
    #[arg(long)]
    engine: BareEngine,
    /// A file or block device
    #[arg(long)]
    file: PathBuf,
    /// Its length
    #[arg(long)]
    size_bytes: u64,
    /// Most I/Os in flight
    #[arg(long, default_value_t = 1)]
    depth: u32,
    /// How long to run
    #[arg(long, default_value_t = 10_000)]
    milliseconds: u64,
}

/// Runs the loop and prints its result as JSON.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    println!(
        "{}",
        serde_json::to_string(&read_random_blocks(arguments)?)?
    );
    Ok(true)
}

/// Reads random blocks for the requested time.
fn read_random_blocks(arguments: &Arguments) -> Result<BareLoopResult> {
    let file_blocks = arguments.size_bytes / BLOCK_BYTES;
    ensure!(
        file_blocks > 0 && arguments.depth > 0,
        "there is nothing to read"
    );
    let mut flags = Vec::new();
    let file = open_file(&arguments.file, true, &mut flags)
        .with_context(|| format!("opening {}", arguments.file.display()))?;
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next_offset = || {
        random = next_xorshift(random);
        ((u128::from(random) * u128::from(file_blocks)) >> 64) as u64 * BLOCK_BYTES
    };
    let mut ios: u64 = 0;
    let (elapsed_ns, cpu) = match arguments.engine {
        BareEngine::Libaio => {
            let mut reads =
                AioReads::new(&file, arguments.depth).context("making an AIO context")?;
            if reads.has_ring() {
                flags.push("userspace_reap");
            }
            time_rounds(arguments.milliseconds, || {
                ios += reads.round(&mut next_offset)?;
                Ok(())
            })?
        }
        BareEngine::Psync => {
            ensure!(arguments.depth == 1, "pread(2) has depth 1");
            let mut buffer = Box::new(AlignedBlock::ZEROED);
            time_rounds(arguments.milliseconds, || {
                let bytes = file.read_at(&mut buffer.0, next_offset())?;
                ensure!(bytes as u64 == BLOCK_BYTES, "a read returned {bytes}");
                ios += 1;
                Ok(())
            })?
        }
    };
    Ok(BareLoopResult {
        ios,
        elapsed_ns,
        cpu,
        flags: flags.into_iter().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one_mib(engine: BareEngine, depth: u32, size_bytes: u64) -> Result<BareLoopResult> {
        // The system's temporary directory may be a tmpfs that refuses O_DIRECT.
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        read_random_blocks(&Arguments {
            engine,
            file: file.path().to_owned(),
            size_bytes,
            depth,
            milliseconds: 20,
        })
    }

    #[test]
    fn engines_read_at_their_depths() {
        let depths = [
            (BareEngine::Libaio, 1),
            (BareEngine::Libaio, 64),
            (BareEngine::Psync, 1),
        ];
        for (engine, depth) in depths {
            let result = read_one_mib(engine, depth, 1 << 20).unwrap();
            assert!(
                result.ios >= 64 && result.elapsed_ns >= 20_000_000,
                "{engine:?}: {result:?}"
            );
            assert_eq!(result.flags[0], "noatime", "the owner of the file reads it");
            let reads_ring = result.flags.contains(&"userspace_reap".to_owned());
            assert_eq!(reads_ring, engine == BareEngine::Libaio);
        }
    }

    #[test]
    fn reads_past_the_end_are_errors() {
        for engine in [BareEngine::Libaio, BareEngine::Psync] {
            let error = read_one_mib(engine, 1, 1 << 40).unwrap_err().to_string();
            assert!(error.contains("a read returned 0"), "{engine:?}: {error}");
        }
        assert!(read_one_mib(BareEngine::Psync, 2, 1 << 20).is_err());
        assert!(read_one_mib(BareEngine::Libaio, 1, 0).is_err());
    }
}
