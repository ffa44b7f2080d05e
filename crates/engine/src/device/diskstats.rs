//! What block devices did: the kernel's counters, their differences, and the figures of fio and sar made of them.
//!
//! The fields are those of the kernel's Documentation/admin-guide/iostats.rst. Sectors are of 512 bytes on every device.

use super::blockdev::SECTOR_BYTES;
use super::system::System;
use iosonde_result::host::{DeviceInfo, DeviceKind, DeviceNumber, TargetInfo};
use iosonde_result::run::DiskUtil;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters of requests of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    /// Completed.
    pub ios: u64,
    /// Merged into others before they were sent.
    pub merges: u64,
    /// Sectors of 512 bytes moved.
    pub sectors: u64,
    /// Milliseconds that all of them took together.
    pub ticks_ms: u64,
}

/// The counters of one device since it appeared, or over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounters {
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Requests in flight at that moment; not a sum.
    pub in_flight: u64,
    /// Milliseconds with requests in flight.
    pub busy_ms: u64,
    /// Milliseconds, each counted once for every request in flight.
    pub in_queue_ms: u64,
    /// Discards (since Linux 4.18).
    pub discards: Requests,
    /// Flushes (since Linux 5.5).
    pub flushes: u64,
    /// Milliseconds that all flushes took together.
    pub flush_ms: u64,
}

impl DiskCounters {
    /// Parses `/sys/block/X/stat`, or what follows the name in `/proc/diskstats`: 11 counters, or 15, or 17 and more.
    pub fn parse(text: &str) -> Option<Self> {
        let fields = text
            .split_ascii_whitespace()
            .map(|field| field.parse().ok());
        let fields: Vec<u64> = fields.collect::<Option<_>>()?;
        if fields.len() < 11 {
            return None;
        }
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        let requests = |first: usize| Requests {
            ios: at(first),
            merges: at(first + 1),
            sectors: at(first + 2),
            ticks_ms: at(first + 3),
        };
        Some(Self {
            reads: requests(0),
            writes: requests(4),
            in_flight: at(8),
            busy_ms: at(9),
            in_queue_ms: at(10),
            discards: requests(11),
            flushes: at(15),
            flush_ms: at(16),
        })
    }

    /// What happened between two readings of one device.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.since(&before.reads),
            writes: self.writes.since(&before.writes),
            in_flight: self.in_flight,
            busy_ms: grown(self.busy_ms, before.busy_ms),
            in_queue_ms: grown(self.in_queue_ms, before.in_queue_ms),
            discards: self.discards.since(&before.discards),
            flushes: grown(self.flushes, before.flushes),
            flush_ms: grown(self.flush_ms, before.flush_ms),
        }
    }

    /// Bytes read from the device.
    pub fn read_bytes(&self) -> u64 {
        self.reads.sectors * SECTOR_BYTES
    }

    /// Bytes written to the device.
    pub fn written_bytes(&self) -> u64 {
        self.writes.sectors * SECTOR_BYTES
    }
}

impl Requests {
    fn since(&self, before: &Self) -> Self {
        Self {
            ios: grown(self.ios, before.ios),
            merges: grown(self.merges, before.merges),
            sectors: grown(self.sectors, before.sectors),
            ticks_ms: grown(self.ticks_ms, before.ticks_ms),
        }
    }
}

/// The kernel prints times, and all counters on 32-bit machines, with 32 bits; they wrap. A counter that fell without
/// having been near that end belongs to another device of the same number: all that it counts is new.
fn grown(now: u64, before: u64) -> u64 {
    const END: u64 = 1 << 32;
    match now.checked_sub(before) {
        Some(growth) => growth,
        None if before < END && before >= END / 2 && now < END / 2 => now + (END - before),
        None => now,
    }
}

/// The counters of all devices at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    devices: BTreeMap<DeviceNumber, (String, DiskCounters)>,
}

impl Snapshot {
    /// Reads `/proc/diskstats`.
    pub fn take(system: &System) -> Self {
        Self::parse(&system.text("/proc/diskstats").unwrap_or_default())
    }

    /// Parses the text of `/proc/diskstats`; lines of another form are passed over.
    pub fn parse(text: &str) -> Self {
        Self {
            devices: text.lines().filter_map(parse_line).collect(),
        }
    }

    /// The counters of a device.
    pub fn get(&self, number: DeviceNumber) -> Option<&DiskCounters> {
        self.devices.get(&number).map(|(_, counters)| counters)
    }

    /// All devices: number, kernel name, counters.
    pub fn iter(&self) -> impl Iterator<Item = (DeviceNumber, &str, &DiskCounters)> {
        self.devices
            .iter()
            .map(|(number, (name, counters))| (*number, name.as_str(), counters))
    }

