//! Activity of other programs between two snapshots: processors, block devices and programs.

use super::diskstats::Snapshot;
use super::proc_root::System;
use super::processors::CpuTimes;
use iosonde_result::doctor::{DeviceTraffic, ProcessTraffic};
use iosonde_result::host::DeviceNumber;
use iosonde_result::machine::CpuShares;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A snapshot of the machine's counters.
#[derive(Debug)]
pub struct ActivitySnapshot {
    at: Instant,
    processors: Option<CpuTimes>,
    disks: Snapshot,
    programs: BTreeMap<u32, ProgramIo>,
}

impl ActivitySnapshot {
    /// Reads all counters.
    pub fn now(system: &System) -> Self {
        Self {
            at: Instant::now(),
            processors: CpuTimes::take(system),
            disks: Snapshot::take(system),
            programs: programs(system),
        }
    }

    /// The activity since an earlier snapshot.
    pub fn since(&self, before: &Self) -> Activity {
        let watched = self.at.duration_since(before.at);
        Activity {
            watched,
            processors: self
                .processors
                .zip(before.processors)
                .and_then(|(now, then)| now.since(&then).shares()),
            disks: self.disks.since(&before.disks),
            busiest: busiest(&before.programs, &self.programs, watched),
        }
    }
}

/// The activity between two snapshots.
#[derive(Debug, Default)]
pub struct Activity {
    /// The time between the snapshots.
    pub watched: Duration,
    /// Shares of processor time.
    pub processors: Option<CpuShares>,
    disks: Snapshot,
    /// The programs that moved most bytes, in descending order.
    pub busiest: Vec<ProcessTraffic>,
}

impl Activity {
    /// The traffic of a device; `None` if the kernel does not count it.
    pub(crate) fn device_traffic(&self, number: DeviceNumber) -> Option<DeviceTraffic> {
        let counters = self.disks.get(number)?;
        let seconds = self.watched.as_secs_f64();
        let rate = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        Some(DeviceTraffic {
            read_iops: rate(counters.reads.ios),
            write_iops: rate(counters.writes.ios),
            read_bytes_per_s: rate(counters.read_bytes()),
            write_bytes_per_s: rate(counters.written_bytes()),
            busy_percent: (rate(counters.busy_ms) / 10.0).min(100.0),
        })
    }
}

/// A program and the bytes that it moved since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProgramIo {
    name: String,
    read_bytes: u64,
    written_bytes: u64,
}

/// All programs whose counters may be read, without this one.
fn programs(system: &System) -> BTreeMap<u32, ProgramIo> {
    let own = std::process::id();
    let ids = system.names("/proc").into_iter();
    let ids = ids.filter_map(|name| name.parse::<u32>().ok());
    ids.filter(|pid| *pid != own)
        .filter_map(|pid| Some((pid, program(system, pid)?)))
        .collect()
}

fn program(system: &System, pid: u32) -> Option<ProgramIo> {
    let io = system.text(format!("/proc/{pid}/io"))?;
    let value = |key: &str| -> Option<u64> {
        let line = io.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').trim().parse().ok()
    };
    Some(ProgramIo {
        name: system.text(format!("/proc/{pid}/comm"))?,
        read_bytes: value("read_bytes")?,
        // Data that was deleted from the page cache before its writeback caused no I/O.
        written_bytes: value("write_bytes")?
            .saturating_sub(value("cancelled_write_bytes").unwrap_or(0)),
    })
}

/// Maximum number of programs in [`Activity::busiest`].
const NAMED: usize = 3;

fn busiest(
    before: &BTreeMap<u32, ProgramIo>,
    now: &BTreeMap<u32, ProgramIo>,
    watched: Duration,
) -> Vec<ProcessTraffic> {
    let seconds = watched.as_secs_f64();
    let moved = |(pid, program): (&u32, &ProgramIo)| {
        let then = before.get(pid)?;
        let read = program.read_bytes.saturating_sub(then.read_bytes);
        let written = program.written_bytes.saturating_sub(then.written_bytes);
        (read + written > 0 && seconds > 0.0).then(|| ProcessTraffic {
            pid: *pid,
            name: program.name.clone(),
            read_bytes_per_s: read as f64 / seconds,
            write_bytes_per_s: written as f64 / seconds,
        })
    };
    let mut moved: Vec<ProcessTraffic> = now.iter().filter_map(moved).collect();
    let sum = |one: &ProcessTraffic| one.read_bytes_per_s + one.write_bytes_per_s;
    moved.sort_by(|one, other| sum(other).total_cmp(&sum(one)));
    moved.truncate(NAMED);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busiest_programs_are_named_by_their_transfer_rate() {
        let program = |name: &str, read_bytes, written_bytes| ProgramIo {
            name: name.into(),
            read_bytes,
            written_bytes,
        };
        let before = BTreeMap::from([
            (1, program("init", 9_000_000, 0)),
            (2, program("copy", 0, 0)),
            (3, program("scan", 500, 0)),
        ]);
        let now = BTreeMap::from([
            (1, program("init", 9_000_000, 0)),
            (2, program("copy", 1000, 3000)),
            (3, program("scan", 900, 0)),
            (4, program("new", 77, 0)),
        ]);
        let named = busiest(&before, &now, Duration::from_secs(2));
        let named: Vec<(&str, f64, f64)> = named
            .iter()
            .map(|one| {
                (
                    one.name.as_str(),
                    one.read_bytes_per_s,
                    one.write_bytes_per_s,
                )
            })
            .collect();
        assert_eq!(named, [("copy", 500.0, 1500.0), ("scan", 200.0, 0.0)]);
    }

    #[test]
    fn device_activity_follows_diskstats_counters() {
        let then = Snapshot::parse("8 0 sda 100 0 800 50 0 0 0 0 0 300 450\n");
        let now = Snapshot::parse("8 0 sda 300 0 2848 50 100 0 8 0 0 1300 450\n");
        let activity = Activity {
            watched: Duration::from_secs(2),
            disks: now.since(&then),
            ..Activity::default()
        };
        let traffic = activity.device_traffic("8:0".parse().unwrap()).unwrap();
        assert_eq!((traffic.read_iops, traffic.write_iops), (100.0, 50.0));
        assert_eq!(traffic.read_bytes_per_s, 2048.0 * 512.0 / 2.0);
        assert_eq!(traffic.busy_percent, 50.0);
        assert_eq!(activity.device_traffic("8:16".parse().unwrap()), None);
    }
}
