//! The facts and figures that classify a target.

use crate::figures::phase_figure::PhaseFigure;
use crate::figures::phase_run::PhaseRun;
use crate::probe_phase::ProbePhase;
use crate::study_target::{StudyTarget, StudyTargetKind};
use iosonde_job::plan::Engine;
use iosonde_job::quote_shell_word;
use iosonde_result::device_class::{DeviceClass, DeviceDescription};
use iosonde_result::run::{RunResult, VerdictKind};

/// A read that returns sooner than this without O_DIRECT came from the page cache.
const PAGE_CACHE_READ_NS_MAX: f64 = 20e3;

/// The facts and figures of a target. `None` was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassEvidence {
    /// The kind of device, with its facts.
    pub device: DeviceDescription,
    /// Median latency of 4 KiB reads at depth 1.
    pub read_p50_ns: Option<f64>,
    /// 4 KiB random reads per second.
    pub random_read_iops: Option<f64>,
    /// 4 KiB random writes per second.
    pub random_write_iops: Option<f64>,
    /// Standard deviation of random reads between intervals, as a share of their rate.
    pub random_read_spread: Option<f64>,
    /// Standard deviation of random writes between intervals, as a share of their rate.
    pub random_write_spread: Option<f64>,
    /// Sequential reads in bytes per second.
    pub sequential_read: Option<f64>,
    /// Median of fdatasync after a 4 KiB write.
    pub sync_p50_ns: Option<f64>,
    /// Median of the write before each fdatasync, for which a commit waits too.
    pub sync_write_p50_ns: Option<f64>,
    /// 99th percentile of fdatasync, or the longest if too few were measured.
    pub sync_p99_ns: Option<f64>,
    /// Confidence interval of the 99th percentile, if known.
    pub sync_p99_between_ns: Option<(f64, f64)>,
    /// Whether too few fdatasync were measured for a 99th percentile.
    pub sync_is_few: bool,
    /// Number of fdatasync, and the measured time in nanoseconds.
    pub sync_calls: Option<(u64, u64)>,
    /// Arguments of `iosonde probe` that name the target, quoted for a shell. Empty if unknown.
    pub target_arguments: String,
    /// 99th percentile of writes at depth 1 to a pool, where an acknowledged write is durable.
    pub durable_write_p99_ns: Option<f64>,
    /// Whether a cache of this machine answered reads.
    pub served_from_cache: bool,
    /// Whether reads met blocks that were never written.
    pub unwritten: bool,
    /// Whether a control group throttled the rate.
    pub throttled: bool,
    /// Whether the figures are uncertain, or the machine or device was busy with other work.
    pub noisy: bool,
}

impl ClassEvidence {
    /// Collects the facts from the figures and runs of a probe.
    pub(super) fn from_figures(
        target: &StudyTarget,
        figures: &[PhaseFigure],
        runs: &[PhaseRun],
    ) -> ClassEvidence {
        let find = |phase| figures.iter().find(|figure| figure.phase == phase);
        let rate = |phase| find(phase).map(|figure| figure.iops.mean);
        let spread = |phase| find(phase).and_then(|figure| figure.iops.spread);
        let sync = find(ProbePhase::SyncedWrite).and_then(|figure| figure.sync_latency);
        let results = || runs.iter().map(|run| &run.result);
        let device = last_result_with_targets(runs).map(DeviceDescription::from_run);
        let read_p50_ns = find(ProbePhase::ReadLatency)
            .and_then(|figure| figure.latency.p50_ns)
            .map(|ns| ns as f64);
        let is_buffered = find(ProbePhase::RandomRead).is_some_and(|figure| !figure.direct);
        let is_soon = read_p50_ns.is_some_and(|ns| ns < PAGE_CACHE_READ_NS_MAX);
        ClassEvidence {
            device: device.unwrap_or_default(),
            read_p50_ns,
            random_read_iops: rate(ProbePhase::RandomRead),
            random_write_iops: rate(ProbePhase::RandomWrite),
            random_read_spread: spread(ProbePhase::RandomRead),
            random_write_spread: spread(ProbePhase::RandomWrite),
            sequential_read: find(ProbePhase::SequentialRead).map(|figure| figure.bytes_per_s.mean),
            sync_p50_ns: sync.and_then(|sync| sync.p50_ns).map(|ns| ns as f64),
            sync_write_p50_ns: find(ProbePhase::SyncedWrite)
                .filter(|figure| figure.sync_latency.is_some())
                .and_then(|figure| figure.latency.p50_ns)
                .map(|ns| ns as f64),
            sync_p99_ns: sync.map(|sync| sync.p99_ns.map_or(sync.max_ns, |ns| ns as f64)),
            sync_p99_between_ns: sync
                .and_then(|sync| sync.p99_between_ns)
                .map(|(low, high)| (low as f64, high as f64)),
            sync_is_few: sync.is_some_and(|sync| sync.p99_ns.is_none()),
            sync_calls: find(ProbePhase::SyncedWrite)
                .and_then(|figure| Some((figure.sync_latency?.count, figure.measured_ns))),
            target_arguments: target_arguments(target),
            durable_write_p99_ns: find(ProbePhase::WriteLatency)
                .filter(|_| {
                    results()
                        .flat_map(|result| &result.workers)
                        .any(|worker| worker.backend.engine == Engine::Rados)
                })
                .map(|figure| figure.latency)
                .map(|latency| latency.p99_ns.map_or(latency.max_ns, |ns| ns as f64)),
            served_from_cache: has_read_verdict(runs, VerdictKind::ServedFromCache)
                || (is_buffered && is_soon),
            unwritten: has_read_verdict(runs, VerdictKind::UnwrittenData),
            throttled: results()
                .flat_map(|result| &result.verdicts)
                .any(|verdict| verdict.kind.is_throttle()),
            noisy: is_noisy(figures, runs),
        }
    }

