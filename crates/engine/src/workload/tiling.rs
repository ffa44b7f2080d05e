//! The random map for blocks of mixed sizes: a region cut into pieces that cover it exactly once.
//!
//! fio draws an offset and a length and cuts the length short where the place is taken, with one bit per smallest
//! block. Here the region is divided into *superblocks* of equal length. Each holds the same set of pieces, whose
//! sizes have the shares that `bsrange` or `bssplit` asks for, in one of a few shuffled arrangements that a hash picks
//! for it. As all superblocks have the same number of pieces, a [`Cover`] over all (superblock, piece) pairs
//! visits each piece once in random order, and a piece's place is looked up, not searched. What is left at the end of
//! the region is cut by plain draws. Memory is bounded by the number of arrangements, not by the region.

use super::block_size::Sizes;
use super::permutation::Cover;
use super::rng::{Rng, mix64};

/// Pieces in a superblock: per cents come out exactly.
const PIECES: usize = 100;
/// Different arrangements of the pieces.
const ARRANGEMENTS: usize = 32;

/// A piece of the region: where an I/O of this length goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// From the start of the region, in bytes.
    pub offset: u64,
    /// In bytes.
    pub len: u64,
}

/// A region cut into pieces of mixed sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiling {
    superblock_bytes: u64,
    superblocks: u64,
    arrangements: Box<[Piece]>,
    tail: Box<[Piece]>,
    key: u64,
}

impl Tiling {
    /// Cuts `region_bytes` into pieces of `sizes`, each starting at a multiple of `align_bytes`.
    pub fn new(sizes: &Sizes, align_bytes: u64, region_bytes: u64, rng: &mut Rng) -> Self {
        let align = align_bytes.max(1);
        let mut set: Vec<u64> = sizes.sample(PIECES).collect();
        let superblock_bytes = set
            .iter()
            .map(|len| len.next_multiple_of(align))
            .sum::<u64>();
        let superblocks = region_bytes / superblock_bytes;
        let mut arrangements = Vec::with_capacity(PIECES * ARRANGEMENTS);
        for _ in 0..ARRANGEMENTS {
            shuffle(&mut set, rng);
            let mut offset = 0;
            for &len in &set {
                arrangements.push(Piece { offset, len });
                offset += len.next_multiple_of(align);
            }
        }
        let tail_start = superblocks * superblock_bytes;
        Tiling {
            superblock_bytes,
            superblocks,
            arrangements: arrangements.into(),
            tail: cut_tail(sizes, align, tail_start, region_bytes, rng),
            key: rng.next_u64(),
        }
    }

    /// Number of pieces.
    pub fn len(&self) -> u64 {
        self.superblocks * PIECES as u64 + self.tail.len() as u64
    }

    /// Whether the region is too small for a single piece.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The piece of this number, which must be below [`Tiling::len`].
    #[inline]
    pub fn piece(&self, index: u64) -> Piece {
        let superblock = index / PIECES as u64;
        let number = (index % PIECES as u64) as usize;
        if superblock >= self.superblocks {
            return self.tail[(index - self.superblocks * PIECES as u64) as usize];
        }
        let arrangement = mix64(superblock ^ self.key) as usize % ARRANGEMENTS;
        let piece = self.arrangements[arrangement * PIECES + number];
        Piece {
            offset: superblock * self.superblock_bytes + piece.offset,
            len: piece.len,
        }
    }

    /// A walk over all pieces; `None` if there are none.
    pub fn cover(&self, rng: &mut Rng) -> Option<Cover> {
        (!self.is_empty()).then(|| Cover::new(self.len(), rng))
    }
}

/// Cuts what is behind the last whole superblock. A drawn piece that is too long is cut to the largest multiple of
/// the smallest size that fits, so that at most one smallest block (less than that, in fact) is left out.
fn cut_tail(sizes: &Sizes, align: u64, start: u64, end: u64, rng: &mut Rng) -> Box<[Piece]> {
    let mut pieces = Vec::new();
    let mut offset = start;
    while end.saturating_sub(offset) >= sizes.min() {
        let room = end - offset;
        let drawn = sizes.draw(rng);
        let len = if drawn <= room {
            drawn
        } else {
            room - room % sizes.min()
        };
        pieces.push(Piece { offset, len });
        offset += len.next_multiple_of(align);
    }
    pieces.into()
}

fn shuffle(items: &mut [u64], rng: &mut Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng::Rng;
    use iosonde_job::plan::BlockSize;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn split() -> Sizes {
        Sizes::new(
            &BlockSize::Split(vec![(4096, 60), (65536, 30), (8192, 10)]),
            false,
        )
    }

    proptest! {
        #[test]
        fn every_byte_is_covered_exactly_once(region_blocks in 0u64..20_000, seed: u64, use_split: bool) {
            let sizes = if use_split {
                split()
            } else {
                Sizes::new(&BlockSize::Range { min: 4096, max: 32768 }, false)
            };
            let mut rng = Rng::new(seed);
            let region = region_blocks * 4096 + 1000;
            let tiling = Tiling::new(&sizes, 4096, region, &mut rng);
            let mut pieces: Vec<Piece> = match tiling.cover(&mut rng) {
                Some(cover) => cover.map(|i| tiling.piece(i)).collect(),
                None => Vec::new(),
            };
            pieces.sort_by_key(|piece| piece.offset);
            let mut end = 0;
            for piece in pieces {
                prop_assert_eq!(piece.offset, end);
                prop_assert!(piece.len > 0 && piece.len.is_multiple_of(4096));
                end += piece.len;
            }
            prop_assert_eq!(end, region_blocks * 4096);
        }

        #[test]
        fn unaligned_pieces_never_overlap(region in 0u64..5_000_000, seed: u64) {
            let sizes = Sizes::new(&BlockSize::Range { min: 1000, max: 9000 }, true);
            let tiling = Tiling::new(&sizes, 512, region, &mut Rng::new(seed));
            let mut pieces: Vec<Piece> = (0..tiling.len()).map(|i| tiling.piece(i)).collect();
            pieces.sort_by_key(|piece| piece.offset);
            prop_assert!(pieces.iter().all(|p| p.offset % 512 == 0 && p.offset + p.len <= region));
            prop_assert!(pieces.windows(2).all(|p| p[0].offset + p[0].len <= p[1].offset));
        }
    }

    #[test]
    fn sizes_have_their_shares() {
        let mut rng = Rng::new(1);
        let tiling = Tiling::new(&split(), 4096, 1 << 32, &mut rng);
        let mut seen: HashMap<u64, u64> = HashMap::new();
        // A part of a pass must have the shares too.
        for index in tiling.cover(&mut rng).unwrap().take(50_000) {
            *seen.entry(tiling.piece(index).len).or_default() += 1;
        }
        for (len, share) in [(4096, 0.6), (65536, 0.3), (8192, 0.1)] {
            assert!(
                (seen[&len] as f64 / 50_000.0 - share).abs() < 0.01,
                "{seen:?}"
            );
        }
    }
}
