//! Block sizes: `bs`, `bsrange`, `bssplit`, and their rounding.

use super::rng::Rng;
use iosonde_job::plan::BlockSize;

/// The distribution of block sizes of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockSizes {
    /// One size in bytes.
    Fixed(u64),
    /// `bsrange`.
    Range {
        /// Smallest length in bytes.
        min: u64,
        /// Largest length in bytes.
        max: u64,
        /// Lengths are multiples of this (or `max`): `min`, or 1 with `bs_unaligned`.
        step: u64,
    },
    /// `bssplit`.
    Split {
        /// Lengths in bytes, each with the cumulative weight up to and including it.
        parts: Box<[(u64, u64)]>,
        /// Smallest length in bytes.
        min: u64,
    },
}

/// Draws per I/O before [`BlockSizes::draw_fitting`] falls back to the smallest length.
const REDRAWS: usize = 64;

impl BlockSizes {
    /// The distribution for a block size of the plan.
    ///
    /// As in fio, lengths are rounded down to multiples of the smallest one unless `bs_unaligned`
    /// is given: with `bssplit=4k/50:6k/50` all blocks have 4k.
    pub(crate) fn new(block_size: &BlockSize, unaligned: bool) -> Self {
        let min = block_size.min();
        let step = if unaligned { 1 } else { min };
        match block_size {
            BlockSize::Fixed(bytes) => BlockSizes::Fixed(*bytes),
            BlockSize::Range { min, max } if min == max => BlockSizes::Fixed(*min),
            BlockSize::Range { min, max } => BlockSizes::Range {
                min: *min,
                max: *max,
                step,
            },
            BlockSize::Split(split) => Self::split(split, min, step),
        }
    }

    fn split(split: &[(u64, u8)], min: u64, step: u64) -> Self {
        let mut sum = 0;
        let mut parts: Vec<(u64, u64)> = Vec::with_capacity(split.len());
        for &(bytes, weight) in split.iter().filter(|part| part.1 > 0) {
            sum += u64::from(weight);
            parts.push((bytes - bytes % step.max(1), sum));
        }
        match parts.first() {
            None => BlockSizes::Fixed(min),
            Some(&(bytes, _)) if parts.iter().all(|part| part.0 == bytes) => {
                BlockSizes::Fixed(bytes)
            }
            Some(_) => {
                assert!(
                    parts.is_sorted_by(|before, after| before.1 < after.1),
                    "each drawn weight belongs to one length"
                );
                BlockSizes::Split {
                    parts: parts.into(),
                    min,
                }
            }
        }
    }

    /// The smallest length in bytes.
    pub(crate) fn min(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, .. } | BlockSizes::Split { min, .. } => *min,
        }
    }

    /// The largest length in bytes.
    pub(crate) fn max(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split { parts, .. } => parts.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }

    /// The length, if there is only one.
    pub(crate) fn fixed(&self) -> Option<u64> {
        match self {
            BlockSizes::Fixed(bytes) => Some(*bytes),
            _ => None,
        }
    }

    /// Draws the next length, in bytes.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { .. } => self.quantile(rng.unit()),
            BlockSizes::Split { parts, .. } => {
                let drawn = rng.below(parts[parts.len() - 1].1);
                parts[parts.partition_point(|part| part.1 <= drawn)].0
            }
        }
    }

    /// Draws lengths until one is at most `room_bytes`. `None` if even the smallest is larger.
    #[inline]
    pub(crate) fn draw_fitting(&self, room_bytes: u64, rng: &mut Rng) -> Option<u64> {
        if self.min() > room_bytes {
            return None;
        }
        for _ in 0..REDRAWS {
            let bytes = self.draw(rng);
            if bytes <= room_bytes {
                return Some(bytes);
            }
        }
        Some(self.min())
    }

    /// The quantile `q` (at least 0, below 1) of the lengths, by fio's rule for a range: min + q
    /// max, limited to max and rounded down to the step. If max is a multiple of min, all multiples
    /// are equally likely. With `bs_unaligned`, a share min / max of the draws is max.
    fn quantile(&self, q: f64) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, max, step } => {
                let bytes = min + (q * *max as f64) as u64;
                (bytes - bytes % step).min(*max)
            }
            BlockSizes::Split { parts, .. } => {
                let sum = parts[parts.len() - 1].1;
                let at = (q * sum as f64) as u64;
                parts[parts
                    .partition_point(|part| part.1 <= at)
                    .min(parts.len() - 1)]
                .0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn shares(sizes: &BlockSizes, of: &[u64]) -> Vec<f64> {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..100_000).map(|_| sizes.draw(&mut rng)).collect();
        assert!(drawn.iter().all(|d| of.contains(d)));
        of.iter()
            .map(|size| drawn.iter().filter(|d| *d == size).count() as f64 / 1e5)
            .collect()
    }

    fn near(shares: &[f64], expected: &[f64]) {
        for (a, b) in shares.iter().zip(expected) {
            assert!((a - b).abs() < 0.01, "{shares:?} is not {expected:?}");
        }
    }

    #[test]
    fn range_draws_each_multiple_equally_often() {
        let range = BlockSize::Range {
            min: 4096,
            max: 16384,
        };
        near(
            &shares(&BlockSizes::new(&range, false), &[4096, 8192, 12288, 16384]),
            &[0.25; 4],
        );
    }

    #[test]
    fn range_with_an_odd_end_reaches_it() {
        let range = BlockSize::Range {
            min: 4096,
            max: 10240,
        };
        near(
            &shares(&BlockSizes::new(&range, false), &[4096, 8192, 10240]),
            &[0.4, 0.4, 0.2],
        );
    }

    #[test]
    fn split_follows_its_weights() {
        let split = BlockSize::Split(vec![(4096, 60), (65536, 30), (8192, 10)]);
        near(
            &shares(&BlockSizes::new(&split, false), &[4096, 65536, 8192]),
            &[0.6, 0.3, 0.1],
        );
    }

    #[test]
    fn split_is_rounded_to_the_smallest_unless_unaligned() {
        let split = BlockSize::Split(vec![(4096, 50), (6144, 50)]);
        assert_eq!(BlockSizes::new(&split, false), BlockSizes::Fixed(4096));
        near(
            &shares(&BlockSizes::new(&split, true), &[4096, 6144]),
            &[0.5, 0.5],
        );
    }

    proptest! {
        #[test]
        fn lengths_fit_and_stay_in_range(
            min in 1u64..10_000, more in 0u64..1_000_000, room in 0u64..1_000_000,
            unaligned: bool, seed: u64
        ) {
            let sizes = BlockSizes::new(&BlockSize::Range { min, max: min + more }, unaligned);
            let mut rng = Rng::new(seed);
            for _ in 0..50 {
                match sizes.draw_fitting(room, &mut rng) {
                    None => prop_assert!(room < min),
                    Some(bytes) => {
                        prop_assert!(bytes <= room && bytes >= min && bytes <= min + more);
                    }
                }
            }
        }
    }
}
