//! Counters of block devices in the kernel, and their differences.
//!
//! The fields are those of the kernel's Documentation/admin-guide/iostats.rst, in 512-byte sectors.

use super::block_device::SECTOR_BYTES;
use super::proc_root::System;
use iosonde_result::device_requests::{DeviceRequests, RequestTotals};
use iosonde_result::host::DeviceNumber;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters of the requests of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounters {
    /// Completed requests.
    pub ios: u64,
    /// Requests merged into others before submission.
    pub merges: u64,
    /// Sectors of 512 bytes moved.
    pub sectors: u64,
    /// Sum of the times of all requests, in milliseconds.
    pub ticks_ms: u64,
}

/// The counters of one device since it appeared, or over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounters {
    /// Reads.
    pub reads: RequestCounters,
    /// Writes.
    pub writes: RequestCounters,
    /// Requests in flight at the time of reading; not a sum.
    pub in_flight: u64,
    /// Time with requests in flight, in milliseconds.
    pub busy_ms: u64,
    /// Time weighted by the number of requests in flight, in milliseconds.
    pub in_queue_ms: u64,
    /// Discards (since Linux 4.18).
    pub discards: RequestCounters,
    /// Flushes (since Linux 5.5).
    pub flushes: u64,
    /// Sum of the times of all flushes, in milliseconds.
    pub flush_ms: u64,
    /// Whether the kernel counts discards.
    pub counts_discards: bool,
    /// Whether the kernel counts flushes.
    pub counts_flushes: bool,
}

impl DiskCounters {
    /// Parses `/sys/block/X/stat`, or `/proc/diskstats` after the name: 11, 15, or at least 17
    /// counters.
    pub fn parse(text: &str) -> Option<Self> {
        let fields = text
            .split_ascii_whitespace()
            .map(|field| field.parse().ok());
        let fields: Vec<u64> = fields.collect::<Option<_>>()?;
        if fields.len() < 11 {
            return None;
        }
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        let requests = |first: usize| RequestCounters {
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
            counts_discards: fields.len() >= 15,
            counts_flushes: fields.len() >= 17,
        })
    }

    /// The difference of two readings of one device.
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
            counts_discards: self.counts_discards,
            counts_flushes: self.counts_flushes,
        }
    }

    /// The sum of two intervals.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            reads: self.reads.plus(&other.reads),
            writes: self.writes.plus(&other.writes),
            in_flight: other.in_flight,
            busy_ms: self.busy_ms + other.busy_ms,
            in_queue_ms: self.in_queue_ms + other.in_queue_ms,
            discards: self.discards.plus(&other.discards),
            flushes: self.flushes + other.flushes,
            flush_ms: self.flush_ms + other.flush_ms,
            counts_discards: other.counts_discards,
            counts_flushes: other.counts_flushes,
        }
    }

    /// The requests by kind. A kind that the kernel does not count is `None`.
    pub fn requests(&self) -> DeviceRequests {
        DeviceRequests {
            reads: self.reads.totals(),
            writes: self.writes.totals(),
            discards: self.counts_discards.then(|| self.discards.totals()),
            flushes: self.counts_flushes.then_some(RequestTotals {
                ios: self.flushes,
                ticks_ms: self.flush_ms,
                ..RequestTotals::default()
            }),
            busy_ms: self.busy_ms,
            in_queue_ms: self.in_queue_ms,
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

    /// Share of `elapsed` with requests in flight, in per cent. Two clocks: it can exceed 100.
    pub fn busy_percent(&self, elapsed: Duration) -> f64 {
        let elapsed_ms = elapsed.as_secs_f64() * 1000.0;
        if elapsed_ms > 0.0 {
            100.0 * self.busy_ms as f64 / elapsed_ms
        } else {
            0.0
        }
    }
}

impl RequestCounters {
    fn totals(&self) -> RequestTotals {
        RequestTotals {
            ios: self.ios,
            merges: self.merges,
            sectors: self.sectors,
            ticks_ms: self.ticks_ms,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            ios: self.ios + other.ios,
            merges: self.merges + other.merges,
            sectors: self.sectors + other.sectors,
            ticks_ms: self.ticks_ms + other.ticks_ms,
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            ios: grown(self.ios, before.ios),
            merges: grown(self.merges, before.merges),
            sectors: grown(self.sectors, before.sectors),
            ticks_ms: grown(self.ticks_ms, before.ticks_ms),
        }
    }
}

/// The growth of a counter. Times, and on 32-bit machines all counters, have 32 bits and wrap. A
/// counter that decreased far from that limit belongs to a new device with the same number.
fn grown(now: u64, before: u64) -> u64 {
    const END: u64 = 1 << 32;
    match now.checked_sub(before) {
        Some(growth) => growth,
        None if (END / 2..END).contains(&before) && now < END / 2 => now + (END - before),
        None => now,
    }
}

/// The counters of all devices at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    devices: BTreeMap<DeviceNumber, (String, DiskCounters)>,
}

