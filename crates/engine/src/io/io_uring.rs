//! Backend of io_uring.

use super::file_calls::trim;
use super::{Backend, Completion, FileHandle, Op, Slab};
use crate::sys::ring::{Ring, RingOptions};
use iosonde_job::errno::describe;
use std::io;

/// I/O through an io_uring of this thread.
pub(crate) struct IoUringBackend {
    ring: Ring,
    handles: Vec<FileHandle>,
    register_files: bool,
    refused: Vec<String>,
    /// Trims, carried out by system calls and not yet reaped.
    trimmed: Vec<Completion>,
    rest: Vec<u32>,
}

impl IoUringBackend {
    /// A ring for `depth` I/Os. `files` and `buffers` request registration. If the kernel refuses
    /// it, plain ones are used, and [`IoUringBackend::refused`] has the reason.
    pub(crate) fn new(
        depth: u32,
        options: RingOptions,
        files: bool,
        buffers: bool,
        slab: &Slab,
    ) -> io::Result<IoUringBackend> {
        let mut ring = Ring::new(depth, options, &slab.memory)?;
        let mut refused = Vec::new();
        if buffers
            && !options.vectored
            && let Err(error) = ring.register_buffers(&slab.memory)
        {
            refused.push(format!(
                "io_uring ran without registered buffers: {}; raise RLIMIT_MEMLOCK (ulimit -l)",
                describe(&error)
            ));
        }
        let depth = depth as usize;
        Ok(IoUringBackend {
            ring,
            handles: Vec::new(),
            register_files: files,
            refused,
            trimmed: Vec::with_capacity(depth),
            rest: Vec::with_capacity(depth),
        })
    }

    /// Registrations that the kernel refused, with the reasons, as texts for the result.
    pub(crate) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Whether files are registered with the kernel.
    pub(crate) fn registered_files(&self) -> bool {
        self.ring.registered_files()
    }

    /// Whether buffers are registered with the kernel.
    pub(crate) fn fixed_buffers(&self) -> bool {
        self.ring.fixed_buffers()
    }

    /// Names of the ring's flags in force.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        self.ring.flags()
    }

    #[cold]
    fn submit_with_trims(&mut self, slab: &mut Slab, batch: &[u32]) {
        let is_trim = |slab: &Slab, index: u32| slab.slots[index as usize].op == Op::Trim;
        self.rest.clear();
        self.rest
            .extend(batch.iter().filter(|index| !is_trim(slab, **index)));
        let queued = self.ring.submit(slab, &self.rest);
        assert_eq!(
            queued,
            self.rest.len(),
            "the queue has an entry for each slot"
        );
        for index in batch.iter().filter(|index| is_trim(slab, **index)) {
            let slot = &slab.slots[*index as usize];
            let handle = self.handles[slot.file as usize];
            self.trimmed.push(Completion {
                slot: *index,
                result: trim(handle, slot.offset, slot.len),
            });
        }
    }
}

impl Backend for IoUringBackend {
    const SYNCHRONOUS: bool = false;

    #[inline]
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
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
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        if !self.trimmed.is_empty() {
            done.append(&mut self.trimmed);
        }
        self.ring.reap(&mut slab.memory, min, timeout_ns, done)
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        let fds: Vec<_> = handles.iter().map(|handle| handle.fd).collect();
        match self.ring.set_files(&fds, self.register_files) {
            // Too many files, or an old kernel: continue with plain file descriptors.
            Err(error) if self.register_files => {
                self.register_files = false;
                self.refused.push(format!(
                    "io_uring ran without registered files: {}",
                    describe(&error)
                ));
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
    fn unregistered_files_report_the_errno() {
        let slab = Slab {
            slots: vec![Slot::IDLE].into(),
            memory: IoMemory::map(1, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let mut uring = IoUringBackend::new(1, RingOptions::default(), true, false, &slab).unwrap();
        assert!(uring.refused().is_empty());
        let closed = FileHandle {
            fd: i32::MAX,
            block_device: false,
            size: 4096,
        };
        uring.set_files(&[closed]).unwrap();
        assert!(!uring.registered_files());
        let refused = uring.refused();
        assert!(
            refused[0].starts_with("io_uring ran without registered files: "),
            "{refused:?}"
        );
        assert!(refused[0].ends_with("(EBADF)"), "{refused:?}");
    }
}
