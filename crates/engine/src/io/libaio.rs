//! Backend of Linux native AIO (libaio).

use super::file_calls::trim_or_sync_range;
use super::{Backend, Completion, FileHandle, Op, Slab};
use crate::sys::aio::AioContext;
use crate::sys::rw::RwFlags;
use std::io;
use std::os::fd::RawFd;

/// I/O through an AIO context.
pub(crate) struct LibaioBackend {
    context: AioContext,
    handles: Vec<FileHandle>,
    fds: Vec<RawFd>,
    /// Completed operations without an AIO opcode (trim, sync_file_range), not yet reaped.
    finished: Vec<Completion>,
    sync_range_flags: u32,
}

impl LibaioBackend {
    /// A backend for `depth` I/Os in flight.
    pub(crate) fn new(
        depth: u32,
        rw_flags: RwFlags,
        sync_range_flags: u32,
    ) -> io::Result<LibaioBackend> {
        let context = AioContext::new(depth as usize, rw_flags)?;
        let finished = Vec::with_capacity(depth as usize);
        Ok(LibaioBackend {
            context,
            handles: Vec::new(),
            fds: Vec::new(),
            finished,
            sync_range_flags,
        })
    }

    /// Carries out an operation for which AIO has no opcode. `None` if it has one.
    fn at_once(&self, slab: &Slab, index: u32) -> Option<i32> {
        let slot = &slab.slots[index as usize];
        let handle = self.handles[slot.file as usize];
        trim_or_sync_range(slot, handle, self.sync_range_flags)
    }
}

impl Backend for LibaioBackend {
    const SYNCHRONOUS: bool = false;
    const SINGLE_IOS: bool = true;

    #[inline]
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < batch.len() {
            let rest = &batch[taken..];
            let special = |index: &u32| {
                matches!(slab.slots[*index as usize].op, Op::Trim | Op::SyncFileRange)
            };
            let plain = rest.iter().position(special).unwrap_or(rest.len());
            if plain == 0
                && let Some(result) = self.at_once(slab, rest[0])
            {
                self.finished.push(Completion {
                    slot: rest[0],
                    result,
                });
                taken += 1;
                continue;
            }
            match self.context.submit(slab, &rest[..plain], &self.fds) {
                Ok(0) => break,
                Ok(count) => taken += count,
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => break,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
                // The first slot cannot be queued: it completes with the errno and its offset.
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO);
                    self.finished.push(Completion {
                        slot: rest[0],
                        result: -errno,
                    });
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }

    #[inline]
    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        if !self.finished.is_empty() {
            done.append(&mut self.finished);
        }
        if min > 0 && done.len() >= min {
            return Ok(());
        }
        let min = min.saturating_sub(done.len());
        self.context.reap(&mut slab.memory, min, timeout_ns, done)
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        self.fds = handles.iter().map(|handle| handle.fd).collect();
        Ok(())
    }
}
