//! What a probe knows of a target: what the device is, and the figures that the last sentence quotes.

use super::figure::Figure;
use super::outcome::PhaseRun;
use super::phase::Phase;
use iosonde_job::plan::Engine;
use iosonde_result::device_class::{DeviceClass, DeviceDescription};
use iosonde_result::run::{RunResult, VerdictKind};

/// A read that returns sooner than this without O_DIRECT came from the page cache.
const PAGE_CACHE_READ_NS_MAX: f64 = 20e3;

/// What is known of a target. `None` is what was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// What it is.
    pub device: DeviceDescription,
    /// Median of 4 KiB reads, one at a time.
    pub read_p50_ns: Option<f64>,
    /// 4 KiB random reads per second.
    pub random_read_iops: Option<f64>,
    /// 4 KiB random writes per second.
    pub random_write_iops: Option<f64>,
    /// Standard deviation of random reads from second to second, as a share of their rate.
    pub random_read_spread: Option<f64>,
    /// Standard deviation of random writes, likewise.
    pub random_write_spread: Option<f64>,
    /// Sequential reads in bytes per second.
    pub sequential_read: Option<f64>,
    /// Median of fdatasync after a 4 KiB write.
    pub sync_p50_ns: Option<f64>,
    /// 99th percentile of it (the longest, where too few were measured).
    pub sync_p99_ns: Option<f64>,
    /// The interval of the 99th percentile, where it is known.
    pub sync_p99_between_ns: Option<(f64, f64)>,
    /// Too few were measured.
    pub sync_is_few: bool,
    /// 99th percentile of single writes where each is durable when it is acknowledged: in a pool of objects.
    pub durable_write_p99_ns: Option<f64>,
    /// Reads were answered by a cache of this machine, not by the device.
    pub served_from_cache: bool,
    /// Blocks that were never written were read.
    pub unwritten: bool,
    /// A control group held the rate.
    pub throttled: bool,
    /// The figures are known badly, or are those of a machine or device that others kept busy.
    pub noisy: bool,
}

impl Evidence {
    /// What the figures and runs of a probe say.
    pub(super) fn of(figures: &[Figure], runs: &[PhaseRun]) -> Evidence {
        let find = |phase| figures.iter().find(|figure| figure.phase == phase);
        let rate = |phase| find(phase).map(|figure| figure.iops.mean);
        let spread = |phase| find(phase).and_then(|figure| figure.iops.spread);
        let sync = find(Phase::SyncedWrite).and_then(|figure| figure.sync_latency);
        let results = || runs.iter().map(|run| &run.result);
        let device = last_result_with_targets(runs).map(DeviceDescription::of_run);
        let read_p50_ns = find(Phase::ReadLatency)
            .and_then(|figure| figure.latency.p50_ns)
            .map(|ns| ns as f64);
        let is_buffered = find(Phase::RandomRead).is_some_and(|figure| !figure.direct);
        let is_soon = read_p50_ns.is_some_and(|ns| ns < PAGE_CACHE_READ_NS_MAX);
        Evidence {
            device: device.unwrap_or_default(),
            read_p50_ns,
            random_read_iops: rate(Phase::RandomRead),
            random_write_iops: rate(Phase::RandomWrite),
            random_read_spread: spread(Phase::RandomRead),
            random_write_spread: spread(Phase::RandomWrite),
            sequential_read: find(Phase::SequentialRead).map(|figure| figure.bytes_per_s.mean),
            sync_p50_ns: sync.and_then(|sync| sync.p50_ns).map(|ns| ns as f64),
            sync_p99_ns: sync.map(|sync| sync.p99_ns.map_or(sync.max_ns, |ns| ns as f64)),
            sync_p99_between_ns: sync
                .and_then(|sync| sync.p99_between_ns)
                .map(|(low, high)| (low as f64, high as f64)),
            sync_is_few: sync.is_some_and(|sync| sync.p99_ns.is_none()),
            durable_write_p99_ns: find(Phase::WriteLatency)
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

    /// Whether the target is memory, which loses everything at a restart.
    pub(super) fn is_in_memory(&self) -> bool {
        self.device.class == DeviceClass::Memory
    }
}

/// The last run that says what its targets are; in simulations none does.
fn last_result_with_targets(runs: &[PhaseRun]) -> Option<&RunResult> {
    let results = || runs.iter().rev().map(|run| &run.result);
    let with_targets = results().find(|result| !result.targets.is_empty());
    with_targets.or_else(|| results().next())
}

fn has_read_verdict(runs: &[PhaseRun], kind: VerdictKind) -> bool {
    runs.iter()
        .filter(|run| matches!(run.phase, Phase::ReadLatency | Phase::RandomRead))
        .flat_map(|run| &run.result.verdicts)
        .any(|verdict| verdict.kind == kind)
}

/// A rate that is known worse than this share is not one to go by.
const RELATIVE_ERROR_MAX: f64 = 0.25;

/// Whether the figures are more noise than device.
fn is_noisy(figures: &[Figure], runs: &[PhaseRun]) -> bool {
    let decides = |phase: Phase| {
        matches!(
            phase,
            Phase::ReadLatency | Phase::RandomRead | Phase::SequentialRead | Phase::SyncedWrite
        )
    };
    let is_vague = |figure: &Figure| {
        let error = figure.iops.error.unwrap_or(f64::INFINITY);
        figure.sure == Some(false) && error > RELATIVE_ERROR_MAX * figure.iops.mean
    };
    let is_disturbed = |kind| matches!(kind, VerdictKind::Generator | VerdictKind::Interference);
    // Others' I/O that did not hold the run back is a finding beside it, and no doubt.
    let mut held = runs.iter().filter(|run| decides(run.phase));
    let held_by_others = held.any(|run| {
        let bottleneck = run.result.bottleneck();
        bottleneck.is_some_and(|verdict| is_disturbed(verdict.kind))
    });
    let mut vague = figures.iter().filter(|figure| decides(figure.phase));
    held_by_others || vague.any(is_vague)
}
