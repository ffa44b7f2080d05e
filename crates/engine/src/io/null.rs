//! Null engine: completes I/Os without doing them, to measure the overhead of iosonde itself.

use super::immediate::ImmediateIo;
use super::{Completion, FileHandle, Op, Slab};
use std::io;

/// Completes each I/O in the call that submits it.
#[derive(Default)]
pub(crate) struct Null;

impl ImmediateIo for Null {
    const SYNCHRONOUS: bool = false;

    #[inline]
    fn carry_out(&mut self, slab: &mut Slab, batch: &[u32], finished: &mut Vec<Completion>) {
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

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}
