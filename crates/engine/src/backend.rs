//! How one batch of I/O descriptors reaches the kernel, and how completions come back.
//!
//! A backend is handed slots that the worker has filled, and hands back which of them are done. It takes no time stamps,
//! counts nothing and knows nothing about workloads.

pub mod aio;
pub mod at_once;
pub mod mmap;
pub mod null;
pub mod posix_aio;
#[cfg(feature = "ceph")]
pub mod rados;
#[cfg(feature = "ceph")]
pub mod rbd;
pub mod sim_backend;
pub mod sync;
pub mod uring;

use crate::sys::memory::IoMemory;
use std::io;
use std::os::fd::RawFd;

pub use iosonde_workload::Op;

/// One I/O from its preparation to its completion. A slot's index is its identity everywhere. It fills a cache line of its
/// own.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Slot {
    /// Position in the file, in bytes.
    pub offset: u64,
    /// When it was meant to start: total latency of open loops counts from here.
    pub start_ns: u64,
    /// When it had been submitted: completion latency counts from here.
    pub issue_ns: u64,
    /// Which I/O of the worker it is, counted from 0 (for verification).
    pub sequence: u64,
    /// Bytes asked for.
    pub len: u32,
    /// Bytes moved by earlier, short completions of it.
    pub moved: u32,
    /// Index into the worker's files.
    pub file: u32,
    /// What is asked for.
    pub op: Op,
    /// I/O priority in the kernel's encoding; 0 is that of the thread (`cmdprio_percentage`).
    pub priority: u16,
    /// It reads back what was written, to check it.
    pub check: bool,
    /// When it was really started: fio's total latency counts from here. Later than `start_ns` where a rate or a trace says
    /// when I/Os are due.
    pub prepared_ns: u64,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    /// A slot at rest.
    pub const IDLE: Slot = Slot {
        offset: 0,
        start_ns: 0,
        issue_ns: 0,
        sequence: 0,
        len: 0,
        moved: 0,
        file: 0,
        op: Op::Read,
        priority: 0,
        check: false,
        prepared_ns: 0,
    };
}

/// All slots of a worker and their buffers.
#[derive(Debug)]
pub struct Slab {
    /// Descriptors.
    pub slots: Box<[Slot]>,
    /// Buffers, one for each slot.
    pub memory: IoMemory,
}

/// A finished I/O.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// Which.
    pub slot: u32,
    /// Bytes moved, or the negated errno.
    pub result: i32,
}

/// A file as backends see it.
#[derive(Debug, Clone, Copy)]
pub struct Handle {
    /// File descriptor.
    pub fd: RawFd,
    /// Whether it is a block device: trims are discards there and holes elsewhere.
    pub block_device: bool,
    /// Length in bytes.
    pub size: u64,
}

/// Somebody who is called by the thread that has news, instead of being woken up by it.
pub trait Called: Send + Sync {
    /// What was waited for is there.
    fn call(&self);
}

/// Moves I/O between slots and files.
pub trait Backend {
    /// Whether I/O is over when [`Backend::submit`] returns. Such a backend is given one slot at a time, and its completion
    /// latency is the length of that call.
    const SYNCHRONOUS: bool;

    /// Whether [`Backend::submit`] carries out all that it takes. Its time then belongs to the completion latency, and there
    /// is no submission latency.
    const CARRIES_OUT_IN_SUBMIT: bool = Self::SYNCHRONOUS;

    /// Hands a batch to the kernel. Returns how many slots, from the front, were taken: fewer when a queue is full.
    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize>;

    /// Appends finished I/Os to `done`. Returns when there are at least `min` or after `timeout_ns`; with `min` 0 it only
    /// looks. `done` has room for all slots.
    fn reap(
        &mut self,
        slab: &Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()>;

    /// When the next I/O will be finished, on simulated devices; never by itself where somebody is [`Called`] for it. Such a
    /// backend never blocks in [`Backend::reap`].
    fn next_completion_ns(&self) -> Option<u64> {
        None
    }

    /// Looks after what is under way, where somebody is [`Called`]: several times a second.
    fn look_after(&mut self) {}

    /// Lets go of pages of files that it has mapped: the page cache keeps what is mapped.
    fn unmap_pages(&mut self) {}

    /// Takes note of another set of files, in the order that slots number them.
    fn set_files(&mut self, handles: &[Handle]) -> io::Result<()>;
}