    /// What each device did since an earlier moment. One that was not there then counts from zero.
    pub fn since(&self, before: &Self) -> Self {
        let difference = |(number, (name, now)): (&DeviceNumber, &(String, DiskCounters))| {
            let zero = DiskCounters::default();
            // A name that changed is another device.
            let then = before
                .devices
                .get(number)
                .filter(|(then, _)| then == name)
                .map_or(&zero, |(_, counters)| counters);
            (*number, (name.clone(), now.since(then)))
        };
        Self {
            devices: self.devices.iter().map(difference).collect(),
        }
    }
}

fn parse_line(line: &str) -> Option<(DeviceNumber, (String, DiskCounters))> {
    let (major, rest) = line.trim_start().split_once(' ')?;
    let (minor, rest) = rest.trim_start().split_once(' ')?;
    let (name, rest) = rest.trim_start().split_once(' ')?;
    let number = DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    };
    Some((number, (name.to_owned(), DiskCounters::parse(rest)?)))
}

/// fio's `disk_util` of the devices under some targets, over an interval of `elapsed`.
///
/// As in fio, a partition stands for its disk, a device that is made of others is followed by them, and what is under
/// the file of a loop device is left out.
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
        util_percent: busy_percent(counters, elapsed).min(100.0),
        below: members(device)
            .into_iter()
            .filter_map(|member| util_of(member, moved, elapsed))
            .collect(),
    })
}

/// The disk of a partition; any other device itself.
fn whole_disk(device: &DeviceInfo) -> &DeviceInfo {
    match device.below.first() {
        Some(disk) if device.kind == DeviceKind::Partition => disk,
        _ => device,
    }
}

/// The devices that one is made of (`slaves` in sysfs), whole.
fn members(device: &DeviceInfo) -> Vec<&DeviceInfo> {
    if device.backing_file.is_some() {
        Vec::new()
    } else {
        device.below.iter().map(whole_disk).collect()
    }
}

fn busy_percent(counters: &DiskCounters, elapsed: Duration) -> f64 {
    let elapsed_ms = elapsed.as_secs_f64() * 1000.0;
    if elapsed_ms > 0.0 {
        100.0 * counters.busy_ms as f64 / elapsed_ms
    } else {
        0.0
    }
}

/// The columns of `sar -d` for one device and one interval, by sysstat's formulas.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SarRow {
    /// Requests per second: reads, writes and discards.
    pub tps: f64,
    /// KiB read per second (`rkB/s`).
    pub read_kib_s: f64,
    /// KiB written per second (`wkB/s`).
    pub write_kib_s: f64,
    /// KiB discarded per second (`dkB/s`).
    pub discard_kib_s: f64,
    /// Mean request in KiB (`areq-sz`).
    pub request_kib: f64,
    /// Mean number of requests in flight (`aqu-sz`).
    pub queue: f64,
    /// Mean time of a request in milliseconds, its time in the queue included (`await`).
    pub await_ms: f64,
    /// Share of the time with requests in flight, in per cent (`%util`).
    pub util_percent: f64,
}

