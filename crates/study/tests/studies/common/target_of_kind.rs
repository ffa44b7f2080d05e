//! A target of any kind. The sessions of these tests run all plans on a simulated device.

use iosonde_study::probe::{StudyTarget, StudyTargetKind};

pub(crate) fn target_of_kind(kind: StudyTargetKind) -> StudyTarget {
    StudyTarget {
        name: "target".to_owned(),
        path: "sim".to_owned(),
        kind,
    }
}