    /// Whether the target is memory, which loses its data at a restart.
    pub(super) fn is_in_memory(&self) -> bool {
        self.device.class == DeviceClass::Memory
    }
}

fn target_arguments(target: &StudyTarget) -> String {
    let name = quote_shell_word(&target.name);
    match target.kind {
        StudyTargetKind::Existing { consent: true, .. } => {
            format!("{name} --allow-overwrite {name}")
        }
        _ => name,
    }
}

/// The last run that names its targets; runs of a simulated device name none.
fn last_result_with_targets(runs: &[PhaseRun]) -> Option<&RunResult> {
    let results = || runs.iter().rev().map(|run| &run.result);
    let with_targets = results().find(|result| !result.targets.is_empty());
    with_targets.or_else(|| results().next())
}

fn has_read_verdict(runs: &[PhaseRun], kind: VerdictKind) -> bool {
    runs.iter()
        .filter(|run| matches!(run.phase, ProbePhase::ReadLatency | ProbePhase::RandomRead))
        .flat_map(|run| &run.result.verdicts)
        .any(|verdict| verdict.kind == kind)
}

/// A rate with a larger relative error is not usable.
const RELATIVE_ERROR_MAX: f64 = 0.25;

/// Whether noise or interference dominates the figures.
pub(super) fn is_noisy(figures: &[PhaseFigure], runs: &[PhaseRun]) -> bool {
    let decides = |phase: ProbePhase| {
        matches!(
            phase,
            ProbePhase::ReadLatency
                | ProbePhase::RandomRead
                | ProbePhase::SequentialRead
                | ProbePhase::SyncedWrite
        )
    };
    let is_vague = |figure: &PhaseFigure| {
        let error = figure.iops.error.unwrap_or(f64::INFINITY);
        figure.sure == Some(false) && error > RELATIVE_ERROR_MAX * figure.iops.mean
    };
    let is_disturbed = |kind| matches!(kind, VerdictKind::Generator | VerdictKind::Interference);
    // Other I/O that was not the bottleneck is a separate finding and does not count here.
    let mut held = runs.iter().filter(|run| decides(run.phase));
    let held_by_others = held.any(|run| {
        let bottleneck = run.result.bottleneck();
        bottleneck.is_some_and(|verdict| is_disturbed(verdict.kind))
    });
    let mut vague = figures.iter().filter(|figure| decides(figure.phase));
    held_by_others || vague.any(is_vague)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_arguments_paste_into_a_shell() {
        let target = |name: &str, kind: StudyTargetKind| StudyTarget {
            name: name.to_owned(),
            path: name.to_owned(),
            kind,
        };
        let directory = StudyTargetKind::Directory { free_bytes: 1 };
        assert_eq!(target_arguments(&target("/a b", directory)), "'/a b'");
        let device = StudyTargetKind::Existing {
            bytes: 1,
            device: true,
            consent: true,
        };
        assert_eq!(
            target_arguments(&target("/dev/sdx", device)),
            "/dev/sdx --allow-overwrite /dev/sdx"
        );
    }
}
