//! No I/O at all: what is submitted is done. Measures the cost of everything else.

use super::immediate::CarryOut;
use super::{Completion, Handle, Op, Slab};
use std::io;

/// Completes everything at once.
#[derive(Default)]
pub struct Null;

impl CarryOut for Null {
    const SYNCHRONOUS: bool = false;

    #[inline]
    fn carry_out(&mut self, slab: &Slab, batch: &[u32], finished: &mut Vec<Completion>) {
        for index in batch {
            let slot = &slab.slots[*index as usize];
            let moves = matches!(slot.op, Op::Read | Op::Write | Op::Trim);
            finished.push(Completion {
                slot: *index,
                result: if moves {
                    (slot.len - slot.moved) as i32
                } else {
                    0
                },
            });
        }
    }

    fn set_files(&mut self, _: &[Handle]) -> io::Result<()> {
        Ok(())
    }
}
