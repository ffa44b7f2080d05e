//! Random orders, in which drift of a device or machine is no trend along an axis.
//!
//! Stored seeds stand for these orders: a crate's generator would change them.

/// Numbers of SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// OOPSLA 2014).
#[derive(Debug)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Returns the generator of a seed.
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// Returns the next number.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Shuffles values (Fisher-Yates).
pub(crate) fn shuffle<T>(values: &mut [T], seed: u64) {
    let mut numbers = SplitMix64::new(seed);
    for last in (1..values.len()).rev() {
        values.swap(last, (numbers.next_number() % (last as u64 + 1)) as usize);
    }
}

/// Returns the numbers below `count` in random order.
pub(crate) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    shuffle(&mut order, seed);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored results name their seed: the order of a seed must never change.
    #[test]
    fn order_of_seed_is_fixed() {
        assert_eq!(shuffled(10, 1), [4, 2, 8, 1, 9, 3, 0, 6, 7, 5]);
        assert_eq!(shuffled(10, 7), [8, 1, 5, 9, 0, 4, 3, 2, 6, 7]);
        assert_eq!(shuffled(3, u64::MAX), [0, 1, 2]);
        let mut values = ["a", "b", "c", "d", "e"];
        shuffle(&mut values, 0);
        let order = shuffled(5, 0);
        assert_eq!(order, [2, 3, 1, 4, 0]);
        assert_eq!(
            values,
            [0, 1, 2, 3, 4].map(|at| ["a", "b", "c", "d", "e"][order[at]])
        );
    }

    #[test]
    fn shuffled_order_is_random_and_repeatable() {
        let order = shuffled(100, 7);
        assert_eq!(order, shuffled(100, 7));
        assert_ne!(order, shuffled(100, 8));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        // No trend: both halves have the same mean place.
        let mean = |half: &[usize]| half.iter().sum::<usize>() as f64 / half.len() as f64;
        assert!((mean(&order[..50]) - mean(&order[50..])).abs() < 20.0);
    }
}
