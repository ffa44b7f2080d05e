//! Detection of cached I/O: the bytes of a workload compared with the bytes that the devices moved.

use super::diskstats::Snapshot;
use super::proc_root::System;
use iosonde_job::plan::Direction;
use iosonde_result::bottleneck::verdict;
use iosonde_result::host::{DeviceInfo, DeviceNumber, TargetInfo};
use iosonde_result::run::Verdict;
use iosonde_result::verdict_cause::VerdictCause;

/// Bytes read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteTraffic {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The bytes that the devices under some targets moved; `None` if no device is known.
///
/// A cache may be at any level of a stack: a loop device reads its file through the page cache. The
/// smallest sum of any level therefore counts. It includes I/O of other programs.
pub fn moved(targets: &[TargetInfo], moved: &Snapshot) -> Option<ByteTraffic> {
    let mut level: Vec<&DeviceInfo> = targets.iter().flat_map(|target| &target.devices).collect();
    let mut least: Option<ByteTraffic> = None;
    loop {
        level = independent(level);
        let Some(sum) = traffic_sum(&level, moved) else {
            return least;
        };
        least = Some(least.map_or(sum, |least| ByteTraffic {
            read_bytes: least.read_bytes.min(sum.read_bytes),
            written_bytes: least.written_bytes.min(sum.written_bytes),
        }));
        if level.iter().all(|device| device.below.is_empty()) {
            return least;
        }
        // Devices at the bottom of the stack stay in the next level.
        level = level
            .into_iter()
            .flat_map(|device| {
                if device.below.is_empty() {
                    vec![device]
                } else {
                    device.below.iter().collect()
                }
            })
            .collect();
    }
}

/// Removes duplicates, and devices whose I/O is counted again on another device of the list.
fn independent(devices: Vec<&DeviceInfo>) -> Vec<&DeviceInfo> {
    let mut kept: Vec<&DeviceInfo> = Vec::new();
    for device in &devices {
        let passes_on = devices.iter().any(|other| lies_below(device, other.number));
        if !passes_on && !kept.iter().any(|known| known.number == device.number) {
            kept.push(device);
        }
    }
    kept
}

fn lies_below(device: &DeviceInfo, number: DeviceNumber) -> bool {
    device
        .below
        .iter()
        .any(|below| below.number == number || lies_below(below, number))
}

fn traffic_sum(devices: &[&DeviceInfo], moved: &Snapshot) -> Option<ByteTraffic> {
    if devices.is_empty() {
        return None;
    }
    devices
        .iter()
        .try_fold(ByteTraffic::default(), |sum, device| {
            let counters = moved.get(device.number)?;
            Some(ByteTraffic {
                read_bytes: sum.read_bytes + counters.read_bytes(),
                written_bytes: sum.written_bytes + counters.written_bytes(),
            })
        })
}

/// Bytes that this process fetched from storage so far; `None` if the kernel does not count them.
///
/// Unlike the counters of devices, the figure excludes other processes. The kernel's count of
/// written bytes is not used: it counts pages made dirty, which says nothing about caches.
pub fn fetched_by_process(system: &System) -> Option<u64> {
    parse_process_io(&system.text("/proc/self/io")?)
}

fn parse_process_io(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))?
        .trim()
        .parse()
        .ok()
}

/// Smaller shares of missing bytes are within the accuracy of the counters.
const TOLERATED_SHARE: f64 = 0.05;
/// Smaller numbers of missing bytes are within the accuracy of the counters.
const TOLERATED_BYTES: u64 = 256 << 10;

/// Compares the bytes of a workload with those that the devices moved. Empty if they agree.
pub fn served_from_cache(asked: ByteTraffic, moved: ByteTraffic) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let sides = [
        (Direction::Read, asked.read_bytes, moved.read_bytes),
        (Direction::Write, asked.written_bytes, moved.written_bytes),
    ];
    for (direction, job_bytes, device_bytes) in sides {
        let missing = job_bytes.saturating_sub(device_bytes);
        if missing > TOLERATED_BYTES && missing as f64 > TOLERATED_SHARE * job_bytes as f64 {
            verdicts.push(verdict(VerdictCause::ServedFromCache {
                direction,
                job_bytes,
                device_bytes,
            }));
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn traffic(read_bytes: u64, written_bytes: u64) -> ByteTraffic {
        ByteTraffic {
            read_bytes,
            written_bytes,
        }
    }

    #[test]
    fn bytes_that_the_device_did_not_move_came_from_a_cache() {
        assert_eq!(
            served_from_cache(traffic(100 * MIB, MIB), traffic(101 * MIB, 2 * MIB)),
            []
        );
        assert_eq!(
            served_from_cache(traffic(100 * MIB, 0), traffic(96 * MIB, 0)),
            [],
            "within the tolerance"
        );
        assert_eq!(
            served_from_cache(traffic(4096, 0), traffic(0, 0)),
            [],
            "too little to tell"
        );
        let verdicts = served_from_cache(traffic(100 * MIB, 100 * MIB), traffic(25 * MIB, 0));
        assert_eq!(verdicts.len(), 2);
        let served = |direction, device_bytes| {
            Some(VerdictCause::ServedFromCache {
                direction,
                job_bytes: 100 * MIB,
                device_bytes,
            })
        };
        assert_eq!(verdicts[0].cause, served(Direction::Read, 25 * MIB));
        assert_eq!(verdicts[1].cause, served(Direction::Write, 0));
    }

    fn device(minor: u32, below: Vec<DeviceInfo>) -> DeviceInfo {
        DeviceInfo {
            number: DeviceNumber { major: 8, minor },
            below,
            ..DeviceInfo::default()
        }
    }

    fn target(devices: Vec<DeviceInfo>) -> TargetInfo {
        TargetInfo {
            devices,
            ..TargetInfo::default()
        }
    }

    #[test]
    fn stack_level_with_least_traffic_counts() {
        // A loop device (0) on a partition (1) of a disk (2). A second target uses the disk
        // directly.
        let disk = device(2, vec![]);
        let partition = device(1, vec![disk]);
        let targets = [
            target(vec![device(0, vec![partition.clone()])]),
            target(vec![partition]),
        ];
        let snapshot = Snapshot::parse(
            "8 0 loop0 1 0 1000 0 1 0 500 0 0 0 0\n\
             8 1 sda1 1 0 200 0 1 0 700 0 0 0 0\n\
             8 2 sda 1 0 300 0 1 0 900 0 0 0 0\n",
        );
        assert_eq!(
            moved(&targets, &snapshot),
            Some(traffic(200 * 512, 700 * 512))
        );
    }

    #[test]
    fn traffic_without_device_is_unknown() {
        assert_eq!(moved(&[target(vec![])], &Snapshot::default()), None);
        assert_eq!(
            moved(&[target(vec![device(0, vec![])])], &Snapshot::default()),
            None
        );
    }

    #[test]
    fn process_read_bytes_are_parsed() {
        assert_eq!(
            parse_process_io("rchar: 5\nread_bytes: 4096\nwrite_bytes: 1\n"),
            Some(4096)
        );
        assert_eq!(parse_process_io(""), None);
    }
}
