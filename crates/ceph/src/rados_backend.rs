//! Backend of objects in a Ceph pool.

use crate::object_names::{ObjectNameBuffer, count_objects, object_parts};
use crate::sys::io_ctx::IoCtx;
use crate::sys::requests::ObjectRequests;
use crate::sys::slot_buffers::IoPart;
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::io::remote::RemoteIo;
use iosonde_engine::io::{Completion, CompletionCallback, Op, Slab};
use iosonde_job::plan::WrittenParts;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// I/O on objects. Files are named in the order in which slots number them.
pub(crate) struct RadosBackend {
    requests: ObjectRequests,
    names: Vec<ObjectNameBuffer>,
    object_bytes: Option<u64>,
    /// Parts of an object that a write changes.
    written_parts: WrittenParts,
}

impl RadosBackend {
    /// A backend for `depth` I/Os on these files, each one object or striped over `object_bytes`.
    pub(crate) fn new(
        io: IoCtx,
        files: &[String],
        object_bytes: Option<u64>,
        depth: u32,
        busy_polls: bool,
    ) -> RadosBackend {
        let name = |file: &String| ObjectNameBuffer::from_file_name(file, object_bytes.is_some());
        RadosBackend {
            requests: ObjectRequests::new(io, depth as usize, busy_polls),
            names: files.iter().map(name).collect(),
            object_bytes,
            written_parts: WrittenParts::default(),
        }
    }

    /// After a stop request, cancels requests once the cluster stops answering.
    pub(crate) fn draining_on(mut self, interrupt: &Arc<Interrupt>) -> RadosBackend {
        self.requests.drain_on(interrupt);
        self
    }

    /// Requests time out after `time`, for a client without a timeout of its own.
    pub(crate) fn with_timeout(mut self, time: Duration) -> RadosBackend {
        self.requests.set_timeout(time);
        self
    }

    /// Writes change these parts of an object.
    pub(crate) fn writing_parts(mut self, parts: WrittenParts) -> RadosBackend {
        self.written_parts = parts;
        self
    }

    /// Names the objects of these files like `rados bench`.
    pub(crate) fn named_as_by_rados_bench(mut self, files: &[String]) -> RadosBackend {
        self.names = files
            .iter()
            .map(|file| ObjectNameBuffer::from_rados_bench_prefix(file))
            .collect();
        self
    }

    fn start(&mut self, slab: &mut Slab, index: u32) {
        let slot = slab.slots[index as usize];
        if slot.op.direction().is_none() {
            // A write is durable when it completes, so a flush has nothing to do.
            self.requests.begin_with_buffer(&mut slab.memory, index, 1);
            return self.requests.complete_at_once(index);
        }
        let (from, len) = (
            slot.offset + u64::from(slot.moved),
            u64::from(slot.len - slot.moved),
        );
        let name = &mut self.names[slot.file as usize];
        let objects = count_objects(from, len, self.object_bytes);
        self.requests
            .begin_with_buffer(&mut slab.memory, index, objects);
        for part in object_parts(from, len, self.object_bytes) {
            let piece = IoPart {
                slot: index,
                at: slot.moved as usize + part.at as usize,
                len: part.len as usize,
                offset: part.offset,
            };
            let object = name.object(part.object);
            match slot.op {
                Op::Read => self.requests.read(&slab.memory, piece, object),
                Op::Write if self.written_parts.is_data_only() => {
                    self.requests.write(&slab.memory, piece, object);
                }
                Op::Write => {
                    let parts = self.written_parts;
                    self.requests
                        .write_parts(&slab.memory, piece, object, parts);
                }
                _ => self.requests.zero(piece, object),
            }
        }
    }
}

impl RemoteIo for RadosBackend {
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
        self.requests
            .collect_with_buffers(&mut slab.memory, min, timeout, done);
        Ok(())
    }

    fn check_timeouts(&mut self) {
        self.requests.check_timeouts();
    }

    fn set_callback(&mut self, callback: Weak<dyn CompletionCallback>) -> bool {
        // Without a timeout of its own, librados may block the caller.
        let can_call = !self.requests.busy_polls() && self.requests.has_timeout();
        if can_call {
            self.requests.set_callback(callback);
        }
        can_call
    }
}
