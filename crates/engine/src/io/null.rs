//! Null engine: completes I/Os without doing them, to measure the overhead of iosonde itself.

use super::immediate::ImmediateIo;
use super::{Completion, FileHandle, Op, Slab, whole_length};
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
                    whole_length(slot.len - slot.moved)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Slot;
    use crate::sys::memory::{IoMemory, MemoryKind};

    #[test]
    fn null_trim_of_over_2_gib_completes_without_an_errno() {
        let trim = Slot {
            op: Op::Trim,
            len: 3 << 30,
            ..Slot::IDLE
        };
        let mut slab = Slab {
            slots: vec![trim].into(),
            memory: IoMemory::map(1, 4096, 0, MemoryKind::Pages).unwrap(),
        };
        let mut finished = Vec::new();
        Null.carry_out(&mut slab, &[0], &mut finished);
        assert_eq!(finished[0].result, i32::MAX);
    }
}
