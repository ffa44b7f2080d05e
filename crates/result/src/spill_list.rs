//! [`SpillList`]: a list that grows with a run in bounded memory. All but the latest items are
//! encoded in blocks. Blocks beyond a few MiB go to a [`BlockFile`].

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// Items that are kept unencoded. A run of usual length has fewer.
const OPEN_ITEMS_MAX: usize = 600;
/// Bytes of encoded blocks kept in memory.
const MEMORY_BYTES_MAX: usize = 4 << 20;

/// Item of a [`SpillList`].
pub trait BlockItem: Clone {
    /// Appends the item in a self-delimiting encoding.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Decodes an item and advances the slice. Returns `None` if the bytes are not an item.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;

    /// Returns the item in its smallest form in memory.
    fn compacted(self) -> Self {
        self
    }
}

/// File that stores blocks and reads them back while the program runs.
pub trait BlockFile: fmt::Debug + Send + Sync {
    /// Appends a block and returns its offset.
    ///
    /// # Errors
    /// If there is no file, or no space for the block. The block then stays in memory.
    fn append(&self, block: &[u8]) -> io::Result<u64>;

    /// Reads a block.
    ///
    /// # Errors
    /// If the device that holds the file fails.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Creates the files of lists that were created without one.
static NEW_FILE: OnceLock<fn() -> Arc<dyn BlockFile>> = OnceLock::new();

/// Sets the function that creates a file for lists that were created without one, such as those
/// read from JSON. A program calls it once, at its start, because this crate does not create files.
pub fn make_files_with(new_file: fn() -> Arc<dyn BlockFile>) {
    // Later callers pass the same function.
    let _ = NEW_FILE.set(new_file);
}

/// List of items in order of insertion. Clones share all blocks.
#[derive(Clone)]
pub struct SpillList<T> {
    blocks: Vec<SpillBlock>,
    open: Vec<T>,
    len: usize,
    memory_bytes: usize,
    file: Option<Arc<dyn BlockFile>>,
}

#[derive(Clone)]
struct SpillBlock {
    items: usize,
    place: BlockPlace,
}

#[derive(Clone)]
enum BlockPlace {
    Memory(Arc<[u8]>),
    File {
        file: Arc<dyn BlockFile>,
        offset: u64,
        bytes: usize,
    },
}

impl SpillBlock {
    fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.place {
            BlockPlace::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            BlockPlace::File {
                file,
                offset,
                bytes,
            } => {
                let mut read = vec![0; *bytes];
                file.read(*offset, &mut read)?;
                Ok(Cow::Owned(read))
            }
        }
    }

    /// Decodes the items. A block that cannot be read back has none, and its items are lost.
    fn items<T: BlockItem>(&self) -> Vec<T> {
        let Ok(bytes) = self.bytes() else {
            return Vec::new();
        };
        let mut rest = &*bytes;
        let items: Vec<T> = (0..self.items)
            .map_while(|_| T::decode(&mut rest))
            .collect();
        debug_assert!(items.len() == self.items && rest.is_empty());
        items
    }
}

impl<T> Default for SpillList<T> {
    fn default() -> Self {
        SpillList {
            blocks: Vec::new(),
            open: Vec::new(),
            len: 0,
            memory_bytes: 0,
            file: NEW_FILE.get().map(|new_file| new_file()),
        }
    }
}

impl<T: BlockItem> SpillList<T> {
    /// Creates an empty list that spills blocks to `file`.
    pub fn spilling_to(file: Arc<dyn BlockFile>) -> SpillList<T> {
        SpillList {
            file: Some(file),
            ..SpillList::default()
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        if self.open.len() == OPEN_ITEMS_MAX {
            self.close_block();
        }
        self.open.push(item.compacted());
        self.len += 1;
    }

    fn close_block(&mut self) {
        let closed: usize = self.blocks.iter().map(|block| block.items).sum();
        assert_eq!(
            closed + self.open.len(),
            self.len,
            "each item is in a block or open"
        );
        let mut bytes = Vec::new();
        self.open.iter().for_each(|item| item.encode(&mut bytes));
        let block = SpillBlock {
            items: self.open.len(),
            place: self.place(&bytes),
        };
        self.blocks.push(block);
        self.open.clear();
        let in_memory = self.blocks.iter().map(|block| match &block.place {
            BlockPlace::Memory(bytes) => bytes.len(),
            BlockPlace::File { .. } => 0,
        });
        assert_eq!(
            in_memory.sum::<usize>(),
            self.memory_bytes,
            "the bound counts each block"
        );
    }

    /// Stores a block. A file that fails is not used again.
    fn place(&mut self, bytes: &[u8]) -> BlockPlace {
        if self.memory_bytes + bytes.len() > MEMORY_BYTES_MAX
            && let Some(file) = self.file.take()
            && let Ok(offset) = file.append(bytes)
        {
            self.file = Some(file.clone());
            return BlockPlace::File {
                file,
                offset,
                bytes: bytes.len(),
            };
        }
        self.memory_bytes += bytes.len();
        BlockPlace::Memory(bytes.into())
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether all items can be read back. Iteration skips lost blocks.
    pub fn is_whole(&self) -> bool {
        let is_there = |block: &SpillBlock| block.items::<T>().len() == block.items;
        self.blocks.iter().all(is_there)
    }

    /// Returns an iterator over all items in order. It decodes one block at a time.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            list: self,
            next_block: 0,
            decoded: Vec::new().into_iter(),
            open: self.open.iter(),
            left: self.len,
            end: 0,
            block_end: 0,
        }
    }

