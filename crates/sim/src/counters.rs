//! Counters of the device, as a block device has them.

use iosonde_job::plan::PerDirection;
use iosonde_workload::Op;

/// Totals since the start. As in `/proc/diskstats`, I/Os served by the cache are not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimCounters {
    /// Successful I/Os.
    pub ios: PerDirection<u64>,
    /// Bytes moved by these I/Os, plus bytes written back, which are not counted as I/Os.
    pub bytes: PerDirection<u64>,
    /// Successful flushes.
    pub flushes: u64,
    /// Failed I/Os and flushes.
    pub errors: u64,
    /// Reads served by the cache.
    pub cache_reads: u64,
    /// Bytes of the reads served by the cache.
    pub cache_read_bytes: u64,
    /// Time with at least one I/O on the device, in nanoseconds.
    pub busy_ns: u64,
    /// Sum of the times that the submitted I/Os spend on the device, in nanoseconds.
    pub queued_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Meter {
    totals: SimCounters,
    /// Completion time of the last I/O submitted so far.
    busy_until_ns: u64,
    /// Bytes that the cache accepted for writeback.
    buffered_bytes: u64,
}

impl Meter {
    /// Counts an I/O on the device from `from_ns` until `until_ns`. `from_ns` must not decrease.
    pub(super) fn occupied(&mut self, from_ns: u64, until_ns: u64) {
        self.totals.busy_ns += until_ns.saturating_sub(from_ns.max(self.busy_until_ns));
        self.totals.queued_ns += until_ns - from_ns;
        self.busy_until_ns = self.busy_until_ns.max(until_ns);
    }

    pub(super) fn buffered(&mut self, bytes: u64) {
        self.buffered_bytes += bytes;
    }

    pub(super) fn completed(&mut self, op: Op, moved: Result<u64, i32>, from_device: bool) {
        let totals = &mut self.totals;
        match (op.direction(), moved) {
            (_, Err(_)) => totals.errors += 1,
            (None, Ok(_)) => totals.flushes += 1,
            (Some(direction), Ok(bytes)) if from_device => {
                totals.ios[direction] += 1;
                totals.bytes[direction] += bytes;
            }
            (Some(_), Ok(bytes)) if op == Op::Read => {
                totals.cache_reads += 1;
                totals.cache_read_bytes += bytes;
            }
            _ => {}
        }
    }

    /// The totals at `now_ns`, while `dirty_bytes` are still in the cache.
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
