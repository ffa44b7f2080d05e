//! Null engine: completes I/Os without doing them, to measure the overhead of iosonde itself.

use super::immediate::CarryOut;
use super::{Completion, Handle, Op, Slab};
use std::io;

/// Completes each I/O in the call that submits it.
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
