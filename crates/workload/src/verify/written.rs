//! The write that each block must be from, where blocks are written more than once.
//!
//! With a random map each block is written once per pass, and a replay of the generator gives the
//! order. Without one (`norandommap`, zipf, ...) the last write counts, so its number is kept for
//! each interval. The record takes 4 bytes per interval of the working set. It is allocated at the
//! start and never exceeds the limit of the caller.
//!
//! If the limit does not suffice, no record is kept and any write of this run is accepted. The
//! check still finds damaged, misplaced and never-written blocks, but not a lost rewrite.

use super::ExpectedWrite;

/// Set in an entry if several writes to it were in flight at once: any may be the last.
const RACED: u32 = 1 << 31;
const NEVER: u32 = 0;

/// A write in flight: intervals `from..until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WriteInFlight {
    generation: u64,
    from: u64,
    until: u64,
}

/// The record of the writes to one file.
#[derive(Debug, Clone)]
pub struct WriteRecord {
    start_bytes: u64,
    interval_bytes: u64,
    last: Option<Box<[u32]>>,
    in_flight: Vec<WriteInFlight>,
    generations: u64,
}

impl WriteRecord {
    /// A record for the region `start_bytes..start_bytes + size_bytes` of a file, in units of the
    /// verifier's intervals. It uses at most `limit_bytes` of memory. `iodepth` is the maximum of
    /// writes in flight.
    pub fn new(
        start_bytes: u64,
        size_bytes: u64,
        interval_bytes: u64,
        limit_bytes: u64,
        iodepth: u32,
    ) -> Self {
        // One extra interval: the last block of a sequential pass may cross the end of the region.
        let intervals = size_bytes.div_ceil(interval_bytes.max(1)) + 1;
        let fits = intervals.saturating_mul(4) <= limit_bytes;
        WriteRecord {
            start_bytes,
            interval_bytes: interval_bytes.max(1),
            last: fits.then(|| vec![NEVER; intervals as usize].into()),
            in_flight: Vec::with_capacity(iodepth as usize),
            generations: 0,
        }
    }

    /// Whether lost rewrites can be found.
    pub fn is_exact(&self) -> bool {
        self.last.is_some()
    }

    /// Records the issue of a write and returns its number, for its headers. Numbers start at 1.
    pub fn issue(&mut self, offset: u64, len: u64) -> u64 {
        self.generations += 1;
        let generation = self.generations;
        let (from, until) = self.intervals(offset, len);
        if let Some(last) = &mut self.last {
            let raced = self
                .in_flight
                .iter()
                .any(|other| other.from < until && from < other.until);
            // A number above 31 bits is stored like a race: only its upper bound is known.
            let entry = match u32::try_from(generation) {
                Ok(number) if number < RACED => number | if raced { RACED } else { 0 },
                _ => RACED,
            };
            let until = until.min(last.len() as u64);
            last[from.min(until) as usize..until as usize].fill(entry);
        }
        assert!(
            from < until,
            "a write of {len} bytes at {offset} has an interval"
        );
        self.in_flight.push(WriteInFlight {
            generation,
            from,
            until,
        });
        generation
    }

    /// The number of the last issued write.
    pub fn issued(&self) -> u64 {
        self.generations
    }

    /// Whether a write to any of these bytes is in flight.
    pub fn is_busy(&self, offset: u64, len: u64) -> bool {
        let (from, until) = self.intervals(offset, len);
        self.in_flight
            .iter()
            .any(|write| write.from < until && from < write.until)
    }

    /// Records the completion of a write.
    pub fn complete(&mut self, generation: u64) {
        if let Some(index) = self
            .in_flight
            .iter()
            .position(|w| w.generation == generation)
        {
            self.in_flight.swap_remove(index);
        }
    }

    /// Records the failure of a write. The contents of its intervals are unknown, so any write of
    /// this run is accepted there.
    pub fn fail(&mut self, generation: u64) {
        let Some(index) = self
            .in_flight
            .iter()
            .position(|w| w.generation == generation)
        else {
            return;
        };
        let write = self.in_flight.swap_remove(index);
        if let Some(last) = &mut self.last {
            let until = write.until.min(last.len() as u64);
            for entry in &mut last[write.from.min(until) as usize..until as usize] {
                *entry |= RACED;
            }
        }
    }

    /// The write that the interval at `offset` must be from; `None` if it was never written.
    pub fn expected(&self, offset: u64) -> Option<ExpectedWrite> {
        let Some(last) = &self.last else {
            return (self.generations > 0).then_some(ExpectedWrite::AtMost(self.generations));
        };
        let index = (offset - self.start_bytes) / self.interval_bytes;
        match last.get(index as usize).copied() {
            None | Some(NEVER) => None,
            Some(entry) if entry & RACED != 0 => Some(ExpectedWrite::AtMost(self.generations)),
            Some(entry) => Some(ExpectedWrite::Exactly(entry.into())),
        }
    }

    fn intervals(&self, offset: u64, len: u64) -> (u64, u64) {
        let from = offset.saturating_sub(self.start_bytes);
        (
            from / self.interval_bytes,
            (from + len).div_ceil(self.interval_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_write_of_a_block_is_expected() {
        let mut written = WriteRecord::new(8192, 1 << 20, 4096, 1 << 20, 4);
        assert!(written.is_exact());
        let first = written.issue(8192, 8192);
        written.complete(first);
        let second = written.issue(12288, 4096);
        written.complete(second);
        assert_eq!(written.expected(8192), Some(ExpectedWrite::Exactly(first)));
        assert_eq!(
            written.expected(12288),
            Some(ExpectedWrite::Exactly(second))
        );
        assert_eq!(written.expected(16384), None);
    }

    #[test]
    fn writes_in_flight_together_may_land_in_any_order() {
        let mut written = WriteRecord::new(0, 1 << 20, 4096, 1 << 20, 4);
        let first = written.issue(0, 4096);
        let second = written.issue(0, 8192);
        written.complete(second);
        written.complete(first);
        assert_eq!(written.expected(0), Some(ExpectedWrite::AtMost(2)));
        let third = written.issue(0, 4096);
        written.complete(third);
        assert_eq!(written.expected(0), Some(ExpectedWrite::Exactly(3)));
    }

    #[test]
    fn failed_write_leaves_the_generation_unknown() {
        let mut written = WriteRecord::new(0, 1 << 20, 4096, 1 << 20, 4);
        let first = written.issue(0, 4096);
        written.complete(first);
        let second = written.issue(0, 4096);
        written.fail(second);
        assert_eq!(written.expected(0), Some(ExpectedWrite::AtMost(2)));
    }

    #[test]
    fn bounded_memory_accepts_any_generation_of_the_run() {
        let mut written = WriteRecord::new(0, 1 << 40, 4096, 1 << 20, 4);
        assert!(!written.is_exact());
        assert_eq!(written.expected(0), None);
        written.issue(0, 4096);
        assert_eq!(written.expected(0), Some(ExpectedWrite::AtMost(1)));
    }
}