    /// Returns the items from `index` on. Earlier blocks are not decoded.
    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = Cow<'_, T>> {
        self.indexed_from(index).map(|(_, item)| item)
    }

    /// Returns the items from `from` on, each with its index. Items of a lost block are missing.
    pub fn indexed_from(&self, from: usize) -> impl Iterator<Item = (usize, Cow<'_, T>)> {
        let mut iter = self.iter();
        while let Some(block) = self.blocks.get(iter.next_block)
            && iter.block_end + block.items <= from
        {
            iter.block_end += block.items;
            iter.left -= block.items;
            iter.next_block += 1;
        }
        debug_assert_eq!(
            iter.block_end + iter.left,
            self.len,
            "each item is skipped or left"
        );
        let indexed = std::iter::from_fn(move || {
            let item = iter.next()?;
            Some((iter.end - 1, item))
        });
        indexed.skip_while(move |(index, _)| *index < from)
    }

    /// Returns the last item.
    pub fn last(&self) -> Option<Cow<'_, T>> {
        match self.open.last() {
            Some(item) => Some(Cow::Borrowed(item)),
            None => self.blocks.last()?.items().pop().map(Cow::Owned),
        }
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        *self = SpillList {
            file: self.file.take(),
            ..SpillList::default()
        };
    }

    /// Shortens the list to at most `length` items.
    pub fn truncate(&mut self, length: usize) {
        let mut index = 0..length;
        self.change_all(|item| index.next().map(|_| item));
        assert!(self.len <= length, "the list has at most {length} items");
    }

    /// Calls `change` for each item with its index.
    pub fn change_each(&mut self, mut change: impl FnMut(usize, &mut T)) {
        let mut index = 0;
        self.change_all(|mut item| {
            change(index, &mut item);
            index += 1;
            Some(item)
        });
    }

    fn change_all(&mut self, mut change: impl FnMut(T) -> Option<T>) {
        let mut changed = SpillList {
            file: self.file.clone(),
            ..SpillList::default()
        };
        changed.extend(self.iter().filter_map(|item| change(item.into_owned())));
        assert!(changed.len <= self.len, "a change keeps or removes items");
        *self = changed;
    }
}

/// Iterator over a [`SpillList`]. Unencoded items are borrowed, others decoded.
pub struct Iter<'a, T: BlockItem> {
    list: &'a SpillList<T>,
    next_block: usize,
    decoded: std::vec::IntoIter<T>,
    open: std::slice::Iter<'a, T>,
    left: usize,
    /// Index after the last returned item.
    end: usize,
    /// Index after the last item of the last decoded block.
    block_end: usize,
}

impl<'a, T: BlockItem> Iterator for Iter<'a, T> {
    type Item = Cow<'a, T>;

    fn next(&mut self) -> Option<Cow<'a, T>> {
        self.left = self.left.saturating_sub(1);
        loop {
            if let Some(item) = self.decoded.next() {
                self.end += 1;
                return Some(Cow::Owned(item));
            }
            let Some(block) = self.list.blocks.get(self.next_block) else {
                let item = self.open.next()?;
                self.end = self.end.max(self.block_end) + 1;
                debug_assert!(self.end <= self.list.len, "each item is returned once");
                return Some(Cow::Borrowed(item));
            };
            self.next_block += 1;
            self.end = self.block_end;
            self.block_end += block.items;
            self.decoded = block.items().into_iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<'a, T: BlockItem> IntoIterator for &'a SpillList<T> {
    type Item = Cow<'a, T>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T: BlockItem> Extend<T> for SpillList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: BlockItem> FromIterator<T> for SpillList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = SpillList::default();
        list.extend(items);
        list
    }
}

impl<T: BlockItem> From<Vec<T>> for SpillList<T> {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: BlockItem + PartialEq> PartialEq for SpillList<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T: BlockItem + fmt::Debug> fmt::Debug for SpillList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: BlockItem + Serialize> Serialize for SpillList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: BlockItem + Deserialize<'de>> Deserialize<'de> for SpillList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: BlockItem + Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = SpillList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut list = SpillList::default();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(list)
            }
        }

        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// In JSON the list is an array.
impl<T: JsonSchema> JsonSchema for SpillList<T> {
    fn inline_schema() -> bool {
        Vec::<T>::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<T>::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Vec::<T>::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests;
