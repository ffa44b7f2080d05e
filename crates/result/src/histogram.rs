//! Latency histogram: log-linear, 128 buckets to each power of two.
//!
//! Values below 256 have a bucket each; above that a bucket spans 1/128 of its power of two, so that a bucket's middle is
//! within 0.4 % of every value in it. This is fio's layout with one more bit, hence its bins are unions of ours and its
//! JSON+ output is exact. Values above [`MAX_VALUE`] (73 minutes in nanoseconds) are counted in the last bucket; the
//! exact maximum is kept beside the histogram by its owner.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Bits of a value that select the bucket within its power of two.
pub const SUB_BITS: u32 = 7;
/// Largest value with a bucket of its own size.
pub const MAX_VALUE: u64 = (1 << 42) - 1;
/// Number of buckets.
pub const BUCKETS: usize = index_of(MAX_VALUE) + 1;

/// The bucket that counts `value`.
#[inline(always)]
pub const fn index_of(value: u64) -> usize {
    let value = if value > MAX_VALUE { MAX_VALUE } else { value };
    let top = 63 - (value | (1 << SUB_BITS)).leading_zeros();
    let shift = top - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// Lowest value counted in bucket `index`.
pub const fn lowest(index: usize) -> u64 {
    let sub = 1usize << SUB_BITS;
    if index < 2 * sub {
        return index as u64;
    }
    let shift = (index >> SUB_BITS) - 1;
    ((sub + (index & (sub - 1))) as u64) << shift
}

/// Number of distinct values counted in bucket `index`.
pub const fn width(index: usize) -> u64 {
    let sub = 1usize << SUB_BITS;
    if index < 2 * sub {
        1
    } else {
        1 << ((index >> SUB_BITS) - 1)
    }
}

/// The value that stands for bucket `index`: its middle, as in fio.
pub const fn middle(index: usize) -> u64 {
    lowest(index) + width(index) / 2
}

/// Counts of values by bucket. Serialised sparsely as `[[index, count], ...]`.
///
/// One that is made to count into has all its buckets from the start, so that counting allocates nothing. One that was read ends
/// with its last bucket in use: a stored run has hundreds, most of them of directions that moved nothing.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.total == other.total && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            total: 0,
        }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.buckets().map(|(index, count)| (middle(index), count)))
            .finish()
    }
}

impl Histogram {
    /// Counts `value` once.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts `value` `count` times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        self.add_bucket(index_of(value), count);
    }

    /// Adds `count` to bucket `index`.
    pub fn add_bucket(&mut self, index: usize, count: u64) {
        if index >= self.counts.len() {
            self.complete();
        }
        self.counts[index] += count;
        self.total += count;
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.complete();
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// Gives one that was read the rest of the buckets.
    #[cold]
    fn complete(&mut self) {
        let mut counts = std::mem::take(&mut self.counts).into_vec();
        counts.resize(BUCKETS, 0);
        self.counts = counts.into_boxed_slice();
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Non-empty buckets in ascending order: index and count.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (index, *count))
    }

    /// The value below or at which `percent` per cent of the values lie: the middle of the bucket in which the running
    /// count first reaches that share, as fio computes it. `None` when empty.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.percentile_bucket(percent).map(middle)
    }

    /// The least and the greatest value that the percentile may stand for: the ends of its bucket. `None` when empty.
    pub fn percentile_bounds(&self, percent: f64) -> Option<(u64, u64)> {
        let index = self.percentile_bucket(percent)?;
        Some((lowest(index), lowest(index) + width(index) - 1))
    }

    /// The share of values that lie above the bucket of this one, 0 to 1. `None` when empty.
    pub fn share_above(&self, value: u64) -> Option<f64> {
        let bound = index_of(value);
        let above: u64 = self.counts.iter().skip(bound + 1).sum();
        (self.total > 0).then(|| above as f64 / self.total as f64)
    }

    fn percentile_bucket(&self, percent: f64) -> Option<usize> {
        let wanted = percent / 100.0 * self.total as f64;
        let mut seen = 0u64;
        let mut last = None;
        for (index, count) in self.buckets() {
            seen += count;
            last = Some(index);
            if seen as f64 >= wanted {
                break;
            }
        }
        last
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Non-empty buckets in ascending order, each as [index, count]. Below 256 the index is the value; \
                above, bucket i begins at (128 + i mod 128) * 2^(i div 128 - 1).",
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [
                    {"type": "integer", "minimum": 0, "exclusiveMaximum": BUCKETS},
                    {"type": "integer", "minimum": 1}
                ],
                "minItems": 2,
                "maxItems": 2
            }
        })
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = Vec::<(usize, u64)>::deserialize(deserializer)?;
        let needed = pairs
            .iter()
            .map(|(index, _)| index.saturating_add(1))
            .max()
            .unwrap_or(0);
        if needed > BUCKETS {
            return Err(serde::de::Error::custom(format!(
                "histogram bucket {} is not below {BUCKETS}",
                needed - 1
            )));
        }
        let mut histogram = Histogram {
            counts: vec![0; needed].into_boxed_slice(),
            total: 0,
        };
        for (index, count) in pairs {
            histogram.add_bucket(index, count);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        for index in 0..BUCKETS - 1 {
            assert_eq!(
                lowest(index) + width(index),
                lowest(index + 1),
                "bucket {index}"
            );
            assert_eq!(index_of(lowest(index)), index);
            assert_eq!(index_of(lowest(index) + width(index) - 1), index);
            assert_eq!(index_of(middle(index)), index);
        }
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn shares_and_bounds_go_with_percentiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.share_above(5), None);
        (1..=100).for_each(|value| histogram.record(value * 1000));
        assert_eq!(histogram.share_above(90_000), Some(0.1));
        let (low, high) = histogram.percentile_bounds(90.0).unwrap();
        assert!(low <= 90_000 && 90_000 <= high && high - low < 1000);
    }

    #[test]
    fn one_that_was_read_takes_no_more_than_it_holds_and_counts_on() {
        let mut made = Histogram::default();
        [3, 70, 70].into_iter().for_each(|value| made.record(value));
        let mut read: Histogram = serde_json::from_str("[[3,1],[70,2]]").unwrap();
        assert_eq!(read.counts.len(), 71);
        assert_eq!((&read, read.percentile(90.0)), (&made, Some(70)));
        assert_eq!(read.share_above(1 << 30), Some(0.0));
        let empty: Histogram = serde_json::from_str("[]").unwrap();
        assert!(empty.counts.is_empty() && empty == Histogram::default());
        // Values beyond its end, and a longer one.
        let mut merged = empty;
        merged.merge(&read);
        assert_eq!(merged, made);
        read.record(1 << 30);
        made.record(1 << 30);
        assert_eq!(read, made);
        merged.merge(&read);
        assert_eq!(merged.total(), 7);
        assert!(serde_json::from_str::<Histogram>(&format!("[[{BUCKETS},1]]")).is_err());
        assert!(serde_json::from_str::<Histogram>(&format!("[[{},1]]", usize::MAX)).is_err());
    }

    #[test]
    fn percentile_is_the_bucket_that_reaches_the_share() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), None);
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.percentile(1.0), Some(1));
        assert_eq!(histogram.percentile(50.0), Some(50));
        assert_eq!(histogram.percentile(100.0), Some(100));
    }
}
