//! An io_uring: one submission queue, one completion queue, registered files and buffers.

use crate::io::{Completion, Op, Slab, Slot};
use crate::sys::memory::{IoMemory, LeftMapped};
use io_uring::squeue::{PushError, SubmissionQueue};
use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// How long dropping a ring waits for I/O in flight.
const PATIENCE: Duration = Duration::from_secs(5);

/// IORING_ENTER_GETEVENTS.
const GETEVENTS: u32 = 1;
/// IORING_ENTER_EXT_ARG.
const EXT_ARG: u32 = 8;

/// Options of the ring.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingOptions {
    /// Poll the device for completions.
    pub iopoll: bool,
    /// Let a kernel thread submit (SQPOLL).
    pub sqpoll: bool,
    /// CPU of that kernel thread.
    pub sqpoll_cpu: Option<u32>,
    /// RWF_NOWAIT on reads and writes.
    pub nowait: bool,
    /// Every Nth I/O is forced to a kernel worker (IOSQE_ASYNC). 0: none.
    pub force_async: u32,
    /// Use vectored opcodes (`nonvectored=0`).
    pub vectored: bool,
    /// Flags of sync_file_range(2).
    pub sync_range_flags: u32,
}

/// A read or write as the kernel reads it from the submission queue (`struct io_uring_sqe`).
///
/// Written in one store: the builders of the crate `io-uring` copy the unused part through the
/// stack in words of another size, which costs a store-forwarding stall for each entry.
#[repr(C)]
struct Transfer {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    rw_flags: u32,
    user_data: u64,
    /// 0: all buffers are one registered area.
    buffer_index: u16,
    personality: u16,
    splice_fd: i32,
    unused: [u64; 2],
}

impl Transfer {
    #[inline(always)]
    fn entry(self) -> squeue::Entry {
        // SAFETY: both are 64 bytes of plain integers; `Entry` is a `repr(C)` `io_uring_sqe`.
        unsafe { std::mem::transmute::<Transfer, squeue::Entry>(self) }
    }
}

/// Builds the entry of a slot that is no plain read or write. `Fixed` and `Fd` share no trait.
macro_rules! operation {
    ($maker:ident, $fd:expr, $slab:ident, $slot:ident, $index:ident) => {{
        let offset = $slot.offset + u64::from($slot.moved);
        let ioprio = $slot.priority;
        let flags = $maker.rw_flags() as i32;
        match $slot.op {
            Op::Read => {
                let vector = $maker.vector($slab, $slot, $index);
                opcode::Readv::new($fd, vector, 1).offset(offset).ioprio(ioprio).rw_flags(flags).build()
            }
            Op::Write => {
                let vector = $maker.vector($slab, $slot, $index);
                opcode::Writev::new($fd, vector, 1).offset(offset).ioprio(ioprio).rw_flags(flags).build()
            }
            Op::Fsync => opcode::Fsync::new($fd).build(),
            Op::Fdatasync => opcode::Fsync::new($fd).flags(FsyncFlags::DATASYNC).build(),
            Op::SyncFileRange => opcode::SyncFileRange::new($fd, $slot.len)
                .offset($slot.offset).flags($maker.options.sync_range_flags).build(),
            // The backend carries out trims by system calls, as an opcode for them is newer than io_uring.
            Op::Trim => opcode::Nop::new().build(),
        }
    }};
}

/// An io_uring of one thread.
pub struct Ring {
    ring: IoUring,
    deferred: bool,
    maker: EntryMaker,
    /// Entries pushed to the submission queue whose completions have not been reaped.
    in_flight: usize,
    /// Leaves the buffers mapped if I/O is still in flight when the ring is dropped.
    memory: LeftMapped,
}

/// Builds submission queue entries.
struct EntryMaker {
    options: RingOptions,
    files: Vec<RawFd>,
    registered_files: bool,
    fixed_buffers: bool,
    /// Entries since the last one that was forced to a kernel worker.
    turn: u32,
    /// One I/O vector for each slot, for vectored opcodes.
    vectors: Box<[libc::iovec]>,
}

