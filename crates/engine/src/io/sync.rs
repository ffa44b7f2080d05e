//! Backends of synchronous system calls: sync, psync, pvsync, pvsync2 and vsync.

use super::file_calls::discard_range;
use super::immediate::ImmediateIo;
use super::{Completion, FileHandle, LoneTransfer, Op, Slab};
use crate::sys::c_library as libc;
use crate::sys::memory::IoMemory;
use crate::sys::rw::{self, Call, Transfer};
use iosonde_workload::Io;
use iosonde_workload::rng::Rng;
use std::io;

/// Makes one system call per I/O.
pub(crate) struct Sync {
    call: Call,
    handles: Vec<FileHandle>,
    sync_range_flags: u32,
    /// Share of I/Os with RWF_HIPRI (polled completion), in per cent.
    polling_percent: u8,
    rng: Rng,
}

impl Sync {
    /// A backend with this system call.
    pub(crate) fn new(call: Call, sync_range_flags: u32) -> Sync {
        Sync {
            call,
            handles: Vec::new(),
            sync_range_flags,
            polling_percent: 0,
            rng: Rng::new(0),
        }
    }

    /// Makes this percentage of the I/Os of pvsync2 poll for completion.
    pub(crate) fn polling(self, percent: u8) -> Sync {
        Sync {
            polling_percent: percent,
            ..self
        }
    }

    fn next_call(&mut self) -> Call {
        match self.call {
            Call::Vectored2(flags) if self.rng.percent(self.polling_percent) => {
                Call::Vectored2(flags.with(libc::RWF_HIPRI))
            }
            call => call,
        }
    }
}

/// Carries out one slot and returns its result.
fn one_call(
    slab: &mut Slab,
    index: u32,
    handle: FileHandle,
    call: Call,
    sync_range_flags: u32,
) -> i32 {
    let slot = &slab.slots[index as usize];
    match slot.op {
        Op::Read | Op::Write => {
            let io = Transfer {
                fd: handle.fd,
                write: slot.op == Op::Write,
                offset: slot.offset + u64::from(slot.moved),
                slot: index,
                skip: slot.moved,
                len: slot.len - slot.moved,
            };
            rw::transfer(&mut slab.memory, io, call)
        }
        Op::Trim => discard_range(handle, slot.offset, slot.len),
        Op::Fsync => rw::fsync(handle.fd),
        Op::Fdatasync => rw::fdatasync(handle.fd),
        Op::SyncFileRange => {
            rw::sync_file_range(handle.fd, slot.offset, slot.len.into(), sync_range_flags)
        }
    }
}

impl ImmediateIo for Sync {
    const SYNCHRONOUS: bool = true;
    const TRANSFERS_ALONE: bool = true;

    #[inline(always)]
    fn transfer_alone(
        &mut self,
        memory: &mut IoMemory,
        io: &Io,
        started: impl FnOnce(),
    ) -> LoneTransfer {
        let is_plain = matches!(self.call, Call::Positioned);
        if !is_plain || !matches!(io.op, Op::Read | Op::Write) {
            return LoneTransfer::Declined;
        }
        let transfer = Transfer {
            fd: self.handles[io.file as usize].fd,
            write: io.op == Op::Write,
            offset: io.offset,
            slot: 0,
            skip: 0,
            len: io.len,
        };
        started();
        LoneTransfer::Completed(rw::transfer(memory, transfer, Call::Positioned))
    }

    #[inline]
    fn carry_out(&mut self, slab: &mut Slab, batch: &[u32], finished: &mut Vec<Completion>) {
        let index = batch[0];
        let handle = self.handles[slab.slots[index as usize].file as usize];
        let call = self.next_call();
        let result = one_call(slab, index, handle, call, self.sync_range_flags);
        finished.push(Completion {
            slot: index,
            result,
        });
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        Ok(())
    }
}

/// readv(2) and writev(2): contiguous I/Os in one direction become one call.
pub(crate) struct Vsync {
    handles: Vec<FileHandle>,
    run: Vec<(u32, u32)>,
    sync_range_flags: u32,
}

impl Vsync {
    /// A backend for up to `depth` I/Os per call.
    pub(crate) fn new(depth: u32, sync_range_flags: u32) -> Vsync {
        Vsync {
            handles: Vec::new(),
            run: Vec::with_capacity(depth as usize),
            sync_range_flags,
        }
    }

    /// Number of slots at the front of `batch` that are contiguous.
    fn neighbours(slab: &Slab, batch: &[u32]) -> usize {
        let first = &slab.slots[batch[0] as usize];
        if !matches!(first.op, Op::Read | Op::Write) {
            return 1;
        }
        let mut end = first.offset + u64::from(first.len);
        let mut count = 1;
        for index in batch[1..].iter().take(rw::MOST_NEIGHBOURS - 1) {
            let slot = &slab.slots[*index as usize];
            if slot.op != first.op || slot.file != first.file || slot.offset != end {
                break;
            }
            end += u64::from(slot.len);
            count += 1;
        }
        count
    }

    /// Moves contiguous slots by one call. Returns the number completed. Slots after a short or
    /// failed one were not tried and get calls of their own.
    fn move_run(
        &mut self,
        slab: &mut Slab,
        batch: &[u32],
        finished: &mut Vec<Completion>,
    ) -> usize {
        let first = &slab.slots[batch[0] as usize];
        self.run.clear();
        self.run.extend(
            batch
                .iter()
                .map(|index| (*index, slab.slots[*index as usize].len)),
        );
        let fd = self.handles[first.file as usize].fd;
        let moved = rw::transfer_many(
            &mut slab.memory,
            fd,
            first.op == Op::Write,
            first.offset,
            &self.run,
        );
        let mut left = moved;
        for (count, (slot, length)) in (1..).zip(&self.run) {
            let result = left.min(i64::from(*length)) as i32;
            finished.push(Completion {
                slot: *slot,
                result,
            });
            left -= i64::from(*length);
            if left <= 0 {
                return count;
            }
        }
        batch.len()
    }
}

impl ImmediateIo for Vsync {
    const SYNCHRONOUS: bool = false;
    const CARRIES_OUT_IN_SUBMIT: bool = true;

    fn carry_out(&mut self, slab: &mut Slab, batch: &[u32], finished: &mut Vec<Completion>) {
        let mut rest = batch;
        while !rest.is_empty() {
            let mut count = Self::neighbours(slab, rest);
            let slot = &slab.slots[rest[0] as usize];
            if count > 1 && slot.moved == 0 {
                count = self.move_run(slab, &rest[..count], finished);
            } else {
                let handle = self.handles[slot.file as usize];
                let result = one_call(slab, rest[0], handle, Call::Vectored, self.sync_range_flags);
                finished.push(Completion {
                    slot: rest[0],
                    result,
                });
            }
            rest = &rest[count.max(1)..];
        }
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        Ok(())
    }
}
