//! What the devices under a run's files did meanwhile, and what that says about its numbers.

use super::{CrewOutcome, Member};
use crate::device::disk_util::disk_util;
use crate::device::diskstats::Snapshot;
use crate::device::identify::identify;
use crate::device::system::System;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::host::TargetInfo;
use iosonde_result::run::{DiskUtil, Verdict, VerdictKind};
use std::time::Instant;

/// Counters of the devices at the start of a run.
pub(super) struct DeviceWatch {
    system: System,
    targets: Vec<TargetInfo>,
    before: Snapshot,
    begun: Instant,
}

impl DeviceWatch {
    /// Looks at the devices under all files.
    pub(super) fn begin(plan: &Plan, clones: &[Member]) -> DeviceWatch {
        let system = System::live();
        let mut targets: Vec<TargetInfo> = Vec::new();
        let real = clones
            .iter()
            .filter(|clone| plan.jobs[clone.job].io.engine != Engine::Null);
        for file in real.flat_map(|clone| &clone.files.files) {
            if let Ok(target) = identify(&file.path)
                && !targets.iter().any(|known| known.path == target.path)
            {
                targets.push(target);
            }
        }
        let before = Snapshot::take(&system);
        DeviceWatch {
            system,
            targets,
            before,
            begun: Instant::now(),
        }
    }

    /// What happened since.
    pub(super) fn end(
        self,
        outcome: &CrewOutcome,
    ) -> (Vec<TargetInfo>, Vec<DiskUtil>, Vec<Verdict>) {
        let moved = Snapshot::take(&self.system).since(&self.before);
        let disks = disk_util(&self.targets, &moved, self.begun.elapsed());
        (self.targets, disks, fallbacks(outcome))
    }
}

/// Says where another engine, or less of it, was used than asked for.
fn fallbacks(outcome: &CrewOutcome) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for worker in &outcome.workers {
        let Some(reason) = &worker.backend.reason else {
            continue;
        };
        let evidence = format!("ran with {}: {reason}", worker.backend.engine.name());
        let verdict = Verdict {
            kind: VerdictKind::Fallback,
            evidence,
        };
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    verdicts
}
