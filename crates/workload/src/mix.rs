//! Directions and syncs: `rwmixread`, `fsync`, `fdatasync`, `sync_file_range`.

use super::rng::Rng;
use super::{Io, Op};
use iosonde_job::plan::{Direction, ReadWriteMode, Workload};

/// Draws the direction of each I/O.
#[derive(Debug, Clone)]
pub(crate) struct DirectionMix {
    mode: ReadWriteMode,
    read_percent: u8,
    rng: Rng,
}

impl DirectionMix {
    /// The mix of a workload. Directions are drawn from `rng`.
    pub(crate) fn new(workload: &Workload, rng: Rng) -> Self {
        DirectionMix {
            mode: workload.rw.mode,
            read_percent: workload.rwmix_read_percent,
            rng,
        }
    }

    /// The next direction. For trimwrite this is the trim; the caller remembers the write that
    /// follows at the same offset.
    #[inline(always)]
    pub(crate) fn next_direction(&mut self) -> Direction {
        match self.mode {
            ReadWriteMode::Read => Direction::Read,
            ReadWriteMode::Write => Direction::Write,
            ReadWriteMode::Trim | ReadWriteMode::TrimWrite => Direction::Trim,
            ReadWriteMode::ReadWrite | ReadWriteMode::All
                if self.rng.percent(self.read_percent) =>
            {
                Direction::Read
            }
            ReadWriteMode::ReadWrite | ReadWriteMode::All => Direction::Write,
        }
    }

    /// Replaces the stream of random numbers.
    pub(crate) fn restart(&mut self, rng: Rng) {
        self.rng = rng;
    }
}

/// Schedules a sync after every Nth write.
///
/// The sync goes to the file of that write and comes before the next I/O. If several syncs are due
/// at once, only one is issued, as in fio: fsync before fdatasync before sync_file_range. fio 3.33
/// also repeats the sync after each read that follows; later versions and iosonde do not.
#[derive(Debug, Clone)]
pub(crate) struct SyncSchedule {
    fsync_every: u64,
    fdatasync_every: u64,
    range_every: u64,
    writes: u64,
    due: Option<Op>,
    last_file: u32,
    /// For each file, start and end of the bytes written since its last sync.
    dirty: Box<[(u64, u64)]>,
}

const CLEAN: (u64, u64) = (u64::MAX, 0);

impl SyncSchedule {
    /// The sync schedule of a workload over `files` files.
    pub(crate) fn new(workload: &Workload, files: usize) -> Self {
        SyncSchedule {
            fsync_every: workload.fsync_every.into(),
            fdatasync_every: workload.fdatasync_every.into(),
            range_every: workload
                .sync_file_range
                .map_or(0, |range| range.every.into()),
            writes: 0,
            due: None,
            last_file: 0,
            dirty: vec![CLEAN; files].into(),
        }
    }

    /// Whether the workload has any sync.
    pub(crate) fn is_active(&self) -> bool {
        self.fsync_every + self.fdatasync_every + self.range_every > 0
    }

    /// Records an issued I/O.
    #[inline]
    pub(crate) fn note(&mut self, io: &Io) {
        if !self.is_active() || io.op != Op::Write {
            return;
        }
        self.writes += 1;
        self.last_file = io.file;
        let dirty = &mut self.dirty[io.file as usize];
        *dirty = (
            dirty.0.min(io.offset),
            dirty.1.max(io.offset + u64::from(io.len)),
        );
        let is_due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        self.due = if is_due(self.fsync_every) {
            Some(Op::Fsync)
        } else if is_due(self.fdatasync_every) {
            Some(Op::Fdatasync)
        } else if is_due(self.range_every) {
            Some(Op::SyncFileRange)
        } else {
            None
        };
    }

    /// The sync that must come before the next I/O.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Io> {
        let op = self.due.take()?;
        let (from, to) = std::mem::replace(&mut self.dirty[self.last_file as usize], CLEAN);
        let (offset, len) = match op {
            // A range too long for the field is extended to the end of the file.
            Op::SyncFileRange => (from, u32::try_from(to - from).unwrap_or(0)),
            _ => (0, 0),
        };
        Some(Io {
            offset,
            len,
            file: self.last_file,
            op,
        })
    }
}
