//! The cache in front of the device: its blocks, and the bytes that wait for writeback.

use super::spec::CacheSpec;
use iosonde_workload::rng::mix64;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hasher of block numbers that gives the same hashes in every process.
#[derive(Debug, Default)]
struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, block: u64) {
        self.0 = mix64(block);
    }
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct LruEntry {
    block: u64,
    newer: u32,
    older: u32,
}

/// Blocks in LRU order.
#[derive(Debug)]
pub(super) struct BlockCache {
    block_bytes: u64,
    most: usize,
    /// Never iterated, because its order is not deterministic.
    places: HashMap<u64, u32, BuildHasherDefault<BlockHasher>>,
    nodes: Vec<LruEntry>,
    unused: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl BlockCache {
    pub(super) fn new(spec: &CacheSpec) -> BlockCache {
        BlockCache {
            block_bytes: spec.block_bytes,
            most: (spec.bytes / spec.block_bytes).max(1) as usize,
            places: HashMap::default(),
            nodes: Vec::new(),
            unused: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Uses all blocks of a range and inserts missing ones. Returns whether all were present.
    pub(super) fn touch(&mut self, address: u64, bytes: u64) -> bool {
        let mut hit = true;
        for block in self.blocks(address, bytes) {
            match self.places.get(&block) {
                Some(&place) => self.unlink(place),
                None => {
                    hit = false;
                    self.admit(block);
                }
            }
            let place = self.places[&block];
            self.link_newest(place);
        }
        hit
    }

    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        for block in self.blocks(address, bytes) {
            if let Some(place) = self.places.remove(&block) {
                self.unlink(place);
                self.unused.push(place);
            }
        }
    }

    fn blocks(&self, address: u64, bytes: u64) -> std::ops::Range<u64> {
        address / self.block_bytes..(address + bytes).div_ceil(self.block_bytes)
    }

    /// Allocates an unlinked node for a block. Evicts the least recently used block if needed.
    fn admit(&mut self, block: u64) {
        if self.places.len() == self.most {
            let place = self.oldest;
            self.unlink(place);
            self.places.remove(&self.nodes[place as usize].block);
            self.unused.push(place);
        }
        let node = LruEntry {
            block,
            newer: NONE,
            older: NONE,
        };
        let place = match self.unused.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.places.insert(block, place);
    }

    fn unlink(&mut self, place: u32) {
        let LruEntry { newer, older, .. } = self.nodes[place as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let older = self.newest;
        let node = &mut self.nodes[place as usize];
        (node.newer, node.older) = (NONE, older);
        match older {
            NONE => self.oldest = place,
            _ => self.nodes[older as usize].newer = place,
        }
        self.newest = place;
    }
}

/// Dirty bytes, as a level that falls at a constant rate.
#[derive(Debug, Clone)]
pub(super) struct Dirty {
    byte_ns: f64,
    limit_bytes: f64,
    clean_at_ns: f64,
}

impl Dirty {
    pub(super) fn new(spec: &CacheSpec) -> Dirty {
        Dirty {
            byte_ns: 1e9 / spec.writeback_bw as f64,
            limit_bytes: spec.dirty_bytes as f64,
            clean_at_ns: 0.0,
        }
    }

    /// Adds dirty bytes and returns the time with room for them. `speed` scales the writeback rate.
    pub(super) fn add(&mut self, now_ns: f64, bytes: u64, speed: f64) -> f64 {
        let byte_ns = self.byte_ns / speed;
        self.clean_at_ns = self.clean_at_ns.max(now_ns) + bytes as f64 * byte_ns;
        now_ns.max(self.clean_at_ns - self.limit_bytes * byte_ns)
    }

    /// The time when all bytes that are dirty now are written back.
    pub(super) fn clean_at_ns(&self, now_ns: f64) -> f64 {
        self.clean_at_ns.max(now_ns)
    }

    pub(super) fn level_bytes(&self, now_ns: f64) -> f64 {
        (self.clean_at_ns - now_ns).max(0.0) / self.byte_ns
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::SimSpec;
    use super::*;
    use proptest::prelude::*;

    fn cache(blocks: u64) -> BlockCache {
        BlockCache::new(&CacheSpec {
            bytes: blocks * 10,
            block_bytes: 10,
            ..SimSpec::default().cache
        })
    }

    #[test]
    fn cache_evicts_the_least_recently_used_block() {
        let mut cache = cache(2);
        assert!(!cache.touch(0, 10));
        assert!(!cache.touch(10, 10));
        assert!(cache.touch(0, 10));
        assert!(!cache.touch(20, 10), "evicts block 1");
        assert!(cache.touch(0, 10));
        assert!(!cache.touch(10, 10));
    }

    #[test]
    fn range_hits_only_if_wholly_cached() {
        let mut cache = cache(8);
        cache.touch(0, 20);
        assert!(!cache.touch(10, 20));
        assert!(cache.touch(5, 24));
        cache.forget(10, 1);
        assert!(!cache.touch(0, 30));
    }

    #[test]
    fn dirty_bytes_wait_for_room() {
        let spec = CacheSpec {
            dirty_bytes: 100,
            writeback_bw: 1_000_000_000,
            ..SimSpec::default().cache
        };
        let mut dirty = Dirty::new(&spec);
        assert_eq!(dirty.add(0.0, 60, 1.0), 0.0);
        assert_eq!(dirty.add(0.0, 60, 1.0), 20.0);
        assert_eq!(dirty.clean_at_ns(0.0), 120.0);
        assert_eq!(dirty.level_bytes(100.0), 20.0);
        assert_eq!(dirty.add(500.0, 60, 1.0), 500.0);
    }

    proptest! {
        /// Compares the cache with a list that is searched linearly.
        #[test]
        fn lru_cache_agrees_with_a_linear_list(
            most in 1u64..6,
            steps in prop::collection::vec((0u64..9, 1u64..3, prop::bool::weighted(0.2)), 0..200),
        ) {
            let mut cache = cache(most);
            let mut list: Vec<u64> = Vec::new();
            for (block, count, forget) in steps {
                if forget {
                    cache.forget(block * 10, count * 10);
                    list.retain(|held| !(block..block + count).contains(held));
                    continue;
                }
                let mut hit = true;
                for block in block..block + count {
                    hit &= list.contains(&block);
                    list.retain(|held| *held != block);
                    list.insert(0, block);
                    list.truncate(most as usize);
                }
                prop_assert_eq!(cache.touch(block * 10, count * 10), hit);
            }
        }
    }
}
