//! What is probed, and how much of it.

use super::phase::{Budget, Phase};
use crate::words;
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Working sets are whole multiples of this.
pub(crate) const GRAIN_BYTES: u64 = 1 << 20;

/// What is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    /// As the user wrote it.
    pub name: String,
    /// The file or device that I/O goes to.
    pub path: String,
    /// What it is.
    pub kind: TargetKind,
}

impl ProbeTarget {
    /// What runs on it may touch, by path or URI: nothing of this machine where it is simulated.
    pub fn permitted(&self) -> Vec<String> {
        match self.kind {
            TargetKind::Simulated { .. } => Vec::new(),
            _ => vec![self.path.clone()],
        }
    }
}

/// The kinds of target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A directory: a working file is made in it and removed.
    Directory {
        /// Bytes that may be written to its file system.
        free_bytes: u64,
    },
    /// A pool of objects: objects of ours are made in it and removed.
    Pool {
        /// Bytes that may be written to it.
        free_bytes: u64,
    },
    /// A file or block device that exists. Its contents are somebody's.
    Existing {
        /// Its length.
        bytes: u64,
        /// Whether it is a block device.
        device: bool,
        /// Whether its contents may be overwritten.
        consent: bool,
    },
    /// A simulated device, with its options.
    Simulated {
        /// `key=value,...`
        options: String,
    },
}

impl TargetKind {
    /// Whether what is measured is made for it and removed: nothing of it is there before.
    pub fn is_ours(&self) -> bool {
        matches!(self, TargetKind::Directory { .. } | TargetKind::Pool { .. })
    }

    /// Whether the working set may be written.
    pub fn is_writable(&self) -> bool {
        !matches!(self, TargetKind::Existing { consent: false, .. })
    }

    /// The phases that run on it.
    pub fn phases(&self) -> Vec<Phase> {
        let reads = Phase::MEASURED
            .into_iter()
            .filter(|phase| phase.direction() == iosonde_job::plan::Direction::Read);
        match self {
            // A write to a pool is durable when it is acknowledged; a flush after it would have nothing to do.
            TargetKind::Pool { .. } => [Phase::Layout]
                .into_iter()
                .chain(Phase::MEASURED)
                .filter(|phase| *phase != Phase::SyncedWrite)
                .collect(),
            _ if self.is_writable() => [Phase::Layout].into_iter().chain(Phase::MEASURED).collect(),
            _ => reads.collect(),
        }
    }
}

/// Which bytes of a target are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingSet {
    /// Bytes from the start of the file or device that phases may use at most.
    pub planned_bytes: u64,
    /// Bytes they did use: fewer if layout ran out of time.
    pub bytes: u64,
}

/// Why there can be no working set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkingSetError {
    /// It does not fit.
    #[error(
        "a working set of {} ({asked_bytes} bytes) is needed, but only {} ({available_bytes} bytes) are available",
        words::bytes(*asked_bytes), words::bytes(*available_bytes)
    )]
    NoSpace {
        /// Bytes asked for, or needed at least.
        asked_bytes: u64,
        /// Bytes that may be used.
        available_bytes: u64,
    },
    /// It would be too small to measure anything.
    #[error(
        "a working set of {} is too small: at least {} are needed",
        words::bytes(*asked_bytes), words::bytes(WORKING_SET_BYTES_MIN)
    )]
    TooSmall {
        /// Bytes asked for.
        asked_bytes: u64,
    },
}

/// How many bytes of the target a probe uses: what was asked for, else as much as is polite and soon written. Whole multiples of
/// [`GRAIN_BYTES`].
pub(crate) fn planned_bytes(
    kind: &TargetKind,
    asked: Option<u64>,
    budget: &Budget,
) -> Result<u64, WorkingSetError> {
    let bytes = usable_bytes(kind, asked, budget)?;
    Ok(bytes / GRAIN_BYTES * GRAIN_BYTES)
}

/// Bytes of a target that may be used at most.
pub(crate) fn available_bytes(kind: &TargetKind) -> u64 {
    match kind {
        TargetKind::Directory { free_bytes } | TargetKind::Pool { free_bytes } => *free_bytes,
        TargetKind::Existing { bytes, .. } => *bytes,
        TargetKind::Simulated { .. } => u64::MAX,
    }
}

/// The same as [`planned_bytes`], to the byte.
pub(crate) fn usable_bytes(
    kind: &TargetKind,
    asked: Option<u64>,
    budget: &Budget,
) -> Result<u64, WorkingSetError> {
    let available = available_bytes(kind);
    let usual = match kind {
        // A tenth of what is free disturbs nobody; on a nearly full file system, half of a little is still little.
        TargetKind::Directory { free_bytes } | TargetKind::Pool { free_bytes } => budget
            .size_bytes
            .min((free_bytes / 10).max((free_bytes / 2).min(4 * WORKING_SET_BYTES_MIN))),
        // Reading costs nothing, and on a disk the distance matters: all of it.
        TargetKind::Existing {
            bytes,
            consent: false,
            ..
        } => *bytes,
        TargetKind::Existing { bytes, .. } => budget.size_bytes.min(*bytes),
        TargetKind::Simulated { .. } => budget.size_bytes,
    };
    let wanted = asked.unwrap_or(usual.max(WORKING_SET_BYTES_MIN));
    if wanted < WORKING_SET_BYTES_MIN {
        return Err(WorkingSetError::TooSmall {
            asked_bytes: wanted,
        });
    }
    if wanted > available {
        return Err(WorkingSetError::NoSpace {
            asked_bytes: wanted,
            available_bytes: available,
        });
    }
    Ok(wanted)
}

/// What of a working set has been laid out, in whole blocks.
pub(super) fn laid_out_bytes(written: u64) -> u64 {
    written / GRAIN_BYTES * GRAIN_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(free_bytes: u64, asked: Option<u64>) -> Result<u64, WorkingSetError> {
        planned_bytes(
            &TargetKind::Directory { free_bytes },
            asked,
            &Budget::NORMAL,
        )
    }

    #[test]
    fn a_tenth_of_what_is_free_up_to_the_budget() {
        assert_eq!(directory(1 << 40, None), Ok(4 << 30));
        assert_eq!(directory(10 << 30, None), Ok(1 << 30));
        assert_eq!(directory(100 << 20, None), Ok(50 << 20));
        assert_eq!(directory(24 << 20, None), Ok(16 << 20));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        assert_eq!(
            directory(10 << 30, Some(20 << 30)),
            Err(WorkingSetError::NoSpace {
                asked_bytes: 20 << 30,
                available_bytes: 10 << 30
            })
        );
        assert!(matches!(
            directory(1 << 20, None),
            Err(WorkingSetError::NoSpace { .. })
        ));
        assert!(matches!(
            directory(1 << 40, Some(4096)),
            Err(WorkingSetError::TooSmall { .. })
        ));
    }

    #[test]
    fn what_is_somebody_elses_is_only_read() {
        let kind = TargetKind::Existing {
            bytes: 1 << 40,
            device: true,
            consent: false,
        };
        assert_eq!(planned_bytes(&kind, None, &Budget::NORMAL), Ok(1 << 40));
        assert_eq!(
            kind.phases(),
            [Phase::ReadLatency, Phase::RandomRead, Phase::SequentialRead]
        );
    }
}
