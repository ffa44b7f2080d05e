//! Traces: recorded I/Os for a replay.
//!
//! [`parse`] reads versions 2 and 3 of fio's text format, and the binary format of `blkparse -d`.

mod blktrace;
mod text;
mod trace_problem;

pub use trace_problem::TraceProblem;

use crate::plan::{Direction, PerDirection, Replay};

/// A recorded sequence of I/Os.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Files, which I/Os refer to by index.
    pub files: Vec<TracedFile>,
    /// I/Os in the order of the trace.
    pub ios: Vec<TracedIo>,
    /// Meaning of the times.
    pub timing: Timing,
}

/// The meaning of the times of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// The time at which each I/O was issued.
    #[default]
    Stamps,
    /// The sum of the pauses before the I/O. An I/O follows its predecessor after the difference of
    /// their times.
    Pauses,
}

/// A file of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracedFile {
    /// Path of the file.
    Path(String),
    /// A block device by its device number.
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// One I/O of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedIo {
    /// Time in nanoseconds, with the meaning of [`Timing`].
    pub at_ns: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// Index of the file.
    pub file: u32,
    /// Operation of the I/O.
    pub op: TracedOp,
    /// Whether this is the first I/O after the file was closed and opened again.
    pub reopened: bool,
}

/// The operation of a traced I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedOp {
    /// Transfers or discards data.
    Data(Direction),
    /// fsync(2).
    Sync,
    /// fdatasync(2).
    Datasync,
    /// sync_file_range(2).
    SyncFileRange,
}

/// The reason why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// Position in the trace: `line 7`, `byte 96`.
    pub place: String,
    /// The problem at that position.
    pub problem: TraceProblem,
}

/// Reads a trace of any known format.
///
/// # Errors
/// The first line or record that cannot be read.
pub fn parse(bytes: &[u8]) -> Result<Trace, TraceError> {
    match blktrace::is_one(bytes) {
        Some(order) => blktrace::parse(bytes, order),
        None => text::parse(bytes),
    }
}

impl Trace {
    /// Applies the job's `replay_` options: skips I/Os, scales and aligns offsets, scales times,
    /// and redirects all I/Os to one file. `readonly` also skips writes and trims.
    pub fn shape(&mut self, replay: &Replay, readonly: bool) {
        let skip = replay.skip;
        self.ios.retain(|io| match io.op {
            TracedOp::Data(Direction::Read) => !skip.read,
            TracedOp::Data(Direction::Write) => !skip.write && !readonly,
            TracedOp::Data(Direction::Trim) => !skip.trim && !readonly,
            TracedOp::Sync | TracedOp::Datasync | TracedOp::SyncFileRange => !skip.sync,
        });
        let scale = u64::from(replay.scale.max(1));
        let mask = !replay.align_bytes.saturating_sub(1);
        let speed = u64::from(replay.speed_percent.max(1));
        for io in &mut self.ios {
            io.offset = (io.offset / scale) & mask;
            io.at_ns = (u128::from(io.at_ns) * 100 / u128::from(speed)).min(u64::MAX.into()) as u64;
            if replay.redirect.is_some() {
                io.file = 0;
            }
        }
        if let Some(path) = &replay.redirect {
            self.files = vec![TracedFile::Path(path.clone())];
        } else {
            self.drop_unused_files();
        }
    }

    /// Removes files without an I/O, so that they are not opened.
    fn drop_unused_files(&mut self) {
        let mut used = vec![false; self.files.len()];
        for io in &self.ios {
            used[io.file as usize] = true;
        }
        let mut next = 0;
        let numbers: Vec<u32> = used
            .iter()
            .map(|used| {
                let number = next;
                next += u32::from(*used);
                number
            })
            .collect();
        for io in &mut self.ios {
            io.file = numbers[io.file as usize];
        }
        let mut used = used.into_iter();
        self.files.retain(|_| used.next().unwrap_or(false));
    }

    /// Returns the directions of the trace.
    pub fn directions(&self) -> PerDirection<bool> {
        let mut has = PerDirection::from_value(false);
        for io in &self.ios {
            if let TracedOp::Data(direction) = io.op {
                has[direction] = true;
            }
        }
        has
    }

    /// Returns the length of the longest I/O with a buffer, in bytes. Trims and syncs have no
    /// buffer.
    pub fn buffer_bytes(&self) -> u32 {
        let buffered = self.ios.iter().filter(
            |io| matches!(io.op, TracedOp::Data(direction) if direction != Direction::Trim),
        );
        buffered.map(|io| io.len).max().unwrap_or(0)
    }

    /// Returns the bytes of all reads, writes and trims.
    pub fn bytes(&self) -> u64 {
        let data = self
            .ios
            .iter()
            .filter(|io| matches!(io.op, TracedOp::Data(_)));
        data.map(|io| u64::from(io.len)).sum()
    }

    /// Returns the end of each file's accessed range, in bytes.
    pub fn ends(&self) -> Vec<u64> {
        let mut ends = vec![0; self.files.len()];
        for io in &self.ios {
            let end = io.offset.saturating_add(u64::from(io.len));
            let known = &mut ends[io.file as usize];
            *known = end.max(*known);
        }
        ends
    }
}

#[cfg(test)]
mod tests;
