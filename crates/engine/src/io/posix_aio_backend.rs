//! Backend of POSIX AIO (posixaio), where a thread of the C library per file does the I/O.

use super::file_calls::trim_or_sync_range;
use super::{Backend, Completion, FileHandle, Slab};
use crate::sys::posix_aio::{AioRequests, Waited};
use std::io;
use std::time::{Duration, Instant};

/// I/O through the C library's aio_ functions.
pub(crate) struct PosixAio {
    requests: AioRequests,
    handles: Vec<FileHandle>,
    /// Operations without asynchronous call and failed submissions, not yet reaped.
    finished: Vec<Completion>,
    sync_range_flags: u32,
}

impl PosixAio {
    /// A backend for `depth` I/Os in flight.
    pub(crate) fn new(depth: u32, sync_range_flags: u32) -> PosixAio {
        PosixAio {
            requests: AioRequests::new(depth as usize),
            handles: Vec::new(),
            finished: Vec::with_capacity(depth as usize),
            sync_range_flags,
        }
    }

    /// Starts an I/O, or carries it out if AIO has no call for it. Fails if it cannot be started.
    fn start(&mut self, slab: &mut Slab, index: u32) -> io::Result<Option<i32>> {
        let slot = &slab.slots[index as usize];
        let handle = self.handles[slot.file as usize];
        let result = trim_or_sync_range(slot, handle, self.sync_range_flags);
        if result.is_none() {
            self.requests.start(slab, index, handle.fd)?;
        }
        Ok(result)
    }
}

impl Backend for PosixAio {
    const SYNCHRONOUS: bool = false;

    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        for (taken, slot) in batch.iter().copied().enumerate() {
            let result = match self.start(slab, slot) {
                Ok(None) => continue,
                Ok(Some(result)) => result,
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO);
                    // EAGAIN: the C library has no free request until one in flight completes.
                    if errno == libc::EAGAIN && !self.requests.is_idle() {
                        return Ok(taken);
                    }
                    -errno
                }
            };
            self.finished.push(Completion { slot, result });
        }
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        done.append(&mut self.finished);
        let deadline = timeout_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
        loop {
            self.requests.collect(&mut slab.memory, done);
            if done.len() >= min || self.requests.is_idle() {
                return Ok(());
            }
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.map(|time| time.as_nanos() as u64);
            if self.requests.wait(left)? == Waited::TimedOut {
                self.requests.collect(&mut slab.memory, done);
                return Ok(());
            }
        }
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        Ok(())
    }
}
