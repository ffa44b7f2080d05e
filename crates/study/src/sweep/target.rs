//! Where a sweep goes to.

use super::study::SweepError;
use crate::probe::{Budget, ProbeTarget, TargetKind, planned_bytes};

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

impl SweepTarget {
    /// With a working set of so many bytes, or of a size that is chosen as for a probe.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn new(target: &ProbeTarget, size_bytes: Option<u64>) -> Result<SweepTarget, SweepError> {
        let bytes = planned_bytes(&target.kind, size_bytes, &Budget::NORMAL);
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
}
