//! A simulated device as the target of a study.

use iosonde_study::probe::{StudyTarget, StudyTargetKind};

pub(crate) fn simulated_target(device: &str) -> StudyTarget {
    StudyTarget {
        name: format!("sim:{device}"),
        path: "sim".to_owned(),
        kind: StudyTargetKind::Simulated {
            options: device.to_owned(),
        },
    }
}
