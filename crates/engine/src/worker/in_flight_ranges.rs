//! `serialize_overlap`: the ranges of the I/Os in flight, so that overlapping I/Os take turns.

use iosonde_workload::Io;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Ranges in flight, by file and start. None overlaps another, so the last range that starts before
/// the end of an I/O is the only one that can overlap it: each call takes O(log depth) comparisons.
///
/// The map allocates a node for every few ranges. Jobs without the option have no map.
#[derive(Debug, Default)]
pub(crate) struct InFlightRanges {
    /// End by start. No range is empty.
    ends: BTreeMap<RangeStart, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RangeStart {
    file: u32,
    offset: u64,
}

impl Ord for RangeStart {
    fn cmp(&self, other: &RangeStart) -> Ordering {
        #[cfg(test)]
        tests::COMPARISONS.with(|count| count.set(count.get() + 1));
        (self.file, self.offset).cmp(&(other.file, other.offset))
    }
}

impl PartialOrd for RangeStart {
    fn partial_cmp(&self, other: &RangeStart) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl InFlightRanges {
    /// Whether an I/O in flight overlaps this one. An empty range overlaps nothing.
    pub(crate) fn overlaps(&self, io: &Io) -> bool {
        let end = RangeStart {
            file: io.file,
            offset: io.offset + u64::from(io.len),
        };
        let before = self.ends.range(..end).next_back();
        io.len > 0 && before.is_some_and(|(start, end)| start.file == io.file && *end > io.offset)
    }

    /// Adds the range of an I/O that overlaps none in flight.
    pub(crate) fn insert(&mut self, io: &Io) {
        debug_assert!(!self.overlaps(io), "{io:?} overlaps an I/O in flight");
        if io.len > 0 {
            let end = io.offset + u64::from(io.len);
            let replaced = self.ends.insert(start_of(io.file, io.offset), end);
            assert!(
                replaced.is_none(),
                "{io:?} starts where an I/O in flight does"
            );
        }
    }

    /// Removes the range of an I/O that was inserted.
    pub(crate) fn remove(&mut self, file: u32, offset: u64, len: u32) {
        if len > 0 {
            let end = self.ends.remove(&start_of(file, offset));
            assert_eq!(
                end,
                Some(offset + u64::from(len)),
                "an I/O at {offset} of file {file} completes once, with its whole range"
            );
        }
    }

    /// Whether no I/O with a range is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn start_of(file: u32, offset: u64) -> RangeStart {
    RangeStart { file, offset }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_workload::Op;
    use iosonde_workload::rng::Rng;
    use proptest::prelude::*;
    use std::cell::Cell;

    thread_local! {
        pub(super) static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    fn io(file: u32, offset: u64, len: u32) -> Io {
        Io {
            offset,
            len,
            file,
            op: Op::Write,
        }
    }

    /// The simple scan: whether any of these I/Os shares a byte with `io`.
    fn any_overlaps(in_flight: &[Io], io: &Io) -> bool {
        in_flight.iter().any(|other| {
            other.file == io.file
                && (io.offset..io.offset + u64::from(io.len))
                    .any(|byte| (other.offset..other.offset + u64::from(other.len)).contains(&byte))
        })
    }

    proptest! {
        #[test]
        fn overlaps_are_those_of_a_scan(
            steps in prop::collection::vec((0..3u32, 0..60u64, 0..12u32, 0..4usize), 1..200),
        ) {
            let (mut ranges, mut in_flight) = (InFlightRanges::default(), Vec::<Io>::new());
            for (file, offset, len, completions) in steps {
                let io = io(file, offset, len);
                let overlaps = any_overlaps(&in_flight, &io);
                prop_assert_eq!(ranges.overlaps(&io), overlaps, "{:?} in {:?}", io, in_flight);
                if !overlaps {
                    ranges.insert(&io);
                    in_flight.push(io);
                }
                for _ in 0..completions.min(in_flight.len()) {
                    let done = in_flight.swap_remove(offset as usize % in_flight.len());
                    ranges.remove(done.file, done.offset, done.len);
                }
                prop_assert_eq!(ranges.is_empty(), in_flight.iter().all(|io| io.len == 0));
            }
        }
    }

    /// Comparisons per I/O with `depth` of them in flight: a check, an insertion and a removal.
    fn comparisons_per_io(depth: u64) -> f64 {
        const IOS: u64 = 20_000;
        let mut rng = Rng::new(depth);
        let mut ranges = InFlightRanges::default();
        let mut in_flight: Vec<Io> = (0..depth).map(|place| io(0, place * 4096, 4096)).collect();
        in_flight.iter().for_each(|io| ranges.insert(io));
        let before = COMPARISONS.get();
        for place in depth..depth + IOS {
            let index = rng.next_u64() % depth;
            let done = std::mem::replace(&mut in_flight[index as usize], io(0, place * 4096, 4096));
            ranges.remove(done.file, done.offset, done.len);
            assert!(!ranges.overlaps(&in_flight[index as usize]));
            ranges.insert(&in_flight[index as usize]);
        }
        (COMPARISONS.get() - before) as f64 / IOS as f64
    }

    #[test]
    fn comparisons_grow_with_the_logarithm_of_the_depth() {
        for depth in [2, 16, 128, 1024, 8192] {
            let (count, levels) = (comparisons_per_io(depth), (depth as f64).log2());
            assert!(count > 1.0, "the comparisons are counted");
            assert!(count < 12.0 * levels + 12.0, "depth {depth}: {count}");
        }
    }
}
