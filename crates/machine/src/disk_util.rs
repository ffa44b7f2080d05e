//! fio's `disk_util`: activity of the devices under the targets during a run.

use super::diskstats::Snapshot;
use iosonde_result::host::{DeviceInfo, DeviceKind, TargetInfo};
use iosonde_result::run::DiskUtil;
use std::time::Duration;

/// fio's `disk_util` of the devices under some targets, over an interval of `elapsed`.
///
/// As in fio, a partition is replaced by its disk, a device made of other devices is followed by
/// them, and the devices under the file of a loop device are omitted.
pub fn disk_util(targets: &[TargetInfo], moved: &Snapshot, elapsed: Duration) -> Vec<DiskUtil> {
    let mut found: Vec<DiskUtil> = Vec::new();
    let tops = targets.iter().flat_map(|target| &target.devices);
    let mut waiting: Vec<&DeviceInfo> = tops.map(whole_disk).collect();
    waiting.reverse();
    while let Some(device) = waiting.pop() {
        if !found.iter().any(|known| known.name == device.name) {
            found.extend(util_of(device, moved, elapsed));
        }
        waiting.extend(members(device).into_iter().rev());
    }
    found
}

fn util_of(device: &DeviceInfo, moved: &Snapshot, elapsed: Duration) -> Option<DiskUtil> {
    let counters = moved.get(device.number)?;
    let (reads, writes) = (&counters.reads, &counters.writes);
    Some(DiskUtil {
        name: device.name.clone(),
        ios: [reads.ios, writes.ios],
        merges: [reads.merges, writes.merges],
        ticks_ms: [reads.ticks_ms, writes.ticks_ms],
        in_queue_ms: counters.in_queue_ms,
        sectors: [reads.sectors, writes.sectors],
        util_percent: counters.busy_percent(elapsed).min(100.0),
        below: members(device)
            .into_iter()
            .filter_map(|member| util_of(member, moved, elapsed))
            .collect(),
    })
}

/// The disk of a partition, or the device itself.
fn whole_disk(device: &DeviceInfo) -> &DeviceInfo {
    match device.below.first() {
        Some(disk) if device.kind == DeviceKind::Partition => disk,
        _ => device,
    }
}

/// The whole disks that a device is made of (`slaves` in sysfs).
fn members(device: &DeviceInfo) -> Vec<&DeviceInfo> {
    if device.backing_file.is_some() {
        Vec::new()
    } else {
        device.below.iter().map(whole_disk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, at: &str, kind: DeviceKind, below: Vec<DeviceInfo>) -> DeviceInfo {
        DeviceInfo {
            name: name.into(),
            number: at.parse().unwrap(),
            kind,
            below,
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn disk_util_lists_devices_and_their_members_as_fio_does() {
        let sda = device("sda", "8:0", DeviceKind::Scsi, vec![]);
        let sda1 = device("sda1", "8:1", DeviceKind::Partition, vec![sda.clone()]);
        let nvme = device("nvme0n1", "259:0", DeviceKind::Nvme, vec![]);
        let volume = device("dm-0", "253:0", DeviceKind::Lvm, vec![sda1.clone(), nvme]);
        let mut looped = device("loop0", "7:0", DeviceKind::Loop, vec![sda1.clone()]);
        looped.backing_file = Some("/x".into());
        let targets = [volume, looped, sda1].map(|top| TargetInfo {
            devices: vec![top],
            ..TargetInfo::default()
        });
        let moved = Snapshot::parse(
            "8 0 sda 100 1 800 50 10 2 80 5 0 500 55\n259 0 nvme0n1 40 0 320 8 0 0 0 0 0 2000 8\n\
             253 0 dm-0 120 0 1100 58 10 0 80 5 0 250 63\n7 0 loop0 1 0 8 1 0 0 0 0 0 1 1\n",
        );
        let disks = disk_util(&targets, &moved, Duration::from_secs(1));
        let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda", "nvme0n1", "loop0"]);
        assert_eq!(
            disks[0]
                .below
                .iter()
                .map(|disk| disk.name.as_str())
                .collect::<Vec<_>>(),
            ["sda", "nvme0n1"]
        );
        assert!(disks[3].below.is_empty());
        assert_eq!(
            (disks[1].ios, disks[1].merges, disks[1].ticks_ms),
            ([100, 10], [1, 2], [50, 5])
        );
        assert_eq!(
            (
                disks[1].in_queue_ms,
                disks[1].sectors,
                disks[1].util_percent
            ),
            (55, [800, 80], 50.0)
        );
        assert_eq!(
            disks[2].util_percent, 100.0,
            "more than the whole time is the whole time"
        );
    }
}
