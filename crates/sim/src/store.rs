//! Contents of the simulated device: the written data, and zeros elsewhere.

use super::spec::StoreFaults;
use std::collections::BTreeMap;

/// Unit of storage in bytes, and maximum length of a piece that a read returns.
pub const PAGE_BYTES: u64 = 4096;

/// A sparse store of pages.
#[derive(Debug)]
pub(super) struct PageStore {
    pages: BTreeMap<u64, Box<[u8]>>,
    faults: StoreFaults,
    writes: u64,
}

impl PageStore {
    pub(super) fn new(faults: StoreFaults) -> PageStore {
        PageStore {
            pages: BTreeMap::new(),
            faults,
            writes: 0,
        }
    }

    /// Stores the data of one write, unless a fault applies to the write.
    pub(super) fn write(&mut self, address: u64, data: &[u8]) {
        self.writes += 1;
        if self.writes == self.faults.lose {
            return;
        }
        for (page, within, range) in pieces(address, data.len()) {
            let held = self
                .pages
                .entry(page)
                .or_insert_with(|| vec![0; PAGE_BYTES as usize].into());
            held[within..within + range.len()].copy_from_slice(&data[range]);
        }
        if self.writes == self.faults.flip && !data.is_empty() {
            self.flip_bit(address + data.len() as u64 / 2);
        }
    }

    fn flip_bit(&mut self, address: u64) {
        if let Some(page) = self.pages.get_mut(&(address / PAGE_BYTES)) {
            page[(address % PAGE_BYTES) as usize] ^= 0x10;
        }
    }

    /// Reads contents piece by piece. Each call of `take` gets a range within the read and its
    /// bytes. The bytes are `None` where nothing was written.
    pub(super) fn read(
        &self,
        address: u64,
        bytes: usize,
        mut take: impl FnMut(std::ops::Range<usize>, Option<&[u8]>),
    ) {
        for (page, within, range) in pieces(address, bytes) {
            let held = self
                .pages
                .get(&page)
                .map(|page| &page[within..within + range.len()]);
            take(range, held);
        }
    }

    /// Discards a range: it reads as zeros.
    pub(super) fn discard(&mut self, address: u64, bytes: usize) {
        for (page, within, range) in pieces(address, bytes) {
            if range.len() == PAGE_BYTES as usize {
                self.pages.remove(&page);
            } else if let Some(held) = self.pages.get_mut(&page) {
                held[within..within + range.len()].fill(0);
            }
        }
    }
}

/// Cuts a range at page borders. Returns page, offset in the page, and range within `bytes`.
fn pieces(
    address: u64,
    bytes: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == bytes {
            return None;
        }
        let here = address + at as u64;
        let within = (here % PAGE_BYTES) as usize;
        let length = (PAGE_BYTES as usize - within).min(bytes - at);
        at += length;
        Some((here / PAGE_BYTES, within, at - length..at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(store: &PageStore, address: u64, bytes: usize) -> Vec<u8> {
        let mut all = vec![0xee; bytes];
        store.read(address, bytes, |range, held| match held {
            Some(held) => all[range].copy_from_slice(held),
            None => all[range].fill(0),
        });
        all
    }

    #[test]
    fn store_faults_flip_one_bit_or_drop_the_write() {
        let mut store = PageStore::new(StoreFaults { flip: 2, lose: 3 });
        for write in 0..3 {
            store.write(write * 100, &[0xff; 100]);
        }
        assert_eq!(read(&store, 0, 100), [0xff; 100]);
        let flipped: u32 = read(&store, 100, 100)
            .iter()
            .map(|byte| byte.count_zeros())
            .sum();
        assert_eq!(flipped, 1);
        assert_eq!(read(&store, 200, 100), [0; 100]);
    }

    proptest! {
        #[test]
        fn reads_what_was_written_last(
            steps in prop::collection::vec(
                (0u64..20_000, 1usize..9_000, 1u8.., prop::bool::weighted(0.3)),
                1..20
            ),
        ) {
            let mut store = PageStore::new(StoreFaults::default());
            let mut plain = vec![0u8; 30_000];
            for (address, bytes, fill, discard) in steps {
                let range = address as usize..address as usize + bytes;
                if discard {
                    store.discard(address, bytes);
                    plain[range].fill(0);
                } else {
                    store.write(address, &vec![fill; bytes]);
                    plain[range].fill(fill);
                }
            }
            prop_assert_eq!(read(&store, 0, 30_000), plain);
        }
    }
}
