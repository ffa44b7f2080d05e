//! One I/O of the queue: filled by the worker, carried out by a backend, named by its index.

use iosonde_workload::{Io, Op};
use std::os::fd::RawFd;

/// One I/O from its preparation to its completion, on a cache line of its own. Its index names it
/// everywhere.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Slot {
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Intended start: the total latency of open loops counts from here, so that it includes the
    /// time by which a slow device delays later I/Os (no coordinated omission).
    pub start_ns: u64,
    /// Time at which the I/O had been submitted: completion latency counts from here.
    pub issue_ns: u64,
    /// Number of the I/O within its worker, counted from 0 (for verification).
    pub sequence: u64,
    /// Bytes requested.
    pub len: u32,
    /// Bytes moved by earlier, short completions of this I/O.
    pub moved: u32,
    /// Index into the worker's files.
    pub file: u32,
    /// Operation requested.
    pub op: Op,
    /// I/O priority in the kernel's encoding (`cmdprio_percentage`); 0 uses that of the thread.
    pub priority: u16,
    /// Whether this is a verification read.
    pub check: bool,
    /// Actual start: fio's total latency counts from here. It is later than `start_ns` if a rate or
    /// a trace sets due times.
    pub prepared_ns: u64,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    /// An unused slot.
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

    /// A slot with a generated I/O that starts at `start_ns`.
    #[inline(always)]
    pub(crate) fn starting(io: &Io, start_ns: u64) -> Slot {
        Slot {
            offset: io.offset,
            start_ns,
            len: io.len,
            file: io.file,
            op: io.op,
            prepared_ns: start_ns,
            ..Slot::IDLE
        }
    }
}

/// A finished I/O.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// Index of the slot.
    pub slot: u32,
    /// Bytes moved, or the negated errno.
    pub result: i32,
}

/// The outcome of an I/O that is alone in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoneTransfer {
    /// It completed within its call: bytes moved, or the negated errno.
    Completed(i32),
    /// It completes later.
    InFlight,
    /// It was not submitted: the backend carries it out in batches only.
    Declined,
}

/// The outcome of several I/Os that one call submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundTransfer {
    /// Each has completed within the call, in full or not.
    Completed,
    /// Each completes, but some later.
    InFlight,
    /// None was submitted: the backend carries out some of them in batches only.
    Declined,
}

/// Returns the result of an operation on a whole range: its length in bytes, at most `i32::MAX`.
/// Larger numbers would be errnos. Trims may be larger, as they have no buffer.
#[must_use]
#[inline(always)]
pub fn whole_length(length: u32) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// A file as a backend sees it.
#[derive(Debug, Clone, Copy)]
pub struct FileHandle {
    /// File descriptor.
    pub fd: RawFd,
    /// Whether the file is a block device: a trim is a discard there and punches a hole elsewhere.
    pub block_device: bool,
    /// Length in bytes.
    pub size: u64,
}
