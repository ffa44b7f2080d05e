//! Linux native AIO (io_submit(2), io_getevents(2)) by its raw system calls.

use super::aio_ring::{AioEvent, AioRing};
use super::memory::{IoMemory, KeptMapping};
use crate::slot::Completion;
use crate::sys::c_library as libc;
use crate::sys::memory::Slab;
use crate::sys::rw::RwFlags;
use iosonde_workload::Op;
use std::io;
use std::os::fd::RawFd;

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
const FLAG_IOPRIO: u32 = 2;

/// struct iocb of linux/aio_abi.h on little-endian machines.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    reqprio: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

const _: () = assert!(size_of::<ControlBlock>() == 64, "as in the kernel's header");

/// An AIO context with room for a fixed number of I/Os.
pub(crate) struct AioContext {
    id: libc::c_ulong,
    blocks: Box<[ControlBlock]>,
    pointers: Vec<*const ControlBlock>,
    events: Box<[AioEvent]>,
    /// Where the kernel puts completions. `None`: they are read by io_getevents(2) only.
    ring: Option<AioRing>,
    rw_flags: RwFlags,
    /// The buffers of the first submission.
    memory: Option<KeptMapping>,
}

// SAFETY: the context is an id. `pointers` point into `blocks`, which stays in place on the heap.
// The ring belongs to the process, and only the owner of this value reads it.
unsafe impl Send for AioContext {}

impl AioContext {
    /// Creates a context for `depth` I/Os in flight.
    pub(crate) fn new(depth: usize, rw_flags: RwFlags) -> io::Result<AioContext> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: io_setup writes one context id.
        if unsafe { libc::syscall(libc::SYS_io_setup, depth as libc::c_long, &mut id) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(AioContext {
            id,
            blocks: vec![ControlBlock::default(); depth].into_boxed_slice(),
            pointers: Vec::with_capacity(depth),
            events: vec![AioEvent::default(); depth].into_boxed_slice(),
            // SAFETY: the context is destroyed when this value is dropped, which has the only
            // reader and makes all calls.
            ring: unsafe { AioRing::of_context(id) },
            rw_flags,
            memory: None,
        })
    }

    /// Submits slots. Returns the number taken from the front.
    ///
    /// # Panics
    /// If the memory is not that of the first call, or if a slot is in flight already, does not
    /// exist or is larger than its buffer.
    pub(crate) fn submit(
        &mut self,
        slab: &mut Slab,
        batch: &[u32],
        fds: &[RawFd],
    ) -> io::Result<usize> {
        let kept = self.memory.get_or_insert_with(|| slab.memory.keep_mapped());
        assert!(kept.is_of(&slab.memory));
        self.pointers.clear();
        for index in batch {
            slab.memory.begin_io(*index);
            self.blocks[*index as usize] = self.block(slab, *index, fds);
            self.pointers.push(&raw const self.blocks[*index as usize]);
        }
        // SAFETY: the blocks live as long as the context. Each range lies within its slot, which is
        // marked as in flight, and the context keeps the buffers mapped.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.id,
                self.pointers.len(),
                self.pointers.as_ptr(),
            )
        };
        let outcome = match usize::try_from(taken) {
            Ok(taken) => Ok(taken),
            Err(_) => Err(io::Error::last_os_error()),
        };
        for index in &batch[*outcome.as_ref().unwrap_or(&0)..] {
            slab.memory.end_io(*index);
        }
        outcome
    }

    #[inline]
    fn block(&self, slab: &Slab, index: u32, fds: &[RawFd]) -> ControlBlock {
        let slot = &slab.slots[index as usize];
        assert!(slot.moved <= slot.len);
        let data = match slot.op {
            Op::Read | Op::Write => {
                assert!(slot.len as usize <= slab.memory.stride());
                slab.memory.address(index).wrapping_add(slot.moved as usize) as u64
            }
            _ => 0,
        };
        ControlBlock {
            data: u64::from(index),
            opcode: match slot.op {
                Op::Read => PREAD,
                Op::Write => PWRITE,
                Op::Fdatasync => FDSYNC,
                Op::Fsync | Op::SyncFileRange | Op::Trim => FSYNC,
            },
            fd: fds[slot.file as usize] as u32,
            buffer: data,
            bytes: if data == 0 {
                0
            } else {
                u64::from(slot.len - slot.moved)
            },
            offset: if data == 0 {
                0
            } else {
                (slot.offset + u64::from(slot.moved)) as i64
            },
            rw_flags: match slot.op {
                Op::Read | Op::Write => self.rw_flags.select(slot.op == Op::Write),
                _ => 0,
            },
            reqprio: slot.priority as i16,
            flags: if slot.priority != 0 { FLAG_IOPRIO } else { 0 },
            ..ControlBlock::default()
        }
    }

    /// Appends completions: at least `min` unless `timeout_ns` passes first. Enters the kernel only
    /// to wait, if it can.
    ///
    /// # Panics
    /// If the memory is not that of the submissions.
    pub(crate) fn reap(
        &mut self,
        memory: &mut IoMemory,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let taken = self.take_from_ring(memory, done);
        if self.ring.is_some() && taken >= min {
            return Ok(());
        }
        self.wait(memory, min - taken, timeout_ns, done)
    }

    /// Appends the completions that the ring has. Returns their number.
    #[inline(always)]
    fn take_from_ring(&mut self, memory: &mut IoMemory, done: &mut Vec<Completion>) -> usize {
        let Some(ring) = &mut self.ring else {
            return 0;
        };
        let kept = self.memory.as_ref();
        let is_known = kept.is_some_and(|kept| kept.is_of(memory));
        let mut taken = 0;
        while taken < self.events.len()
            && let Some(event) = ring.take()
        {
            assert!(is_known, "the submissions have another memory");
            complete(event, memory, done);
            taken += 1;
        }
        taken
    }

    /// Appends completions by io_getevents(2): at least `min` unless `timeout_ns` passes first.
    fn wait(
        &mut self,
        memory: &mut IoMemory,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let time = timeout_ns
            .or(if min == 0 { Some(0) } else { None })
            .map(|ns| libc::timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as i64,
            });
        let time = time
            .as_ref()
            .map_or(std::ptr::null(), |time| &raw const *time);
        // SAFETY: the kernel writes up to `events.len()` events and reads a timeout on this stack.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                min,
                self.events.len(),
                self.events.as_mut_ptr(),
                time,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::EINTR) {
                Ok(())
            } else {
                Err(error)
            };
        }
        let kept = self.memory.as_ref();
        assert!(count == 0 || kept.is_some_and(|kept| kept.is_of(memory)));
        for event in &self.events[..count as usize] {
            complete(*event, memory, done);
        }
        Ok(())
    }
}

