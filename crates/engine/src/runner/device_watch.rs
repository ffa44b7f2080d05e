//! Samples the devices under a run's files, and derives verdicts on the run's figures.

use super::run_evidence;
use super::series_sampler::MachineWatch;
use super::{JobClone, RunMeasurements};
use crate::files::FileKind;
use iosonde_job::plan::{Direction, Plan};
use iosonde_machine::cache::{ByteTraffic, fetched_by_process, moved, served_from_cache};
use iosonde_machine::disk_util::disk_util;
use iosonde_machine::extents::{ExtentCoverage, extents};
use iosonde_machine::identify::identify;
use iosonde_machine::nfs_stats::NfsWatch;
use iosonde_machine::proc_root::System;
use iosonde_result::bottleneck::{classify, verdict};
use iosonde_result::ceph::CephSide;
use iosonde_result::host::TargetInfo;
use iosonde_result::machine::MachineSeries;
use iosonde_result::nfs::NfsSide;
use iosonde_result::run::{DiskUtil, Verdict, VerdictKind};
use iosonde_result::verdict_cause::VerdictCause;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Samples the devices under a run's files.
pub(super) struct DeviceWatch {
    system: System,
    targets: Vec<TargetInfo>,
    /// Whether disk_util is reported.
    reports_disks: bool,
    machine: MachineWatch,
    nfs: NfsWatch,
    /// Bytes that this process had fetched from storage before the run.
    fetched: Option<u64>,
    begun: Instant,
    /// Verdicts from before the first I/O.
    verdicts: Vec<Verdict>,
}

/// Samples and verdicts of a run.
pub(super) struct DeviceReport {
    pub(super) targets: Vec<TargetInfo>,
    pub(super) disks: Vec<DiskUtil>,
    pub(super) series: MachineSeries,
    pub(super) nfs: Vec<NfsSide>,
    pub(super) verdicts: Vec<Verdict>,
}

/// Identifies the targets of all files.
pub(super) fn targets(plan: &Plan, clones: &[JobClone]) -> Vec<TargetInfo> {
    let mut targets: Vec<TargetInfo> = Vec::new();
    let real = clones
        .iter()
        .filter(|clone| plan.jobs[clone.job].io.engine.has_paths());
    for file in real.flat_map(|clone| &clone.files().files) {
        if let Ok(target) = identify(&file.path)
            && !targets.iter().any(|known| known.path == target.path)
        {
            targets.push(target);
        }
    }
    targets
}

impl DeviceWatch {
    /// Starts to sample the devices under all files.
    pub(super) fn begin(plan: &Plan, clones: &[JobClone], targets: Vec<TargetInfo>) -> DeviceWatch {
        let system = System::live();
        let verdicts = unwritten(plan, clones, &targets);
        let devices = targets.iter().flat_map(TargetInfo::all_devices);
        let machine = MachineWatch::new(
            system.clone(),
            devices.map(|device| device.number).collect(),
        );
        DeviceWatch {
            fetched: fetched_by_process(&system),
            nfs: NfsWatch::begin(&system, &targets),
            system,
            targets,
            reports_disks: plan.jobs.iter().any(|job| job.measure.disk_util),
            machine,
            begun: Instant::now(),
            verdicts,
        }
    }

    /// Returns the sampler of the machine.
    pub(super) fn machine(&mut self) -> &mut MachineWatch {
        &mut self.machine
    }

    /// Returns the device statistics so far.
    pub(super) fn disks(&self) -> Vec<DiskUtil> {
        if !self.reports_disks {
            return Vec::new();
        }
        let difference = self.machine.disks_so_far();
        disk_util(&self.targets, &difference, self.begun.elapsed())
    }

    /// Returns the samples and verdicts at the end of the run.
    pub(super) fn finish_report(
        self,
        plan: &Plan,
        outcome: &RunMeasurements,
        ceph: Option<&CephSide>,
    ) -> DeviceReport {
        let elapsed = self.begun.elapsed();
        let elapsed = elapsed.saturating_sub(Duration::from_nanos(outcome.stopped_ns));
        let in_groups = self.machine.in_groups();
        let (counted, whole, series, disturbances) = self.machine.finish_series();
        let disks = match self.reports_disks {
            true => disk_util(&self.targets, &whole, elapsed),
            false => Vec::new(),
        };
        let asked = asked(plan, outcome);
        // Reads of unwritten data do not reach the device, which is no evidence of a cache.
        let unwritten = self
            .verdicts
            .iter()
            .any(|verdict| verdict.kind == VerdictKind::UnwrittenData);
        let moved = moved(&self.targets, &whole).filter(|_| !unwritten);
        let fetched = fetched_by_process(&self.system)
            .zip(self.fetched)
            .map(|(now, before)| now.saturating_sub(before));
        let mut seen = run_evidence::observed(plan, outcome, &self.targets, &counted, &self.system);
        seen.own.read.bytes = seen.own.read.bytes.max(fetched.unwrap_or(0));
        seen.cached = moved.map_or(0.0, |moved| run_evidence::missing(asked, moved));
        seen.phases = in_groups;
        seen.ceph = ceph.cloned();
        seen.beside_ceph = ceph.is_some_and(|side| !is_all_in(plan, &self.targets, &side.fsid));
        let (bottleneck, beside) = classify(&seen);
        let cached = moved.map(|moved| served_from_cache(asked, moved));
        let mut verdicts = self.verdicts;
        verdicts.extend(bottleneck);
        verdicts.extend(cached.into_iter().flatten());
        verdicts.extend(acknowledged_by_client(plan, outcome));
        verdicts.extend(beside);
        verdicts.extend(disturbances);
        verdicts.extend(outcome.stopped.clone());
        verdicts.extend(fallbacks(outcome));
        DeviceReport {
            targets: self.targets,
            disks,
            series,
            nfs: self.nfs.read_activity(&self.system),
            verdicts,
        }
    }
}

