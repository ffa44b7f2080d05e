//! Completion latencies by fio's levels: `latency_ns`, `latency_us`, `latency_ms`.

use super::aggregate::{Entry, shares};
use crate::stats::LatencyStats;

/// Completion latencies of all directions by fio's levels, in per cent of the I/Os issued.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LatencyLevels {
    /// Below 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 nanoseconds.
    pub(super) ns: [f64; 10],
    /// The same numbers of microseconds.
    pub(super) us: [f64; 10],
    /// The same numbers of milliseconds, then below 2000, then the rest.
    pub(super) ms: [f64; 12],
    /// Share of all below a microsecond, which terse output counts as below 2.
    pub(super) below_1us: f64,
}

const LEVELS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

impl LatencyLevels {
    /// Counts `entry`'s completion latencies.
    pub(super) fn of(entry: &Entry<'_>) -> LatencyLevels {
        let (mut ns, mut us, mut ms) = ([0; 10], [0; 10], [0; 12]);
        for (_, direction) in entry.directions.iter() {
            for (value, count) in representative_values(&direction.clat) {
                let level = |unit: u64| LEVELS.iter().position(|level| value < level * unit);
                if let Some(level) = level(1) {
                    ns[level] += count;
                } else if let Some(level) = level(1_000) {
                    us[level] += count;
                } else if let Some(level) = level(1_000_000) {
                    ms[level] += count;
                } else {
                    ms[if value < 2_000_000_000 { 10 } else { 11 }] += count;
                }
            }
        }
        let total = entry.total_ios();
        LatencyLevels {
            ns: shares(&ns, total, 0.01),
            us: shares(&us, total, 0.01),
            ms: shares(&ms, total, 0.01),
            below_1us: shares(&[ns.iter().sum()], total, 0.0)[0],
        }
    }
}

/// One value for each bucket of the histogram: its middle, kept within the exact extremes. The levels' bounds cut some
/// buckets in two; such a bucket is counted where its middle is.
fn representative_values(latency: &LatencyStats) -> impl Iterator<Item = (u64, u64)> + '_ {
    let (min, max) = (latency.moments.min as u64, latency.moments.max as u64);
    let histogram = latency.histogram.iter();
    histogram
        .flat_map(|histogram| histogram.buckets())
        .map(move |(index, count)| {
            let middle = crate::histogram::middle(index);
            (middle.clamp(min, max.max(min)), count)
        })
}
