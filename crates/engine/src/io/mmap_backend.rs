//! Backend of memory-mapped files.

use super::file_calls::discard_range;
use super::immediate::ImmediateIo;
use super::{Completion, FileHandle, Op, Slab};
use crate::sys::mapping::Mapping;
use crate::sys::rw;
use std::io;

/// Copies between buffers and mapped files. O_DIRECT becomes an msync(2) after each write.
pub(crate) struct Mmap {
    handles: Vec<FileHandle>,
    /// `None`: an empty file, which cannot be mapped.
    mappings: Vec<Option<Mapping>>,
    write: bool,
    random: bool,
    write_through: bool,
}

impl Mmap {
    /// Maps files for reads, and with `write` for writes. `random` is the advice for madvise(2).
    pub(crate) fn new(write: bool, random: bool, write_through: bool) -> Mmap {
        Mmap {
            handles: Vec::new(),
            mappings: Vec::new(),
            write,
            random,
            write_through,
        }
    }

    fn copy(&mut self, slab: &mut Slab, index: u32) -> i32 {
        let slot = &slab.slots[index as usize];
        let file = slot.file as usize;
        // An empty file has no I/O, but a flush of it is possible.
        let Some(mapping) = &mut self.mappings[file] else {
            return rw::fsync(self.handles[file].fd);
        };
        match slot.op {
            Op::Read => mapping.copy(&mut slab.memory, index, slot.offset, slot.len, false),
            Op::Write => {
                let moved = mapping.copy(&mut slab.memory, index, slot.offset, slot.len, true);
                match if self.write_through && moved >= 0 {
                    mapping.sync(slot.offset, u64::from(slot.len))
                } else {
                    0
                } {
                    0 => moved,
                    error => error,
                }
            }
            Op::Trim => discard_range(self.handles[file], slot.offset, slot.len),
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => {
                match mapping.sync(0, mapping.length()) {
                    0 => rw::fsync(self.handles[file].fd),
                    error => error,
                }
            }
        }
    }
}

impl ImmediateIo for Mmap {
    const SYNCHRONOUS: bool = true;

    fn carry_out(&mut self, slab: &mut Slab, batch: &[u32], finished: &mut Vec<Completion>) {
        let result = self.copy(slab, batch[0]);
        finished.push(Completion {
            slot: batch[0],
            result,
        });
    }

    fn unmap_pages(&mut self) {
        for mapping in self.mappings.iter().flatten() {
            mapping.unmap_pages();
        }
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        self.mappings = handles
            .iter()
            .map(|handle| {
                let is_mapped = handle.size > 0;
                let map = || Mapping::map(handle.fd, handle.size, self.write, self.random);
                is_mapped.then(map).transpose()
            })
            .collect::<io::Result<_>>()?;
        Ok(())
    }
}
