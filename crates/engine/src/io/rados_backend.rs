//! Backend of objects in a Ceph pool.

use super::{Backend, Called, Completion, Handle, Op, Slab};
use crate::ceph::stripes::{Name, count, parts};
use crate::ceph::{IoCtx, Lending, Piece, Requests};
use crate::interrupt::Interrupt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// I/O on objects. Files are named in the order in which slots number them.
pub struct Rados {
    requests: Requests,
    names: Vec<Name>,
    object_bytes: Option<u64>,
}

impl Rados {
    /// A backend for `depth` I/Os on these files, each one object or striped over `object_bytes`.
    pub fn new(
        io: IoCtx,
        files: &[String],
        object_bytes: Option<u64>,
        depth: u32,
        polls: bool,
    ) -> Rados {
        let name = |file: &String| Name::of(file, object_bytes.is_some());
        Rados {
            requests: Requests::new(io, depth as usize, polls),
            names: files.iter().map(name).collect(),
            object_bytes,
        }
    }

    /// After a stop request, cancels requests once the cluster stops answering.
    pub fn heeding(mut self, wish: &Arc<Interrupt>) -> Rados {
        self.requests.heed(wish);
        self
    }

    /// Requests time out after `time`, for a client without a timeout of its own.
    pub fn limited_to(mut self, time: Duration) -> Rados {
        self.requests.limit(time);
        self
    }

    /// librados' thread invokes the callback on completions. [`Backend::reap`] no longer waits.
    pub fn call(&mut self, called: Weak<dyn Called>) {
        self.requests.call(called);
    }

    /// Whether a callback can be used: no busy polling, and librados cannot block the caller.
    pub fn can_call(&self) -> bool {
        !self.requests.polls() && self.requests.is_limited()
    }

    /// Uses zero copy for large pieces (see [`Requests::lending`]). The slab outlives the backend.
    pub fn lending(mut self, which: Lending) -> Rados {
        self.requests.lending(which);
        self
    }

    /// Smallest piece in bytes that is not copied, where requested; `None`: all are copied.
    pub fn lends_from(&self) -> Option<u64> {
        self.requests.lends_from()
    }

    /// Names the objects of these files like `rados bench`.
    pub fn named_as_by_rados_bench(mut self, files: &[String]) -> Rados {
        self.names = files
            .iter()
            .map(|file| Name::of_rados_bench(file))
            .collect();
        self
    }

    fn start(&mut self, slab: &Slab, index: u32) {
        let slot = slab.slots[index as usize];
        if slot.op.direction().is_none() {
            // A write is durable when it completes, so a flush has nothing to do.
            self.requests.begin(index, 1);
            return self.requests.nothing(index);
        }
        let (from, len) = (
            slot.offset + u64::from(slot.moved),
            u64::from(slot.len - slot.moved),
        );
        let name = &mut self.names[slot.file as usize];
        self.requests
            .begin(index, count(from, len, self.object_bytes));
        for part in parts(from, len, self.object_bytes) {
            let piece = Piece {
                slot: index,
                at: slot.moved as usize + part.at as usize,
                len: part.len as usize,
                offset: part.offset,
            };
            let object = name.object(part.object);
            match slot.op {
                Op::Read => self.requests.read(&slab.memory, piece, object),
                Op::Write => self.requests.write(&slab.memory, piece, object),
                _ => self.requests.zero(piece, object),
            }
        }
    }
}

impl Backend for Rados {
    const SYNCHRONOUS: bool = false;

    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
        for index in batch {
            self.start(slab, *index);
        }
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        _: &Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        self.requests
            .collect(min, timeout_ns.map(Duration::from_nanos), done);
        Ok(())
    }

    fn next_completion_ns(&self) -> Option<u64> {
        self.requests.calls().then_some(u64::MAX)
    }

    fn look_after(&mut self) {
        self.requests.look_after();
    }

    fn set_files(&mut self, _: &[Handle]) -> io::Result<()> {
        Ok(())
    }
}
