//! Reads and writes that are alone in flight, from submission to completion in one call of the
//! kernel.
//!
//! At depth 1, each cache line of code between two calls of the kernel costs time twice: it is
//! fetched again after each call, and it evicts a line of the kernel's. This path is therefore
//! short, and leaves all other I/Os to [`Ring::submit`] and [`Ring::reap`].

#[cfg(test)]
mod tests;

use super::Ring;
use super::entry_maker::TransferEntry;
use crate::slot::LoneTransfer;
use crate::sys::memory::IoMemory;
use io_uring::{opcode, squeue};
use iosonde_workload::{Io, Op};

/// The slot of an I/O that is alone in flight.
const SLOT: u32 = 0;

/// Address of the first slot's buffer, and the length of each buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstBuffer {
    address: u64,
    length: u32,
}

impl FirstBuffer {
    /// Returns `None` for buffers of 4 GiB or more.
    pub(super) fn new(memory: &IoMemory) -> Option<FirstBuffer> {
        Some(FirstBuffer {
            address: memory.address(SLOT).addr() as u64,
            length: memory.stride().try_into().ok()?,
        })
    }
}

/// The fields that the entries of all reads and writes without further options have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainEntries {
    buffer: FirstBuffer,
    /// Of a read and of a write.
    opcodes: [u8; 2],
    /// Of a read and of a write.
    rw_flags: [u32; 2],
}

impl PlainEntries {
    /// Whether an I/O is a read or write that fits its buffer.
    #[inline(always)]
    pub(super) fn fits(&self, io: &Io) -> bool {
        matches!(io.op, Op::Read | Op::Write) && io.len <= self.buffer.length
    }

    /// Returns the entry of an I/O in a slot.
    #[inline(always)]
    pub(super) fn entry(&self, io: &Io, slot: u32) -> squeue::Entry {
        let kind = usize::from(io.op == Op::Write);
        TransferEntry {
            opcode: self.opcodes[kind],
            flags: squeue::Flags::FIXED_FILE.bits(),
            ioprio: 0,
            fd: io.file as i32,
            offset: io.offset,
            address: self.buffer.address + u64::from(slot) * u64::from(self.buffer.length),
            length: io.len,
            rw_flags: self.rw_flags[kind],
            user_data: u64::from(slot),
            buffer_index: 0,
            personality: 0,
            splice_fd: 0,
            unused: [0; 2],
        }
        .entry()
    }
}

impl Ring {
    /// Decides whether [`Ring::transfer_alone`] and [`Ring::transfer_round`] apply, once files and
    /// buffers are known.
    pub(super) fn choose_plain_entries(&mut self) {
        let maker = &self.maker;
        let options = &maker.options;
        let applies = self.flags.deferred
            && maker.registered_files
            && options.force_async == 0
            && !options.iopoll
            && (maker.fixed_buffers || !options.vectored);
        let opcodes = match maker.fixed_buffers {
            true => [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE],
            false => [opcode::Read::CODE, opcode::Write::CODE],
        };
        let rw_flags = [false, true].map(|is_write| options.rw_flags.select(is_write) as u32);
        let buffer = self.first_buffer.filter(|_| applies);
        self.plain_entries = buffer.map(|buffer| PlainEntries {
            buffer,
            opcodes,
            rw_flags,
        });
    }

    /// Carries out an I/O in the first slot while no other is in flight. Calls `submitted` after
    /// the call of the kernel.
    ///
    /// # Panics
    /// If the memory is not that of [`Ring::new`].
    #[inline(always)]
    pub(crate) fn transfer_alone(
        &mut self,
        memory: &mut IoMemory,
        io: &Io,
        submitted: impl FnOnce(),
    ) -> LoneTransfer {
        assert!(self.memory.is_of(memory));
        let Some(entries) = &self.plain_entries else {
            return LoneTransfer::Declined;
        };
        if !entries.fits(io) || self.in_flight > 0 || memory.is_in_flight(SLOT) {
            return LoneTransfer::Declined;
        }
        // SAFETY: the range lies within the slot, and the ring keeps the buffers mapped until the
        // completion is reaped. Nothing below can panic or access the slot before the completion
        // is reaped, or the slot is marked as in flight.
        if unsafe { self.ring.submission().push(&entries.entry(io, SLOT)) }.is_err() {
            return LoneTransfer::Declined;
        }
        self.descriptor.enter_unchecked(1);
        let completion = self.ring.completion().next();
        let Some(completion) = completion else {
            self.keep_in_flight(memory, 1);
            submitted();
            return LoneTransfer::InFlight;
        };
        submitted();
        LoneTransfer::Completed(completion.result())
    }

    /// Marks the I/Os of the first slots as in flight. [`Ring::reap`] returns their completions.
    #[cold]
    pub(super) fn keep_in_flight(&mut self, memory: &mut IoMemory, count: u32) {
        for slot in 0..count {
            memory.begin_io(slot);
        }
        self.in_flight += count as usize;
    }
}
