//! The bare loop: the same I/O at the cost of the kernel and little else.
//!
//! One ring with a registered file and registered buffers reads 4 KiB at random, without
//! statistics and with each flag of the kernel that saves time. Like the compared programs, the
//! loop runs as a process of its own. It is the limit of the engine's loop.

#![expect(
    unsafe_code,
    reason = "entries and buffers are handed to the kernel by address"
)]

#[cfg(test)]
mod tests;

use super::aligned_block::{AlignedBlock, BLOCK_BYTES};
use super::cpu::CpuTime;
use super::sys::{RingCalls, read_entry};
use super::xorshift::next_xorshift;
use anyhow::{Context, Result, anyhow, ensure};
use io_uring::IoUring;
use nix::libc;
use nix::sys::resource::UsageWho;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Rounds between two reads of the clock.
const ROUNDS_PER_CLOCK_READ: u32 = 64;

/// A feature of the kernel that the loop uses if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LoopFeature {
    /// No array of the numbers of submission entries (Linux 6.6)
    NoSqarray,
    /// A completion queue of one entry per I/O instead of two
    SmallCq,
    /// Calls through the registered descriptor of the ring (Linux 5.18)
    RegisteredRing,
    /// O_NOATIME
    Noatime,
}

/// Options of `cargo xtask bare-loop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A file or block device; several are distributed among the threads
    #[arg(long = "file", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Its length
    #[arg(long)]
    pub(super) size_bytes: u64,
    /// Most I/Os in flight
    #[arg(long, default_value_t = 64)]
    pub(super) depth: u32,
    /// Most I/Os in one submission, and fewest to wait for when the queue is full [default: all
    /// free I/Os, and 1]
    #[arg(long)]
    pub(super) batch: Option<u32>,
    /// Threads, each with its own ring and its own descriptor of a file
    #[arg(long, default_value_t = 1)]
    pub(super) threads: usize,
    /// How long to run
    #[arg(long, default_value_t = 10_000)]
    pub(super) milliseconds: u64,
    /// Features not to use, to measure what each is worth
    #[arg(long, value_delimiter = ',')]
    pub(super) without: Vec<LoopFeature>,
    /// Waits do not count as waits for I/O (IORING_ENTER_NO_IOWAIT, Linux 6.15)
    #[arg(long)]
    pub(super) no_iowait: bool,
    /// After this many microseconds a wait returns with one completion (Linux 6.12)
    #[arg(long)]
    pub(super) min_wait_us: Option<u32>,
}

/// Result of the loop.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BareLoopResult {
    pub(super) ios: u64,
    pub(super) elapsed_ns: u64,
    pub(super) cpu: CpuTime,
    /// Names of the flags and features in force.
    pub(super) flags: Vec<String>,
}

/// Runs the loop and prints its result as JSON.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    println!("{}", serde_json::to_string(&run_bare_loop(arguments)?)?);
    Ok(true)
}

/// Reads random blocks for the requested time, on each thread.
pub(super) fn run_bare_loop(arguments: &Arguments) -> Result<BareLoopResult> {
    ensure!(arguments.threads > 0, "there is no thread to read");
    combine(read_on_threads(arguments)?)
}

/// Adds the readings of all threads. Their time is that from the earliest start to the latest end.
fn combine(readings: Vec<ThreadReading>) -> Result<BareLoopResult> {
    let first = readings.iter().map(|reading| reading.rounds.first);
    let last = readings.iter().map(|reading| reading.rounds.last);
    let first = first.min_by_key(|moment| moment.time);
    let last = last.max_by_key(|moment| moment.time);
    let (first, last) = first.zip(last).context("no thread ran")?;
    let ios = readings.iter().map(|reading| reading.ios).sum();
    let flags = readings.into_iter().next().map(|reading| reading.flags);
    let rounds = TimedRounds { first, last };
    Ok(BareLoopResult {
        ios,
        elapsed_ns: rounds.elapsed_ns(),
        cpu: rounds.cpu(),
        flags: flags.into_iter().flatten().map(str::to_owned).collect(),
    })
}

/// The rounds of one thread.
struct ThreadReading {
    ios: u64,
    rounds: TimedRounds,
    flags: Vec<&'static str>,
}

/// Starts the threads at the same time once each is prepared. If one is not, the others do not
/// start: they wait for a message whose sender is dropped then.
fn read_on_threads(arguments: &Arguments) -> Result<Vec<ThreadReading>> {
    std::thread::scope(|scope| {
        let (prepared, preparations) = mpsc::channel();
        let mut starts = Vec::new();
        let mut threads = Vec::new();
        for thread in 0..arguments.threads {
            let prepared = prepared.clone();
            let (start, started) = mpsc::channel();
            let reading = std::thread::Builder::new().spawn_scoped(scope, move || {
                read_on_thread(arguments, thread, prepared, &started)
            });
            threads.push(reading.context("starting a thread")?);
            starts.push(start);
        }
        drop(prepared);
        // Ends when each thread has dropped its sender, prepared or not.
        if preparations.iter().count() == arguments.threads {
            for start in &starts {
                // A thread that has ended reports its own error.
                let _ = start.send(());
            }
        }
        drop(starts);
        let mut readings = Vec::new();
        let mut has_waited = false;
        for reading in threads {
            let reading = reading.join();
            match reading.map_err(|_| anyhow!("a thread of the bare loop panicked"))?? {
                Some(reading) => readings.push(reading),
                None => has_waited = true,
            }
        }
        ensure!(!has_waited, "a thread of the bare loop was not prepared");
        Ok(readings)
    })
}

