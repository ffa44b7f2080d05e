use super::*;
use crate::interval::Interval;
use iosonde_job::plan::Direction;
use std::sync::Mutex;

/// An in-memory block file with space for a limited number of bytes.
#[derive(Debug, Default)]
struct MemoryBlockFile {
    bytes_max: usize,
    bytes: Mutex<Vec<u8>>,
}

impl BlockFile for MemoryBlockFile {
    fn append(&self, block: &[u8]) -> io::Result<u64> {
        let mut bytes = self.bytes.lock().unwrap();
        if bytes.len() + block.len() > self.bytes_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.extend(block);
        Ok((bytes.len() - block.len()) as u64)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let offset = offset as usize;
        into.copy_from_slice(&self.bytes.lock().unwrap()[offset..offset + into.len()]);
        Ok(())
    }
}

/// A file whose device fails on reads.
#[derive(Debug)]
struct UnreadableBlockFile;

impl BlockFile for UnreadableBlockFile {
    fn append(&self, _block: &[u8]) -> io::Result<u64> {
        Ok(0)
    }

    fn read(&self, _offset: u64, _into: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Other.into())
    }
}

/// An item of one KiB.
#[derive(Clone)]
struct Kib;

impl BlockItem for Kib {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend([7; 1024]);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Kib> {
        *bytes = bytes.get(1024..)?;
        Some(Kib)
    }
}

#[test]
fn spill_list_reports_an_unreadable_file() {
    let mut list = SpillList::spilling_to(Arc::new(UnreadableBlockFile));
    list.extend(vec![Kib; 6000]);
    assert!(!list.is_whole());
    assert!(list.iter().count() < list.len());
    // Remaining items keep their index. From an index within the lost block on, only the lost items
    // are missing.
    let lost = list.len() - list.iter().count();
    let indices: Vec<usize> = list.indexed_from(10).map(|(index, _)| index).collect();
    assert_eq!(indices.len(), 6000 - 10 - lost);
    let mut pairs = indices.windows(2);
    let gap = pairs.find(|pair| pair[0] + 1 != pair[1]).expect("a gap");
    assert_eq!(gap[1] - gap[0] - 1, lost);
    assert!(pairs.all(|pair| pair[0] + 1 == pair[1]));
    assert_eq!(list.iter_from(gap[0] + 5).count(), 6000 - gap[1]);
    let in_memory: SpillList<Kib> = vec![Kib; 6000].into();
    assert!(in_memory.is_whole());
}

/// An interval that differs from all others in each field. A higher number has more buckets.
fn interval(number: u64) -> Interval {
    let mut interval = Interval {
        start_ns: number * 1_000_000_000,
        length_ns: 1_000_000_000 - number % 3,
        ramp: number < 2,
        stopped_ns: number % 5 * 1_000_000,
        ..Interval::default()
    };
    for (place, direction) in (1..).zip(Direction::ALL) {
        interval.directions[direction].ios = number * place;
        interval.directions[direction].bytes = number * place * 4096;
    }
    for value in 0..number % 700 {
        interval.latency.record_n(value * value * 1000, 1 + value);
    }
    if number % 4 == 1 {
        interval.sync_latency.get_or_insert_default().record(number);
    }
    interval
}

fn count(list: &SpillList<Interval>) -> (usize, usize) {
    let in_file = |block: &&SpillBlock| matches!(block.place, BlockPlace::File { .. });
    (
        list.blocks.len(),
        list.blocks.iter().filter(in_file).count(),
    )
}

#[test]
fn list_reads_like_a_vector_whatever_its_length() {
    for length in [0, 1, 600, 601, 1200, 1201, 1801] {
        let all: Vec<Interval> = (0..length)
            .map(|number| interval(number).compacted())
            .collect();
        let file = Arc::new(MemoryBlockFile {
            bytes_max: usize::MAX,
            ..MemoryBlockFile::default()
        });
        let mut list = SpillList::spilling_to(file);
        list.extend(all.iter().cloned());
        assert_eq!((list.len(), list.is_empty()), (all.len(), all.is_empty()));
        assert!(
            list.iter().map(Cow::into_owned).eq(all.iter().cloned()),
            "{length}"
        );
        assert_eq!(list.last().as_deref(), all.last());
        for first in [0, 1, 599, 600, 601, 1200, 1800, 5000] {
            let rest = all.iter().skip(first).cloned();
            assert!(
                list.iter_from(first).map(Cow::into_owned).eq(rest),
                "{first}"
            );
        }
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(json, serde_json::to_string(&all).unwrap());
        let read: SpillList<Interval> = serde_json::from_str(&json).unwrap();
        assert_eq!(read, list);
        assert_eq!(SpillList::from(all), list);
    }
}

#[test]
fn blocks_beyond_the_bound_go_to_the_file() {
    let file = Arc::new(MemoryBlockFile {
        bytes_max: usize::MAX,
        ..MemoryBlockFile::default()
    });
    let mut list = SpillList::spilling_to(file.clone());
    let all = || (0..15_000).map(interval);
    list.extend(all());
    let (blocks, in_file) = count(&list);
    assert!(
        blocks == 24 && (1..blocks).contains(&in_file),
        "{in_file} of {blocks}"
    );
    assert!(list.memory_bytes <= MEMORY_BYTES_MAX && list.open.len() <= OPEN_ITEMS_MAX);
    assert!(list.iter().map(Cow::into_owned).eq(all()));
    let copy = list.clone();
    list.change_each(|index, interval| interval.start_ns += index as u64);
    assert!(copy.iter().map(Cow::into_owned).eq(all()));
    assert_eq!(list.last().unwrap().start_ns, 14_999 * 1_000_000_001);
    list.clear();
    assert_eq!(
        (list.len(), list.iter().count(), copy.len()),
        (0, 0, 15_000)
    );
}

#[test]
fn list_whose_file_is_full_stays_in_memory() {
    let file = Arc::new(MemoryBlockFile {
        bytes_max: 1 << 20,
        ..MemoryBlockFile::default()
    });
    let mut list = SpillList::spilling_to(file);
    list.extend((0..15_000).map(interval));
    let (blocks, in_file) = count(&list);
    assert!(0 < in_file && in_file < 6, "{in_file} of {blocks}");
    assert!(list.memory_bytes > MEMORY_BYTES_MAX);
    assert!(
        list.iter()
            .map(Cow::into_owned)
            .eq((0..15_000).map(interval))
    );
}

#[test]
fn truncated_bytes_decode_to_no_interval() {
    let mut bytes = Vec::new();
    interval(333).encode(&mut bytes);
    for end in 0..bytes.len() {
        assert_eq!(Interval::decode(&mut &bytes[..end]), None, "{end}");
    }
    let mut rest = &bytes[..];
    assert_eq!(Interval::decode(&mut rest), Some(interval(333)));
    assert!(rest.is_empty());
}
