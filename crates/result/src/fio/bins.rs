//! fio's latency bins: 64 per power of two. Each is a union of adjacent [`Histogram`] buckets.
//!
//! Percentiles, JSON+ bins and histogram logs are computed from these bins, so that tools that
//! derive one from the other get equal values. fio counts all latencies above 17 s in the last of
//! its [`COLUMNS`] bins. Here this limit applies only to the histogram log.

use crate::histogram::{self, Histogram};

/// Number of fio's bins: the columns of a histogram log with coarseness 0.
pub const COLUMNS: usize = 29 * 64;

const SUB_BITS: u32 = 6;

const _: () = assert!(
    SUB_BITS <= histogram::SUB_BITS,
    "each bin is a union of buckets"
);

/// Returns the bin of `value_ns`, without fio's upper limit.
fn bin_of(value_ns: u64) -> usize {
    let top = 63 - (value_ns | (1 << SUB_BITS)).leading_zeros();
    let shift = top - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value_ns >> shift) as usize
}

/// Returns the value that represents a bin: the middle of its range.
pub fn middle(bin: usize) -> u64 {
    let sub = 1usize << SUB_BITS;
    if bin < 2 * sub {
        return bin as u64;
    }
    let shift = (bin >> SUB_BITS) - 1;
    (((sub + (bin & (sub - 1))) as u64) << shift) + (1 << shift) / 2
}

/// Returns the non-empty bins of a distribution in ascending order, as bin and count.
pub(crate) fn histogram_bins(histogram: &Histogram) -> Vec<(usize, u64)> {
    let mut bins: Vec<(usize, u64)> = Vec::new();
    for (index, count) in histogram.buckets() {
        let bin = bin_of(histogram::lowest(index));
        match bins.last_mut() {
            Some(last) if last.0 == bin => last.1 += count,
            _ => bins.push((bin, count)),
        }
    }
    debug_assert_eq!(
        bins.iter().map(|(_, count)| count).sum::<u64>(),
        histogram.total(),
        "each bucket belongs to one bin"
    );
    bins
}

/// Returns the values at `percents` (ascending): the middles of the bins that reach them.
pub fn percentiles(histogram: &Histogram, percents: &[f64]) -> Vec<u64> {
    debug_assert!(percents.is_sorted(), "one pass finds all values");
    let total = histogram.total() as f64;
    let mut bins = histogram_bins(histogram).into_iter();
    let (mut seen, mut value) = (0u64, 0u64);
    percents
        .iter()
        .map(|percent| {
            while (seen as f64) < percent / 100.0 * total {
                let Some((bin, count)) = bins.next() else {
                    break;
                };
                seen += count;
                value = middle(bin);
            }
            value
        })
        .collect()
}

/// Returns the percentiles in ascending order, as fio sorts `percentile_list`.
pub(super) fn ascending(percents: &[f64]) -> Vec<f64> {
    let mut percents = percents.to_vec();
    percents.sort_by(f64::total_cmp);
    percents
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_have_the_keys_of_fio_json_plus() {
        // Values and their keys in fio's JSON+.
        for (value, key) in [
            (18_995, 19_072),
            (860_062, 856_064),
            (860_753, 864_256),
            (2_713, 2_704),
        ] {
            assert_eq!(middle(bin_of(value)), key);
        }
        assert_eq!(bin_of((1 << 34) - 1), COLUMNS - 1);
    }

    #[test]
    fn percentiles_are_middles_of_bins() {
        let mut histogram = Histogram::default();
        assert_eq!(percentiles(&histogram, &[50.0]), [0]);
        (1..=1000).for_each(|value| histogram.record(value));
        assert_eq!(
            percentiles(&histogram, &[0.0, 1.0, 50.0, 100.0]),
            [0, 10, 502, 1004]
        );
    }

    proptest! {
        #[test]
        fn histogram_bucket_lies_in_one_bin(value in 0u64..histogram::MAX_VALUE) {
            let index = histogram::index_of(value);
            let low = histogram::lowest(index);
            let high = low + histogram::width(index) - 1;
            prop_assert_eq!(bin_of(low), bin_of(value));
            prop_assert_eq!(bin_of(high), bin_of(value));
        }

        #[test]
        fn bins_hold_every_count(values in proptest::collection::vec(0u64..1 << 41, 0..200)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            let sum: u64 = histogram_bins(&histogram).iter().map(|(_, count)| count).sum();
            prop_assert_eq!(sum, values.len() as u64);
        }
    }
}
