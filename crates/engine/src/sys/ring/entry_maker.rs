//! Submission queue entries.

use crate::slot::Slot;
use crate::sys::memory::Slab;
use crate::sys::ring_options::RingOptions;
use io_uring::squeue::{PushError, SubmissionQueue};
use io_uring::types::{Fd, Fixed, FsyncFlags};
use io_uring::{opcode, squeue};
use iosonde_workload::Op;
use std::os::fd::RawFd;

/// A read or write as the kernel reads it from the submission queue (`struct io_uring_sqe`).
///
/// Written in one store: the builders of the crate `io-uring` copy the unused part through the
/// stack in words of another size, which costs a store-forwarding stall for each entry.
#[repr(C)]
pub(super) struct TransferEntry {
    pub(super) opcode: u8,
    pub(super) flags: u8,
    pub(super) ioprio: u16,
    pub(super) fd: i32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) rw_flags: u32,
    pub(super) user_data: u64,
    /// 0: all buffers are one registered area.
    pub(super) buffer_index: u16,
    pub(super) personality: u16,
    pub(super) splice_fd: i32,
    pub(super) unused: [u64; 2],
}

const _: () = {
    assert!(size_of::<TransferEntry>() == size_of::<squeue::Entry>());
    assert!(
        std::mem::offset_of!(TransferEntry, user_data) == 32,
        "as in the kernel's header"
    );
    assert!(
        std::mem::offset_of!(TransferEntry, buffer_index) == 40,
        "as in the kernel's header"
    );
};

impl TransferEntry {
    #[inline(always)]
    pub(super) fn entry(self) -> squeue::Entry {
        // SAFETY: both are 64 bytes of plain integers; `Entry` is a `repr(C)` `io_uring_sqe`.
        unsafe { std::mem::transmute::<TransferEntry, squeue::Entry>(self) }
    }
}

/// Builds the entry of a slot that is no plain read or write. `Fixed` and `Fd` share no trait.
macro_rules! operation {
    ($maker:ident, $fd:expr, $slab:ident, $slot:ident, $index:ident) => {{
        let offset = $slot.offset + u64::from($slot.moved);
        let ioprio = $slot.priority;
        let flags = $maker.options.rw_flags.select($slot.op == Op::Write);
        match $slot.op {
            Op::Read => {
                let vector = $maker.vector($slab, $slot, $index);
                opcode::Readv::new($fd, vector, 1)
                    .offset(offset)
                    .ioprio(ioprio)
                    .rw_flags(flags)
                    .build()
            }
            Op::Write => {
                let vector = $maker.vector($slab, $slot, $index);
                opcode::Writev::new($fd, vector, 1)
                    .offset(offset)
                    .ioprio(ioprio)
                    .rw_flags(flags)
                    .build()
            }
            Op::Fsync => opcode::Fsync::new($fd).build(),
            Op::Fdatasync => opcode::Fsync::new($fd).flags(FsyncFlags::DATASYNC).build(),
            Op::SyncFileRange => opcode::SyncFileRange::new($fd, $slot.len)
                .offset($slot.offset)
                .flags($maker.options.sync_range_flags)
                .build(),
            // Of a device that accepts it: the backend carries out other trims by system calls.
            Op::Trim => $maker.discard($slot),
        }
    }};
}

/// Builds submission queue entries.
pub(super) struct EntryMaker {
    pub(super) options: RingOptions,
    pub(super) files: Vec<RawFd>,
    pub(super) registered_files: bool,
    pub(super) fixed_buffers: bool,
    /// Entries since the last one that was forced to a kernel worker.
    pub(super) since_forced_async: u32,
    /// One I/O vector for each slot, for vectored opcodes.
    pub(super) vectors: Box<[libc::iovec]>,
}