/// Marks the slot of an event as no longer in flight, and appends its completion.
#[inline(always)]
fn complete(event: AioEvent, memory: &mut IoMemory, done: &mut Vec<Completion>) {
    let slot = event.data as u32;
    memory.end_io(slot);
    done.push(Completion {
        slot,
        result: event.result as i32,
    });
}

impl Drop for AioContext {
    fn drop(&mut self) {
        // SAFETY: the id is that of io_setup. The call waits for I/O in flight, so the kernel does
        // not access the buffers afterwards. Linux offers no deadline for it.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Slot;
    use crate::sys::memory::MemoryKind;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    const BYTES: usize = 512;
    const SLOTS: u32 = 3;
    /// More I/Os than the kernel's ring has entries for so small a context.
    const ROUNDS: u32 = 2000;

    /// Reads three parts of a file again and again, with or without the ring.
    fn read_in_rounds(has_ring: bool) {
        let mut file = tempfile::tempfile().unwrap();
        for slot in 0..SLOTS {
            file.write_all(&[slot as u8 + 1; BYTES]).unwrap();
        }
        let slot = |index: u32| Slot {
            offset: u64::from(index) * BYTES as u64,
            len: BYTES as u32,
            ..Slot::IDLE
        };
        let mut slab = Slab {
            slots: (0..SLOTS).map(slot).collect(),
            memory: IoMemory::map(SLOTS as usize, BYTES, 0, MemoryKind::Pages).unwrap(),
        };
        let mut context = AioContext::new(SLOTS as usize, RwFlags::default()).unwrap();
        assert!(context.ring.is_some(), "Linux maps a ring");
        if !has_ring {
            context.ring = None;
        }
        for _ in 0..ROUNDS {
            let fds = [file.as_raw_fd()];
            assert_eq!(context.submit(&mut slab, &[0, 1, 2], &fds).unwrap(), 3);
            let mut done = Vec::new();
            while done.len() < 3 {
                let left = 3 - done.len();
                let memory = &mut slab.memory;
                context.reap(memory, left, None, &mut done).unwrap();
            }
            context.reap(&mut slab.memory, 0, None, &mut done).unwrap();
            done.sort_unstable_by_key(|completion: &Completion| completion.slot);
            let slots: Vec<u32> = done.iter().map(|completion| completion.slot).collect();
            assert_eq!(slots, [0, 1, 2], "each I/O completes once");
            for completion in done {
                assert_eq!(completion.result, BYTES as i32);
                let buffer = slab.memory.slot(completion.slot, BYTES);
                assert_eq!(buffer, [completion.slot as u8 + 1; BYTES]);
            }
        }
    }

    #[test]
    fn completions_of_the_ring_and_of_the_call_are_the_same() {
        read_in_rounds(true);
        read_in_rounds(false);
    }
}
