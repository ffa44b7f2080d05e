//! Seeds and random numbers.
//!
//! Each purpose (offsets, sizes, mix, ...) has its own stream, so a change of one option does not
//! change the random numbers of another: `rwmixread=70` visits the same offsets as `rwmixread=50`.

use iosonde_job::plan::Workload;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// The seed of jobs without `randseed`. The value is arbitrary but must never change.
const DEFAULT_SEED: u64 = 0x1050_4de0_5eed_2026;

/// The purpose of a stream of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// Offsets of one file.
    Offset = 1,
    /// Block sizes.
    BlockSize = 2,
    /// Direction of each I/O.
    Mix = 3,
    /// Random or sequential (`percentage_random`).
    SequentialOrRandom = 4,
    /// Index of the file.
    File = 5,
    /// Orders of random maps, and positions of hot blocks.
    Placement = 6,
    /// Contents of write buffers.
    Buffer = 7,
    /// Whether a buffer repeats an earlier one.
    Dedupe = 8,
    /// Gaps between I/Os of an open loop (`rate_process=poisson`).
    Arrival = 9,
    /// Start delays and think times.
    Delay = 10,
    /// Sizes of files (`filesize` as a range).
    FileSize = 11,
    /// Contents of verified blocks.
    Verify = 12,
}

/// The root of all random numbers of one clone of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    root: u64,
    repeats: bool,
}

impl Seeds {
    /// Seeds for the clone with this number within the whole run.
    ///
    /// As in fio, a job repeats from run to run if `randrepeat` or `allrandrepeat` is on or if
    /// `randseed` is given. Otherwise `entropy` determines the seeds; the caller must draw it anew
    /// for each run. No two clones share a sequence.
    pub fn new(workload: &Workload, thread_number: u32, entropy: u64) -> Self {
        let fixed = workload.randrepeat || workload.allrandrepeat || workload.randseed.is_some();
        let base = match workload.randseed {
            Some(seed) => seed,
            None if fixed => DEFAULT_SEED,
            None => entropy,
        };
        Seeds {
            root: mix64(mix64(base) ^ u64::from(thread_number).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            repeats: workload.randrepeat || workload.allrandrepeat,
        }
    }

    /// Seeds from one number, for tests and for callers without a job. Passes repeat.
    pub fn from_u64(root: u64) -> Self {
        Seeds {
            root: mix64(root),
            repeats: true,
        }
    }

    /// Whether each pass of `loops` restarts the streams, as in fio with `randrepeat`.
    pub(crate) fn repeat_each_pass(&self) -> bool {
        self.repeats
    }

    /// The stream for one purpose. `index` distinguishes files.
    pub fn stream(&self, purpose: Stream, index: u64) -> Rng {
        Rng::new(self.derive(purpose, index))
    }

    /// The seed of [`Seeds::stream`], for callers that need one number instead of a sequence.
    pub fn derive(&self, purpose: Stream, index: u64) -> u64 {
        mix64(
            mix64(self.root ^ (purpose as u64))
                .wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95)),
        )
    }
}

/// A bijection of 64 bits: each flipped input bit flips about half of the output bits. This is
/// Stafford's variant 13 of the murmur3 finaliser, as used by SplitMix64.
#[inline]
pub fn mix64(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers: xoshiro256++.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A stream from a seed.
    pub fn new(seed: u64) -> Self {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `bound`, without bias (Lemire's multiply-shift). The division runs
    /// once in 2^64 / `bound` draws.
    ///
    /// `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A uniform number in [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// Fills `buf` with random bytes. The bytes do not depend on the machine's byte order.
    pub fn fill(&mut self, buf: &mut [u8]) {
        let (words, rest) = buf.as_chunks_mut::<8>();
        for word in words {
            *word = self.next_u64().to_le_bytes();
        }
        if !rest.is_empty() {
            let last = self.next_u64().to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::tests::workload;

    #[test]
    fn random_sequence_of_a_seed_is_pinned() {
        let mut rng = Seeds::from_u64(1).stream(Stream::Offset, 0);
        let drawn: Vec<u64> = (0..4).map(|_| rng.below(1_000_000)).collect();
        assert_eq!(drawn, PINNED, "a stored result could no longer be repeated");
    }
    const PINNED: [u64; 4] = [258_492, 373_304, 221_173, 91_994];

    #[test]
    fn bounded_draws_are_uniform() {
        let mut rng = Rng::new(7);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7) as usize] += 1;
        }
        // Six standard deviations of a binomial with n = 70000, p = 1/7.
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 560), "{seen:?}");
    }

    #[test]
    fn seeds_differ_by_clone_stream_and_index() {
        let w = workload();
        let a = Seeds::new(&w, 0, 5);
        let b = Seeds::new(&w, 1, 5);
        assert_ne!(a.derive(Stream::Offset, 0), b.derive(Stream::Offset, 0));
        assert_ne!(a.derive(Stream::Offset, 0), a.derive(Stream::Offset, 1));
        assert_ne!(a.derive(Stream::Offset, 0), a.derive(Stream::Mix, 0));
    }

    #[test]
    fn randrepeat_and_randseed_decide_what_repeats() {
        let mut w = workload();
        assert_eq!(Seeds::new(&w, 0, 1), Seeds::new(&w, 0, 2));
        w.randrepeat = false;
        assert_ne!(Seeds::new(&w, 0, 1), Seeds::new(&w, 0, 2));
        w.randseed = Some(9);
        assert_eq!(Seeds::new(&w, 0, 1), Seeds::new(&w, 0, 2));
        w.randrepeat = true;
        let nine = Seeds::new(&w, 0, 1);
        w.randseed = Some(10);
        assert_ne!(nine, Seeds::new(&w, 0, 1));
    }

    #[test]
    fn fill_of_odd_length_covers_the_tail() {
        let mut a = [0u8; 21];
        let mut b = [0u8; 24];
        Rng::new(3).fill(&mut a);
        Rng::new(3).fill(&mut b);
        assert_eq!(a[..21], b[..21]);
    }
}
