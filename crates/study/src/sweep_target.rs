//! [`SweepTarget`]: a target and its working set.

use crate::StudyError;
use crate::probe_budget::ProbeBudget;
use crate::study_target::{StudyTarget, StudyTargetKind};
use crate::working_set::{
    GRAIN_BYTES, WorkingSetError, available_bytes, planned_bytes, usable_bytes,
};
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;

/// Target of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepTarget {
    /// Name as the user gave it.
    pub name: String,
    /// Path of the file or device.
    pub path: String,
    /// Kind of the target.
    pub kind: StudyTargetKind,
    /// Bytes used, from the start.
    pub bytes: u64,
}

/// Part of a target that the jobs say they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobExtent {
    /// Highest end of a job's part, of those given in bytes.
    pub bytes: u64,
    /// Highest end on a device, where `filesize` is the length behind the offset.
    pub device_bytes: u64,
    /// Whether a job leaves its size to the target, or gives it as a share.
    pub is_open: bool,
}

impl SweepTarget {
    /// Creates a target whose working set fits the jobs of a file ([`SweepGrid::reach`]), within a
    /// device. If a job has no size, the requested, default or probe size is the minimum.
    ///
    /// [`SweepGrid::reach`]: crate::sweep::SweepGrid::reach
    ///
    /// # Errors
    /// If the working set does not fit.
    pub fn for_jobs(
        target: &StudyTarget,
        reach: JobExtent,
        asked_bytes: Option<u64>,
        usual_bytes: Option<u64>,
    ) -> Result<SweepTarget, StudyError> {
        let left_to_target = asked_bytes.or(usual_bytes);
        if reach.bytes == 0 {
            return SweepTarget::new(target, left_to_target);
        }
        let kind = &target.kind;
        let bytes = match reach.is_open {
            true => planned_bytes(kind, left_to_target, &ProbeBudget::NORMAL),
            false => Ok(asked_bytes.unwrap_or(0)),
        };
        let bytes = bytes.and_then(|least| {
            let end_bytes = match is_device(kind) {
                true => reach.device_bytes,
                false => reach.bytes,
            };
            let wanted = within(kind, end_bytes.max(least));
            usable_bytes(kind, Some(wanted), &ProbeBudget::NORMAL)
        });
        SweepTarget::with_bytes(target, bytes)
    }

    /// Creates a target with a working set of `size_bytes`, by default chosen as for a probe.
    ///
    /// # Errors
    /// If the working set does not fit.
    pub fn new(target: &StudyTarget, size_bytes: Option<u64>) -> Result<SweepTarget, StudyError> {
        let bytes = planned_bytes(&target.kind, size_bytes, &ProbeBudget::NORMAL);
        SweepTarget::with_bytes(target, bytes)
    }

    fn with_bytes(
        target: &StudyTarget,
        bytes: Result<u64, WorkingSetError>,
    ) -> Result<SweepTarget, StudyError> {
        Ok(SweepTarget {
            name: target.name.clone(),
            path: target.path.clone(),
            kind: target.kind.clone(),
            bytes: bytes.map_err(|source| StudyError::WorkingSet {
                target: target.name.clone(),
                source,
            })?,
        })
    }

    /// Whether the target is a block device, whose length is fixed.
    pub(crate) fn is_device(&self) -> bool {
        is_device(&self.kind)
    }
}

fn is_device(kind: &StudyTargetKind) -> bool {
    matches!(kind, StudyTargetKind::Existing { device: true, .. })
}

