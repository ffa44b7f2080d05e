//! Backend of io_uring.

use super::file_calls::discard_range;
use super::{
    Backend, Completion, FileHandle, LoneTransfer, Op, RoundTransfer, Slab, Slot, whole_length,
};
use crate::sys::memory::IoMemory;
use crate::sys::ring::{Ring, RingOptions, probe_discard};
use iosonde_job::errno::describe;
use iosonde_workload::Io;
use std::io;

/// I/O through an io_uring of this thread.
pub(crate) struct IoUringBackend {
    ring: Ring,
    handles: Vec<FileHandle>,
    register_files: bool,
    refused: Vec<String>,
    options: RingOptions,
    trims: TrimPaths,
    /// Trims, carried out by system calls and not yet reaped.
    trimmed: Vec<Completion>,
    rest: Vec<u32>,
}

/// How the trims of each file are carried out, decided before the first I/O.
#[derive(Debug, Default)]
struct TrimPaths {
    /// By file: whether the ring discards. Other trims are system calls in the worker's thread.
    by_ring: Vec<bool>,
    /// Whether the ring discards for some file.
    some_by_ring: bool,
    /// Whether a system call trims some file.
    some_by_call: bool,
}

impl TrimPaths {
    fn new(by_ring: Vec<bool>) -> TrimPaths {
        TrimPaths {
            some_by_ring: by_ring.contains(&true),
            some_by_call: by_ring.contains(&false),
            by_ring,
        }
    }

    /// Whether the I/O of a slot is a trim by a system call.
    fn is_by_call(&self, slot: &Slot) -> bool {
        slot.op == Op::Trim && !self.by_ring[slot.file as usize]
    }
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
        // The kernel refuses atomic writes from registered buffers (EINVAL).
        let may_register = !options.vectored && !options.rw_flags.has_atomic_writes();
        if buffers
            && may_register
            && let Err(error) = ring.register_buffers(&slab.memory)
        {
            refused.push(format!(
                "io_uring ran without registered buffers: {}; raise RLIMIT_MEMLOCK (ulimit -l; in \
                 a pod, that of the node's container runtime)",
                describe(&error)
            ));
        }
        let depth = depth as usize;
        Ok(IoUringBackend {
            ring,
            handles: Vec::new(),
            register_files: files,
            refused,
            trims: TrimPaths::default(),
            options,
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
        let mut flags = self.ring.flags();
        if self.trims.some_by_ring {
            flags.push("uring_discard");
        }
        flags
    }

    /// Decides how the files are trimmed, and notes devices whose discards block the worker.
    fn choose_trims(&mut self) {
        let mut by_ring = Vec::with_capacity(self.handles.len());
        for handle in &self.handles {
            let wants_ring = self.options.discards && handle.block_device;
            let probed = match wants_ring {
                true => probe_discard(handle.fd, self.options.iopoll).map(|()| true),
                false => Ok(false),
            };
            by_ring.push(probed.unwrap_or_else(|error| {
                let reason = describe(&error);
                let refusal = format!("io_uring ran with blocking discards: {reason}");
                // Several files, or files that are opened again, may have the same reason.
                if !self.refused.contains(&refusal) {
                    self.refused.push(refusal);
                }
                false
            }));
        }
        self.trims = TrimPaths::new(by_ring);
    }

    /// Sets the results of discards by the ring to their lengths, as those of system calls.
    #[inline(never)]
    fn complete_discards(slab: &Slab, done: &mut [Completion]) {
        for completion in done {
            let slot = &slab.slots[completion.slot as usize];
            if slot.op == Op::Trim && completion.result == 0 {
                completion.result = whole_length(slot.len);
            }
        }
    }

    #[cold]
    fn submit_with_trims(&mut self, slab: &mut Slab, batch: &[u32]) {
        let is_by_call = |index: u32| self.trims.is_by_call(&slab.slots[index as usize]);
        self.rest.clear();
        self.rest
            .extend(batch.iter().filter(|index| !is_by_call(**index)));
        let queued = self.ring.submit(slab, &self.rest);
        assert_eq!(
            queued,
            self.rest.len(),
            "the queue has an entry for each slot"
        );
        let slots = batch
            .iter()
            .map(|index| (index, &slab.slots[*index as usize]));
        for (index, slot) in slots.filter(|(_, slot)| self.trims.is_by_call(slot)) {
            let handle = self.handles[slot.file as usize];
            self.trimmed.push(Completion {
                slot: *index,
                result: discard_range(handle, slot.offset, slot.len),
            });
        }
    }
}

impl Backend for IoUringBackend {
    const SYNCHRONOUS: bool = false;
    const SINGLE_IOS: bool = true;
    const TRANSFERS_ALONE: bool = true;
    const TRANSFERS_ROUNDS: bool = true;

