//! Backend of a Ceph image.

use super::{Backend, Completion, Handle, Op, Slab};
use crate::ceph::{Image, ImageRequests, Piece};
use crate::interrupt::Interrupt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// I/O on an image, which is the only file.
pub struct Rbd {
    requests: ImageRequests,
}

impl Rbd {
    /// A backend for `depth` I/Os in flight.
    pub fn new(image: &Image, depth: u32, polls: bool) -> Rbd {
        Rbd {
            requests: ImageRequests::new(image, depth as usize, polls),
        }
    }

    /// After a stop request, abandons requests once the cluster stops answering.
    pub fn heeding(mut self, wish: &Arc<Interrupt>) -> Rbd {
        self.requests.heed(wish);
        self
    }

    fn start(&mut self, slab: &Slab, index: u32) {
        let slot = slab.slots[index as usize];
        let piece = Piece {
            slot: index,
            at: slot.moved as usize,
            len: (slot.len - slot.moved) as usize,
            offset: slot.offset + u64::from(slot.moved),
        };
        match slot.op {
            Op::Read => self.requests.read(&slab.memory, piece),
            Op::Write => self.requests.write(&slab.memory, piece),
            Op::Trim => self.requests.discard(piece),
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => self.requests.flush(index),
        }
    }
}

impl Backend for Rbd {
    const SYNCHRONOUS: bool = false;

    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
        for index in batch {
            self.start(slab, *index);
        }
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        slab: &Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        self.requests
            .collect(min, timeout_ns.map(Duration::from_nanos), done);
        if self.requests.gave_up() {
            slab.memory.left_mapped().leave();
        }
        Ok(())
    }

    fn set_files(&mut self, _: &[Handle]) -> io::Result<()> {
        Ok(())
    }
}
