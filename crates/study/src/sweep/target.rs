//! Where a sweep goes to.

use super::study::SweepError;
use crate::probe::{
    Budget, GRAIN_BYTES, ProbeTarget, TargetKind, WorkingSetError, available_bytes, planned_bytes,
    usable_bytes,
};
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;

/// Where a sweep goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepTarget {
    /// As the user wrote it.
    pub name: String,
    /// The file or device that I/O goes to.
    pub path: String,
    /// What it is.
    pub kind: TargetKind,
    /// Bytes from its start that are used.
    pub bytes: u64,
}

/// How much of a target jobs say that they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The end of the part that lies farthest from the start, of those that are given in bytes.
    pub bytes: u64,
    /// The same on a device, where a length is that of the part behind the offset.
    pub device_bytes: u64,
    /// Whether some job leaves its part to the target, or has a share of it.
    pub is_open: bool,
}

impl SweepTarget {
    /// With a working set as large as jobs of a file need it ([`Grid::reach`]): as far as they say, and where one leaves it to the target
    /// also what was asked for, or is usual there, or is chosen as for a probe. A device ends where it ends, whatever they say.
    ///
    /// [`Grid::reach`]: super::Grid::reach
    ///
    /// # Errors
    /// When it does not fit.
    pub fn of_jobs(
        target: &ProbeTarget,
        reach: Reach,
        asked_bytes: Option<u64>,
        usual_bytes: Option<u64>,
    ) -> Result<SweepTarget, SweepError> {
        let left_to_target = asked_bytes.or(usual_bytes);
        if reach.bytes == 0 {
            return SweepTarget::new(target, left_to_target);
        }
        let kind = &target.kind;
        let bytes = match reach.is_open {
            true => planned_bytes(kind, left_to_target, &Budget::NORMAL),
            false => Ok(asked_bytes.unwrap_or(0)),
        };
        let bytes = bytes.and_then(|least| {
            let end_bytes = match is_device(kind) {
                true => reach.device_bytes,
                false => reach.bytes,
            };
            let wanted = within(kind, end_bytes.max(least));
            usable_bytes(kind, Some(wanted), &Budget::NORMAL)
        });
        SweepTarget::of(target, bytes)
    }

    /// With a working set of so many bytes, or of a size that is chosen as for a probe.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn new(target: &ProbeTarget, size_bytes: Option<u64>) -> Result<SweepTarget, SweepError> {
        let bytes = planned_bytes(&target.kind, size_bytes, &Budget::NORMAL);
        SweepTarget::of(target, bytes)
    }

    fn of(
        target: &ProbeTarget,
        bytes: Result<u64, WorkingSetError>,
    ) -> Result<SweepTarget, SweepError> {
        Ok(SweepTarget {
            name: target.name.clone(),
            path: target.path.clone(),
            kind: target.kind.clone(),
            bytes: bytes.map_err(|source| SweepError::WorkingSet {
                target: target.name.clone(),
                source,
            })?,
        })
    }

    /// Whether it is a block device, which has the length that it has.
    pub(super) fn is_device(&self) -> bool {
        is_device(&self.kind)
    }
}

fn is_device(kind: &TargetKind) -> bool {
    matches!(kind, TargetKind::Existing { device: true, .. })
}

/// So many bytes of a target in whole multiples of the grain, as far as there are more; what is more than a file has is left to be
/// refused.
fn within(kind: &TargetKind, bytes: u64) -> u64 {
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

    fn existing(bytes: u64, device: bool, consent: bool) -> TargetKind {
        TargetKind::Existing {
            bytes,
            device,
            consent,
        }
    }

    fn announced(kind: TargetKind, bytes: u64, is_open: bool) -> Option<u64> {
        let reach = Reach {
            bytes,
            device_bytes: bytes,
            is_open,
        };
        asked(kind, reach, None, None)
    }

    fn asked(
        kind: TargetKind,
        reach: Reach,
        asked: Option<u64>,
        usual: Option<u64>,
    ) -> Option<u64> {
        let target = ProbeTarget {
            name: "x".into(),
            path: "x".into(),
            kind,
        };
        let target = SweepTarget::of_jobs(&target, reach, asked, usual);
        target.ok().map(|target| target.bytes)
    }

    const DEVICE_BYTES: u64 = 8 << 30;

    #[test]
    fn what_jobs_say_is_announced() {
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
    fn a_job_that_leaves_it_to_the_target_has_what_is_usual_there() {
        let small = Reach {
            bytes: 64 << 20,
            device_bytes: 64 << 20,
            is_open: true,
        };
        let of = |kind: TargetKind| announced(kind, small.bytes, true);
        assert_eq!(of(existing(DEVICE_BYTES, true, true)), Some(4 << 30));
        // Reading costs nothing: all of it.
        assert_eq!(of(existing(DEVICE_BYTES, true, false)), Some(DEVICE_BYTES));
        let directory = |free_bytes| TargetKind::Directory { free_bytes };
        assert_eq!(of(directory(10 << 30)), Some(1 << 30));
        assert_eq!(of(directory(200 << 20)), Some(64 << 20));
        // A small claim has a usual size of its own.
        let claim = || directory(1 << 40);
        assert_eq!(asked(claim(), small, None, Some(48 << 20)), Some(64 << 20));
        assert_eq!(asked(claim(), small, None, Some(96 << 20)), Some(96 << 20));
        assert_eq!(asked(claim(), small, Some(1 << 30), None), Some(1 << 30));
    }

    #[test]
    fn what_a_suite_asks_for_counts_beside_what_jobs_say() {
        let named = Reach {
            bytes: 64 << 20,
            device_bytes: 64 << 20,
            is_open: false,
        };
        let directory = || TargetKind::Directory {
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
        // What is usual for those who say nothing does not concern who does.
        assert_eq!(
            asked(directory(), named, None, Some(1 << 30)),
            Some(64 << 20)
        );
    }

    /// All of a file is what it has, not a byte more and not one less.
    #[test]
    fn a_length_that_is_no_multiple_is_used_to_its_end() {
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
