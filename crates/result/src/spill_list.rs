//! Lists that grow for as long as a run lasts, in little memory: all but the latest items are encoded, in blocks, and blocks beyond a
//! few MiB go to a [`BlockFile`].

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// Items that are held as they are. A run of usual length has fewer: its list costs what a vector does.
const OPEN_ITEMS_MAX: usize = 600;
/// Encoded blocks that are held in memory.
const MEMORY_BYTES_MAX: usize = 4 << 20;

/// What a list can hold.
pub trait BlockItem: Clone {
    /// Appends the item in a form that says where it ends.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Takes an item off the front. `None`: these are not the bytes of one.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;

    /// The same item in its smallest form in memory.
    fn compacted(self) -> Self {
        self
    }
}

/// A file that takes blocks and gives them back while the program runs.
pub trait BlockFile: fmt::Debug + Send + Sync {
    /// Appends a block: where it begins.
    ///
    /// # Errors
    /// There is no file, or no room in it. The block is held in memory then.
    fn append(&self, block: &[u8]) -> io::Result<u64>;

    /// Reads a block.
    ///
    /// # Errors
    /// Those of the device that the file is on.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Makes the files of lists to which none is given.
static NEW_FILE: OnceLock<fn() -> Arc<dyn BlockFile>> = OnceLock::new();

/// From now on lists to which no file is given, such as those that are read from JSON, get one of these. A program says so once, at its
/// start: this crate makes no files.
pub fn make_files_with(new_file: fn() -> Arc<dyn BlockFile>) {
    // Later callers have the same wish.
    let _ = NEW_FILE.set(new_file);
}

/// A list of items in the order in which they came. A copy shares all blocks.
#[derive(Clone)]
pub struct SpillList<T> {
    blocks: Vec<Block>,
    open: Vec<T>,
    len: usize,
    memory_bytes: usize,
    file: Option<Arc<dyn BlockFile>>,
}

/// Some items, encoded.
#[derive(Clone)]
struct Block {
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

impl Block {
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

    /// Its items. A file that cannot be read back has lost them: the result goes on without.
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
    /// An empty list whose blocks go to this file when they are many. Without any file they stay in memory, encoded.
    pub fn spilling_to(file: Arc<dyn BlockFile>) -> SpillList<T> {
        SpillList {
            file: Some(file),
            ..SpillList::default()
        }
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if self.open.len() == OPEN_ITEMS_MAX {
            self.close_block();
        }
        self.open.push(item.compacted());
        self.len += 1;
    }

    fn close_block(&mut self) {
        let mut bytes = Vec::new();
        self.open.iter().for_each(|item| item.encode(&mut bytes));
        let block = Block {
            items: self.open.len(),
            place: self.place(&bytes),
        };
        self.blocks.push(block);
        self.open.clear();
    }

    /// Where a block goes: a file that fails gets no further one.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether all items can be read back. A file that fails has lost a block; iterating passes over it.
    pub fn is_whole(&self) -> bool {
        let is_there = |block: &Block| block.items::<T>().len() == block.items;
        self.blocks.iter().all(is_there)
    }

    /// All items, in order. Those of a block are decoded when the iterator comes to it.
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

    /// The items from this index on: blocks before it are not decoded.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = Cow<'_, T>> {
        self.indexed_from(index).map(|(_, item)| item)
    }

    /// The items from this index on, each with its own index: those of a lost block are missing.
    pub fn indexed_from(&self, from: usize) -> impl Iterator<Item = (usize, Cow<'_, T>)> {
        let mut iter = self.iter();
        while let Some(block) = self.blocks.get(iter.next_block)
            && iter.block_end + block.items <= from
        {
            iter.block_end += block.items;
            iter.left -= block.items;
            iter.next_block += 1;
        }
        let indexed = std::iter::from_fn(move || {
            let item = iter.next()?;
            Some((iter.end - 1, item))
        });
        indexed.skip_while(move |(index, _)| *index < from)
    }

    /// The last item.
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

    /// Keeps so many items at most.
    pub fn truncate(&mut self, length: usize) {
        let mut index = 0..length;
        self.change_all(|item| index.next().map(|_| item));
    }

    /// Changes each item, given with its index.
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
        *self = changed;
    }
}

/// Items of a [`SpillList`]: borrowed where they are held as they are, else decoded.
pub struct Iter<'a, T: BlockItem> {
    list: &'a SpillList<T>,
    next_block: usize,
    decoded: std::vec::IntoIter<T>,
    open: std::slice::Iter<'a, T>,
    left: usize,
    /// The index behind the last item.
    end: usize,
    /// The index behind the last block that was decoded.
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

/// To a reader of JSON it is an array.
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
