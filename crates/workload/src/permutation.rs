//! A pseudo-random order of `0..n` in constant memory: the random map for blocks of one size.
//!
//! fio keeps one bit per block. Here a keyed bijection of a slightly larger range computes the i-th
//! block of a pass from i. It is applied again while the result is at least n (cycle walking).
//!
//! The range is `high x 2^k`. Its low k bits go through rounds of multiply, add and xor-shift. Each
//! round also adds a hash of the low part to the high part, modulo `high`. `high` is chosen so that
//! the range exceeds n by at most a thirty-second. If n is a power of two or slightly below one,
//! `high` is 1 and the high part costs nothing.

use super::rng::Rng;

const ROUNDS: usize = 4;
/// Ranges of fewer bits are extended to the next power of two.
const MIN_SPLIT_BITS: u32 = 12;
/// Bits of `high`.
const HIGH_BITS: u32 = 6;

/// A keyed permutation of `0..len`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Permutation {
    len: u64,
    /// Number of values of the high part.
    high: u64,
    low_bits: u32,
    low_mask: u64,
    shift: u32,
    keys: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// A permutation of `0..len` chosen by `rng`. `len` must be at least 1.
    fn new(len: u64, rng: &mut Rng) -> Self {
        assert!(len > 0, "an empty range has no order");
        let (high, low_bits) = split(len);
        let range = u128::from(high) << low_bits;
        let excess = range.checked_sub(len.into());
        let excess = excess.expect("a bijection of a smaller range would miss values");
        assert!(
            low_bits < MIN_SPLIT_BITS && high == 1 || excess * 32 <= u128::from(len),
            "cycle walking is short: the range {range} exceeds {len} by a thirty-second at most"
        );
        let mut permutation = Permutation {
            len,
            high,
            low_bits,
            low_mask: u64::MAX.checked_shr(64 - low_bits).unwrap_or(0),
            shift: low_bits.div_ceil(2).max(1),
            keys: [(1, 0); ROUNDS],
        };
        permutation.rekey(rng);
        permutation
    }

    /// Replaces the keys: the permutation becomes another one of the same range.
    fn rekey(&mut self, rng: &mut Rng) {
        for key in &mut self.keys {
            *key = (rng.next_u64() | 1, rng.next_u64());
        }
    }

    /// The value at position `index`, which must be below the length.
    #[inline(always)]
    fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mut x = self.step(index);
        // Terminates: the walk follows a cycle of a bijection that contains `index < len`.
        while x >= self.len {
            x = self.step(x);
        }
        x
    }

    #[inline(always)]
    fn step(&self, x: u64) -> u64 {
        if self.high == 1 {
            return self.keys.iter().fold(x, |low, key| self.mix_low(low, *key));
        }
        let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
        for &(multiplier, addend) in &self.keys {
            // Each half changes by a function of the other. Subtraction inverts the step.
            low = self.mix_low(low, (multiplier, addend ^ high.wrapping_mul(multiplier)));
            high += self.shift_of_high(low, multiplier);
            high -= if high >= self.high { self.high } else { 0 };
        }
        debug_assert!(high < self.high, "each step is a bijection of the range");
        (high << self.low_bits) | low
    }

    /// A bijection of the low bits: an odd multiplier, an addend and a right shift are invertible.
    #[inline(always)]
    fn mix_low(&self, low: u64, (multiplier, addend): (u64, u64)) -> u64 {
        let low = low.wrapping_mul(multiplier).wrapping_add(addend) & self.low_mask;
        low ^ (low >> self.shift)
    }

    /// A hash of the low part in `0..high`.
    #[inline(always)]
    fn shift_of_high(&self, low: u64, multiplier: u64) -> u64 {
        ((low.wrapping_mul(multiplier) >> 32) * self.high) >> 32
    }
}

/// High values and low bits such that `high << low_bits` is at least `len`, and slightly more.
fn split(len: u64) -> (u64, u32) {
    let bits = 64 - (len - 1).leading_zeros();
    let whole = (1, bits);
    if bits < MIN_SPLIT_BITS {
        return whole;
    }
    let low_bits = bits - HIGH_BITS;
    match len.div_ceil(1 << low_bits) {
        high if high == 1 << HIGH_BITS => whole,
        high => (high, low_bits),
    }
}

