//! What the device has done, as a block device counts it.

use iosonde_job::plan::PerDirection;
use iosonde_workload::Op;

/// Totals since the beginning, of what the device did: what a cache in front of it served is not in them, as in
/// `/proc/diskstats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimCounters {
    /// I/Os finished without an error.
    pub ios: PerDirection<u64>,
    /// Bytes that they moved. Those that a cache wrote back are here, though not among the I/Os.
    pub bytes: PerDirection<u64>,
    /// Flushes finished without an error.
    pub flushes: u64,
    /// I/Os and flushes that failed.
    pub errors: u64,
    /// Reads that the cache served.
    pub cache_reads: u64,
    /// Bytes that the cache served to reads.
    pub cache_read_bytes: u64,
    /// Time in which at least one I/O was on the device, in nanoseconds.
    pub busy_ns: u64,
    /// Time that I/Os spent on the device, summed over those taken so far, in nanoseconds.
    pub queued_ns: u64,
}

/// Counts.
#[derive(Debug, Default)]
pub(super) struct Meter {
    totals: SimCounters,
    /// End of the last I/O taken so far.
    busy_until_ns: u64,
    /// Bytes that the cache took up to be written back.
    buffered_bytes: u64,
}

impl Meter {
    /// The device has an I/O from `from_ns`, which never goes back, until `until_ns`.
    pub(super) fn occupied(&mut self, from_ns: u64, until_ns: u64) {
        self.totals.busy_ns += until_ns.saturating_sub(from_ns.max(self.busy_until_ns));
        self.totals.queued_ns += until_ns - from_ns;
        self.busy_until_ns = self.busy_until_ns.max(until_ns);
    }

    /// The cache has taken up a write.
    pub(super) fn buffered(&mut self, bytes: u64) {
        self.buffered_bytes += bytes;
    }

    /// An I/O is over.
    pub(super) fn completed(&mut self, op: Op, result: i32, from_device: bool) {
        let totals = &mut self.totals;
        match (op.direction(), result) {
            (_, ..0) => totals.errors += 1,
            (None, _) => totals.flushes += 1,
            (Some(direction), moved) if from_device => {
                totals.ios[direction] += 1;
                totals.bytes[direction] += moved as u64;
            }
            (Some(_), moved) if op == Op::Read => {
                totals.cache_reads += 1;
                totals.cache_read_bytes += moved as u64;
            }
            _ => {}
        }
    }

    /// The totals at `now_ns`, with `dirty_bytes` still in the cache.
    pub(super) fn read(&self, now_ns: u64, dirty_bytes: u64) -> SimCounters {
        let mut totals = self.totals;
        let ahead_ns = self.busy_until_ns.saturating_sub(now_ns);
        totals.busy_ns = totals.busy_ns.saturating_sub(ahead_ns);
        totals.bytes.write += self.buffered_bytes.saturating_sub(dirty_bytes);
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ios_are_busy_time_once() {
        let mut meter = Meter::default();
        meter.occupied(10, 30);
        meter.occupied(20, 25);
        meter.occupied(25, 40);
        meter.occupied(100, 110);
        assert_eq!(meter.read(110, 0).busy_ns, 40);
        assert_eq!(meter.read(104, 0).busy_ns, 34);
        assert_eq!(meter.read(110, 0).queued_ns, 50);
    }
}
