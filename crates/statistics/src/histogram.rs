//! Latency histogram: log-linear, with 128 buckets per power of two.
//!
//! Values below 256 have a bucket each. Above, a bucket spans 1/128 of its power of two, so the
//! middle of a bucket differs by at most 0.4 % from every value in it. The layout is fio's with one
//! more bit. Each of fio's bins is therefore a union of these buckets, and the JSON+ output is
//! exact. Values above `MAX_VALUE` (73 minutes in nanoseconds) are counted in the last bucket.
//! The owner of a histogram keeps the exact maximum beside it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Bits of a value that select the bucket within its power of two.
pub const SUB_BITS: u32 = 7;
/// Largest value that is not clamped to the last bucket.
pub const MAX_VALUE: u64 = (1 << 42) - 1;
/// Number of buckets.
pub const BUCKETS: usize = index_of(MAX_VALUE) + 1;

/// Returns the index of the bucket that counts `value`.
#[inline(always)]
pub const fn index_of(value: u64) -> usize {
    let value = if value > MAX_VALUE { MAX_VALUE } else { value };
    let top = 63 - (value | (1 << SUB_BITS)).leading_zeros();
    let shift = top - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// Returns the lowest value counted in bucket `index`.
pub const fn lowest(index: usize) -> u64 {
    let sub = 1usize << SUB_BITS;
    if index < 2 * sub {
        return index as u64;
    }
    let shift = (index >> SUB_BITS) - 1;
    ((sub + (index & (sub - 1))) as u64) << shift
}

/// Returns the number of distinct values counted in bucket `index`.
pub const fn width(index: usize) -> u64 {
    let sub = 1usize << SUB_BITS;
    if index < 2 * sub {
        1
    } else {
        1 << ((index >> SUB_BITS) - 1)
    }
}

/// Returns the value that represents bucket `index`: its middle, as in fio.
pub const fn middle(index: usize) -> u64 {
    lowest(index) + width(index) / 2
}

const _: () = {
    let mut index = 0;
    while index < BUCKETS {
        assert!(
            index_of(lowest(index)) == index,
            "a bucket counts its lowest value"
        );
        let end = lowest(index) + width(index);
        assert!(
            lowest(index + 1) == end,
            "buckets are adjacent and do not overlap"
        );
        index += 1;
    }
    assert!(
        lowest(BUCKETS) == MAX_VALUE + 1,
        "the last bucket ends with the largest value"
    );
};

/// Counts of values by bucket, serialised sparsely as `[[index, count], ...]`.
///
/// A default histogram has all its buckets, so that counting allocates nothing. A compact histogram
/// (`Histogram::compact`, deserialisation) has only the non-empty buckets, at a few bytes each,
/// because a run has one per interval. Counting into it allocates all buckets again.
#[derive(Clone)]
pub struct Histogram {
    /// All buckets, or none in a compact histogram.
    counts: Box<[u64]>,
    total: u64,
    /// Non-empty buckets of a compact histogram, whose `counts` is empty.
    compact: CompactBuckets,
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
            compact: CompactBuckets::default(),
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
        let index = index_of(value);
        let from_lowest = value.min(MAX_VALUE).wrapping_sub(lowest(index));
        debug_assert!(from_lowest < width(index), "{value} in {index}");
        self.add_bucket(index, count);
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
        if self.counts.is_empty() {
            self.complete();
        }
        debug_assert!(
            self.counts.len() == BUCKETS && [0, BUCKETS].contains(&other.counts.len()),
            "a histogram has all buckets, or is compact"
        );
        if other.counts.is_empty() {
            for (index, count) in other.compact.buckets() {
                self.counts[index] += count;
            }
        } else {
            for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
                *mine += theirs;
            }
        }
        self.total += other.total;
    }

    /// The total, counted anew.
    fn sum_of_buckets(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
    }

    /// Keeps only the non-empty buckets. The histogram compares equal to its former value.
    pub fn compact(&mut self) {
        if !self.counts.is_empty() {
            self.compact = CompactBuckets::new(self.buckets());
            self.counts = Box::default();
            debug_assert_eq!(self.sum_of_buckets(), self.total, "no count is lost");
        }
    }

    /// Appends the non-empty buckets with their length, which [`Histogram::decode`] needs.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let mut compact = &self.compact;
        let made;
        if !self.counts.is_empty() {
            made = CompactBuckets::new(self.buckets());
            compact = &made;
        }
        debug_assert_eq!(
            compact.buckets().map(|(_, count)| count).sum::<u64>(),
            self.total,
            "no count is lost"
        );
        write_leb128(bytes, compact.0.len() as u64);
        bytes.extend_from_slice(&compact.0);
    }

    /// Decodes a histogram and advances the slice. Returns `None` if the bytes are incomplete.
    pub fn decode(bytes: &mut &[u8]) -> Option<Histogram> {
        let length = usize::try_from(read_leb128(bytes)?).ok()?;
        let (own, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let compact = CompactBuckets(own.into());
        Some(Histogram {
            counts: Box::default(),
            total: compact.buckets().map(|(_, count)| count).sum(),
            compact,
        })
    }

    /// Allocates all buckets of a compact histogram.
    #[cold]
    fn complete(&mut self) {
        debug_assert!(self.counts.is_empty());
        debug_assert_eq!(
            self.sum_of_buckets(),
            self.total,
            "a compact histogram is whole"
        );
        let mut counts = vec![0; BUCKETS];
        for (index, count) in std::mem::take(&mut self.compact).buckets() {
            counts[index] = count;
        }
        self.counts = counts.into_boxed_slice();
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the non-empty buckets in ascending order, as index and count.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        NonEmptyBuckets {
            counts: self.counts.iter().enumerate(),
            compact: self.compact.buckets(),
        }
    }

    /// Returns the value at or below which `percent` per cent of the values lie: as in fio, the
    /// middle of the bucket in which the cumulative count reaches that share. `None` if empty.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.percentile_bucket(percent).map(middle)
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
        debug_assert!(seen <= self.total && last.is_some() == (self.total > 0));
        last
    }
}

