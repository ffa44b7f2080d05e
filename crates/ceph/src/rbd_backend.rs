//! Backend of a Ceph image.

use crate::sys::image_requests::ImageRequests;
use crate::sys::rbd::Image;
use crate::sys::slot_buffers::IoPart;
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::io::remote::{LostWrites, RemoteIo};
use iosonde_engine::io::{Completion, Op, Slab};
use iosonde_job::plan::ErrorPolicy;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// I/O on an image, which is the only file.
pub(crate) struct RbdBackend {
    requests: ImageRequests,
}

impl RbdBackend {
    /// A backend for `depth` I/Os in flight.
    pub(crate) fn new(image: &Image, depth: u32, busy_polls: bool) -> RbdBackend {
        RbdBackend {
            requests: ImageRequests::new(image, depth as usize, busy_polls),
        }
    }

    /// The cache of librbd acknowledges writes: confirms at the end that writes succeed. `policy`
    /// is that of the job.
    pub(crate) fn confirming_writes(mut self, policy: &ErrorPolicy) -> RbdBackend {
        self.requests.confirm_at_end(policy);
        self
    }

    /// After a stop request, abandons requests once the cluster stops answering.
    pub(crate) fn draining_on(mut self, interrupt: &Arc<Interrupt>) -> RbdBackend {
        self.requests.drain_on(interrupt);
        self
    }

    fn start(&mut self, slab: &mut Slab, index: u32) {
        let slot = slab.slots[index as usize];
        let piece = IoPart {
            slot: index,
            at: slot.moved as usize,
            len: (slot.len - slot.moved) as usize,
            offset: slot.offset + u64::from(slot.moved),
        };
        let memory = &mut slab.memory;
        match slot.op {
            Op::Read => self.requests.read(memory, piece),
            Op::Write => self.requests.write(memory, piece),
            Op::Trim => self.requests.discard(memory, piece),
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => self.requests.flush(memory, index),
        }
    }
}

impl RemoteIo for RbdBackend {
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        for index in batch {
            self.start(slab, *index);
        }
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let timeout = timeout_ns.map(Duration::from_nanos);
        let before = done.len();
        self.requests.collect(&mut slab.memory, min, timeout, done);
        for completion in done[before..].iter().filter(|it| it.result < 0) {
            let op = slab.slots[completion.slot as usize].op;
            if matches!(op, Op::Fsync | Op::Fdatasync | Op::SyncFileRange) {
                self.requests.note_flush_error(-completion.result);
            }
        }
        Ok(())
    }

    fn confirm_writes(&mut self) -> Result<(), LostWrites> {
        self.requests.confirm_writes()
    }
}
