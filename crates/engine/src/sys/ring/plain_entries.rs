//! Entries of plain reads and writes, which differ only in a few fields.
//!
//! Used by the short paths of [`super::lone_transfer`] and [`super::round_transfer`].

#[cfg(test)]
mod tests;

use super::Ring;
use super::entry_maker::TransferEntry;
use crate::sys::memory::IoMemory;
use io_uring::{opcode, squeue};
use iosonde_workload::{Io, Op};

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
            address: memory.address(0).addr() as u64,
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
}
