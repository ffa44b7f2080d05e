//! POSIX asynchronous I/O of the C library, whose threads make synchronous system calls.

use super::memory::{IoMemory, KeptMapping};
use crate::slot::Completion;
use crate::sys::memory::Slab;
use iosonde_workload::Op;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::time::{Duration, Instant};

/// Number of oldest requests to wait for. The C library serves the requests of a file in order.
const WAITED_FOR: usize = 8;

/// How long dropping requests waits for those in flight.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// A request completed, or a signal arrived.
    Woken,
    /// The timeout passed.
    TimedOut,
}

/// Requests, one for each slot, and the list of those in flight.
pub(crate) struct AioRequests {
    /// One for each slot. They do not move while the C library uses them.
    blocks: Box<[libc::aiocb]>,
    /// Slots in flight, in the order of submission.
    pending: Vec<u32>,
    /// The buffers of the first request.
    memory: Option<KeptMapping>,
}

// SAFETY: control blocks point to buffers that this value keeps mapped. The C library accepts calls
// from any thread.
unsafe impl Send for AioRequests {}

impl AioRequests {
    /// Creates requests for `depth` I/Os in flight.
    pub(crate) fn new(depth: usize) -> AioRequests {
        // SAFETY: a control block is plain data, and all zeros are a valid value of it.
        let blocks = (0..depth).map(|_| unsafe { std::mem::zeroed() });
        AioRequests {
            blocks: blocks.collect(),
            pending: Vec::with_capacity(depth),
            memory: None,
        }
    }

    /// Whether no request is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Starts a read, a write or a flush.
    ///
    /// # Panics
    /// If the memory is not that of the first call, or if the slot is in flight already, does not
    /// exist or is larger than its buffer.
    pub(crate) fn start(&mut self, slab: &mut Slab, index: u32, fd: RawFd) -> io::Result<()> {
        let kept = self.memory.get_or_insert_with(|| slab.memory.keep_mapped());
        assert!(kept.is_of(&slab.memory));
        let op = slab.slots[index as usize].op;
        slab.memory.begin_io(index);
        self.fill(slab, index, fd);
        let block: *mut libc::aiocb = &raw mut self.blocks[index as usize];
        // SAFETY: no request uses the block, as the slot was not in flight. The block and the
        // slot's buffer live until the request completes (see `drop`).
        let status = unsafe {
            match op {
                Op::Read => libc::aio_read(block),
                Op::Write => libc::aio_write(block),
                Op::Fdatasync => libc::aio_fsync(libc::O_DSYNC, block),
                Op::Fsync | Op::Trim | Op::SyncFileRange => libc::aio_fsync(libc::O_SYNC, block),
            }
        };
        if status != 0 {
            let error = io::Error::last_os_error();
            slab.memory.end_io(index);
            return Err(error);
        }
        self.pending.push(index);
        Ok(())
    }

    fn fill(&mut self, slab: &Slab, index: u32, fd: RawFd) {
        let slot = &slab.slots[index as usize];
        let block = &mut self.blocks[index as usize];
        block.aio_fildes = fd;
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        let moves = matches!(slot.op, Op::Read | Op::Write);
        block.aio_buf = if moves {
            assert!(slot.moved <= slot.len && slot.len as usize <= slab.memory.stride());
            let address = slab.memory.address(index);
            address.wrapping_add(slot.moved as usize).cast()
        } else {
            ptr::null_mut()
        };
        block.aio_nbytes = if moves {
            (slot.len - slot.moved) as usize
        } else {
            0
        };
        block.aio_offset = (slot.offset + u64::from(slot.moved)) as i64;
    }

    /// Appends completions without waiting.
    ///
    /// # Panics
    /// If the memory is not that of the requests.
    pub(crate) fn collect(&mut self, memory: &mut IoMemory, done: &mut Vec<Completion>) {
        let kept = self.memory.as_ref();
        assert!(self.is_idle() || kept.is_some_and(|kept| kept.is_of(memory)));
        self.take_completed(|slot, result| {
            memory.end_io(slot);
            done.push(Completion { slot, result });
        });
    }

    /// Passes the slot and the result of each completed request to `take`.
    fn take_completed(&mut self, mut take: impl FnMut(u32, i32)) {
        let blocks = &mut self.blocks;
        self.pending.retain(|index| {
            let block: *mut libc::aiocb = &raw mut blocks[*index as usize];
            // SAFETY: the request of this block was started, and its result has not been taken yet.
            let error = unsafe { libc::aio_error(block) };
            if error == libc::EINPROGRESS {
                return true;
            }
            // SAFETY: as above, and the request is complete.
            let moved = unsafe { libc::aio_return(block) };
            take(*index, if error == 0 { moved as i32 } else { -error });
            false
        });
    }

    /// Waits until one of the oldest requests completes, a signal arrives or `timeout_ns` passes.
    pub(crate) fn wait(&self, timeout_ns: Option<u64>) -> io::Result<Waited> {
        let mut oldest = [ptr::null::<libc::aiocb>(); WAITED_FOR];
        for (place, index) in oldest.iter_mut().zip(&self.pending) {
            *place = &raw const self.blocks[*index as usize];
        }
        let time = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let time = time.as_ref().map_or(ptr::null(), |time| &raw const *time);
        // SAFETY: the list, its blocks (null ones are skipped) and the timeout outlive the call.
        let status = unsafe { libc::aio_suspend(oldest.as_ptr(), WAITED_FOR as i32, time) };
        if status == 0 {
            return Ok(Waited::Woken);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(Waited::Woken),
            Some(libc::EAGAIN) => Ok(Waited::TimedOut),
            _ => Err(error),
        }
    }
}

impl Drop for AioRequests {
    fn drop(&mut self) {
        // The C library writes to buffers and blocks until a request completes.
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while !self.is_idle() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(Some(left.as_nanos() as u64)).is_err() {
                break;
            }
            self.take_completed(|_, _| {});
        }
        if !self.is_idle() {
            std::mem::forget(std::mem::take(&mut self.blocks));
            if let Some(kept) = &self.memory {
                kept.leave();
            }
        }
    }
}
