//! Samples the devices under a run's files, and derives verdicts on the run's figures.

use super::run_evidence;
use super::series_sampler::MachineWatch;
use super::{JobClone, RunMeasurements};
use crate::files::FileKind;
use iosonde_job::plan::{Direction, Plan};
use iosonde_machine::cache::{Traffic, fetched_by_process, moved, served_from_cache};
use iosonde_machine::disk_util::disk_util;
use iosonde_machine::extents::{Coverage, extents};
use iosonde_machine::identify::identify;
use iosonde_machine::nfs_stats::NfsWatch;
use iosonde_machine::proc_root::System;
use iosonde_result::bottleneck::classify;
use iosonde_result::ceph::CephSide;
use iosonde_result::host::TargetInfo;
use iosonde_result::machine::MachineSeries;
use iosonde_result::nfs::NfsSide;
use iosonde_result::run::{DiskUtil, Verdict, VerdictKind};
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
pub(super) struct Watched {
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
        let machine = MachineWatch::of(
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
    pub(super) fn end(
        self,
        plan: &Plan,
        outcome: &RunMeasurements,
        ceph: Option<&CephSide>,
    ) -> Watched {
        let elapsed = self.begun.elapsed();
        let elapsed = elapsed.saturating_sub(Duration::from_nanos(outcome.stopped_ns));
        let in_groups = self.machine.in_groups();
        let (counted, whole, series, disturbances) = self.machine.end();
        let disks = match self.reports_disks {
            true => disk_util(&self.targets, &whole, elapsed),
            false => Vec::new(),
        };
        let asked = asked(outcome);
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
        verdicts.extend(beside);
        verdicts.extend(disturbances);
        verdicts.extend(outcome.stopped.clone());
        verdicts.extend(fallbacks(outcome));
        Watched {
            targets: self.targets,
            disks,
            series,
            nfs: self.nfs.end(&self.system),
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
            let verdict = found
                .ok()
                .and_then(|found| Coverage::of(&found).verdict(&path.display().to_string()));
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

/// Returns the bytes that the workers transferred, ramps included.
fn asked(outcome: &RunMeasurements) -> Traffic {
    let mut asked = Traffic::default();
    for interval in &outcome.intervals {
        asked.read_bytes += interval.directions.read.bytes;
        asked.written_bytes += interval.directions.write.bytes;
    }
    asked
}

/// Returns verdicts on workers whose engine or its features differ from those requested.
fn fallbacks(outcome: &RunMeasurements) -> Vec<Verdict> {
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