/// Rounds up to the grain, at most to the end of the target. Sizes beyond the end of a file are
/// returned unchanged, and refused later.
fn within(kind: &StudyTargetKind, bytes: u64) -> u64 {
    let available = available_bytes(kind);
    let bytes = match is_device(kind) {
        true => bytes.min(available),
        false => bytes,
    };
    if bytes > available {
        return bytes;
    }
    let least = bytes.max(WORKING_SET_BYTES_MIN);
    let whole = least.checked_next_multiple_of(GRAIN_BYTES);
    whole
        .unwrap_or(least)
        .min(available.max(WORKING_SET_BYTES_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn existing(bytes: u64, device: bool, consent: bool) -> StudyTargetKind {
        StudyTargetKind::Existing {
            bytes,
            device,
            consent,
        }
    }

    fn announced(kind: StudyTargetKind, bytes: u64, is_open: bool) -> Option<u64> {
        let reach = JobExtent {
            bytes,
            device_bytes: bytes,
            is_open,
        };
        asked(kind, reach, None, None)
    }

    fn asked(
        kind: StudyTargetKind,
        reach: JobExtent,
        asked: Option<u64>,
        usual: Option<u64>,
    ) -> Option<u64> {
        let target = StudyTarget {
            name: "x".into(),
            path: "x".into(),
            kind,
        };
        let target = SweepTarget::for_jobs(&target, reach, asked, usual);
        target.ok().map(|target| target.bytes)
    }

    const DEVICE_BYTES: u64 = 8 << 30;

    #[test]
    fn job_extent_sets_working_set() {
        let device = || existing(DEVICE_BYTES, true, true);
        assert_eq!(announced(device(), 6 << 30, false), Some(6 << 30));
        assert_eq!(announced(device(), 1 << 20, false), Some(16 << 20));
        assert_eq!(announced(device(), (32 << 20) + 1, false), Some(33 << 20));
        for beyond in [1 << 40, u64::MAX] {
            assert_eq!(announced(device(), beyond, false), Some(DEVICE_BYTES));
        }
        let file = existing(DEVICE_BYTES, false, true);
        assert_eq!(announced(file, 1 << 40, false), None);
    }

    #[test]
    fn unsized_job_uses_default_working_set() {
        let small = JobExtent {
            bytes: 64 << 20,
            device_bytes: 64 << 20,
            is_open: true,
        };
        let announced_for = |kind: StudyTargetKind| announced(kind, small.bytes, true);
        assert_eq!(
            announced_for(existing(DEVICE_BYTES, true, true)),
            Some(4 << 30)
        );
        // Reading needs no layout, so the whole device is used.
        assert_eq!(
            announced_for(existing(DEVICE_BYTES, true, false)),
            Some(DEVICE_BYTES)
        );
        let directory = |free_bytes| StudyTargetKind::Directory { free_bytes };
        assert_eq!(announced_for(directory(10 << 30)), Some(1 << 30));
        assert_eq!(announced_for(directory(200 << 20)), Some(64 << 20));
        // A small volume claim has a default size of its own.
        let claim = || directory(1 << 40);
        assert_eq!(asked(claim(), small, None, Some(48 << 20)), Some(64 << 20));
        assert_eq!(asked(claim(), small, None, Some(96 << 20)), Some(96 << 20));
        assert_eq!(asked(claim(), small, Some(1 << 30), None), Some(1 << 30));
    }

    #[test]
    fn working_set_is_larger_of_requested_and_job_size() {
        let named = JobExtent {
            bytes: 64 << 20,
            device_bytes: 64 << 20,
            is_open: false,
        };
        let directory = || StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        };
        assert_eq!(
            asked(directory(), named, Some(1 << 30), None),
            Some(1 << 30)
        );
        assert_eq!(
            asked(directory(), named, Some(16 << 20), None),
            Some(64 << 20)
        );
        // The default size does not apply to jobs that give their size.
        assert_eq!(
            asked(directory(), named, None, Some(1 << 30)),
            Some(64 << 20)
        );
    }

    /// The working set may end at the exact end of the file or device.
    #[test]
    fn unaligned_length_is_used_to_its_end() {
        for device in [false, true] {
            let odd = || existing(100_000_000, device, true);
            assert_eq!(announced(odd(), 100_000_000, false), Some(100_000_000));
            assert_eq!(announced(odd(), 99_999_999, false), Some(100_000_000));
            assert_eq!(announced(odd(), 90 << 20, false), Some(90 << 20));
        }
        let tiny = existing(1 << 20, true, true);
        assert_eq!(announced(tiny, 1 << 20, false), None);
    }
}
