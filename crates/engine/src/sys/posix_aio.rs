//! POSIX asynchronous I/O of the C library, whose threads make synchronous system calls.

use super::memory::IoMemory;
use crate::io::{Completion, Op, Slab};
use std::io;
use std::os::fd::RawFd;
use std::ptr;

/// Number of oldest requests to wait for. The C library serves the requests of a file in order.
const WAITED_FOR: usize = 8;

/// Reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// A request completed, or a signal arrived.
    Woken,
    /// The timeout passed.
    TimedOut,
}

/// Requests, one for each slot, and the list of those in flight.
pub struct Requests {
    /// One for each slot. They do not move while the C library uses them.
    blocks: Box<[libc::aiocb]>,
    /// Slots in flight, in the order of submission.
    pending: Vec<u32>,
}

// SAFETY: control blocks point to slots of the worker's memory, which moves with them. The C
// library accepts calls from any thread.
unsafe impl Send for Requests {}

impl Requests {
    /// Creates requests for `depth` I/Os in flight.
    pub fn new(depth: usize) -> Requests {
        // SAFETY: a control block is plain data, and all zeros are a valid value of it.
        let blocks = (0..depth).map(|_| unsafe { std::mem::zeroed() });
        Requests {
            blocks: blocks.collect(),
            pending: Vec::with_capacity(depth),
        }
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Starts a read, a write or a flush.
    pub fn start(&mut self, slab: &Slab, index: u32, fd: RawFd) -> io::Result<()> {
        let op = slab.slots[index as usize].op;
        self.fill(slab, index, fd);
        let block: *mut libc::aiocb = &raw mut self.blocks[index as usize];
        // SAFETY: the block and the slot's buffer live until the request completes (see `drop`).
        let status = unsafe {
            match op {
                Op::Read => libc::aio_read(block),
                Op::Write => libc::aio_write(block),
                Op::Fdatasync => libc::aio_fsync(libc::O_DSYNC, block),
                Op::Fsync | Op::Trim | Op::SyncFileRange => libc::aio_fsync(libc::O_SYNC, block),
            }
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
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
            Self::data(&slab.memory, index, slot.moved)
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

    fn data(memory: &IoMemory, index: u32, moved: u32) -> *mut libc::c_void {
        memory
            .address(index)
            .wrapping_add(moved as usize)
            .cast::<libc::c_void>()
    }

    /// Appends completions without waiting.
    pub fn collect(&mut self, done: &mut Vec<Completion>) {
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
            done.push(Completion {
                slot: *index,
                result: if error == 0 { moved as i32 } else { -error },
            });
            false
        });
    }

    /// Waits until one of the oldest requests completes, a signal arrives or `timeout_ns` passes.
    pub fn wait(&self, timeout_ns: Option<u64>) -> io::Result<Waited> {
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

impl Drop for Requests {
    fn drop(&mut self) {
        // The C library writes to buffers and blocks until a request completes.
        let mut done = Vec::with_capacity(self.pending.len());
        while !self.is_idle() && self.wait(None).is_ok() {
            self.collect(&mut done);
        }
    }
}
