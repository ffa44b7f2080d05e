//! The random map for blocks of mixed sizes: one bit for each smallest block of a file, as in fio.
//!
//! An I/O takes the free blocks that follow its first block. It is cut short at the first used
//! block. Blocks of one size need no bits: see [`permutation`](super::permutation).

const WORD_BITS: u64 = 64;

/// A bitmap of the blocks `0..blocks` used in this pass.
///
/// Each bit of the lowest level is a block. Each bit of a higher level is a word of the level
/// below, set when that word is full. Bits past the end are always set, so they are never free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockMap {
    blocks: u64,
    levels: Box<[Box<[u64]>]>,
}

impl BlockMap {
    /// Block limit of a map: 4 GiB of memory.
    pub(crate) const BLOCKS_MAX: u64 = 1 << 35;

    /// A map with all blocks free; `None` if it would exceed [`BlockMap::BLOCKS_MAX`].
    pub(crate) fn new(blocks: u64) -> Option<Self> {
        if blocks > Self::BLOCKS_MAX {
            return None;
        }
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(WORD_BITS).max(1);
            levels.push(vec![0; words as usize].into_boxed_slice());
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = BlockMap {
            blocks,
            levels: levels.into(),
        };
        map.take_padding();
        Some(map)
    }

    /// Makes all blocks free.
    pub(crate) fn clear(&mut self) {
        for level in &mut self.levels {
            level.fill(0);
        }
        self.take_padding();
    }

    /// Sets the bits past the end of each level.
    fn take_padding(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            let last = level.len() - 1;
            let used = bits - last as u64 * WORD_BITS;
            level[last] |= u64::MAX.checked_shl(used as u32).unwrap_or(0);
            bits = level.len() as u64;
        }
    }

    /// The first free block at or after `block`, else the first free block of the map, else `None`.
    #[inline]
    pub(crate) fn next_free(&self, block: u64) -> Option<u64> {
        self.free_from(block).or_else(|| self.free_from(0))
    }

    fn free_from(&self, block: u64) -> Option<u64> {
        let mut bit = block;
        for (height, level) in self.levels.iter().enumerate() {
            let index = bit / WORD_BITS;
            let word = *level.get(index as usize)?;
            let free = !word & (u64::MAX << (bit % WORD_BITS));
            if free != 0 {
                let found = index * WORD_BITS + u64::from(free.trailing_zeros());
                return Some(self.descend(height, found));
            }
            bit = index + 1;
        }
        None
    }

    /// The first free block below a bit of the level at `height`.
    fn descend(&self, height: usize, bit: u64) -> u64 {
        self.levels[..height].iter().rev().fold(bit, |bit, level| {
            let free = level[bit as usize].trailing_ones();
            debug_assert!(u64::from(free) < WORD_BITS, "a full word is marked as free");
            bit * WORD_BITS + u64::from(free)
        })
    }

    /// Marks at most `count` blocks from `block` on as used, up to the first used block. Returns
    /// the number of blocks that were free.
    #[inline]
    pub(crate) fn take(&mut self, block: u64, count: u64) -> u64 {
        let end = block.saturating_add(count).min(self.blocks);
        let mut at = block;
        while at < end {
            let (index, bit) = ((at / WORD_BITS) as usize, at % WORD_BITS);
            let wanted = (WORD_BITS - bit).min(end - at);
            let free = u64::from((self.levels[0][index] >> bit).trailing_zeros()).min(wanted);
            if free > 0 {
                self.set(index, (u64::MAX >> (WORD_BITS - free)) << bit);
            }
            at += free;
            if free < wanted {
                break;
            }
        }
        at.saturating_sub(block)
    }

    /// Sets bits of a word of the lowest level, and the bits above it for words that became full.
    fn set(&mut self, mut index: usize, mut bits: u64) {
        for level in &mut self.levels {
            debug_assert_eq!(level[index] & bits, 0, "a block is taken once");
            level[index] |= bits;
            if level[index] != u64::MAX {
                break;
            }
            bits = 1 << (index as u64 % WORD_BITS);
            index /= WORD_BITS as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn map_of_more_blocks_than_its_limit_is_refused() {
        assert!(BlockMap::new(BlockMap::BLOCKS_MAX + 1).is_none());
    }

    #[test]
    fn next_free_goes_on_at_the_start() {
        let mut map = BlockMap::new(10).unwrap();
        assert_eq!(map.take(5, 9), 5);
        assert_eq!((map.next_free(5), map.next_free(3)), (Some(0), Some(3)));
        assert_eq!(map.take(3, 9), 2);
        assert_eq!(map.take(3, 1), 0);
        assert_eq!((map.take(0, 9), map.next_free(4)), (3, None));
        map.clear();
        assert_eq!(map.next_free(4), Some(4));
    }

    proptest! {
        /// Compares the map with a list of bools.
        #[test]
        fn map_agrees_with_a_plain_list(
            blocks in 1u64..20_000,
            steps in prop::collection::vec((0u64..20_000, 1u64..500), 1..300),
        ) {
            let mut map = BlockMap::new(blocks).unwrap();
            let mut taken = vec![false; blocks as usize];
            for (at, count) in steps {
                let at = at % blocks;
                let after = (at..blocks).find(|block| !taken[*block as usize]);
                let free = after.or_else(|| (0..blocks).find(|block| !taken[*block as usize]));
                prop_assert_eq!(map.next_free(at), free);
                let Some(first) = free else { break };
                let run = taken[first as usize..].iter().take_while(|taken| !**taken).count();
                let run = run.min(count as usize);
                prop_assert_eq!(map.take(first, count), run as u64);
                taken[first as usize..][..run].fill(true);
            }
        }
    }
}
