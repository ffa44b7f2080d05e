//! A backend for tests that completes I/Os at once, until its waits fail.

use super::worker_parts::DEPTH;
use crate::io::remote::LostWrites;
use crate::io::{Backend, Completion, FileHandle, Op, Slab, Slot};
use std::io;

/// Completes I/Os, the last submitted one first. `FAST_PATH`: also on that of depth 1.
pub(crate) struct CompletingBackend<const FAST_PATH: bool> {
    /// Slots in flight.
    pub(crate) submitted: Vec<u32>,
    /// Number of I/Os that it completes, and the errno of each wait from the last of them on.
    pub(crate) completes: (usize, i32),
    /// Called for each completion. Returns the result of a flush.
    pub(crate) carry_out: Box<dyn FnMut(&Slot) -> i32>,
    /// Results of the confirmations to come, the last one first. Without one, no write was lost.
    pub(crate) lost_writes: Vec<LostWrites>,
}

impl<const FAST_PATH: bool> Default for CompletingBackend<FAST_PATH> {
    fn default() -> Self {
        CompletingBackend {
            submitted: Vec::new(),
            completes: (usize::MAX, 0),
            carry_out: Box::new(|_| 0),
            lost_writes: Vec::new(),
        }
    }
}

impl<const FAST_PATH: bool> Backend for CompletingBackend<FAST_PATH> {
    const SYNCHRONOUS: bool = false;
    const SINGLE_IOS: bool = FAST_PATH;

    fn submit(&mut self, _: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        self.submitted.extend_from_slice(batch);
        assert!(
            self.submitted.len() <= DEPTH as usize,
            "slots in flight are taken again"
        );
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        slab: &mut Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let (left, errno) = self.completes;
        let count = left.min(self.submitted.len());
        let kept = self.submitted.len() - count;
        for index in self.submitted.drain(kept..).rev() {
            let slot = &slab.slots[index as usize];
            let flushed = (self.carry_out)(slot);
            let result = match slot.op {
                Op::Fsync => flushed,
                _ => slot.len as i32,
            };
            done.push(Completion {
                slot: index,
                result,
            });
        }
        self.completes.0 -= count;
        match self.completes.0 {
            0 => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn confirm_writes(&mut self) -> Result<(), LostWrites> {
        assert!(self.submitted.is_empty(), "confirmed once all I/Os ended");
        self.lost_writes.pop().map_or(Ok(()), Err)
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}
