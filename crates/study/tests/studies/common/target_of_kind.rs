//! Targets of any kind. The sessions of these tests run all plans on a simulated device.

use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use iosonde_study::test_targets::{directory_target, simulated_target};

pub(crate) fn directory() -> StudyTargetKind {
    directory_target("/data").kind
}

pub(crate) fn simulated(device: &str) -> StudyTargetKind {
    simulated_target(device).kind
}

pub(crate) fn target_of_kind(kind: StudyTargetKind) -> StudyTarget {
    StudyTarget {
        name: "target".to_owned(),
        path: "sim".to_owned(),
        kind,
    }
}
