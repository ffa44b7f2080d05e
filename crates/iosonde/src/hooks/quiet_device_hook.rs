//! Waits for a quiet device and a quiet Ceph cluster before a run, to exclude other I/O and
//! after-effects from its figures.

use super::quiet_cluster_wait::QuietClusterWait;
use super::quiet_waits::{SAMPLING_TIME, TIMEOUTS_MAX, Waits};
use crate::signals::StopSignal;
use iosonde_job::plan::{CephAccess, Plan};
use iosonde_job::target_scheme::{is_ceph_name, is_path_name};
use iosonde_machine::diskstats::Snapshot;
use iosonde_machine::file_service;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_result::host::{DeviceNumber, Locality, ServiceClient, TargetInfo};
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::sweep::{QUIET_WAIT_CELL_MAX, SweepTarget, quiet_wait_max};
use iosonde_study::{RunHook, RunPurpose, words};
use std::path::Path;
use std::time::{Duration, Instant};

/// A device with less busy time is quiet.
const QUIET_PERCENT: f64 = 10.0;

/// Waits for quiet devices and adds up the waits.
pub(crate) struct QuietDeviceHook {
    devices: Vec<DeviceNumber>,
    /// Targets whose devices are not on this machine.
    unseen: Vec<String>,
    /// The Ceph cluster of the targets, if any of them is in one.
    cluster: Option<QuietClusterWait>,
    stop: StopSignal,
    waits: Waits,
}

impl QuietDeviceHook {
    /// Monitors the devices of the targets, and the Ceph cluster of the first target in one. Other
    /// targets (simulated, in memory, over a network) need no wait. All waits together are limited
    /// by [`quiet_wait_max`].
    pub(crate) fn new(
        targets: &[SweepTarget],
        access: &CephAccess,
        stop: StopSignal,
        planned_ns: u64,
    ) -> QuietDeviceHook {
        let real = targets
            .iter()
            .filter(|target| !matches!(target.kind, StudyTargetKind::Simulated { .. }));
        let (mut devices, mut unseen) = (Vec::new(), Vec::new());
        let most = quiet_wait_max(planned_ns);
        let (mut cluster, system) = (None, System::live());
        for target in real {
            // The path of a target in a cluster is one of its pod.
            let is_here = is_path_name(&target.name);
            let found = is_here.then(|| identify(Path::new(&target.path)).ok());
            let found = found.flatten().unwrap_or_default();
            cluster = cluster.or_else(|| cluster_behind(&target.name, &found, access, &system));
            let is_memory =
                (found.mount.as_ref()).is_some_and(|mount| mount.locality == Locality::Memory);
            if found.devices.is_empty() && !is_memory {
                unseen.push(target.name.clone());
            }
            devices.extend(found.devices.into_iter().map(|device| device.number));
        }
        QuietDeviceHook {
            devices,
            unseen,
            cluster: cluster.map(|(access, fsid)| QuietClusterWait::new(access, fsid, most)),
            stop,
            waits: Waits::limited_to(most),
        }
    }

    /// Returns when all devices are quiet, on a timeout, or on an interrupt.
    fn wait(&mut self) {
        if self.devices.is_empty() {
            return;
        }
        let system = System::live();
        let began = Instant::now();
        let mut before = (began, Snapshot::take(&system));
        let (devices, stop) = (&self.devices, &self.stop);
        self.waits.until_quiet(|| {
            std::thread::sleep(SAMPLING_TIME);
            let now = (Instant::now(), Snapshot::take(&system));
            let since = now.1.since(&before.1);
            let elapsed = now.0.duration_since(before.0);
            before = now;
            let is_quiet = devices.iter().all(|device| {
                let counters = since.get(*device);
                counters.is_none_or(|counters| counters.busy_percent(elapsed) < QUIET_PERCENT)
            });
            let is_over = is_quiet || stop.interrupt.is_requested();
            (is_over, began.elapsed())
        });
    }

    /// Notes on the waits for the user.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.waits.notes();
        notes.extend(self.cluster.iter().flat_map(QuietClusterWait::notes));
        if !self.unseen.is_empty() {
            let named = self.unseen.join(", ");
            notes.push(format!(
                "runs on {named} started without a wait for idle storage: this machine cannot see \
                 whether others use it"
            ));
        }
        notes
    }
}

/// Returns the access to the Ceph cluster of a target, and its identity if a mount or a mapped
/// image has it. `None`: the target is in no cluster, or nothing identifies the cluster.
fn cluster_behind(
    name: &str,
    found: &TargetInfo,
    given: &CephAccess,
    system: &System,
) -> Option<(CephAccess, Option<String>)> {
    if is_ceph_name(name) {
        return Some((given.clone(), None));
    }
    let mount = found.mount.as_ref();
    let service = mount.and_then(|mount| mount.service.as_ref());
    let service = service.filter(|service| service.client != ServiceClient::Nfs);
    if let (Some(mount), Some(fsid)) = (mount, service.and_then(|service| service.fsid.clone())) {
        return Some((file_service::access(system, mount, given), Some(fsid)));
    }
    let devices = found.all_devices();
    let mut images = devices.iter().filter_map(|device| device.rbd.as_ref());
    let fsid = images.find_map(|image| image.fsid.clone())?;
    Some((given.clone(), Some(fsid)))
}

impl RunHook for QuietDeviceHook {
    fn before_run(&mut self, _plan: &Plan, _purpose: RunPurpose) {
        self.wait();
        if let Some(cluster) = &mut self.cluster {
            cluster.wait(&self.stop);
        }
    }
}

