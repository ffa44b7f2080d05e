//! One I/O of the queue: what a worker fills, a backend carries out, and both know by its index.

use iosonde_workload::Op;
use std::os::fd::RawFd;

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
