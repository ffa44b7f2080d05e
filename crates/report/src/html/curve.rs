//! Latency distributions, compact enough for hundreds on a page: percentiles at ever smaller shares
//! of slower I/Os, and coarse buckets.

use super::document::PageLatency;
use iosonde_result::histogram::{Histogram, lowest, middle};
use iosonde_result::stats::LatencyStats;

/// Bits of a value that select the coarse bucket within its power of two: 8 buckets, each the union
/// of 16 of [`Histogram`]'s.
const SUB_BITS: u32 = 3;

/// Shares of slower I/Os within each factor of ten.
const STEPS: [f64; 11] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15];

/// Shares of slower I/Os at which a distribution of `count` values is sampled: 1 (percentile 0),
/// 0.9, ... 0.1 (percentile 90), 0.09, ..., as long as at least one value is slower.
fn tails(count: u64) -> impl Iterator<Item = f64> {
    curve_tails().take_while(move |tail| tail * count as f64 >= 1.0 - 1e-9)
}

/// All shares of slower I/Os of a [`PageLatency::curve_ns`], which ends before they do.
pub(crate) fn curve_tails() -> impl Iterator<Item = f64> {
    (0..).flat_map(|decade| STEPS.map(|step| step * 0.1f64.powi(decade)))
}

/// Bounds of a coarse bucket: the first is included, the second is not.
pub(crate) fn bucket_range(index: usize) -> (u64, u64) {
    let sub = 1usize << SUB_BITS;
    if index < 2 * sub {
        return (index as u64, index as u64 + 1);
    }
    let width = 1u64 << ((index >> SUB_BITS) - 1);
    let from = (sub + (index & (sub - 1))) as u64 * width;
    (from, from.saturating_add(width))
}

/// Returns the percentiles at decreasing shares of slower values, in one pass over the histogram.
pub(super) fn percentiles(histogram: &Histogram, tails: impl Iterator<Item = f64>) -> Vec<u64> {
    let total = histogram.total() as f64;
    let mut buckets = histogram.buckets();
    let Some((mut index, mut seen)) = buckets.next() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for tail in tails {
        // Like `Histogram::percentile`: the bucket where the running count first reaches the share.
        let wanted = (1.0 - tail) * total;
        while (seen as f64) < wanted - 1e-6 {
            let Some((next, count)) = buckets.next() else {
                break;
            };
            index = next;
            seen += count;
        }
        found.push(middle(index));
    }
    found
}

/// Index of the coarse bucket of a value.
fn coarse(value: u64) -> usize {
    let top = 63 - (value | (1 << SUB_BITS)).leading_zeros();
    let shift = top - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

fn buckets(histogram: &Histogram) -> Vec<(usize, u64)> {
    let mut found: Vec<(usize, u64)> = Vec::new();
    for (fine, count) in histogram.buckets() {
        let index = coarse(lowest(fine));
        match found.last_mut() {
            Some((last, sum)) if *last == index => *sum += count,
            _ => found.push((index, count)),
        }
    }
    found
}

/// Converts a latency for the page.
pub(super) fn latency(stats: &LatencyStats) -> PageLatency {
    let moments = &stats.moments;
    let histogram = stats.histogram.as_ref();
    let curve = histogram.map(|histogram| percentiles(histogram, tails(histogram.total())));
    // The middle of a bucket can exceed the extremes, which are exact.
    let exact = |ns: u64| ns.clamp(moments.min as u64, moments.max as u64);
    PageLatency {
        count: moments.count,
        mean_ns: moments.mean,
        min_ns: moments.min,
        max_ns: moments.max,
        curve_ns: curve.unwrap_or_default().into_iter().map(exact).collect(),
        marks: marks(stats),
        buckets: histogram.map(buckets).unwrap_or_default(),
    }
}

/// Percentiles of the tables, by the rule of all tables: at least ten I/Os were slower.
fn marks(stats: &LatencyStats) -> Vec<(f64, f64)> {
    let shown = iosonde_study::probe::LatencySummary::from_stats(stats);
    let marks = [
        (0.5, shown.p50_ns),
        (0.01, shown.p99_ns),
        (0.001, shown.p99_9_ns),
    ];
    marks
        .into_iter()
        .filter_map(|(tail, ns)| Some((tail, ns? as f64)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::histogram::index_of;

    fn thousand() -> Histogram {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|value| histogram.record(value * 1000));
        histogram
    }

    #[test]
    fn curve_percentiles_equal_those_of_histogram() {
        let histogram = thousand();
        let found = percentiles(&histogram, tails(1000));
        for (tail, value) in tails(1000).zip(&found) {
            let percent = 100.0 * (1.0 - tail);
            assert_eq!(
                Some(*value),
                histogram.percentile(percent - 1e-9),
                "{percent}"
            );
        }
        assert_eq!(found.len(), 34, "three factors of ten, and the last one");
        assert!(percentiles(&Histogram::default(), tails(0)).is_empty());
    }

    #[test]
    fn coarse_buckets_are_unions_of_fine_ones() {
        let histogram = thousand();
        let found = buckets(&histogram);
        let total: u64 = found.iter().map(|(_, count)| count).sum();
        assert_eq!(total, 1000);
        assert!(found.len() < 80, "{}", found.len());
        for value in [0, 7, 8, 15, 16, 255, 256, 1000, 123_456_789] {
            let fine = index_of(value);
            assert_eq!(coarse(lowest(fine)), coarse(value), "{value}");
            let (from, end) = bucket_range(coarse(value));
            assert!((from..end).contains(&value), "{value}: {from} to {end}");
        }
    }
}