impl Waits {
    /// Notes on the waits for devices.
    fn notes(&self) -> Vec<String> {
        // The device may still write what the layout of this sweep has left in caches.
        if let Some(note) = self.skip_note("the device was busy") {
            return vec![note];
        }
        let mut notes = Vec::new();
        if self.waited >= Duration::from_secs(1) {
            let waited = words::whole_seconds_text(self.waited.as_nanos() as u64);
            notes.push(format!("waited {waited} for the device to become idle"));
        }
        match self.timeouts {
            0 => {}
            TIMEOUTS_MAX.. => notes.push(format!(
                "other programs kept the device busy: after {TIMEOUTS_MAX} failed waits of {}, \
                 runs started without waiting",
                words::whole_seconds_text(QUIET_WAIT_CELL_MAX.as_nanos() as u64)
            )),
            1 => notes.push("1 run started while other programs used the device".to_owned()),
            runs => notes.push(format!(
                "{runs} runs started while other programs used the device"
            )),
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::host::{DeviceInfo, MappedImage, Mount, MountService};

    /// Notes and samples after waits that last for the given numbers of samples.
    fn after(waits: &[u32]) -> (Vec<String>, u32) {
        after_at_most(Duration::MAX, waits)
    }

    fn after_at_most(most: Duration, waits: &[u32]) -> (Vec<String>, u32) {
        let waits_at_most = Waits {
            most,
            ..Waits::default()
        };
        let (mut all, mut samples) = (waits_at_most, 0);
        for busy in waits {
            let mut count = 0;
            all.until_quiet(|| {
                count += 1;
                (count > *busy, SAMPLING_TIME * count)
            });
            samples += count;
        }
        (all.notes(), samples)
    }

    #[test]
    fn quiet_device_causes_no_wait() {
        assert_eq!(after(&[0, 1, 0, 1]), (Vec::new(), 6));
    }

    #[test]
    fn targets_without_local_device_are_noted() {
        let target = |name: &str, kind: StudyTargetKind| SweepTarget {
            name: name.to_owned(),
            path: "/data/file".to_owned(),
            kind,
            bytes: 1 << 30,
        };
        let options = "nvme".to_owned();
        let targets = [
            target("sc://fast", StudyTargetKind::Directory { free_bytes: 1 }),
            target("rados://bench", StudyTargetKind::Pool { free_bytes: 1 }),
            target("sim:nvme", StudyTargetKind::Simulated { options }),
        ];
        let access = CephAccess::default();
        let quiet_wait = QuietDeviceHook::new(&targets, &access, StopSignal::default(), u64::MAX);
        let expected = "runs on sc://fast, rados://bench started without a wait for idle storage: \
                        this machine cannot see whether others use it";
        assert_eq!(quiet_wait.notes(), [expected]);
    }

    #[test]
    fn cluster_of_a_target_is_found_by_name_mount_or_mapped_image() {
        let system = System::live();
        let given = CephAccess::default();
        let fsid_of = |name: &str, found: &TargetInfo| {
            let behind = cluster_behind(name, found, &given, &system);
            behind.map(|(_, fsid)| fsid)
        };
        let local = TargetInfo::default();
        assert_eq!(fsid_of("rbd://pool/image", &local), Some(None));
        assert_eq!(fsid_of("/mnt/data", &local), None);
        let mounted = |client| TargetInfo {
            mount: Some(Mount {
                fs_type: "ceph".to_owned(),
                service: Some(MountService {
                    client,
                    fsid: Some("f1".to_owned()),
                    ..MountService::default()
                }),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        let cephfs = mounted(ServiceClient::CephKernel);
        assert_eq!(fsid_of("/mnt/fs", &cephfs), Some(Some("f1".to_owned())));
        let nfs = mounted(ServiceClient::Nfs);
        assert_eq!(fsid_of("/mnt/nfs", &nfs), None, "not the cluster's client");
        let mapped = TargetInfo {
            devices: vec![DeviceInfo {
                rbd: Some(MappedImage {
                    fsid: Some("f2".to_owned()),
                    ..MappedImage::default()
                }),
                ..DeviceInfo::default()
            }],
            ..TargetInfo::default()
        };
        assert_eq!(fsid_of("/mnt/rbd", &mapped), Some(Some("f2".to_owned())));
    }

    #[test]
    fn skipped_device_wait_is_noted() {
        let waits = Waits {
            timeouts: 1,
            is_skipped: true,
            ..Waits::default()
        };
        let expected = "1 run started without a wait while the device was busy: \
                        IOSONDE_NO_IDLE_WAIT is set";
        assert_eq!(waits.notes(), [expected]);
    }

    #[test]
    fn device_wait_is_noted_and_bounded() {
        let most = (QUIET_WAIT_CELL_MAX.as_millis() / SAMPLING_TIME.as_millis()) as u32;
        let (notes, samples) = after(&[20]);
        assert_eq!(samples, 21);
        assert_eq!(notes, ["waited 2 s for the device to become idle"]);
        let (notes, samples) = after(&[u32::MAX]);
        assert_eq!(samples, most);
        assert_eq!(
            notes,
            [
                "waited 10 s for the device to become idle",
                "1 run started while other programs used the device"
            ]
        );
        // All waits together stay within the limit.
        let (_, samples) = after_at_most(SAMPLING_TIME * 30, &[20, 20, 20]);
        assert!((30..=34).contains(&samples), "{samples}");
        let (notes, _) = after(&[u32::MAX, 0, u32::MAX]);
        assert_eq!(
            notes[1],
            "2 runs started while other programs used the device"
        );
        // The device is busy all the time: the other runs start at once.
        let (notes, samples) = after(&[u32::MAX; 20]);
        assert_eq!(samples, TIMEOUTS_MAX * most);
        assert_eq!(
            notes[1],
            "other programs kept the device busy: after 3 failed waits of 10 s, runs started \
             without waiting"
        );
    }
}
