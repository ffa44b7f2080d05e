//! Live figures of block devices as in `sar -d`, for each interval and for the whole time.

use super::diskstats::{DiskCounters, Snapshot};
use super::identify::identify;
use super::machine_snapshot::{MachineSnapshot, SnapshotSources};
use super::proc_root::System;
use super::sar::rates;
use iosonde_result::device_requests::DeviceRequests;
use iosonde_result::host::DeviceNumber;
use iosonde_result::machine::{DeviceRates, MachineSlice};
use std::path::Path;
use std::time::{Duration, Instant};

/// Samples the counters of devices.
#[derive(Debug)]
pub struct DeviceSampler {
    system: System,
    /// Devices to show. If empty: all whole disks that have been used, as in `sar -d`.
    chosen: Vec<DeviceNumber>,
    first: (Instant, Snapshot),
    last: (Instant, Snapshot),
}

/// Activity of devices over some time.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceDeltas {
    /// Length of the time.
    pub elapsed: Duration,
    /// Kernel names and figures, in the order of device numbers.
    pub rows: Vec<(String, DeviceRates)>,
}

impl DeviceSampler {
    /// Starts sampling. `devices` are kernel names, device nodes, or paths of files and
    /// directories, which mean the devices below them. Without `devices` all disks that have been
    /// used are shown. The error is the first word that is none of these.
    pub fn begin(system: System, devices: &[String]) -> Result<DeviceSampler, String> {
        let now = Snapshot::take(&system);
        let mut chosen = Vec::new();
        for word in devices {
            let found = numbers(&now, word);
            if found.is_empty() {
                return Err(word.clone());
            }
            chosen.extend(found);
        }
        let first = (Instant::now(), now);
        Ok(DeviceSampler {
            system,
            chosen,
            last: first.clone(),
            first,
        })
    }

    /// Activity since the last sample.
    pub fn sample(&mut self) -> DeviceDeltas {
        let now = (Instant::now(), Snapshot::take(&self.system));
        let deltas = self.between(&self.last, &now);
        self.last = now;
        deltas
    }

    /// Requests since the last sample by kind: the time that they cover, and the names and requests
    /// of the devices in the order of device numbers.
    pub fn sample_requests(&mut self) -> (Duration, Vec<(String, DeviceRequests)>) {
        let now = (Instant::now(), Snapshot::take(&self.system));
        let elapsed = now.0.saturating_duration_since(self.last.0);
        let moved = now.1.since(&self.last.1);
        let shown = moved
            .iter()
            .filter(|(number, name, _)| self.shows(*number, name, &now.1))
            .map(|(_, name, counters)| (name.to_owned(), counters.requests()))
            .collect();
        self.last = now;
        (elapsed, shown)
    }

    /// Activity from the start to the last sample.
    pub fn average(&self) -> DeviceDeltas {
        self.between(&self.first, &self.last)
    }

    fn between(&self, before: &(Instant, Snapshot), now: &(Instant, Snapshot)) -> DeviceDeltas {
        let elapsed = now.0.saturating_duration_since(before.0);
        let moved = now.1.since(&before.1);
        let shown = moved
            .iter()
            .filter(|(number, name, _)| self.shows(*number, name, &now.1))
            .map(|(_, name, counters)| (name.to_owned(), rates(counters, elapsed)));
        DeviceDeltas {
            elapsed,
            rows: shown.collect(),
        }
    }

    fn shows(&self, number: DeviceNumber, name: &str, now: &Snapshot) -> bool {
        if !self.chosen.is_empty() {
            return self.chosen.contains(&number);
        }
        let used = |all: &DiskCounters| all.reads.ios > 0 || all.writes.ios > 0;
        // Partitions are not in `/sys/block`.
        let is_disk = || {
            self.system
                .exists(format!("/sys/block/{}", name.replace('/', "!")))
        };
        now.get(number).is_some_and(used) && is_disk()
    }
}

/// Samples the whole machine, slice by slice: disks, processors and pressure.
pub struct MachineSampler {
    disks: DeviceSampler,
    sources: SnapshotSources,
    last: MachineSnapshot,
}

impl MachineSampler {
    /// Starts sampling.
    pub fn begin(system: System) -> MachineSampler {
        let sources = SnapshotSources::find(system.clone());
        let taken = Snapshot::take(&system);
        let first = (Instant::now(), taken);
        MachineSampler {
            disks: DeviceSampler {
                system,
                chosen: Vec::new(),
                last: first.clone(),
                first,
            },
            last: sources.read(),
            sources,
        }
    }