impl Ring {
    /// Creates a ring for `depth` I/Os in flight in slots of `memory`, with fewer flags if need be.
    pub fn new(depth: u32, options: RingOptions, memory: &IoMemory) -> io::Result<Ring> {
        let entries = depth.next_power_of_two();
        let (ring, deferred) = match build(entries, options, true) {
            Ok(ring) => (ring, true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                (build(entries, options, false)?, false)
            }
            Err(error) => return Err(error),
        };
        // Saves a descriptor lookup in each call. Older kernels refuse it.
        let _ = ring.submitter().register_ring_fd();
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Ok(Ring {
            ring,
            deferred: deferred && !options.sqpoll,
            maker: EntryMaker {
                options,
                files: Vec::new(),
                registered_files: false,
                fixed_buffers: false,
                turn: 0,
                vectors: vec![empty; memory.slots()].into_boxed_slice(),
            },
            in_flight: 0,
            memory: memory.left_mapped(),
        })
    }

    /// Sets the files that slots number. `register` also registers them with the kernel.
    pub fn set_files(&mut self, files: &[RawFd], register: bool) -> io::Result<()> {
        if self.maker.registered_files {
            self.ring.submitter().unregister_files()?;
            self.maker.registered_files = false;
        }
        self.maker.files = files.to_vec();
        if register && !files.is_empty() {
            self.ring.submitter().register_files(files)?;
            self.maker.registered_files = true;
        }
        Ok(())
    }

    /// Registers all buffers with the kernel.
    pub fn register_buffers(&mut self, memory: &IoMemory) -> io::Result<()> {
        // SAFETY: `memory` keeps the area mapped. The worker drops its backend before its memory.
        unsafe { self.ring.submitter().register_buffers(&[memory.area()]) }?;
        self.maker.fixed_buffers = true;
        Ok(())
    }

    /// Whether buffers are registered.
    pub fn fixed_buffers(&self) -> bool {
        self.maker.fixed_buffers
    }

    /// Whether files are registered.
    pub fn registered_files(&self) -> bool {
        self.maker.registered_files
    }

    /// Queues and submits a batch. Returns the number queued, which are all in flight. Entries that
    /// the kernel did not consume stay queued for the next call. The next wait reports a failure.
    #[inline]
    pub fn submit(&mut self, slab: &Slab, batch: &[u32]) -> usize {
        let mut queue = self.ring.submission();
        let mut pushed = 0;
        for index in batch {
            if self.maker.push(&mut queue, slab, *index).is_err() {
                break;
            }
            pushed += 1;
        }
        let queued = queue.len() as u32;
        drop(queue);
        self.in_flight += pushed;
        let _ = if self.deferred {
            // GETEVENTS without waiting runs deferred task work, which often saves a call to wait.
            self.enter(queued, 0)
        } else {
            self.ring.submitter().submit().map(|_| ())
        };
        pushed
    }

    #[inline]
    fn enter(&self, queued: u32, min: u32) -> io::Result<()> {
        // SAFETY: no signal mask or timeout is passed.
        unsafe {
            self.ring
                .submitter()
                .enter::<libc::sigset_t>(queued, min, GETEVENTS, None)
        }
        .map(|_| ())
    }

    /// Appends completions. Waits for `min` of them, at most `timeout_ns`.
    #[inline]
    pub fn reap(
        &mut self,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        self.drain(done);
        if min == 0 {
            if done.is_empty()
                && (self.maker.options.iopoll
                    || (self.deferred && self.ring.submission().taskrun()))
            {
                self.wait(0, None)?;
                self.drain(done);
            }
            return Ok(());
        }
        while done.len() < min {
            let before = done.len();
            let timed_out = self.wait(min - done.len(), timeout_ns)?;
            self.drain(done);
            if timed_out || (timeout_ns.is_some() && done.len() == before) {
                break;
            }
        }
        Ok(())
    }

