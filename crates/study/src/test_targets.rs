//! Targets and probes that unit tests share.

use crate::probe::{ProbeOptions, ProbeResult, probe};
use crate::probe_budget::ProbeBudget;
use crate::study_target::{StudyTarget, StudyTargetKind};
use iosonde_engine::runner::LocalRunner;

/// A directory with 1 TiB of free space.
pub(crate) fn directory_target() -> StudyTarget {
    StudyTarget {
        name: "/data".to_owned(),
        path: "/data/.iosonde-probe-1".to_owned(),
        kind: StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        },
    }
}

/// Options of a probe with O_DIRECT and seed 1.
pub(crate) fn probe_options(budget: ProbeBudget, size_bytes: Option<u64>) -> ProbeOptions {
    ProbeOptions {
        budget,
        size_bytes,
        direct: true,
        seed: 1,
    }
}

/// Probes a simulated device.
pub(crate) fn probe_simulated(
    device: &str,
    budget: ProbeBudget,
    size_bytes: Option<u64>,
) -> ProbeResult {
    let target = StudyTarget {
        name: format!("sim:{device}"),
        path: "sim".to_owned(),
        kind: StudyTargetKind::Simulated {
            options: device.to_owned(),
        },
    };
    let mut session = LocalRunner::default().open();
    let options = probe_options(budget, size_bytes);
    probe(&mut session, &target, &options, &mut ()).unwrap()
}
