//! Traces: I/Os that were recorded, to be replayed.
//!
//! [`parse`] reads fio's text format in its versions 2 and 3, and the binary one that `blkparse -d` writes.

mod blktrace;
mod text;

use crate::plan::{Direction, PerDirection, Replay};

/// A recorded sequence of I/Os.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Files that I/Os refer to by their index.
    pub files: Vec<TracedFile>,
    /// In the order of the trace.
    pub ios: Vec<TracedIo>,
    /// What their times mean.
    pub timing: Timing,
}

/// What the times of a trace mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// When each I/O was issued.
    #[default]
    Stamps,
    /// The sum of the pauses before it: an I/O follows its predecessor after the difference of their times.
    Pauses,
}

/// A file of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracedFile {
    /// Its path.
    Path(String),
    /// A block device by its numbers.
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
    /// Its time in nanoseconds, as [`Timing`] says.
    pub at_ns: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// Index of its file.
    pub file: u32,
    /// What it is.
    pub op: TracedOp,
    /// It is the first after its file was closed and opened again.
    pub reopened: bool,
}

/// What an I/O of a trace does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedOp {
    /// Moves or discards data.
    Data(Direction),
    /// fsync(2)
    Sync,
    /// fdatasync(2)
    Datasync,
    /// sync_file_range(2)
    SyncFileRange,
}

/// Why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// Where: `line 7`, `byte 96`.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

/// Reads a trace of any known format.
///
/// # Errors
/// The first thing that is not understood.
pub fn parse(bytes: &[u8]) -> Result<Trace, TraceError> {
    match blktrace::is_one(bytes) {
        Some(order) => blktrace::parse(bytes, order),
        None => text::parse(bytes),
    }
}

impl Trace {
    /// Leaves out, moves and scales as the job says. `replay_redirect` makes one file of all.
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

    /// Files that are named but that no I/O goes to are not touched.
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

    /// Which directions it has.
    pub fn directions(&self) -> PerDirection<bool> {
        let mut has = PerDirection::all(false);
        for io in &self.ios {
            if let TracedOp::Data(direction) = io.op {
                has[direction] = true;
            }
        }
        has
    }

    /// The longest I/O that needs a buffer, in bytes: a trim or a sync has none, however long it is.
    pub fn buffer_bytes(&self) -> u32 {
        let buffered = self.ios.iter().filter(
            |io| matches!(io.op, TracedOp::Data(direction) if direction != Direction::Trim),
        );
        buffered.map(|io| io.len).max().unwrap_or(0)
    }

    /// Bytes that it moves.
    pub fn bytes(&self) -> u64 {
        let data = self
            .ios
            .iter()
            .filter(|io| matches!(io.op, TracedOp::Data(_)));
        data.map(|io| u64::from(io.len)).sum()
    }

    /// Where the last I/O of each file ends, in bytes.
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
