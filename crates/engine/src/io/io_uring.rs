//! Backend of io_uring.

use super::{Backend, Completion, Handle, Op, Slab};
use crate::sys::block;
use crate::sys::ring::{Ring, RingOptions};
use std::io;

/// I/O through an io_uring of this thread.
pub struct Uring {
    ring: Ring,
    handles: Vec<Handle>,
    register_files: bool,
    refused: Vec<String>,
    /// Trims, carried out by system calls and not yet reaped.
    trimmed: Vec<Completion>,
    rest: Vec<u32>,
}

impl Uring {
    /// A ring for `depth` I/Os. `files` and `buffers` request registration. If the kernel refuses
    /// it, plain ones are used, and [`Uring::refused`] has the reason.
    pub fn new(
        depth: u32,
        options: RingOptions,
        files: bool,
        buffers: bool,
        slab: &Slab,
    ) -> io::Result<Uring> {
        let mut ring = Ring::new(depth, options, &slab.memory)?;
        let mut refused = Vec::new();
        if buffers
            && !options.vectored
            && let Err(error) = ring.register_buffers(&slab.memory)
        {
            refused.push(format!(
                "buffers not registered: {error} (is RLIMIT_MEMLOCK large enough?)"
            ));
        }
        let depth = depth as usize;
        Ok(Uring {
            ring,
            handles: Vec::new(),
            register_files: files,
            refused,
            trimmed: Vec::with_capacity(depth),
            rest: Vec::with_capacity(depth),
        })
    }

    /// Registrations that the kernel refused, with the reasons, as texts for the result.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Whether files are registered with the kernel.
    pub fn registered_files(&self) -> bool {
        self.ring.registered_files()
    }

    /// Whether buffers are registered with the kernel.
    pub fn fixed_buffers(&self) -> bool {
        self.ring.fixed_buffers()
    }

    #[cold]
    fn submit_with_trims(&mut self, slab: &Slab, batch: &[u32]) {
        let is_trim = |index: &&u32| slab.slots[**index as usize].op == Op::Trim;
        self.rest.clear();
        self.rest
            .extend(batch.iter().filter(|index| !is_trim(index)));
        self.ring.submit(slab, &self.rest);
        for index in batch.iter().filter(is_trim) {
            let slot = &slab.slots[*index as usize];
            let handle = self.handles[slot.file as usize];
            self.trimmed.push(Completion {
                slot: *index,
                result: trim(handle, slot.offset, slot.len),
            });
        }
    }
}

/// Discards a range: BLKDISCARD on a device, a punched hole in a file.
pub(super) fn trim(handle: Handle, offset: u64, length: u32) -> i32 {
    if handle.block_device {
        block::discard(handle.fd, offset, length)
    } else {
        block::punch_hole(handle.fd, offset, length)
    }
}

impl Backend for Uring {
    const SYNCHRONOUS: bool = false;

    #[inline]
    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
        if batch
            .iter()
            .any(|index| slab.slots[*index as usize].op == Op::Trim)
        {
            self.submit_with_trims(slab, batch);
            return Ok(batch.len());
        }
        Ok(self.ring.submit(slab, batch))
    }

    #[inline]
    fn reap(
        &mut self,
        _: &Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        if !self.trimmed.is_empty() {
            done.append(&mut self.trimmed);
        }
        self.ring.reap(min, timeout_ns, done)
    }

    fn set_files(&mut self, handles: &[Handle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        let fds: Vec<_> = handles.iter().map(|handle| handle.fd).collect();
        match self.ring.set_files(&fds, self.register_files) {
            // Too many files, or an old kernel: continue with plain file descriptors.
            Err(error) if self.register_files => {
                self.register_files = false;
                self.refused.push(format!("files not registered: {error}"));
                self.ring.set_files(&fds, false)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Slot;
    use crate::sys::memory::{IoMemory, MemoryKind};

    #[test]
    fn files_that_are_not_registered_have_a_reason() {
        let slab = Slab {
            slots: vec![Slot::IDLE].into(),
            memory: IoMemory::map(1, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let mut uring = Uring::new(1, RingOptions::default(), true, false, &slab).unwrap();
        assert!(uring.refused().is_empty());
        let closed = Handle {
            fd: i32::MAX,
            block_device: false,
            size: 4096,
        };
        uring.set_files(&[closed]).unwrap();
        assert!(!uring.registered_files());
        let refused = uring.refused();
        assert!(
            refused[0].starts_with("files not registered: "),
            "{refused:?}"
        );
        assert!(refused[0].contains("os error 9"), "EBADF: {refused:?}");
    }
}