/// Reads random blocks on one thread, after a message. `None`: another thread was not prepared.
fn read_on_thread(
    arguments: &Arguments,
    thread: usize,
    prepared: Sender<()>,
    started: &Receiver<()>,
) -> Result<Option<ThreadReading>> {
    let mut flags = Vec::new();
    let path = &arguments.files[thread % arguments.files.len()];
    let wants_noatime = !arguments.without.contains(&LoopFeature::Noatime);
    let mut bare = open_file(path, wants_noatime, &mut flags)
        .with_context(|| format!("opening {}", path.display()))
        .and_then(|file| Bare::new(&file, arguments, thread, &mut flags))?;
    let _ = prepared.send(());
    drop(prepared);
    if started.recv().is_err() {
        return Ok(None);
    }
    let batch = arguments.batch.unwrap_or(arguments.depth);
    let fewest = arguments.batch.unwrap_or(1);
    let rounds = run_rounds(arguments.milliseconds, || bare.round(batch, fewest))?;
    let ios = bare.ios;
    Ok(Some(ThreadReading { ios, rounds, flags }))
}

/// A time, and the CPU time of the process until then.
#[derive(Debug, Clone, Copy)]
struct LoopTimes {
    time: Instant,
    cpu: CpuTime,
}

impl LoopTimes {
    fn now() -> Result<LoopTimes> {
        let cpu = CpuTime::measure(UsageWho::RUSAGE_SELF)?;
        let time = Instant::now();
        Ok(LoopTimes { time, cpu })
    }
}

/// Start and end of some rounds.
#[derive(Debug, Clone, Copy)]
struct TimedRounds {
    first: LoopTimes,
    last: LoopTimes,
}

impl TimedRounds {
    fn elapsed_ns(&self) -> u64 {
        self.last.time.duration_since(self.first.time).as_nanos() as u64
    }

    fn cpu(&self) -> CpuTime {
        self.last.cpu - self.first.cpu
    }
}

/// Repeats a round for some time. Returns the elapsed nanoseconds and the CPU time.
#[inline(always)]
pub(super) fn time_rounds(
    milliseconds: u64,
    round: impl FnMut() -> Result<()>,
) -> Result<(u64, CpuTime)> {
    let rounds = run_rounds(milliseconds, round)?;
    Ok((rounds.elapsed_ns(), rounds.cpu()))
}

/// Repeats a round for some time.
#[inline(always)]
fn run_rounds(milliseconds: u64, mut round: impl FnMut() -> Result<()>) -> Result<TimedRounds> {
    let first = LoopTimes::now()?;
    let length = Duration::from_millis(milliseconds);
    while first.time.elapsed() < length {
        for _ in 0..ROUNDS_PER_CLOCK_READ {
            round()?;
        }
    }
    let last = LoopTimes::now()?;
    Ok(TimedRounds { first, last })
}

/// Opens a file with O_DIRECT, and with O_NOATIME if it is wanted and this user owns the file.
pub(super) fn open_file(
    path: &Path,
    wants_noatime: bool,
    flags: &mut Vec<&'static str>,
) -> io::Result<File> {
    let open = |noatime: i32| {
        File::options()
            .read(true)
            .custom_flags(libc::O_DIRECT | noatime)
            .open(path)
    };
    if wants_noatime {
        match open(libc::O_NOATIME) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            opened => {
                flags.push("noatime");
                return opened;
            }
        }
    }
    open(0)
}