    fn wait(&mut self, min: usize, timeout_ns: Option<u64>) -> io::Result<bool> {
        let returned = match timeout_ns {
            Some(ns) => {
                let time = Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32);
                self.ring
                    .submitter()
                    .submit_with_args(min, &SubmitArgs::new().timespec(&time))
                    .map(|_| ())
            }
            None => {
                let queued = self.ring.submission().len() as u32;
                self.enter(queued, min as u32)
            }
        };
        match returned {
            Ok(()) => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(true),
            Err(error) if retry(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn drain(&mut self, done: &mut Vec<Completion>) {
        let before = done.len();
        for entry in self.ring.completion() {
            done.push(Completion {
                slot: entry.user_data() as u32,
                result: entry.result(),
            });
        }
        self.in_flight -= done.len() - before;
    }

    /// Waits for the consumed I/Os without submitting queued ones. Returns whether all completed.
    fn await_in_flight(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let completed = self.ring.completion().count();
            self.in_flight = self.in_flight.saturating_sub(completed);
            // The kernel thread of SQPOLL consumes the queue by itself.
            let queued = match self.maker.options.sqpoll {
                true => 0,
                false => self.ring.submission().len(),
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if self.in_flight <= queued || left.is_zero() {
                return self.in_flight <= queued;
            }
            let time = Timespec::from(left);
            let arguments = SubmitArgs::new().timespec(&time);
            // SAFETY: the timeout lives through the call, and no signal mask is passed.
            let waited = unsafe {
                let flags = GETEVENTS | EXT_ARG;
                self.ring.submitter().enter(0, 1, flags, Some(&arguments))
            };
            match waited {
                Err(error) if error.raw_os_error() != Some(libc::ETIME) && !retry(&error) => {
                    return false;
                }
                _ => {}
            }
        }
    }
}

/// Waits, as closing a ring does not: kernel workers may write to buffers after the close.
impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 && !self.await_in_flight() {
            self.memory.leave();
        }
    }
}

impl EntryMaker {
    /// Queues the I/O of a slot. Each kind of entry is pushed where it is built: an entry merged
    /// from two branches goes through the stack, which costs a store-forwarding stall.
    #[inline(always)]
    fn push(
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
            // SAFETY: the buffer stays mapped and untouched until its completion is reaped.
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
        self.turn = (self.turn + 1) % every;
        self.turn == 0
    }

    #[inline(always)]
    fn transfer(&self, slab: &Slab, slot: &Slot, index: u32, forced: bool) -> squeue::Entry {
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
        let (fd, place) = if self.registered_files {
            (slot.file as i32, squeue::Flags::FIXED_FILE)
        } else {
            (self.files[slot.file as usize], squeue::Flags::empty())
        };
        Transfer {
            opcode,
            flags: (forced | place).bits(),
            ioprio: slot.priority,
            fd,
            offset: slot.offset + u64::from(slot.moved),
            address: address.addr() as u64,
            length,
            rw_flags: self.rw_flags(),
            user_data: u64::from(index),
            buffer_index: 0,
            personality: 0,
            splice_fd: 0,
            unused: [0; 2],
        }
        .entry()
    }