    /// As [`sample`](Self::sample), with the requests of each active device by kind.
    pub fn sample_with_requests(&mut self) -> MachineSlice {
        let before = self.disks.last.clone();
        let slice = self.sample();
        let now = &self.disks.last.1;
        let moved = now.since(&before.1);
        let requests = moved
            .iter()
            .filter(|(number, name, _)| self.disks.shows(*number, name, now))
            .map(|(_, name, counters)| (name.to_owned(), counters.requests()))
            .filter(|(_, requests)| requests.is_busy());
        MachineSlice {
            requests: requests.collect(),
            ..slice
        }
    }

    /// Activity since the last sample. The caller sets the start time of the slice.
    pub fn sample(&mut self) -> MachineSlice {
        let deltas = self.disks.sample();
        let now = self.sources.read();
        let slice = now.slice_since(&self.last, &[]);
        self.last = now;
        let devices = deltas.rows.into_iter();
        MachineSlice {
            length_ns: deltas.elapsed.as_nanos() as u64,
            // A node may have a hundred disks, few of them active.
            devices: devices
                .filter(|(_, rates)| rates.columns() != [0.0; 8])
                .map(|(name, rates)| (name, rates.rounded()))
                .collect(),
            // The processor time of this process is no property of the machine.
            process_cpus: None,
            ..slice
        }
    }
}

fn numbers(now: &Snapshot, word: &str) -> Vec<DeviceNumber> {
    let name = word.strip_prefix("/dev/").unwrap_or(word);
    if let Some((number, ..)) = now.iter().find(|(_, known, _)| *known == name) {
        return vec![number];
    }
    let path = Path::new(word);
    if !path.exists() {
        return Vec::new();
    }
    let target = identify(path);
    target.map_or(Vec::new(), |target| {
        let devices = target.devices.iter();
        devices.map(|device| device.number).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "   8       0 sda 100 10 8000 50 200 20 16000 400 0 300 450 5 0 640 2 7 9
   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
";

    fn machine(stats: &str) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        for dir in ["proc", "sys/block/sda", "sys/block/loop0"] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        std::fs::write(root.path().join("proc/diskstats"), stats).unwrap();
        let system = System::captured(root.path());
        (root, system)
    }

    fn names(deltas: &DeviceDeltas) -> Vec<&str> {
        deltas.rows.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn used_disks_are_shown_without_partitions() {
        let (root, system) = machine(STATS);
        let mut sampler = DeviceSampler::begin(system, &[]).unwrap();
        assert_eq!(names(&sampler.sample()), ["sda"]);
        let used = STATS.replace("loop0 0 0 0", "loop0 9 0 72");
        std::fs::write(root.path().join("proc/diskstats"), used).unwrap();
        let sample = sampler.sample();
        assert_eq!(names(&sample), ["loop0", "sda"], "used meanwhile");
        assert!(sample.rows[0].1.tps > 0.0 && sample.rows[1].1.tps == 0.0);
        assert_eq!(names(&sampler.average()), ["loop0", "sda"]);
    }

    #[test]
    fn machine_sampler_reports_all_active_disks() {
        let (root, system) = machine(STATS);
        let mut sampler = MachineSampler::begin(system);
        let later = STATS.replace("sda 100 10 8000", "sda 150 10 8400");
        std::fs::write(root.path().join("proc/diskstats"), later).unwrap();
        let slice = sampler.sample();
        assert!(slice.length_ns > 0 && slice.process_cpus.is_none());
        assert_eq!(slice.devices["sda"].request_kib, 4.0);
        assert!(sampler.sample().devices.is_empty(), "none did anything");
    }

    #[test]
    fn requests_of_active_disks_are_split_by_kind() {
        let (root, system) = machine(STATS);
        let mut sampler = MachineSampler::begin(system.clone());
        let mut devices = DeviceSampler::begin(system, &[]).unwrap();
        let later = STATS.replace("sda 100 10 8000", "sda 150 12 8400");
        std::fs::write(root.path().join("proc/diskstats"), later).unwrap();
        let slice = sampler.sample_with_requests();
        let reads = slice.requests["sda"].reads;
        assert_eq!((reads.ios, reads.merges, reads.sectors), (50, 2, 400));
        assert_eq!(slice.requests.len(), 1, "idle disks are left out");
        let (elapsed, rows) = devices.sample_requests();
        assert!(!elapsed.is_zero());
        assert_eq!(rows, [("sda".to_owned(), slice.requests["sda"])]);
    }

    #[test]
    fn named_devices_are_shown_even_if_idle() {
        let (_root, system) = machine(STATS);
        let words = ["/dev/loop0", "sda1"].map(str::to_owned);
        let mut sampler = DeviceSampler::begin(system.clone(), &words).unwrap();
        assert_eq!(names(&sampler.sample()), ["loop0", "sda1"]);
        let unknown = DeviceSampler::begin(system, &["sdz".to_owned()]);
        assert_eq!(unknown.unwrap_err(), "sdz");
    }
}
