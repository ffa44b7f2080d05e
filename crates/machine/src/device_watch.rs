//! Live figures of block devices as in `sar -d`, for each interval and for the whole time.

use super::diskstats::{DiskCounters, Snapshot};
use super::identify::identify;
use super::machine_snapshot::{Reading, Sources};
use super::proc_root::System;
use super::sar::rates;
use iosonde_result::host::DeviceNumber;
use iosonde_result::machine::{DeviceRates, MachineSlice};
use std::path::Path;
use std::time::{Duration, Instant};

/// Samples the counters of devices.
#[derive(Debug)]
pub struct Watching {
    system: System,
    /// Devices to show. If empty: all whole disks that have been used, as in `sar -d`.
    chosen: Vec<DeviceNumber>,
    first: (Instant, Snapshot),
    last: (Instant, Snapshot),
}

/// Activity of devices over some time.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Length of the time.
    pub elapsed: Duration,
    /// Kernel names and figures, in the order of device numbers.
    pub rows: Vec<(String, DeviceRates)>,
}

impl Watching {
    /// Starts sampling. `devices` are kernel names, device nodes, or paths of files and
    /// directories, which mean the devices below them. Without `devices` all disks that have been
    /// used are shown. The error is the first word that is none of these.
    pub fn begin(system: System, devices: &[String]) -> Result<Watching, String> {
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
        Ok(Watching {
            system,
            chosen,
            last: first.clone(),
            first,
        })
    }

    /// Activity since the last sample.
    pub fn sample(&mut self) -> Watched {
        let now = (Instant::now(), Snapshot::take(&self.system));
        let watched = self.between(&self.last, &now);
        self.last = now;
        watched
    }

    /// Activity from the start to the last sample.
    pub fn average(&self) -> Watched {
        self.between(&self.first, &self.last)
    }

    fn between(&self, before: &(Instant, Snapshot), now: &(Instant, Snapshot)) -> Watched {
        let elapsed = now.0.saturating_duration_since(before.0);
        let moved = now.1.since(&before.1);
        let shown = moved
            .iter()
            .filter(|(number, name, _)| self.shows(*number, name, &now.1))
            .map(|(_, name, counters)| (name.to_owned(), rates(counters, elapsed)));
        Watched {
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
    disks: Watching,
    sources: Sources,
    last: Reading,
}

impl MachineSampler {
    /// Starts sampling.
    pub fn begin(system: System) -> MachineSampler {
        let sources = Sources::of(system.clone());
        let taken = Snapshot::take(&system);
        let first = (Instant::now(), taken);
        MachineSampler {
            disks: Watching {
                system,
                chosen: Vec::new(),
                last: first.clone(),
                first,
            },
            last: sources.read(),
            sources,
        }
    }

    /// Activity since the last sample. The caller sets the start time of the slice.
    pub fn sample(&mut self) -> MachineSlice {
        let watched = self.disks.sample();
        let now = self.sources.read();
        let slice = now.slice_since(&self.last, &[]);
        self.last = now;
        let devices = watched.rows.into_iter();
        MachineSlice {
            length_ns: watched.elapsed.as_nanos() as u64,
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

    fn names(watched: &Watched) -> Vec<&str> {
        watched.rows.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn disks_that_have_been_used_are_shown_and_no_partitions() {
        let (root, system) = machine(STATS);
        let mut watching = Watching::begin(system, &[]).unwrap();
        assert_eq!(names(&watching.sample()), ["sda"]);
        let used = STATS.replace("loop0 0 0 0", "loop0 9 0 72");
        std::fs::write(root.path().join("proc/diskstats"), used).unwrap();
        let sample = watching.sample();
        assert_eq!(names(&sample), ["loop0", "sda"], "used meanwhile");
        assert!(sample.rows[0].1.tps > 0.0 && sample.rows[1].1.tps == 0.0);
        assert_eq!(names(&watching.average()), ["loop0", "sda"]);
    }

    #[test]
    fn a_machine_is_sampled_with_all_its_disks() {
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
    fn devices_that_are_named_are_shown_whatever_they_did() {
        let (_root, system) = machine(STATS);
        let words = ["/dev/loop0", "sda1"].map(str::to_owned);
        let mut watching = Watching::begin(system.clone(), &words).unwrap();
        assert_eq!(names(&watching.sample()), ["loop0", "sda1"]);
        let unknown = Watching::begin(system, &["sdz".to_owned()]);
        assert_eq!(unknown.unwrap_err(), "sdz");
    }
}
