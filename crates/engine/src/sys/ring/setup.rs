//! Options and setup of an io_uring.

use io_uring::IoUring;
use std::io;

/// Options of the ring.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RingOptions {
    /// Poll the device for completions.
    pub(crate) iopoll: bool,
    /// Let a kernel thread submit (SQPOLL).
    pub(crate) sqpoll: bool,
    /// CPU of that kernel thread.
    pub(crate) sqpoll_cpu: Option<u32>,
    /// RWF_NOWAIT on reads and writes.
    pub(crate) nowait: bool,
    /// Every Nth I/O is forced to a kernel worker (IOSQE_ASYNC). 0: none.
    pub(crate) force_async: u32,
    /// Use vectored opcodes (`nonvectored=0`).
    pub(crate) vectored: bool,
    /// Flags of sync_file_range(2).
    pub(crate) sync_range_flags: u32,
}

/// Creates and drops a small ring, to check whether this process may use io_uring.
pub fn try_one() -> io::Result<()> {
    build(2, RingOptions::default(), false).map(drop)
}

/// Creates a ring, with the flags of newer kernels if `modern`.
pub(super) fn build(entries: u32, options: RingOptions, modern: bool) -> io::Result<IoUring> {
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