impl EntryMaker {
    /// Queues the I/O of a slot. Each kind of entry is pushed where it is built: an entry merged
    /// from two branches goes through the stack, which costs a store-forwarding stall.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        queue: &mut SubmissionQueue<'_>,
        slab: &Slab,
        index: u32,
    ) -> Result<(), PushError> {
        let slot = &slab.slots[index as usize];
        let forced = self.is_forced();
        let plain = self.fixed_buffers || !self.options.vectored;
        if plain && matches!(slot.op, Op::Read | Op::Write) {
            let entry = self.transfer(slab, slot, index, forced);
            // SAFETY: the range lies within the slot, which is marked as in flight, and the ring
            // keeps the buffers mapped until its completion is reaped.
            unsafe { queue.push(&entry) }
        } else {
            let entry = self.other(slab, slot, index, forced);
            // SAFETY: as above, and the vectors live as long as the ring.
            unsafe { queue.push(&entry) }
        }
    }

    /// Whether this entry is forced to a kernel worker (`force_async`).
    #[inline(always)]
    fn is_forced(&mut self) -> bool {
        let every = self.options.force_async;
        if every == 0 {
            return false;
        }
        self.since_forced_async = (self.since_forced_async + 1) % every;
        self.since_forced_async == 0
    }

    #[inline(always)]
    pub(super) fn transfer(
        &self,
        slab: &Slab,
        slot: &Slot,
        index: u32,
        forced: bool,
    ) -> squeue::Entry {
        let (address, length) = remaining(slab, slot, index);
        let opcode = match (slot.op, self.fixed_buffers) {
            (Op::Read, true) => opcode::ReadFixed::CODE,
            (Op::Read, false) => opcode::Read::CODE,
            (_, true) => opcode::WriteFixed::CODE,
            (_, false) => opcode::Write::CODE,
        };
        let forced = if forced {
            squeue::Flags::ASYNC
        } else {
            squeue::Flags::empty()
        };
        let (fd, place) = self.descriptor(slot.file);
        TransferEntry {
            opcode,
            flags: (forced | place).bits(),
            ioprio: slot.priority,
            fd,
            offset: slot.offset + u64::from(slot.moved),
            address: address.addr() as u64,
            length,
            rw_flags: self.options.rw_flags.select(slot.op == Op::Write) as u32,
            user_data: u64::from(index),
            buffer_index: 0,
            personality: 0,
            splice_fd: 0,
            unused: [0; 2],
        }
        .entry()
    }

    #[cold]
    pub(super) fn other(
        &mut self,
        slab: &Slab,
        slot: &Slot,
        index: u32,
        forced: bool,
    ) -> squeue::Entry {
        let entry = if self.registered_files {
            operation!(self, Fixed(slot.file), slab, slot, index)
        } else {
            operation!(self, Fd(self.files[slot.file as usize]), slab, slot, index)
        };
        let entry = if forced {
            entry.flags(squeue::Flags::ASYNC)
        } else {
            entry
        };
        entry.user_data(u64::from(index))
    }

    /// Returns the number of a file as an entry names it: an index if the files are registered.
    #[inline(always)]
    pub(super) fn descriptor(&self, file: u32) -> (i32, squeue::Flags) {
        if self.registered_files {
            (file as i32, squeue::Flags::FIXED_FILE)
        } else {
            (self.files[file as usize], squeue::Flags::empty())
        }
    }

    fn vector(&mut self, slab: &Slab, slot: &Slot, index: u32) -> *const libc::iovec {
        let (address, length) = remaining(slab, slot, index);
        self.vectors[index as usize] = libc::iovec {
            iov_base: address.cast(),
            iov_len: length as usize,
        };
        &raw const self.vectors[index as usize]
    }
}

/// Address and length of the rest of an I/O that moved `slot.moved` bytes.
#[inline(always)]
pub(super) fn remaining(slab: &Slab, slot: &Slot, index: u32) -> (*mut u8, u32) {
    assert!(slot.moved <= slot.len && slot.len as usize <= slab.memory.stride());
    (
        slab.memory.address(index).wrapping_add(slot.moved as usize),
        slot.len - slot.moved,
    )
}