impl SarRow {
    /// The figures of what a device did in `elapsed`.
    pub fn of(moved: &DiskCounters, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return Self::default();
        }
        let all = [&moved.reads, &moved.writes, &moved.discards];
        let sum = |field: fn(&Requests) -> u64| {
            all.iter().map(|requests| field(requests)).sum::<u64>() as f64
        };
        let ios = sum(|requests| requests.ios);
        let each = |total: f64| if ios > 0.0 { total / ios } else { 0.0 };
        let kib_s = |requests: &Requests| requests.sectors as f64 / 2.0 / seconds;
        Self {
            tps: ios / seconds,
            read_kib_s: kib_s(&moved.reads),
            write_kib_s: kib_s(&moved.writes),
            discard_kib_s: kib_s(&moved.discards),
            request_kib: each(sum(|requests| requests.sectors)) / 2.0,
            queue: moved.in_queue_ms as f64 / 1000.0 / seconds,
            await_ms: each(sum(|requests| requests.ticks_ms)),
            util_percent: busy_percent(moved, elapsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: &str = "\
   8       0 sda 100 10 8000 50 200 20 16000 400 0 300 450 5 0 640 2 7 9
   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11
 259       0 nvme0n1 1 0 8 1 0 0 0 0 0 1 1 0 0 0 0
broken line
";

    fn number(text: &str) -> DeviceNumber {
        text.parse().unwrap()
    }

    #[test]
    fn lines_of_every_kernel_are_read() {
        let snapshot = Snapshot::parse(BEFORE);
        assert_eq!(snapshot.iter().count(), 3);
        let sda = snapshot.get(number("8:0")).unwrap();
        assert_eq!(
            sda.reads,
            Requests {
                ios: 100,
                merges: 10,
                sectors: 8000,
                ticks_ms: 50
            }
        );
        assert_eq!(
            sda.writes,
            Requests {
                ios: 200,
                merges: 20,
                sectors: 16000,
                ticks_ms: 400
            }
        );
        assert_eq!((sda.in_flight, sda.busy_ms, sda.in_queue_ms), (0, 300, 450));
        assert_eq!(
            sda.discards,
            Requests {
                ios: 5,
                merges: 0,
                sectors: 640,
                ticks_ms: 2
            }
        );
        assert_eq!((sda.flushes, sda.flush_ms), (7, 9));
        assert_eq!(
            (sda.read_bytes(), sda.written_bytes()),
            (8000 * 512, 16000 * 512)
        );
        let old = snapshot.get(number("8:1")).unwrap();
        assert_eq!(
            (old.in_flight, old.discards, old.flushes),
            (9, Requests::default(), 0)
        );
    }

    #[test]
    fn sysfs_holds_the_same_counters() {
        let text = "     100       10     8000       50      200       20    16000      400        0      300      450        5        0      640        2        7        9\n";
        assert_eq!(
            DiskCounters::parse(text).as_ref(),
            Snapshot::parse(BEFORE).get(number("8:0"))
        );
    }

    #[test]
    fn times_that_wrap_at_32_bits_go_on() {
        assert_eq!(grown(5, (1 << 32) - 10), 15);
        assert_eq!(grown(10, 4), 6);
        assert_eq!(grown(5, 100), 5, "the device was replaced");
        assert_eq!(grown(5, 1 << 40), 5, "the device was replaced");
    }

    #[test]
    fn another_device_of_the_same_number_counts_from_zero() {
        let after = Snapshot::parse("8 0 sdb 150 0 9000 60 250 0 17000 500 0 400 600\n");
        let moved = after.since(&Snapshot::parse(BEFORE));
        assert_eq!(moved.get(number("8:0")).unwrap().reads.ios, 150);
    }

    /// Readings of sysstat's own collector (sadc 12.6.1) over 2 s each, and what `sar -d` made of them.
    #[test]
    fn the_columns_are_those_of_sar() {
        // tps, sectors read / written / discarded, milliseconds of each, busy, in queue
        let readings = [
            [
                12_971_311,
                146_531_581,
                222_751_714,
                32_121_824,
                4_111_828,
                5_940_242,
                18_281,
                209_712,
                10_073_459,
            ],
            [
                12_975_771,
                146_614_853,
                222_832_962,
                32_333_400,
                4_112_395,
                5_940_341,
                18_364,
                210_284,
                10_074_210,
            ],
            [
                12_977_918,
                146_621_901,
                222_910_586,
                124_174_640,
                4_112_433,
                5_940_581,
                18_464,
                210_344,
                10_074_588,
            ],
        ];
        let expected = [
            [
                2230.00, 20818.00, 20312.00, 52894.00, 42.16, 0.38, 0.17, 28.60,
            ],
            [
                1073.50,
                1762.00,
                19406.00,
                22_960_310.00,
                21407.99,
                0.19,
                0.18,
                3.00,
            ],
        ];
        // Which of the directions the requests were is all the same to sar.
        let counters = |r: [u64; 9]| DiskCounters {
            reads: Requests {
                ios: r[0],
                merges: 0,
                sectors: r[1],
                ticks_ms: r[4],
            },
            writes: Requests {
                ios: 0,
                merges: 0,
                sectors: r[2],
                ticks_ms: r[5],
            },
            discards: Requests {
                ios: 0,
                merges: 0,
                sectors: r[3],
                ticks_ms: r[6],
            },
            busy_ms: r[7],
            in_queue_ms: r[8],
            ..DiskCounters::default()
        };
        for (pair, expected) in readings.windows(2).zip(expected) {
            let row = SarRow::of(
                &counters(pair[1]).since(&counters(pair[0])),
                Duration::from_secs(2),
            );
            let figures = [
                row.tps,
                row.read_kib_s,
                row.write_kib_s,
                row.discard_kib_s,
                row.request_kib,
                row.queue,
                row.await_ms,
                row.util_percent,
            ];
            for (figure, expected) in figures.iter().zip(expected) {
                assert!(
                    (figure - expected).abs() <= 0.005_001,
                    "{figures:?} is not {expected}"
                );
            }
        }
    }

    fn device(name: &str, at: &str, kind: DeviceKind, below: Vec<DeviceInfo>) -> DeviceInfo {
        DeviceInfo {
            name: name.into(),
            number: number(at),
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

    proptest! {
        #[test]
        fn differences_are_what_was_added(
            before in prop::collection::vec(0u64..1 << 31, 17),
            added in prop::collection::vec(0u64..1 << 30, 17),
        ) {
            let line = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            // Counters of 32 bits may wrap on the way.
            let after: Vec<u64> = before.iter().zip(&added).map(|(b, a)| (b + a) % (1 << 32)).collect();
            let (before, after) = (DiskCounters::parse(&line(&before)).unwrap(), DiskCounters::parse(&line(&after)).unwrap());
            let mut expected = DiskCounters::parse(&line(&added)).unwrap();
            expected.in_flight = after.in_flight;
            prop_assert_eq!(after.since(&before), expected);
        }

        #[test]
        fn no_text_makes_the_parsers_fail(text in "\\PC*", numbers in "[0-9 ]*") {
            Snapshot::parse(&text);
            DiskCounters::parse(&numbers);
        }
    }
}
