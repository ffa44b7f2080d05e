//! Completion latencies by fio's levels: `latency_ns`, `latency_us`, `latency_ms`.

use super::aggregate::{FioEntry, shares};
use crate::histogram;
use crate::stats::LatencyStats;

/// Completion latencies of all directions by fio's levels, in per cent of the I/Os issued.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LatencyLevels {
    /// Shares below 2, 4, 10, 20, 50, 100, 250, 500, 750 and 1000 nanoseconds.
    pub(super) ns: [f64; 10],
    /// Shares below the same numbers of microseconds.
    pub(super) us: [f64; 10],
    /// Shares below the same numbers of milliseconds, below 2000 and above.
    pub(super) ms: [f64; 12],
    /// Share of latencies below a microsecond, which terse output adds to the level below 2 us.
    pub(super) below_1us: f64,
}

const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Number of levels: ten in nanoseconds, ten in microseconds and twelve in milliseconds.
const LEVELS: usize = 32;

/// Returns the lowest latency in nanoseconds above `level`.
fn upper_bound(level: usize) -> u64 {
    match level {
        0..10 => STEPS[level],
        10..20 => STEPS[level - 10] * 1_000,
        20..30 => STEPS[level - 20] * 1_000_000,
        30 => 2_000_000_000,
        _ => u64::MAX,
    }
}

impl LatencyLevels {
    /// Counts the completion latencies of `entry`.
    pub(super) fn from_entry(entry: &FioEntry<'_>) -> LatencyLevels {
        let mut counts = [0u64; LEVELS];
        for (_, direction) in entry.directions.iter() {
            add_latency(&mut counts, &direction.clat);
        }
        let total = entry.total_ios();
        let part = |first: usize, level: usize| counts[first + level];
        LatencyLevels {
            ns: shares(&std::array::from_fn(|level| part(0, level)), total, 0.01),
            us: shares(&std::array::from_fn(|level| part(10, level)), total, 0.01),
            ms: shares(&std::array::from_fn(|level| part(20, level)), total, 0.01),
            below_1us: shares(&[counts[..10].iter().sum()], total, 0.0)[0],
        }
    }
}

/// Divides the count of a bucket that a level splits. The division is proportional, as if the
/// values were spread evenly over the part of the bucket between the exact minimum and maximum.
fn add_latency(counts: &mut [u64; LEVELS], latency: &LatencyStats) {
    let (min, max) = (latency.moments.min as u64, latency.moments.max as u64);
    for (index, count) in latency.histogram.iter().flat_map(|h| h.buckets()) {
        let low = histogram::lowest(index);
        let end = low + histogram::width(index);
        let low = low.max(min).min(end - 1);
        let end = end.min(max.saturating_add(1)).max(low + 1);
        let level = (0..LEVELS - 1).find(|level| low < upper_bound(*level));
        let level = level.unwrap_or(LEVELS - 1);
        let bound = upper_bound(level).min(end);
        let share = (bound - low) as f64 / (end - low) as f64;
        let below = (count as f64 * share).round() as u64;
        debug_assert!(low < bound, "a level gets a part of the bucket");
        counts[level] += below;
        if below < count {
            counts[level + 1] += count - below;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::stats::Moments;

    fn counted(values: &[u64]) -> [u64; LEVELS] {
        let mut moments = Moments::default();
        let mut histogram = Histogram::default();
        for value in values {
            moments.record(*value as f64);
            histogram.record(*value);
        }
        let mut counts = [0; LEVELS];
        let histogram = Some(histogram);
        add_latency(&mut counts, &LatencyStats { moments, histogram });
        counts
    }

    #[test]
    fn level_bounds_are_exclusive() {
        for level in 0..LEVELS - 1 {
            let bound = upper_bound(level);
            for (value, expected) in [(bound - 1, level), (bound, level + 1)] {
                let counts = counted(&[value; 3]);
                assert_eq!(
                    counts[expected], 3,
                    "{value} ns belongs to level {expected}"
                );
            }
        }
        assert_eq!(counted(&[u64::from(u32::MAX) * 1000])[LEVELS - 1], 1);
    }

    #[test]
    fn bucket_cut_by_a_bound_is_divided() {
        // 100 000 ns lies within the bucket from 99 840 to 100 351.
        let values: Vec<u64> = (99_840..100_352).collect();
        let counts = counted(&values);
        assert_eq!((counts[15], counts[16]), (160, 352));
    }

    #[test]
    fn empty_histogram_counts_zero() {
        assert_eq!(counted(&[]), [0; LEVELS]);
    }
}