/// Whether all I/O of a run went to this Ceph cluster.
fn is_all_in(plan: &Plan, targets: &[TargetInfo], fsid: &str) -> bool {
    let engines = || plan.jobs.iter().map(|job| job.io.engine);
    let is_there = |target: &TargetInfo| {
        let service = (target.mount.as_ref()).and_then(|mount| mount.service.as_ref());
        let of_mount = service.and_then(|service| service.fsid.as_deref());
        let devices = target.all_devices();
        let images = devices.iter().filter_map(|device| device.rbd.as_ref());
        let mut known = images
            .filter_map(|image| image.fsid.as_deref())
            .chain(of_mount);
        known.any(|known| known == fsid)
    };
    engines().all(|engine| engine.is_ceph() || engine.has_paths()) && targets.iter().all(is_there)
}

/// Finds reads of unwritten data before the run, in regular files and below loop devices.
fn unwritten(plan: &Plan, clones: &[JobClone], targets: &[TargetInfo]) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for clone in clones {
        let job = &plan.jobs[clone.job];
        let reads = job.workload.rw.has(Direction::Read) && !job.workload.rw.has(Direction::Write);
        if !reads || !job.io.engine.has_paths() {
            continue;
        }
        for file in &clone.files().files {
            let behind = match file.kind {
                FileKind::Regular => Some(file.path.clone()),
                FileKind::BlockDevice => file_of_loop(&file.path, targets),
                FileKind::Stream => None,
            };
            let Some(path) = behind else { continue };
            let range = file.region.start_bytes..file.region.start_bytes + file.region.size_bytes;
            let found = std::fs::File::open(&path).and_then(|opened| extents(&opened, range));
            // A file system that does not report extents gives no verdict.
            let verdict = found.ok().and_then(|found| {
                ExtentCoverage::from_extents(&found).verdict(&path.display().to_string())
            });
            verdicts.extend(verdict.filter(|verdict| !verdicts.contains(verdict)));
        }
    }
    verdicts
}

/// Returns the file behind a loop device.
fn file_of_loop(path: &Path, targets: &[TargetInfo]) -> Option<PathBuf> {
    let target = targets.iter().find(|target| target.path == path)?;
    target.devices.first()?.backing_file.clone()
}

/// Returns the bytes that the workers transferred, ramps included. Of neighbours, only those count
/// that reached the devices for certain: with O_DIRECT.
fn asked(plan: &Plan, outcome: &RunMeasurements) -> ByteTraffic {
    let mut asked = ByteTraffic::default();
    for interval in &outcome.intervals {
        asked.read_bytes += interval.directions.read.bytes;
        asked.written_bytes += interval.directions.write.bytes;
    }
    for worker in &outcome.neighbours {
        if plan.jobs[worker.job].io.direct {
            asked.read_bytes += worker.directions.read.io_bytes;
            asked.written_bytes += worker.directions.write.io_bytes;
        }
    }
    asked
}

/// Returns a verdict on writes that a cache of the Ceph client acknowledged. Until the first flush
/// of an image, librbd writes through its cache. Jobs without `direct=1` begin with a flush.
fn acknowledged_by_client(plan: &Plan, outcome: &RunMeasurements) -> Option<Verdict> {
    let mut found: Option<(String, u64)> = None;
    for worker in &outcome.workers {
        let ceph = worker.backend.ceph.as_ref();
        let Some(policy) = ceph.and_then(|ceph| ceph.write_cache()) else {
            continue;
        };
        if worker.sync.total_ios == 0 && plan.jobs[worker.job].io.direct {
            continue;
        }
        let bytes = worker.directions.write.io_bytes;
        let sum = found.get_or_insert_with(|| (policy.to_owned(), 0));
        sum.1 += bytes;
    }
    let (policy, written_bytes) = found.filter(|(_, bytes)| *bytes > 0)?;
    Some(verdict(VerdictCause::AcknowledgedByClientCache {
        policy,
        written_bytes,
    }))
}

/// Returns verdicts on workers whose engine or its features differ from those requested.
fn fallbacks(outcome: &RunMeasurements) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for worker in &outcome.workers {
        let Some(reason) = &worker.backend.reason else {
            continue;
        };
        let verdict = verdict(VerdictCause::EngineFallback {
            engine: worker.backend.engine.name().to_owned(),
            reason: reason.clone(),
        });
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    verdicts
}
