//! Backend of POSIX AIO (posixaio), where a thread of the C library per file does the I/O.

use super::{Backend, Completion, Handle, Op, Slab, io_uring::trim};
use crate::sys::posix_aio::{Requests, Waited};
use crate::sys::rw;
use std::io;
use std::time::{Duration, Instant};

/// I/O through the C library's aio_ functions.
pub struct PosixAio {
    requests: Requests,
    handles: Vec<Handle>,
    /// Operations without asynchronous call and failed submissions, not yet reaped.
    finished: Vec<Completion>,
    sync_range_flags: u32,
}

impl PosixAio {
    /// A backend for `depth` I/Os in flight.
    pub fn new(depth: u32, sync_range_flags: u32) -> PosixAio {
        PosixAio {
            requests: Requests::new(depth as usize),
            handles: Vec::new(),
            finished: Vec::with_capacity(depth as usize),
            sync_range_flags,
        }
    }

    /// Starts an I/O, or carries it out if AIO has no call for it. Fails if it cannot be started.
    fn start(&mut self, slab: &Slab, index: u32) -> io::Result<Option<i32>> {
        let slot = &slab.slots[index as usize];
        let handle = self.handles[slot.file as usize];
        let flags = self.sync_range_flags;
        Ok(match slot.op {
            Op::Trim => Some(trim(handle, slot.offset, slot.len)),
            Op::SyncFileRange => {
                let len = slot.len.into();
                Some(rw::sync_file_range(handle.fd, slot.offset, len, flags))
            }
            _ => {
                self.requests.start(slab, index, handle.fd)?;
                None
            }
        })
    }
}

impl Backend for PosixAio {
    const SYNCHRONOUS: bool = false;

    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
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
        _: &Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        done.append(&mut self.finished);
        let deadline = timeout_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
        loop {
            self.requests.collect(done);
            if done.len() >= min || self.requests.is_idle() {
                return Ok(());
            }
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.map(|time| time.as_nanos() as u64);
            if self.requests.wait(left)? == Waited::TimedOut {
                self.requests.collect(done);
                return Ok(());
            }
        }
    }

    fn set_files(&mut self, handles: &[Handle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        Ok(())
    }
}
