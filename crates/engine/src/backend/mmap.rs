//! Memory-mapped files.

use super::{Backend, Completion, Handle, Op, Slab, uring::trim};
use crate::sys::mapping::Mapping;
use crate::sys::rw;
use std::io;

/// Copies between buffers and mapped files; O_DIRECT becomes a write-back after each write.
pub struct Mmap {
    handles: Vec<Handle>,
    mappings: Vec<Mapping>,
    write: bool,
    random: bool,
    write_through: bool,
    finished: Option<Completion>,
}

impl Mmap {
    /// Maps files for reading, or with `write` also for writing; `random` is advice to the kernel.
    pub fn new(write: bool, random: bool, write_through: bool) -> Mmap {
        Mmap {
            handles: Vec::new(),
            mappings: Vec::new(),
            write,
            random,
            write_through,
            finished: None,
        }
    }

    fn carry_out(&mut self, slab: &Slab, index: u32) -> i32 {
        let slot = &slab.slots[index as usize];
        let file = slot.file as usize;
        let mapping = &mut self.mappings[file];
        match slot.op {
            Op::Read => mapping.copy(&slab.memory, index, slot.offset, slot.len, false),
            Op::Write => {
                let moved = mapping.copy(&slab.memory, index, slot.offset, slot.len, true);
                match if self.write_through && moved >= 0 {
                    mapping.sync(slot.offset, u64::from(slot.len))
                } else {
                    0
                } {
                    0 => moved,
                    error => error,
                }
            }
            Op::Trim => trim(self.handles[file], slot.offset, slot.len),
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => {
                match mapping.sync(0, mapping.length()) {
                    0 => rw::fsync(self.handles[file].fd),
                    error => error,
                }
            }
        }
    }
}

impl Backend for Mmap {
    const SYNCHRONOUS: bool = true;

    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
        let result = self.carry_out(slab, batch[0]);
        self.finished = Some(Completion {
            slot: batch[0],
            result,
        });
        Ok(1)
    }

    fn reap(
        &mut self,
        _: &Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        done.extend(self.finished.take());
        Ok(())
    }

    fn set_files(&mut self, handles: &[Handle]) -> io::Result<()> {
        self.handles = handles.to_vec();
        self.mappings = handles
            .iter()
            .map(|handle| Mapping::map(handle.fd, handle.size, self.write, self.random))
            .collect::<io::Result<_>>()?;
        Ok(())
    }
}
