//! No I/O at all: what is submitted is done. Measures the cost of everything else.

use super::{Backend, Completion, Handle, Op, Slab};
use std::io;

/// Completes everything at once.
#[derive(Default)]
pub struct Null {
    finished: Vec<Completion>,
}

impl Null {
    /// For `depth` I/Os in flight.
    pub fn new(depth: u32) -> Null {
        Null {
            finished: Vec::with_capacity(depth as usize),
        }
    }
}

impl Backend for Null {
    const SYNCHRONOUS: bool = false;

    #[inline]
    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
        for index in batch {
            let slot = &slab.slots[*index as usize];
            let moves = matches!(slot.op, Op::Read | Op::Write | Op::Trim);
            self.finished.push(Completion {
                slot: *index,
                result: if moves {
                    (slot.len - slot.moved) as i32
                } else {
                    0
                },
            });
        }
        Ok(batch.len())
    }

    #[inline]
    fn reap(
        &mut self,
        _: &Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        done.append(&mut self.finished);
        Ok(())
    }

    fn set_files(&mut self, _: &[Handle]) -> io::Result<()> {
        Ok(())
    }
}
