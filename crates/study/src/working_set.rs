//! The working set of a study: the bytes of its target that it uses.

use crate::probe_budget::ProbeBudget;
use crate::study_target::StudyTargetKind;
use crate::words;
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Working sets are multiples of this.
pub(crate) const GRAIN_BYTES: u64 = 1 << 20;

/// The bytes of a target that a probe uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyWorkingSet {
    /// Bytes from the start of the file or device that phases may use at most.
    pub planned_bytes: u64,
    /// Bytes that phases used: fewer if layout ran out of time.
    pub bytes: u64,
}

/// The reason why a working set cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkingSetError {
    /// The working set does not fit.
    #[error(
        "the working set needs {} ({asked_bytes} bytes), but only {} ({available_bytes} bytes) are \
         available",
        words::bytes(*asked_bytes), words::bytes(*available_bytes)
    )]
    NoSpace {
        /// Bytes asked for, or needed at least.
        asked_bytes: u64,
        /// Bytes that may be used.
        available_bytes: u64,
    },
    /// The working set is too small to measure anything.
    #[error(
        "a working set of {} is too small: the minimum is {}",
        words::bytes(*asked_bytes), words::bytes(WORKING_SET_BYTES_MIN)
    )]
    TooSmall {
        /// Bytes asked for.
        asked_bytes: u64,
    },
}

/// Bytes that a probe uses: `asked`, or else a share of the target that is written quickly. A
/// multiple of [`GRAIN_BYTES`].
pub(crate) fn planned_bytes(
    kind: &StudyTargetKind,
    asked: Option<u64>,
    budget: &ProbeBudget,
) -> Result<u64, WorkingSetError> {
    let bytes = usable_bytes(kind, asked, budget)?;
    Ok(bytes / GRAIN_BYTES * GRAIN_BYTES)
}

/// Bytes of a target that may be used at most.
pub(crate) fn available_bytes(kind: &StudyTargetKind) -> u64 {
    match kind {
        StudyTargetKind::Directory { free_bytes } | StudyTargetKind::Pool { free_bytes } => {
            *free_bytes
        }
        StudyTargetKind::Existing { bytes, .. } => *bytes,
        StudyTargetKind::Simulated { .. } => u64::MAX,
    }
}

/// Like [`planned_bytes`], without rounding.
pub(crate) fn usable_bytes(
    kind: &StudyTargetKind,
    asked: Option<u64>,
    budget: &ProbeBudget,
) -> Result<u64, WorkingSetError> {
    let available = available_bytes(kind);
    let usual = match kind {
        // A tenth of free space disturbs no other user; a nearly full file system gives up to half.
        StudyTargetKind::Directory { free_bytes } | StudyTargetKind::Pool { free_bytes } => budget
            .size_bytes
            .min((free_bytes / 10).max((free_bytes / 2).min(4 * WORKING_SET_BYTES_MIN))),
        // Reading writes nothing, and seek distance matters on a disk, so the whole target is read.
        StudyTargetKind::Existing {
            bytes,
            consent: false,
            ..
        } => *bytes,
        StudyTargetKind::Existing { bytes, .. } => budget.size_bytes.min(*bytes),
        StudyTargetKind::Simulated { .. } => budget.size_bytes,
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

/// Bytes of a working set that layout has written, in whole blocks.
pub(crate) fn laid_out_bytes(written: u64) -> u64 {
    written / GRAIN_BYTES * GRAIN_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(free_bytes: u64, asked: Option<u64>) -> Result<u64, WorkingSetError> {
        planned_bytes(
            &StudyTargetKind::Directory { free_bytes },
            asked,
            &ProbeBudget::NORMAL,
        )
    }

    #[test]
    fn directory_uses_tenth_of_free_space_up_to_budget() {
        assert_eq!(directory(1 << 40, None), Ok(4 << 30));
        assert_eq!(directory(10 << 30, None), Ok(1 << 30));
        assert_eq!(directory(100 << 20, None), Ok(50 << 20));
        assert_eq!(directory(24 << 20, None), Ok(16 << 20));
    }

    #[test]
    fn oversized_working_set_is_refused_with_both_sizes() {
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
    fn existing_target_without_consent_is_read_whole() {
        let kind = StudyTargetKind::Existing {
            bytes: 1 << 40,
            device: true,
            consent: false,
        };
        assert_eq!(
            planned_bytes(&kind, None, &ProbeBudget::NORMAL),
            Ok(1 << 40)
        );
    }
}
