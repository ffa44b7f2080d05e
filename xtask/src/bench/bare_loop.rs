//! The bare loop: the same I/O at the cost of the kernel and little else.
//!
//! One ring with a registered file and registered buffers reads 4 KiB at random, in batches,
//! without statistics. Like the compared programs, the loop runs as a process of its own.

#![expect(
    unsafe_code,
    reason = "entries and buffers are handed to the kernel by address"
)]

use super::cpu::CpuTime;
use super::xorshift::next_xorshift;
use anyhow::{Context, Result, ensure};
use io_uring::types::Fixed;
use io_uring::{IoUring, opcode};
use nix::libc;
use nix::sys::resource::UsageWho;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const BLOCK_BYTES: u64 = 4096;
/// Rounds between two reads of the clock.
const ROUNDS_PER_CLOCK_READ: u32 = 64;

/// Options of `cargo xtask bare-loop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A file or block device
    #[arg(long)]
    pub(super) file: PathBuf,
    /// Its length
    #[arg(long)]
    pub(super) size_bytes: u64,
    /// Most I/Os in flight
    #[arg(long, default_value_t = 64)]
    pub(super) depth: u32,
    /// Most I/Os in one submission, and fewest to wait for when the queue is full
    #[arg(long, default_value_t = 16)]
    pub(super) batch: u32,
    /// How long to run
    #[arg(long, default_value_t = 10_000)]
    pub(super) milliseconds: u64,
}

/// Result of the loop.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BareLoopResult {
    pub(super) ios: u64,
    pub(super) elapsed_ns: u64,
    pub(super) cpu: CpuTime,
}

/// Runs the loop and prints its result as JSON.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    println!("{}", serde_json::to_string(&read(arguments)?)?);
    Ok(true)
}

#[derive(Clone)]
#[repr(C, align(4096))]
struct AlignedBlock([u8; BLOCK_BYTES as usize]);

/// Reads random blocks for the requested time.
pub(super) fn read(arguments: &Arguments) -> Result<BareLoopResult> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&arguments.file)
        .with_context(|| format!("opening {}", arguments.file.display()))?;
    let mut bare = Bare::new(&file, arguments)?;
    let before = CpuTime::measure(UsageWho::RUSAGE_SELF)?;
    let start = Instant::now();
    let length = Duration::from_millis(arguments.milliseconds);
    while start.elapsed() < length {
        for _ in 0..ROUNDS_PER_CLOCK_READ {
            bare.round(arguments.depth, arguments.batch)?;
        }
    }
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    let cpu = CpuTime::measure(UsageWho::RUSAGE_SELF)? - before;
    Ok(BareLoopResult {
        ios: bare.ios,
        elapsed_ns,
        cpu,
    })
}

struct Bare {
    /// Dropped before the buffers, since dropping the ring ends the I/Os in flight.
    ring: IoUring,
    buffers: Vec<AlignedBlock>,
    free: Vec<u32>,
    in_flight: u32,
    ios: u64,
    random: u64,
    file_blocks: u64,
}

impl Bare {
    fn new(file: &File, arguments: &Arguments) -> Result<Bare> {
        let depth = arguments.depth;
        let file_blocks = arguments.size_bytes / BLOCK_BYTES;
        ensure!(file_blocks > 0 && depth > 0, "there is nothing to read");
        let mut buffers = vec![AlignedBlock([0; BLOCK_BYTES as usize]); depth as usize];
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(depth)
            .or_else(|_| IoUring::new(depth))
            .context("making an io_uring")?;
        let _ = ring.submitter().register_ring_fd();
        ring.submitter()
            .register_files(&[file.as_raw_fd()])
            .context("registering the file")?;
        let area = libc::iovec {
            iov_base: buffers.as_mut_ptr().cast(),
            iov_len: buffers.len() * size_of::<AlignedBlock>(),
        };
        // SAFETY: the buffers outlive the ring, because the ring is the field before them.
        unsafe { ring.submitter().register_buffers(&[area]) }.context("registering the buffers")?;
        Ok(Bare {
            ring,
            buffers,
            free: (0..depth).collect(),
            in_flight: 0,
            ios: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            file_blocks,
        })
    }

    /// Submits as many I/Os as batch and depth allow, and reaps. Waits only when the queue is full.
    #[inline]
    fn round(&mut self, depth: u32, batch: u32) -> Result<()> {
        let count = batch.min(depth - self.in_flight);
        for _ in 0..count {
            self.push();
        }
        self.in_flight += count;
        let wait = if self.in_flight < depth {
            0
        } else {
            batch.min(self.in_flight)
        };
        self.ring.submit_and_wait(wait as usize)?;
        for entry in self.ring.completion() {
            ensure!(
                entry.result() == BLOCK_BYTES as i32,
                "a read returned {}",
                entry.result()
            );
            self.free.push(entry.user_data() as u32);
            self.in_flight -= 1;
            self.ios += 1;
        }
        Ok(())
    }

    /// Queues a read of a random block.
    #[inline]
    fn push(&mut self) {
        let slot = self.free.pop().expect("as many buffers as the depth");
        self.random = next_xorshift(self.random);
        let block = (u128::from(self.random) * u128::from(self.file_blocks)) >> 64;
        let address = self.buffers[slot as usize].0.as_mut_ptr();
        let entry = opcode::ReadFixed::new(Fixed(0), address, BLOCK_BYTES as u32, 0)
            .offset(block as u64 * BLOCK_BYTES)
            .build()
            .user_data(slot.into());
        // SAFETY: the buffer neither moves nor is accessed until its completion is reaped.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("a ring as large as the depth");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_loop_reads_file() {
        // The system's temporary directory may be a tmpfs that refuses O_DIRECT.
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let outcome = read(&Arguments {
            file: file.path().to_owned(),
            size_bytes: 1 << 20,
            depth: 8,
            batch: 3,
            milliseconds: 20,
        })
        .unwrap();
        assert!(
            outcome.ios >= 8 && outcome.elapsed_ns >= 20_000_000,
            "{outcome:?}"
        );
    }
}
