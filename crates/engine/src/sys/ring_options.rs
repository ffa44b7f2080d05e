//! Options of an io_uring.

use super::rw::RwFlags;

/// Options of the ring.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RingOptions {
    /// Poll the device for completions.
    pub(crate) iopoll: bool,
    /// Let a kernel thread submit (SQPOLL).
    pub(crate) sqpoll: bool,
    /// CPU of that kernel thread.
    pub(crate) sqpoll_cpu: Option<u32>,
    /// Flags of reads and writes.
    pub(crate) rw_flags: RwFlags,
    /// Every Nth I/O is forced to a kernel worker (IOSQE_ASYNC). 0: none.
    pub(crate) force_async: u32,
    /// Use vectored opcodes (`nonvectored=0`).
    pub(crate) vectored: bool,
    /// Flags of sync_file_range(2).
    pub(crate) sync_range_flags: u32,
    /// Discard ranges of block devices through the ring, if kernel and device can.
    pub(crate) discards: bool,
    /// Keep the array of numbers of the submission queue, also on Linux 6.6 or newer.
    pub(crate) sqarray: bool,
    /// Do not register the descriptor of the ring.
    pub(crate) plain_descriptor: bool,
    /// Do not count waits as waits for I/O (IORING_ENTER_NO_IOWAIT, Linux 6.15).
    pub(crate) no_iowait: bool,
    /// Wait a short time for several completions (Linux 6.12). `None`: return with the first.
    pub(crate) min_wait: Option<MinWait>,
    /// Sleep for a part of the latency before polling (Linux 6.13). It needs `iopoll`.
    pub(crate) hybrid_poll: bool,
    /// Rings with the same number share the kernel thread of `sqpoll`, if the kernel is 5.15 or
    /// newer. `None`: each has its own.
    pub(crate) shared_sqpoll: Option<usize>,
    /// Maximum number of rings that share the thread.
    pub(crate) sharing_rings: u32,
}

/// A wait that ends with the first completion after a time, or earlier with several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MinWait {
    /// Number of free slots that ends the wait.
    pub(crate) slots: u32,
    /// The time in microseconds.
    pub(crate) wait_us: u32,
}