    #[cold]
    fn other(&mut self, slab: &Slab, slot: &Slot, index: u32, forced: bool) -> squeue::Entry {
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

    fn rw_flags(&self) -> u32 {
        if self.options.nowait {
            libc::RWF_NOWAIT as u32
        } else {
            0
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
fn remaining(slab: &Slab, slot: &Slot, index: u32) -> (*mut u8, u32) {
    debug_assert!(slot.moved <= slot.len && slot.len as usize <= slab.memory.stride());
    (
        slab.memory.address(index).wrapping_add(slot.moved as usize),
        slot.len - slot.moved,
    )
}

/// Creates and drops a small ring, to check whether this process may use io_uring.
pub fn try_one() -> io::Result<()> {
    build(2, RingOptions::default(), false).map(drop)
}

fn build(entries: u32, options: RingOptions, modern: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(entries * 2);
    if options.iopoll {
        builder.setup_iopoll();
    }
    if options.sqpoll {
        builder.setup_sqpoll(1_000);
        if let Some(cpu) = options.sqpoll_cpu {
            builder.setup_sqpoll_cpu(cpu);
        }
    } else if modern {
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag();
    }
    builder.build(entries)
}

fn retry(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::MemoryKind;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const DEPTH: u32 = 4;
    const BYTES: usize = 4096;

    struct Fixture {
        ring: Ring,
        slab: Slab,
        file: File,
    }

    impl Fixture {
        /// A ring over a file of ones.
        fn new() -> Fixture {
            let mut slots = vec![Slot::IDLE; DEPTH as usize];
            for slot in &mut slots {
                (slot.op, slot.len) = (Op::Read, BYTES as u32);
            }
            let slab = Slab {
                slots: slots.into(),
                memory: IoMemory::map(DEPTH as usize, BYTES, 0, MemoryKind::Pages).unwrap(),
            };
            let mut ring = Ring::new(DEPTH, RingOptions::default(), &slab.memory).unwrap();
            // Calls use the descriptor afterwards. Fails if it was not registered.
            let _ = ring.ring.submitter().unregister_ring_fd();
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, &[1; BYTES]).unwrap();
            ring.set_files(&[file.as_raw_fd()], false).unwrap();
            Fixture { ring, slab, file }
        }

        fn submit(&mut self, slots: &[u32]) {
            assert_eq!(self.ring.submit(&self.slab, slots), slots.len());
        }

        /// Slots completed, once there are `min` of them.
        fn reap(&mut self, min: usize) -> io::Result<Vec<u32>> {
            let mut done = Vec::new();
            self.ring.reap(min, None, &mut done)?;
            assert!(done.iter().all(|over| over.result == BYTES as i32));
            let mut slots: Vec<_> = done.iter().map(|over| over.slot).collect();
            slots.sort_unstable();
            Ok(slots)
        }

        fn holds_ones(&self, slot: u32) -> bool {
            *self.slab.memory.slot(slot, BYTES) == [1; BYTES]
        }

        /// Replaces the ring's descriptor by a file, so that calls fail. Returns a duplicate of it.
        fn break_ring(&self) -> RawFd {
            let fd = self.ring.ring.as_raw_fd();
            // SAFETY: no memory is passed, and both descriptors belong to this fixture.
            let kept = unsafe { libc::dup(fd) };
            self.replace(self.file.as_raw_fd());
            kept
        }

        fn replace(&self, with: RawFd) {
            // SAFETY: no memory is passed, and the fixture owns the descriptor.
            let replaced = unsafe { libc::dup2(with, self.ring.ring.as_raw_fd()) };
            assert!(replaced >= 0);
        }
    }

    #[test]
    fn what_the_kernel_did_not_take_goes_with_the_next_call_and_is_done_once() {
        let mut fixture = Fixture::new();
        let kept = fixture.break_ring();
        fixture.submit(&[0, 1]);
        fixture.replace(kept);
        fixture.submit(&[2]);
        assert_eq!(fixture.reap(3).unwrap(), [0, 1, 2]);
        assert!((0..3).all(|slot| fixture.holds_ones(slot)) && !fixture.holds_ones(3));
        assert_eq!(fixture.ring.in_flight, 0);
    }

    #[test]
    fn an_error_that_persists_is_found_by_the_wait() {
        let mut fixture = Fixture::new();
        fixture.break_ring();
        fixture.submit(&[0, 1]);
        let error = fixture.reap(1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
        // The kernel consumed nothing, so nothing is in flight.
        assert!(fixture.ring.await_in_flight());
    }

    #[test]
    fn buffers_stay_mapped_where_nobody_says_whether_they_are_written() {
        let mut fixture = Fixture::new();
        let address = fixture.slab.memory.slot(0, BYTES).as_ptr();
        fixture.submit(&[0]);
        fixture.ring.in_flight += 1;
        fixture.break_ring();
        let Fixture { ring, slab, .. } = fixture;
        drop(ring);
        drop(slab);
        assert!(is_mapped(address));
        let slab = Fixture::new().slab;
        let address = slab.memory.slot(0, BYTES).as_ptr();
        drop(slab);
        assert!(
            !is_mapped(address),
            "a buffer without I/O in flight is unmapped"
        );
    }

    fn is_mapped(address: *const u8) -> bool {
        // SAFETY: mincore(2) writes one byte for one page, and fails if the page is not mapped.
        unsafe { libc::mincore(address.cast_mut().cast(), BYTES, &mut 0) == 0 }
    }
}