    #[inline(always)]
    fn transfer_alone(
        &mut self,
        memory: &mut IoMemory,
        io: &Io,
        submitted: impl FnOnce(),
    ) -> LoneTransfer {
        self.ring.transfer_alone(memory, io, submitted)
    }

    #[inline(always)]
    fn transfer_round(
        &mut self,
        memory: &mut IoMemory,
        ios: &[Io],
        done: &mut Vec<Completion>,
        submitted: impl FnOnce(),
    ) -> RoundTransfer {
        self.ring.transfer_round(memory, ios, done, submitted)
    }

    #[inline]
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        if self.trims.some_by_call
            && batch
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
        let reaped = self.ring.reap(&mut slab.memory, min, timeout_ns, done);
        if self.trims.some_by_ring {
            IoUringBackend::complete_discards(slab, done);
        }
        reaped
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        self.choose_trims();
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
    use crate::sys::memory::MemoryKind;

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

    #[test]
    fn discard_by_the_ring_completes_with_its_length() {
        let trim = Slot {
            op: Op::Trim,
            len: 1 << 20,
            ..Slot::IDLE
        };
        let write = Slot {
            op: Op::Write,
            ..trim
        };
        let slab = Slab {
            slots: vec![trim, trim, write].into(),
            memory: IoMemory::map(3, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let mut done =
            [(0, 0), (1, -libc::EIO), (2, 0)].map(|(slot, result)| Completion { slot, result });
        IoUringBackend::complete_discards(&slab, &mut done);
        let results = done.map(|completion| completion.result);
        assert_eq!(results, [1 << 20, -libc::EIO, 0]);
    }

    #[test]
    fn discard_of_over_2_gib_completes_without_an_errno() {
        let slab = Slab {
            slots: vec![Slot {
                op: Op::Trim,
                len: 3 << 30,
                ..Slot::IDLE
            }]
            .into(),
            memory: IoMemory::map(1, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let mut done = [Completion { slot: 0, result: 0 }];
        IoUringBackend::complete_discards(&slab, &mut done);
        assert_eq!(done[0].result, i32::MAX);
    }

    #[test]
    fn refused_discards_of_several_files_are_reported_once() {
        let slab = Slab {
            slots: vec![Slot::IDLE].into(),
            memory: IoMemory::map(1, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let options = RingOptions {
            discards: true,
            ..RingOptions::default()
        };
        let mut uring = IoUringBackend::new(1, options, false, false, &slab).unwrap();
        // Files that are no devices refuse the probe, all for the same reason.
        let files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        let handles = files.each_ref().map(|file| FileHandle {
            fd: std::os::fd::AsRawFd::as_raw_fd(file),
            block_device: true,
            size: 8192,
        });
        uring.set_files(&handles).unwrap();
        uring.set_files(&handles).unwrap();
        assert_eq!(uring.refused().len(), 1, "{:?}", uring.refused());
    }

    #[test]
    fn trims_of_files_are_system_calls() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mut slab = Slab {
            slots: vec![Slot {
                op: Op::Trim,
                len: 4096,
                ..Slot::IDLE
            }]
            .into(),
            memory: IoMemory::map(1, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let options = RingOptions {
            discards: true,
            ..RingOptions::default()
        };
        let mut uring = IoUringBackend::new(1, options, true, false, &slab).unwrap();
        let handle = FileHandle {
            fd: std::os::fd::AsRawFd::as_raw_fd(&file),
            block_device: false,
            size: 8192,
        };
        uring.set_files(&[handle]).unwrap();
        assert!(!uring.flags().contains(&"uring_discard"));
        assert!(uring.refused().is_empty(), "a file has no discards");
        assert_eq!(uring.submit(&mut slab, &[0]).unwrap(), 1);
        let mut done = Vec::new();
        uring.reap(&mut slab, 1, None, &mut done).unwrap();
        assert_eq!((done[0].slot, done[0].result), (0, 4096));
    }

    #[test]
    fn trim_paths_tell_the_ring_from_system_calls() {
        let slot = |op, file| Slot {
            op,
            file,
            ..Slot::IDLE
        };
        let mixed = TrimPaths::new(vec![true, false]);
        assert!(mixed.some_by_ring && mixed.some_by_call);
        assert!(!mixed.is_by_call(&slot(Op::Trim, 0)));
        assert!(mixed.is_by_call(&slot(Op::Trim, 1)));
        assert!(!mixed.is_by_call(&slot(Op::Write, 1)));
        assert!(!TrimPaths::new(vec![true]).some_by_call);
    }
}
