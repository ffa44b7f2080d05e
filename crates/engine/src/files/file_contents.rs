//! Fills files with random data, which neither compress nor deduplicate.

use super::file_errors::target_error;
use crate::interrupt::Interrupt;
use crate::remedies::no_thread;
use crate::sys::c_library as libc;
use crate::sys::memory::{IoMemory, MemoryKind};
use iosonde_result::run_error::{PathAction, RunError};
use iosonde_workload::rng::{Rng, mix64};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

/// Bytes per write.
const CHUNK: usize = 4 << 20;
/// Number of buffers: one thread fills chunks ahead while another writes.
const AHEAD: usize = 3;
/// Alignment for O_DIRECT that every device accepts, in bytes.
const DIRECT_UNIT: u64 = 4096;

/// Fills files one after the other. Buffers are allocated once and reused.
#[derive(Debug, Default)]
pub(super) struct Filler {
    buffers: Vec<IoMemory>,
}

/// End of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Size(u64),
    /// Until ENOSPC, which is then no error.
    Full,
}

/// A chunk passed from the filling thread to the writing thread.
struct Chunk {
    memory: IoMemory,
    offset: u64,
    length: usize,
}

impl Filler {
    /// Writes bytes `range` of the file, with O_DIRECT if the file system allows it.
    pub(super) fn fill(
        &mut self,
        path: &Path,
        file: &File,
        range: Range<u64>,
        stops: &[&Interrupt],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        self.run(
            path,
            file,
            range.start,
            Until::Size(range.end),
            stops,
            written,
        )
    }

    /// Writes from byte `from` until the file system is full.
    pub(super) fn until_full(
        &mut self,
        path: &Path,
        file: &File,
        from: u64,
        stops: &[&Interrupt],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        self.run(path, file, from, Until::Full, stops, written)
    }

    /// One thread generates data while another writes, so random numbers do not delay the device.
    fn run(
        &mut self,
        path: &Path,
        file: &File,
        from: u64,
        until: Until,
        stops: &[&Interrupt],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        let target = FillTarget {
            path,
            file,
            direct: OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_DIRECT)
                // By descriptor, because the path may name another file by now.
                .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
                .ok(),
        };
        self.make_buffers(until)
            .map_err(|error| target_error(path, PathAction::AllocateFillBuffers, &error))?;
        let mut rng = Rng::new(seed_of(path));
        if let Until::Size(size) = until
            && size <= CHUNK as u64
        {
            let length = size.saturating_sub(from) as usize;
            let memory = &mut self.buffers[0];
            rng.fill(memory.slot_mut(0, length));
            let data = memory.slot(0, length);
            target
                .write(data, from)
                .map_err(|error| target.failed(&error))?;
            written(length as u64);
            return Ok(());
        }
        let free = std::mem::take(&mut self.buffers);
        let (free, outcome) = pipeline(&target, free, &mut rng, from, until, stops, written);
        self.buffers = free;
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(RunError::Interrupted),
            Err(error) => Err(error),
        }
    }

    fn make_buffers(&mut self, until: Until) -> io::Result<()> {
        let wanted = match until {
            Until::Size(size) if size <= CHUNK as u64 => 1,
            _ => AHEAD,
        };
        while self.buffers.len() < wanted {
            self.buffers
                .push(IoMemory::map(1, CHUNK, 0, MemoryKind::Pages)?);
        }
        Ok(())
    }
}

/// Fills here and writes in a second thread. Returns the buffers, and whether the fill finished.
fn pipeline(
    target: &FillTarget<'_>,
    mut free: Vec<IoMemory>,
    rng: &mut Rng,
    from: u64,
    until: Until,
    stops: &[&Interrupt],
    written: &mut dyn FnMut(u64),
) -> (Vec<IoMemory>, Result<bool, RunError>) {
    let (to_write, chunks) = sync_channel::<Chunk>(AHEAD);
    let (to_fill, done) = sync_channel::<(Chunk, io::Result<()>)>(AHEAD);
    std::thread::scope(|scope| {
        let write_all = move || {
            for chunk in chunks {
                let outcome = target.write(chunk.memory.slot(0, chunk.length), chunk.offset);
                // Fails if the filling thread has stopped after an error.
                let _ = to_fill.send((chunk, outcome));
            }
        };
        if let Err(error) = Builder::new().spawn_scoped(scope, write_all) {
            return (free, Err(no_thread("that lays out files", &error)));
        }
        let (mut offset, mut in_flight, mut outcome) = (from, 0, Ok(true));
        loop {
            // All chunks but the first start at a multiple of their size, as O_DIRECT requires.
            let whole = CHUNK as u64 - offset % CHUNK as u64;
            let wanted = match until {
                Until::Size(size) => size.saturating_sub(offset).min(whole) as usize,
                Until::Full => whole as usize,
            };
            let going = matches!(outcome, Ok(true)) && wanted > 0;
            if going && stops.iter().any(|stop| stop.is_requested()) {
                outcome = Ok(false);
                continue;
            }
            if going && let Some(mut memory) = free.pop() {
                rng.fill(memory.slot_mut(0, wanted));
                let chunk = Chunk {
                    memory,
                    offset,
                    length: wanted,
                };
                offset += wanted as u64;
                in_flight += 1;
                to_write.send(chunk).expect("the writing thread listens");
                continue;
            }
            if in_flight == 0 {
                break;
            }
            // No deadline: a write to a file cannot be cancelled.
            let (chunk, result) = done.recv().expect("the writing thread answers");
            in_flight -= 1;
            match result {
                Ok(()) => written(chunk.offset + chunk.length as u64 - from),
                Err(error) if outcome.is_ok() => outcome = Err(error),
                Err(_) => {}
            }
            free.push(chunk.memory);
        }
        drop(to_write);
        let full = until == Until::Full && matches!(&outcome, Err(error) if is_full(error));
        let outcome = if full { Ok(true) } else { outcome };
        (free, outcome.map_err(|error| target.failed(&error)))
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Seed of a file's data: differs between paths, equal in all runs.
fn seed_of(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().fold(mix64(bytes.len() as u64), |seed, byte| {
        mix64(seed ^ u64::from(*byte))
    })
}

fn is_aligned(bytes: u64) -> bool {
    bytes.is_multiple_of(DIRECT_UNIT)
}

struct FillTarget<'a> {
    path: &'a Path,
    file: &'a File,
    direct: Option<File>,
}

impl FillTarget<'_> {
    fn failed(&self, error: &io::Error) -> RunError {
        target_error(self.path, PathAction::Write, error)
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match &self.direct {
            Some(direct) if is_aligned(data.len() as u64) && is_aligned(offset) => direct
                .write_all_at(data, offset)
                .or_else(|_| self.file.write_all_at(data, offset)),
            _ => self.file.write_all_at(data, offset),
        }
    }
}
