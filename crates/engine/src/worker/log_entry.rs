//! Entries of logs, and the batches in which a worker passes them to the writer thread.

use iosonde_job::plan::Direction;
use iosonde_workload::Op;

/// Number of entries per chunk.
pub(super) const CHUNK: usize = 4096;

/// The log that an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[allow(missing_docs)]
pub(crate) enum IoLogKind {
    Slat = 0,
    Clat = 1,
    Lat = 2,
    Bw = 3,
    Iops = 4,
    /// A line of the trace.
    Issued = 5,
}

impl IoLogKind {
    /// Kinds that are averaged over windows.
    pub(super) const ALL: [IoLogKind; 5] = [
        IoLogKind::Slat,
        IoLogKind::Clat,
        IoLogKind::Lat,
        IoLogKind::Bw,
        IoLogKind::Iops,
    ];
}

/// One line of a log, or the mean (or maximum) of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogEntry {
    /// The log that the entry belongs to.
    pub(crate) kind: IoLogKind,
    /// Operation of the I/O.
    pub(crate) op: Op,
    /// Nanoseconds since the worker's start.
    pub(crate) at_ns: u64,
    /// Nanoseconds, KiB/s or I/Os per second, by kind; for a line of the trace the file's number.
    pub(crate) value: u64,
    /// Block size in bytes; 0 for windows.
    pub(crate) block_bytes: u32,
    /// Offset in bytes.
    pub(crate) offset: u64,
    /// I/O priority in the kernel's encoding; 0 for windows.
    pub(crate) priority: u16,
}

/// Data that a worker passes to the writer thread.
#[derive(Debug)]
pub(crate) enum LogBatch {
    /// Lines of the value logs.
    Entries(Vec<LogEntry>),
    /// One line of the histogram log: counts of completion latencies by bucket.
    Histogram {
        /// Direction of the I/Os.
        direction: Direction,
        /// End of the window in nanoseconds since the worker's start.
        at_ns: u64,
        /// Buckets of `iosonde_result::histogram`.
        counts: Box<[u64]>,
    },
}
