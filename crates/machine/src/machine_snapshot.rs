//! Snapshots of the machine during a run: counters of devices, processors and clocks.

use super::cgroup;
use super::clocks::Clocks;
use super::diskstats::Snapshot;
use super::net_counters::{LinkSpeeds, NetworkDeltas, NetworkSnapshot};
use super::proc_root::System;
use super::processors::CpuTimes;
use super::psi::PsiSnapshot;
use super::sar;
use super::storage_sockets::StorageSockets;
use crate::cpu_use::process_cpu_use;
use iosonde_result::host::DeviceNumber;
use iosonde_result::machine::{MachineSlice, hundredths};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The machine's counters at one moment.
#[derive(Debug, Clone)]
pub struct MachineSnapshot {
    /// Time of the reading.
    pub at: Instant,
    /// All block devices.
    pub disks: Snapshot,
    /// Processor times; `None` if `/proc/stat` cannot be read.
    pub cpu: Option<CpuTimes>,
    /// Processor time of this process in nanoseconds.
    pub process_cpu_ns: u64,
    /// Pressure stall totals.
    pub stalls: PsiSnapshot,
    /// Time that control groups throttled this process, in nanoseconds; `None` without a CPU quota.
    pub cpu_throttled_ns: Option<u64>,
    /// The clocks.
    pub clocks: Clocks,
    /// Network interfaces, TCP and storage connections.
    pub network: NetworkSnapshot,
    /// Speeds of the interfaces' links.
    pub link_speeds: Arc<LinkSpeeds>,
}

/// The files that are read for a snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotSources {
    system: System,
    cpu_stat_files: Vec<PathBuf>,
    link_speeds: Arc<LinkSpeeds>,
    lists_sockets: bool,
}

impl SnapshotSources {
    /// Finds the files that do not change during a run.
    pub fn find(system: System) -> Self {
        Self {
            cpu_stat_files: cgroup::cpu_stat_files(&system),
            link_speeds: Arc::new(LinkSpeeds::read(&system)),
            lists_sockets: StorageSockets::is_quick(&system),
            system,
        }
    }

    /// Times of each processor.
    pub fn processors(&self) -> BTreeMap<u32, CpuTimes> {
        CpuTimes::take_each(&self.system)
    }

    /// Reads all counters.
    pub fn read(&self) -> MachineSnapshot {
        let process = process_cpu_use();
        MachineSnapshot {
            at: Instant::now(),
            disks: Snapshot::take(&self.system),
            cpu: CpuTimes::take(&self.system),
            process_cpu_ns: process.user_ns + process.system_ns,
            stalls: PsiSnapshot::take(&self.system),
            cpu_throttled_ns: cgroup::cpu_throttled_ns(&self.system, &self.cpu_stat_files),
            clocks: Clocks::now(),
            network: NetworkSnapshot::take(&self.system, self.lists_sockets),
            link_speeds: self.link_speeds.clone(),
        }
    }
}

impl MachineSnapshot {
    /// The measurements that this machine lacks.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut add = |what: &str| missing.push(what.to_owned());
        if self.disks.iter().next().is_none() {
            add("devices: /proc/diskstats cannot be read");
        }
        if self.cpu.is_none() {
            add("CPUs: /proc/stat cannot be read");
        }
        if self.stalls.is_missing() {
            add("pressure: this kernel has no /proc/pressure (CONFIG_PSI, or psi=1 at boot)");
        }
        missing
    }

    /// Time since an earlier reading.
    pub fn elapsed_since(&self, before: &Self) -> Duration {
        self.at.saturating_duration_since(before.at)
    }

    /// The traffic of the network since an earlier reading. `None` if it is not known.
    pub fn network_since(&self, before: &Self) -> Option<NetworkDeltas> {
        self.network.since(&before.network)
    }

    /// The activity since an earlier reading, with the devices of these numbers.
    pub fn slice_since(&self, before: &Self, devices: &[DeviceNumber]) -> MachineSlice {
        let elapsed = self.elapsed_since(before);
        let moved = self.disks.since(&before.disks);
        let shown = moved
            .iter()
            .filter(|(number, ..)| devices.contains(number))
            .map(|(_, name, counters)| {
                let rates = sar::rates(counters, elapsed).rounded();
                (name.to_owned(), rates)
            });
        let process_ns = self.process_cpu_ns.saturating_sub(before.process_cpu_ns);
        MachineSlice {
            devices: shown.collect(),
            cpu: self
                .cpu
                .zip(before.cpu)
                .and_then(|(now, before)| now.since(&before).shares()),
            process_cpus: (!elapsed.is_zero())
                .then(|| hundredths(process_ns as f64 / elapsed.as_nanos() as f64)),
            pressure: self.stalls.since(&before.stalls, elapsed),
            network: self
                .network_since(before)
                .and_then(|moved| moved.rates(elapsed, &self.link_speeds)),
            ..MachineSlice::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, ios: u64, user: u64, process_cpu_ns: u64) -> MachineSnapshot {
        let line = format!("8 0 sda {ios} 0 {} 50 0 0 0 0 0 500 2000\n", ios * 8);
        MachineSnapshot {
            at,
            disks: Snapshot::parse(&format!("{line}8 16 sdb 9 0 72 1 0 0 0 0 0 1 1\n")),
            cpu: CpuTimes::parse(&format!("cpu {user} 0 0 {}\n", 200 - user)),
            process_cpu_ns,
            stalls: PsiSnapshot::default(),
            cpu_throttled_ns: None,
            clocks: Clocks::default(),
            network: NetworkSnapshot::default(),
            link_speeds: Arc::default(),
        }
    }

    #[test]
    fn slice_is_the_difference_of_two_snapshots() {
        let begun = Instant::now();
        let before = reading(begun, 0, 0, 0);
        let after = reading(begun + Duration::from_secs(2), 100, 50, 1_000_000_000);
        let slice = after.slice_since(&before, &["8:0".parse().unwrap()]);
        assert_eq!(slice.devices.len(), 1, "sdb is not under the run's files");
        assert_eq!(
            (slice.devices["sda"].tps, slice.devices["sda"].read_kib_s),
            (50.0, 200.0)
        );
        assert_eq!(slice.process_cpus, Some(0.5));
        assert_eq!(
            slice.pressure, None,
            "an unreported pressure is not a pressure of zero"
        );
        let at_once = before.slice_since(&before, &[]);
        assert_eq!((at_once.cpu, at_once.process_cpus), (None, None));
    }

    #[test]
    fn snapshot_of_the_live_machine_is_read() {
        let reading = SnapshotSources::find(System::live()).read();
        assert!(reading.cpu.is_some() && reading.process_cpu_ns > 0);
        assert!(reading.network_since(&reading).is_some(), "it has lo");
        let nowhere = SnapshotSources::find(System::captured("/nonexistent")).read();
        assert_eq!(nowhere.missing().len(), 3);
    }
}