/// An iterator over a [`Permutation`]: each value once, then `None` until [`Cover::restart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    permutation: Permutation,
    next: u64,
}

impl Cover {
    /// Covers `0..len` in an order chosen by `rng`.
    pub(crate) fn new(len: u64, rng: &mut Rng) -> Self {
        Cover {
            permutation: Permutation::new(len, rng),
            next: 0,
        }
    }

    /// Starts again in another order.
    pub(crate) fn restart(&mut self, rng: &mut Rng) {
        self.permutation.rekey(rng);
        self.next = 0;
    }

    /// Number of values left.
    #[inline(always)]
    pub(crate) fn remaining(&self) -> u64 {
        self.permutation.len - self.next
    }

    /// The next value, without a check for the end. [`Cover::remaining`] must not be 0.
    #[inline(always)]
    pub(crate) fn next_unchecked(&mut self) -> u64 {
        let value = self.permutation.at(self.next);
        self.next += 1;
        value
    }
}

impl Iterator for Cover {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        (self.next < self.permutation.len).then(|| self.next_unchecked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permutation_yields_each_value_exactly_once(len in 1u64..20_000, seed: u64) {
            let mut seen = vec![false; len as usize];
            for value in Cover::new(len, &mut Rng::new(seed)) {
                prop_assert!(!std::mem::replace(&mut seen[value as usize], true));
            }
            prop_assert!(seen.into_iter().all(|s| s));
        }

        #[test]
        fn values_of_huge_ranges_stay_inside_and_differ(len in 1u64 << 40..=u64::MAX, seed: u64) {
            let permutation = Permutation::new(len, &mut Rng::new(seed));
            let mut values: Vec<u64> = (0..1000).map(|i| permutation.at(i)).collect();
            prop_assert!(values.iter().all(|&v| v < len));
            values.sort_unstable();
            values.dedup();
            prop_assert_eq!(values.len(), 1000);
        }
    }

    /// Distances between consecutive values are distributed as in a shuffle. A bad mixer prefers
    /// some distances.
    #[test]
    fn consecutive_distances_are_spread_evenly() {
        for (len, seed) in [
            (1u64 << 18, 1),
            (262_143, 2),
            (262_145, 2),
            (200_000, 3),
            (1 << 12, 4),
            (5000, 5),
        ] {
            let mut cover = Cover::new(len, &mut Rng::new(seed));
            let mut bins = [0u64; 64];
            let mut last = cover.next_unchecked();
            for value in cover {
                let distance = (value + len - last) % len;
                bins[(u128::from(distance) * 64 / u128::from(len)) as usize] += 1;
                last = value;
            }
            let expected = (len - 1) as f64 / 64.0;
            let chi: f64 = bins
                .iter()
                .map(|&n| (n as f64 - expected).powi(2) / expected)
                .sum();
            // 63 degrees of freedom: mean 63, standard deviation 11.2.
            assert!(chi < 63.0 + 6.0 * 11.2, "len {len}: chi-square {chi}");
        }
    }

    /// The first tenth of a pass is already spread over the whole file.
    #[test]
    fn first_tenth_of_a_pass_is_spread_evenly() {
        let len = 100_000u64;
        for seed in 0..20 {
            let mut bins = [0u64; 50];
            for value in Cover::new(len, &mut Rng::new(seed)).take(10_000) {
                bins[(value * 50 / len) as usize] += 1;
            }
            let chi: f64 = bins
                .iter()
                .map(|&n| (n as f64 - 200.0).powi(2) / 200.0)
                .sum();
            assert!(chi < 49.0 + 6.0 * 9.9, "seed {seed}: chi-square {chi}");
        }
    }

    #[test]
    fn permutation_restart_changes_the_order() {
        let mut rng = Rng::new(1);
        let mut cover = Cover::new(1000, &mut rng);
        let first: Vec<u64> = cover.by_ref().collect();
        cover.restart(&mut rng);
        let second: Vec<u64> = cover.collect();
        assert_ne!(first, second);
        let fixed = first.iter().zip(&second).filter(|(a, b)| a == b).count();
        assert!(
            fixed < 12,
            "{fixed} of 1000 in the same place, about 1 expected"
        );
    }
}
