//! The end of a clone's sequence: bytes, loops, passes and `number_ios`.

use super::files::FileLayout;
use super::position_rules::PositionRules;
use iosonde_job::plan::{Direction, Job, ReadWriteMode};

/// Limits of the sequence.
#[derive(Debug, Clone)]
pub(super) struct SequenceLimits {
    /// Limit of bytes over all passes; trimwrite counts its writes only.
    pub(super) total_bytes: u64,
    /// `io_size`.
    pub(super) io_bytes: Option<u64>,
    pub(super) max_block_bytes: u64,
    pub(super) loops: u64,
    pub(super) max_ios: u64,
    pub(super) endless: bool,
}

/// Counters of the sequence so far.
#[derive(Debug, Clone, Default)]
pub(super) struct SequenceProgress {
    pub(super) passes: u64,
    pub(super) total_bytes: u64,
    /// Also counts the trims of trimwrite.
    pub(super) moved_bytes: u64,
    pub(super) ios: u64,
    pub(super) ended: bool,
}

impl SequenceProgress {
    /// Counts I/Os, of whose bytes `counted_bytes` count towards the limit.
    #[inline]
    pub(super) fn add(&mut self, ios: u64, moved_bytes: u64, counted_bytes: u64) {
        self.ios += ios;
        self.moved_bytes += moved_bytes;
        self.total_bytes += counted_bytes;
        debug_assert!(
            self.total_bytes <= self.moved_bytes,
            "only moved bytes count towards the limit"
        );
    }
}

impl SequenceLimits {
    pub(super) fn new(job: &Job, layout: &FileLayout, rules: &PositionRules) -> Self {
        let loops = u64::from(job.schedule.loops.max(1));
        let size = layout.size_bytes;
        let total_bytes = match layout.io_bytes {
            None => size.saturating_mul(loops),
            Some(io) => io.saturating_mul(loops),
        };
        let pairs = if job.workload.rw.mode == ReadWriteMode::TrimWrite {
            2
        } else {
            1
        };
        SequenceLimits {
            total_bytes,
            io_bytes: layout.io_bytes,
            max_block_bytes: Direction::ALL
                .into_iter()
                .filter(|d| job.workload.rw.has(*d))
                .map(|d| {
                    rules.random_sizes[d]
                        .max()
                        .max(rules.sequential_sizes[d].max())
                })
                .max()
                .unwrap_or(0),
            loops,
            max_ios: match job.workload.number_ios {
                None => u64::MAX,
                Some(ios) => ios.saturating_mul(loops).saturating_mul(pairs),
            },
            endless: job.schedule.time_based,
        }
    }

    /// Whether the sequence has issued all its I/Os.
    pub(super) fn is_over(&self, progress: &SequenceProgress) -> bool {
        let spent = progress.total_bytes >= self.total_bytes || progress.ios >= self.max_ios;
        progress.ended || (spent && !self.endless)
    }

    /// Whether another pass may follow, by fio's rule: first all loops, then until less than one
    /// largest block is missing from `io_size`.
    pub(super) fn allows_pass_after(&self, progress: &SequenceProgress) -> bool {
        let missing = self
            .io_bytes
            .unwrap_or(0)
            .saturating_sub(progress.total_bytes);
        self.endless
            || progress.passes < self.loops
            || (missing > 0 && missing >= self.max_block_bytes)
    }

    /// Number of I/Os of this length that may be issued before the sequence ends.
    pub(super) fn ios_left(&self, progress: &SequenceProgress, len: u64) -> u64 {
        if progress.ended {
            return 0;
        }
        if self.endless {
            return u64::MAX;
        }
        let bytes = self.total_bytes.saturating_sub(progress.total_bytes);
        bytes
            .div_ceil(len)
            .min(self.max_ios.saturating_sub(progress.ios))
    }
}