/// The non-empty buckets of a histogram in ascending order.
///
/// Not composed of adapters such as `filter`: these are generic, so they would be compiled with the
/// optimisation of the calling crate, which has none in the profile `dev`.
struct NonEmptyBuckets<'a> {
    /// All buckets, or none of a compact histogram.
    counts: std::iter::Enumerate<std::slice::Iter<'a, u64>>,
    /// None of a histogram that has all buckets.
    compact: DecodedBuckets<'a>,
}

impl Iterator for NonEmptyBuckets<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        match self.counts.find(|(_, count)| **count > 0) {
            Some((index, count)) => Some((index, *count)),
            None => self.compact.next(),
        }
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
            "description": "Non-empty buckets in ascending order, each as [index, count]. Below \
                            256 the index is the value; above, bucket i begins at (128 + i mod \
                            128) * 2^(i div 128 - 1).",
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
        if let Some((index, _)) = pairs.iter().find(|(index, _)| *index >= BUCKETS) {
            return Err(serde::de::Error::custom(format!(
                "histogram bucket {index} is not below {BUCKETS}"
            )));
        }
        let total = pairs
            .iter()
            .try_fold(0u64, |sum, (_, count)| sum.checked_add(*count))
            .ok_or_else(|| serde::de::Error::custom("the counts of a histogram exceed 2^64"))?;
        if pairs.is_sorted_by(|(before, _), (after, _)| before < after) {
            return Ok(Histogram {
                counts: Box::default(),
                total,
                compact: CompactBuckets::new(pairs.into_iter()),
            });
        }
        let mut histogram = Histogram::default();
        for (index, count) in pairs {
            histogram.add_bucket(index, count);
        }
        histogram.compact();
        Ok(histogram)
    }
}

/// Non-empty buckets in ascending order: distance from the previous index and count, in LEB128.
#[derive(Clone, Default)]
struct CompactBuckets(Box<[u8]>);

impl CompactBuckets {
    /// Encodes buckets in ascending order and skips empty ones.
    fn new(buckets: impl Iterator<Item = (usize, u64)>) -> CompactBuckets {
        let mut bytes = Vec::new();
        let mut before = 0;
        for (index, count) in buckets.filter(|(_, count)| *count > 0) {
            debug_assert!(index >= before && index < BUCKETS);
            write_leb128(&mut bytes, (index - before) as u64);
            write_leb128(&mut bytes, count);
            before = index;
        }
        CompactBuckets(bytes.into_boxed_slice())
    }

    fn buckets(&self) -> DecodedBuckets<'_> {
        DecodedBuckets {
            rest: &self.0,
            index: 0,
        }
    }
}

/// Decodes [`CompactBuckets`].
struct DecodedBuckets<'a> {
    rest: &'a [u8],
    /// Index of the bucket before `rest`.
    index: usize,
}

impl Iterator for DecodedBuckets<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        self.index += read_leb128(&mut self.rest)? as usize;
        Some((self.index, read_leb128(&mut self.rest)?))
    }
}

/// Appends `value` in LEB128: seven bits per byte, lowest first. The top bit means more follow.
pub fn write_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Decodes a LEB128 number and advances the slice. Returns `None` if the bytes end within it.
pub fn read_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_match_their_index() {
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
    fn compact_histogram_equals_the_whole_one_and_counts_on() {
        let mut made = Histogram::default();
        let values = [0, 3, 70, 70, 300, 1 << 20, 1 << 30, MAX_VALUE];
        values.into_iter().for_each(|value| made.record(value));
        made.record_n(5_000, u64::MAX >> 1);
        let mut compact = made.clone();
        compact.compact();
        assert!(compact.counts.is_empty() && compact.compact.0.len() < 40);
        assert_eq!(compact, made);
        assert!(compact.buckets().eq(made.buckets()));
        for percent in [0.0, 1.0, 50.0, 99.9, 100.0] {
            assert_eq!(compact.percentile(percent), made.percentile(percent));
        }
        let json = |histogram: &Histogram| serde_json::to_string(histogram).unwrap();
        assert_eq!(json(&compact), json(&made));
        let mut twice = compact.clone();
        twice.compact();
        assert_eq!(twice, made);
        // Counts, and merges in both directions.
        for histogram in [&mut compact, &mut made] {
            histogram.record(4_000);
        }
        assert_eq!(compact, made);
        let (mut into_compact, mut into_made) = (twice.clone(), Histogram::default());
        into_made.merge(&twice);
        assert_eq!(into_made, twice);
        let mut small = Histogram::default();
        small.record(9);
        for histogram in [&mut into_compact, &mut into_made] {
            histogram.merge(&small);
        }
        assert_eq!(into_compact, into_made);
    }

    #[test]
    fn histogram_that_was_read_is_compact() {
        let mut made = Histogram::default();
        [3, 70, 70].into_iter().for_each(|value| made.record(value));
        let read: Histogram = serde_json::from_str("[[3,1],[70,2]]").unwrap();
        assert!(read.counts.is_empty());
        assert_eq!((&read, read.percentile(90.0)), (&made, Some(70)));
        let empty: Histogram = serde_json::from_str("[]").unwrap();
        assert_eq!((&empty, empty.total()), (&Histogram::default(), 0));
        let unsorted: Histogram = serde_json::from_str("[[70,1],[3,1],[70,1],[9,0]]").unwrap();
        assert_eq!(unsorted, made);
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
