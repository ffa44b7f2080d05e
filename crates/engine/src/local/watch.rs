//! What the devices under a run's files did meanwhile.

use super::{CrewOutcome, Member};
use crate::device;
use iosonde_job::plan::Plan;
use iosonde_result::host::TargetInfo;
use iosonde_result::run::{DiskUtil, Verdict};

/// Counters of the devices at the start of a run.
pub(super) struct DeviceWatch {
    targets: Vec<TargetInfo>,
}

impl DeviceWatch {
    /// Looks at the devices under all files.
    pub(super) fn begin(clones: &[Member]) -> DeviceWatch {
        let mut targets: Vec<TargetInfo> = Vec::new();
        for file in clones.iter().flat_map(|clone| &clone.files.files) {
            if let Ok(target) = device::identify::identify(&file.path)
                && !targets.iter().any(|known| known.path == target.path)
            {
                targets.push(target);
            }
        }
        DeviceWatch { targets }
    }

    /// What happened since.
    pub(super) fn end(
        self,
        _plan: &Plan,
        _outcome: &CrewOutcome,
    ) -> (Vec<TargetInfo>, Vec<DiskUtil>, Vec<Verdict>) {
        (self.targets, Vec::new(), Vec::new())
    }
}
