//! Placement of the files on the device.

use super::token_bucket::TokenBucket;
use std::io;

/// Each file starts at a multiple of this many bytes.
const ALIGNMENT: u64 = 1 << 20;

/// A file that workers use. Workers that pass the same `id` share the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimFile {
    /// Identity of the file: a descriptor, or any other number.
    pub id: i32,
    /// Length in bytes.
    pub bytes: u64,
}

/// A file on the device.
#[derive(Debug)]
struct DeviceFile {
    id: i32,
    base: u64,
    bytes: u64,
    lock: Option<TokenBucket>,
}

/// All files, one after the other.
#[derive(Debug)]
pub(super) struct DeviceFiles {
    extents: Vec<DeviceFile>,
    lock_ns: u64,
}

impl DeviceFiles {
    /// An empty device. Two writes to one file will be at least `lock_ns` apart.
    pub(super) fn new(lock_ns: u64) -> DeviceFiles {
        DeviceFiles {
            extents: Vec::new(),
            lock_ns,
        }
    }

    /// Returns the numbers of the files. New files are placed after the others.
    pub(super) fn place(&mut self, files: &[SimFile]) -> io::Result<Vec<u32>> {
        files.iter().map(|file| self.place_one(file)).collect()
    }

    fn place_one(&mut self, file: &SimFile) -> io::Result<u32> {
        let number = match self.extents.iter().position(|extent| extent.id == file.id) {
            Some(number) => number,
            None => self.append(file.id),
        };
        let is_last = number + 1 == self.extents.len();
        let extent = &mut self.extents[number];
        if file.bytes > extent.bytes {
            if !is_last {
                return Err(io::Error::other(
                    "a simulated file cannot grow into the next one",
                ));
            }
            extent.bytes = file.bytes;
        }
        Ok(number as u32)
    }

    fn append(&mut self, id: i32) -> usize {
        let end = self.extents.last().map_or(0, |last| last.base + last.bytes);
        let lock = (self.lock_ns > 0).then(|| TokenBucket::new(1e9 / self.lock_ns as f64, 0.0));
        let base = end.next_multiple_of(ALIGNMENT);
        self.extents.push(DeviceFile {
            id,
            base,
            bytes: 0,
            lock,
        });
        self.extents.len() - 1
    }

    /// Device address of an offset in a file.
    pub(super) fn address(&self, file: u32, offset: u64) -> u64 {
        self.extents[file as usize].base + offset
    }

    /// The lock of a file, which each write to it takes.
    pub(super) fn lock(&mut self, file: u32) -> Option<&mut TokenBucket> {
        self.extents[file as usize].lock.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: i32, bytes: u64) -> SimFile {
        SimFile { id, bytes }
    }

    #[test]
    fn files_are_placed_in_sequence_and_keep_their_address() {
        let mut files = DeviceFiles::new(0);
        assert_eq!(
            files.place(&[file(7, 4096), file(9, 4096)]).unwrap(),
            [0, 1]
        );
        let again = [file(9, 3 << 20), file(11, 1), file(7, 4096)];
        assert_eq!(files.place(&again).unwrap(), [1, 2, 0]);
        assert_eq!(
            [0, 1, 2].map(|file| files.address(file, 5)),
            [5, 5 + (1 << 20), 5 + (4 << 20)]
        );
    }

    #[test]
    fn file_growth_into_the_next_file_is_refused() {
        let mut files = DeviceFiles::new(0);
        files.place(&[file(7, 4096), file(9, 4096)]).unwrap();
        assert!(files.place(&[file(7, 4097)]).is_err());
    }
}
