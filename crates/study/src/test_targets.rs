//! Targets and options of probes, for tests of studies and of the code that shows them.

use crate::probe::ProbeOptions;
#[cfg(test)]
use crate::probe::{ProbeResult, probe};
use crate::probe_budget::ProbeBudget;
use crate::study_target::{StudyTarget, StudyTargetKind};

/// Returns a directory with 1 TiB of free space.
#[must_use]
pub fn directory_target(directory: &str) -> StudyTarget {
    StudyTarget {
        name: directory.to_owned(),
        path: format!("{directory}/.iosonde-probe-1"),
        kind: StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        },
    }
}

/// Returns a simulated device: a preset, or options of a model.
#[must_use]
pub fn simulated_target(device: &str) -> StudyTarget {
    StudyTarget {
        name: format!("sim:{device}"),
        path: "sim".to_owned(),
        kind: StudyTargetKind::Simulated {
            options: device.to_owned(),
        },
    }
}

/// Returns the options of a probe with O_DIRECT and seed 1. `size_bytes`: of the working set;
/// `None` is a size that fits the target.
#[must_use]
pub fn probe_options(budget: ProbeBudget, size_bytes: Option<u64>) -> ProbeOptions {
    ProbeOptions {
        budget,
        size_bytes,
        direct: true,
        seed: 1,
    }
}

/// Probes a simulated device.
#[cfg(test)]
pub(crate) fn probe_simulated(
    device: &str,
    budget: ProbeBudget,
    size_bytes: Option<u64>,
) -> ProbeResult {
    let mut session = iosonde_engine::runner::LocalRunner::default().open();
    let options = probe_options(budget, size_bytes);
    probe(&mut session, &simulated_target(device), &options, &mut ()).unwrap()
}
