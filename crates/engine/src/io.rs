//! How one batch of I/O descriptors reaches the kernel, and how completions come back.
//!
//! A backend is handed slots that the worker has filled, and hands back which of them are done. It takes no time stamps,
//! counts nothing and knows nothing about workloads.

pub mod immediate;
pub mod io_uring;
pub mod libaio;
pub mod mmap_backend;
pub mod null;
pub mod posix_aio_backend;
#[cfg(feature = "ceph")]
pub mod rados_backend;
#[cfg(feature = "ceph")]
pub mod rbd_backend;
pub mod sim_backend;
pub mod sync;

use std::io;

pub use crate::slot::{Completion, Handle, Slot};
pub use crate::sys::memory::Slab;
pub use iosonde_workload::Op;

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