impl Snapshot {
    /// Reads `/proc/diskstats`.
    pub fn take(system: &System) -> Self {
        Self::parse(&system.text("/proc/diskstats").unwrap_or_default())
    }

    /// Parses the text of `/proc/diskstats`; lines of another form are skipped.
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

    /// The sum of two intervals, for each device.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        for (number, (name, counters)) in &other.devices {
            let known = sum.devices.entry(*number).or_default();
            *known = (name.clone(), known.1.plus(counters));
        }
        sum
    }

    /// The difference to an earlier snapshot, for each device. A new device counts from 0.
    pub fn since(&self, before: &Self) -> Self {
        let difference = |(number, (name, now)): (&DeviceNumber, &(String, DiskCounters))| {
            let zero = DiskCounters::default();
            // The number with another name is another device.
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
            RequestCounters {
                ios: 100,
                merges: 10,
                sectors: 8000,
                ticks_ms: 50
            }
        );
        assert_eq!(
            sda.writes,
            RequestCounters {
                ios: 200,
                merges: 20,
                sectors: 16000,
                ticks_ms: 400
            }
        );
        assert_eq!((sda.in_flight, sda.busy_ms, sda.in_queue_ms), (0, 300, 450));
        assert_eq!(
            sda.discards,
            RequestCounters {
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
            (9, RequestCounters::default(), 0)
        );
    }

    #[test]
    fn kinds_that_the_kernel_does_not_count_are_missing() {
        let snapshot = Snapshot::parse(BEFORE);
        let kinds = |name: &str| {
            let requests = snapshot.get(number(name)).unwrap().requests();
            let ios = |totals: RequestTotals| totals.ios;
            (requests.discards.map(ios), requests.flushes.map(ios))
        };
        assert_eq!(kinds("8:0"), (Some(5), Some(7)));
        assert_eq!(kinds("259:0"), (Some(0), None), "Linux 4.18");
        assert_eq!(kinds("8:1"), (None, None), "Linux 4.17");
    }

    #[test]
    fn sysfs_holds_the_same_counters() {
        let text = "     100       10     8000       50      200       20    16000      400 \
             \x20      0      300      450        5        0      640        2        7        9\n";
        assert_eq!(
            DiskCounters::parse(text).as_ref(),
            Snapshot::parse(BEFORE).get(number("8:0"))
        );
    }

    #[test]
    fn counters_continue_after_a_32_bit_wrap() {
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

    proptest! {
        #[test]
        fn counter_differences_equal_the_added_values(
            before in prop::collection::vec(0u64..1 << 31, 17),
            added in prop::collection::vec(0u64..1 << 30, 17),
        ) {
            let line = |values: &[u64]| {
                values.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
            };
            // Counters of 32 bits may wrap in between.
            let after: Vec<u64> =
                before.iter().zip(&added).map(|(b, a)| (b + a) % (1 << 32)).collect();
            let before = DiskCounters::parse(&line(&before)).unwrap();
            let after = DiskCounters::parse(&line(&after)).unwrap();
            let mut expected = DiskCounters::parse(&line(&added)).unwrap();
            expected.in_flight = after.in_flight;
            prop_assert_eq!(after.since(&before), expected);
            // The sum of both intervals is the whole time.
            let sum = before.since(&DiskCounters::default()).plus(&expected);
            prop_assert_eq!(sum.reads.ios, added[0] + before.reads.ios);
        }

        #[test]
        fn arbitrary_diskstats_never_panic(text in "\\PC*", numbers in "[0-9 ]*") {
            Snapshot::parse(&text);
            DiskCounters::parse(&numbers);
        }
    }
}