/// Creates a ring with as many flags as the kernel accepts (else EINVAL).
fn build_ring(arguments: &Arguments, flags: &mut Vec<&'static str>) -> io::Result<IoUring> {
    let without = |feature| arguments.without.contains(&feature);
    let build = |is_deferred: bool, has_no_array: bool| {
        let mut builder = IoUring::builder();
        if !without(LoopFeature::SmallCq) {
            builder.setup_cqsize(arguments.depth);
        }
        if is_deferred {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        if has_no_array {
            builder.setup_no_sqarray();
        }
        builder.build(arguments.depth)
    };
    let wants_no_array = !without(LoopFeature::NoSqarray);
    let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
    for (is_deferred, has_no_array) in [(true, wants_no_array), (true, false), (false, false)] {
        match build(is_deferred, has_no_array) {
            Ok(ring) => {
                let names = [
                    ("single_issuer", is_deferred),
                    ("defer_taskrun", is_deferred),
                    ("no_sqarray", has_no_array),
                    ("small_cq", !without(LoopFeature::SmallCq)),
                ];
                flags.extend(names.iter().filter(|name| name.1).map(|name| name.0));
                return Ok(ring);
            }
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

struct Bare {
    ring: IoUring,
    calls: RingCalls,
    buffers: Vec<AlignedBlock>,
    free: Vec<u32>,
    ios: u64,
    random: u64,
    file_blocks: u64,
}

impl Bare {
    /// A loop whose random offsets differ from those of other threads. The ring keeps the file
    /// open.
    fn new(
        file: &File,
        arguments: &Arguments,
        thread: usize,
        flags: &mut Vec<&'static str>,
    ) -> Result<Bare> {
        let depth = arguments.depth;
        let file_blocks = arguments.size_bytes / BLOCK_BYTES;
        ensure!(file_blocks > 0 && depth > 0, "there is nothing to read");
        ensure!(arguments.batch != Some(0), "a batch has at least one I/O");
        let mut buffers = vec![AlignedBlock::ZEROED; depth as usize];
        let ring = build_ring(arguments, flags).context("making an io_uring")?;
        ring.submitter()
            .register_files(&[file.as_raw_fd()])
            .context("registering the file")?;
        let area = libc::iovec {
            iov_base: buffers.as_mut_ptr().cast(),
            iov_len: buffers.len() * size_of::<AlignedBlock>(),
        };
        // SAFETY: dropping the loop waits for the I/Os in flight, or leaves the buffers mapped.
        unsafe { ring.submitter().register_buffers(&[area]) }.context("registering the buffers")?;
        flags.extend(["registered_file", "fixed_buffers"]);
        Ok(Bare {
            calls: calls(&ring, arguments, flags)?,
            ring,
            buffers,
            free: (0..depth).collect(),
            ios: 0,
            random: 0x9e37_79b9_7f4a_7c15 ^ thread as u64,
            file_blocks,
        })
    }

    /// Submits as many I/Os as batch and depth allow, and reaps, in one call. Waits for `fewest`
    /// when the queue is full.
    #[inline]
    fn round(&mut self, batch: u32, fewest: u32) -> Result<()> {
        let free = self.free.len() as u32;
        let count = batch.min(free);
        let mut queue = self.ring.submission();
        for slot in self.free.drain((free - count) as usize..) {
            self.random = next_xorshift(self.random);
            let block = (u128::from(self.random) * u128::from(self.file_blocks)) >> 64;
            let address = self.buffers[slot as usize].0.as_mut_ptr();
            let entry = read_entry(
                slot,
                block as u64 * BLOCK_BYTES,
                address,
                BLOCK_BYTES as u32,
            );
            // SAFETY: the buffer neither moves nor is accessed until its completion is reaped.
            let pushed = unsafe { queue.push(&entry) };
            pushed.expect("a ring as large as the depth");
        }
        let queued = queue.len() as u32;
        drop(queue);
        let wait = if count < free {
            0
        } else {
            fewest.min(self.buffers.len() as u32)
        };
        self.calls.submit_and_wait(queued, wait)?;
        for entry in self.ring.completion() {
            self.free.push(entry.user_data() as u32);
            ensure!(
                entry.result() == BLOCK_BYTES as i32,
                "a read returned {}",
                entry.result()
            );
            self.ios += 1;
        }
        Ok(())
    }
}

/// Waits for the I/Os in flight, which write to the buffers.
impl Drop for Bare {
    fn drop(&mut self) {
        while self.free.len() < self.buffers.len() {
            let queued = self.ring.submission().len() as u32;
            if self.calls.submit_and_wait(queued, 1).is_err() {
                std::mem::forget(std::mem::take(&mut self.buffers));
                return;
            }
            let slots = self.ring.completion().map(|entry| entry.user_data() as u32);
            self.free.extend(slots);
        }
    }
}

/// The arguments of the loop's calls, and the names of the features that they use.
fn calls(
    ring: &IoUring,
    arguments: &Arguments,
    flags: &mut Vec<&'static str>,
) -> Result<RingCalls> {
    let mut calls = RingCalls::with_descriptor(ring);
    let is_wanted = !arguments.without.contains(&LoopFeature::RegisteredRing);
    if is_wanted && calls.register() {
        flags.push("registered_ring");
    }
    if arguments.no_iowait {
        let is_known = ring.params().is_feature_no_iowait();
        ensure!(is_known, "--no-iowait needs Linux 6.15");
        calls.set_no_iowait();
        flags.push("no_iowait");
    }
    if let Some(min_wait_us) = arguments.min_wait_us {
        let is_known = ring.params().is_feature_min_timeout();
        ensure!(is_known, "--min-wait-us needs Linux 6.12");
        calls.set_min_wait(min_wait_us);
        flags.push("min_wait");
    }
    Ok(calls)
}
