//! Asynchronous I/O on objects, with the buffers of a worker's slots.

use super::super::arrivals::{Arrivals, Raw, Tag};
use super::super::patience::{LOOK, Patience};
use super::lent::{Constant, LENT_FROM, Lender, Lent, Received};
use super::{IoCtx, Rados};
use crate::interrupt::Interrupt;
use crate::io::{Called, Completion};
use crate::sys::memory::IoMemory;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Part of an I/O that lies in one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Slot of the I/O.
    pub slot: u32,
    /// Offset in the slot's buffer.
    pub at: usize,
    /// Length in bytes.
    pub len: usize,
    /// Offset in the object.
    pub offset: u64,
}

/// Options of zero copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lending {
    /// Whether writes are sent from the slots' buffers.
    pub writes: bool,
    /// Whether reads leave the data in the library's buffers, as the job does not look at them.
    pub reads: bool,
    /// Offset in a slot's buffer from which all its writes are equal. `None`: they differ.
    pub constant_from: Option<usize>,
}

/// A completion object, by the interface that made it.
enum Held {
    /// C interface: data are copied.
    Copied(Raw),
    /// C++ interface: data are lent (writes) or stay with the library (reads).
    Lent(&'static Lender, Raw, Option<Received>),
}

/// Maximum number of cached constants per slot. The oldest one is dropped first.
const MOST_CONSTANTS: usize = 16;

/// Completions of each slot, kept until its next I/O so that they can be cancelled.
struct Completions {
    rados: &'static Rados,
    of_slots: Box<[Vec<Held>]>,
}

impl Completions {
    fn release(&mut self, slot: u32) {
        for completion in self.of_slots[slot as usize].drain(..) {
            // SAFETY: made by the same interface and released once. The library holds references of
            // its own while it needs them.
            unsafe {
                match completion {
                    Held::Copied(completion) => (self.rados.aio_release)(completion),
                    Held::Lent(lender, completion, received) => {
                        lender.release(completion);
                        drop(received);
                    }
                }
            }
        }
    }
}

impl Completions {
    /// Cancels the requests of a slot, which complete with `ECANCELED`.
    #[cold]
    fn cancel(&self, slot: u32, io: &IoCtx, lent: &mut Option<Lent>) {
        let (rados, io) = io.raw();
        for completion in &self.of_slots[slot as usize] {
            // SAFETY: the completion is held. Cancelling a completed request has no effect.
            unsafe {
                match (completion, &mut *lent) {
                    (Held::Copied(completion), _) => {
                        (rados.aio_cancel)(io, *completion);
                    }
                    (Held::Lent(_, completion, _), Some(lent)) => lent.cancel(*completion),
                    (Held::Lent(..), None) => {}
                }
            }
        }
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        (0..self.of_slots.len() as u32).for_each(|slot| self.release(slot));
    }
}

// SAFETY: the library counts references under a lock, and any thread may release them.
unsafe impl Send for Completions {}

/// Time limit of requests. librados would set a timer per request, which costs 10 % of the client's
/// CPU time with small requests; a periodic check of all slots costs nothing measurable.
struct TimeLimit {
    most_looks: u32,
    looks: u32,
    /// Number of checks when the slot's I/O began.
    begun: Box<[u32]>,
}

/// Requests to a pool, at most one I/O per slot.
pub struct Requests {
    /// Declared first, so that its drop waits for all requests.
    arrivals: Arrivals,
    completions: Completions,
    /// Declared before its context, so that it is dropped first.
    lent: Option<Lent>,
    lending: Lending,
    /// Constant parts of each slot's writes, by position and length.
    constants: Box<[Vec<Constant>]>,
    io: IoCtx,
    limit: Option<TimeLimit>,
    patience: Option<Patience>,
    /// Whether requests were cancelled after a stop request.
    gave_up: bool,
    next_look: Instant,
    /// Number of completions at the last check.
    arrived: u64,
}

impl Drop for Requests {
    fn drop(&mut self) {
        // The library uses buffers until then. No other code checks timeouts now.
        self.arrivals.uncall();
        let mut rest = Vec::new();
        while !self.is_idle() {
            self.collect(1, None, &mut rest);
            rest.clear();
        }
    }
}

/// Callback on completion of a request, on a thread of the library.
extern "C" fn is_over(completion: Raw, tag: *mut c_void) {
    let value = value_of(completion);
    // SAFETY: the tag was passed with the request, and lives until the request is counted here.
    unsafe { &*tag.cast::<Tag>() }.piece_is_over(value);
}

/// Result of a completed request. Successful writes return 0: their bytes were credited before.
fn value_of(completion: Raw) -> c_int {
    let Ok(rados) = Rados::loaded() else {
        return -libc::EIO;
    };
    // SAFETY: the request is complete, and the library holds the completion during the callback.
    unsafe { (rados.aio_value)(completion) }
}

impl Requests {
    /// Creates requests for `depth` I/Os in flight. `polls`: waits busy poll instead of sleeping.
    pub fn new(io: IoCtx, depth: usize, polls: bool) -> Requests {
        Requests {
            arrivals: Arrivals::new(depth, polls),
            completions: Completions {
                rados: io.raw().0,
                of_slots: (0..depth).map(|_| Vec::with_capacity(1)).collect(),
            },
            lent: None,
            lending: Lending::default(),
            constants: (0..depth).map(|_| Vec::new()).collect(),
            io,
            limit: None,
            patience: None,
            gave_up: false,
            next_look: Instant::now() + LOOK,
            arrived: 0,
        }
    }

    /// Sets a timeout, after which a request fails with `ETIMEDOUT`, for a client without its own.
    pub fn limit(&mut self, time: Duration) {
        let looks = time.as_nanos().div_ceil(LOOK.as_nanos());
        self.limit = Some(TimeLimit {
            most_looks: u32::try_from(looks).unwrap_or(u32::MAX),
            looks: 0,
            begun: vec![0; self.completions.of_slots.len()].into(),
        });
    }

    /// Whether a timeout is set.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Sets a callback. [`Requests::collect`] no longer waits: librados' thread invokes the
    /// callback on completions. The caller must also call [`Requests::look_after`] regularly.
    pub fn call(&mut self, called: Weak<dyn Called>) {
        self.arrivals.call(called);
    }

    /// Whether waits busy poll.
    pub fn polls(&self) -> bool {
        self.arrivals.polls()
    }

    /// Whether a callback is set.
    pub fn calls(&self) -> bool {
        self.arrivals.calls()
    }

    /// Enables zero copy of large pieces, if no other code uses this client.
    ///
    /// The memory passed to [`Requests::write`] must outlive the requests. A buffer must not change
    /// after its write timed out, as the write may still be sent. Constant parts must not change:
    /// librados computes their checksum once. Reads do not change the slot's buffer.
    pub fn lending(&mut self, which: Lending) {
        self.lending = which;
        if which.writes || which.reads {
            self.lent = self.io.lent();
        }
    }

    /// After a stop request, cancels requests (`ECANCELED`) once the cluster stops answering.
    pub fn heed(&mut self, wish: &Arc<Interrupt>) {
        self.patience = Some(Patience::until(wish));
    }

    /// Smallest piece in bytes that is not copied, where requested. `None`: all are copied.
    pub fn lends_from(&self) -> Option<u64> {
        self.lent.as_ref().map(|_| LENT_FROM as u64)
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.arrivals.is_idle()
    }

    /// Begins an I/O of `pieces` pieces, each of which one of the calls below must request.
    ///
    /// # Panics
    /// If the slot is in flight.
    pub fn begin(&mut self, slot: u32, pieces: u32) {
        self.arrivals.begin(slot, pieces);
        self.completions.release(slot);
        if let Some(limit) = &mut self.limit {
            limit.begun[slot as usize] = limit.looks;
        }
    }

    /// Writes a piece of the slot's buffer. Its result is the length of the piece.
    pub fn write(&mut self, memory: &IoMemory, piece: Piece, object: &CStr) {
        let buffer = checked_address(memory, piece);
        if piece.len >= LENT_FROM && self.lending.writes && self.lent.is_some() {
            return self.lend(buffer, piece, object);
        }
        self.start(piece.slot, piece.len, |rados, io, completion| {
            // SAFETY: the library copies the data before it returns.
            unsafe {
                let from = buffer.cast_const().cast();
                (rados.aio_write)(
                    io,
                    object.as_ptr(),
                    completion,
                    from,
                    piece.len,
                    piece.offset,
                )
            }
        });
    }

    /// Writes a piece without a copy.
    fn lend(&mut self, buffer: *mut u8, piece: Piece, object: &CStr) {
        let Some(lent) = &mut self.lent else { return };
        let tag = self.arrivals.tag(piece.slot);
        tag.credit(piece.len);
        let completion = lent.completion(std::ptr::from_ref(tag).cast_mut().cast(), is_over);
        let held = Held::Lent(lent.lender(), completion, None);
        self.completions.of_slots[piece.slot as usize].push(held);
        let changing = changing(self.lending.constant_from, piece);
        let known = &mut self.constants[piece.slot as usize];
        let constant = (changing < piece.len).then(|| {
            let (start, length) = (buffer.wrapping_add(changing), piece.len - changing);
            let at = known.iter().position(|known| known.is_of(start, length));
            let at = at.unwrap_or_else(|| {
                if known.len() == MOST_CONSTANTS {
                    known.remove(0);
                }
                // SAFETY: `lending` requires that it stays constant. The memory outlives `self`.
                known.push(unsafe { lent.constant(start, length) });
                known.len() - 1
            });
            &known[at]
        });
        // SAFETY: the data are those of a slot in flight, which does not change until completion.
        // After a timeout or cancellation the worker ends and does not reuse the slot, as `lending`
        // requires. The memory outlives `self`, which owns the client and shuts it down.
        let started = unsafe {
            let data = (buffer, changing);
            lent.write(object, completion, data, constant, piece.offset)
        };
        if started < 0 {
            tag.piece_is_over(started);
        }
    }

    /// Replaces an object by a piece of the slot's buffer. The offset of the piece is not used.
    pub fn write_full(&mut self, memory: &IoMemory, piece: Piece, object: &CStr) {
        let buffer = checked_address(memory, piece);
        self.start(piece.slot, piece.len, |rados, io, completion| {
            // SAFETY: the library copies the data before it returns.
            unsafe {
                let from = buffer.cast_const().cast();
                (rados.aio_write_full)(io, object.as_ptr(), completion, from, piece.len)
            }
        });
    }

    /// Reads a piece into the slot's buffer, or one of the library (see [`Requests::lending`]).
    pub fn read(&mut self, memory: &IoMemory, piece: Piece, object: &CStr) {
        if piece.len >= LENT_FROM && self.lending.reads && self.lent.is_some() {
            return self.receive(piece, object);
        }
        let buffer = checked_address(memory, piece);
        self.start(piece.slot, 0, |rados, io, completion| {
            // SAFETY: the buffer of a slot in flight outlives the request: `arrivals` waits.
            unsafe {
                let into = buffer.cast();
                (rados.aio_read)(
                    io,
                    object.as_ptr(),
                    completion,
                    into,
                    piece.len,
                    piece.offset,
                )
            }
        });
    }

    /// Reads a piece into memory of the library.
    fn receive(&mut self, piece: Piece, object: &CStr) {
        let Some(lent) = &mut self.lent else { return };
        let tag = self.arrivals.tag(piece.slot);
        let completion = lent.completion(std::ptr::from_ref(tag).cast_mut().cast(), is_over);
        // SAFETY: the buffers stay with the completion until the slot's next I/O.
        let (started, received) = unsafe { lent.read(object, completion, piece.len, piece.offset) };
        let held = Held::Lent(lent.lender(), completion, Some(received));
        self.completions.of_slots[piece.slot as usize].push(held);
        if started < 0 {
            tag.piece_is_over(started);
        }
    }

    /// Discards a piece: zeroes it within the object, and does not extend the object.
    pub fn zero(&mut self, piece: Piece, object: &CStr) {
        self.start(piece.slot, piece.len, |rados, io, completion| {
            // SAFETY: the library takes the operation over before it is released.
            unsafe {
                let operation = (rados.write_op_create)();
                (rados.write_op_zero)(operation, piece.offset, piece.len as u64);
                let name = object.as_ptr();
                let started = (rados.aio_operate)(operation, io, completion, name, null_mut(), 0);
                (rados.write_op_release)(operation);
                started
            }
        });
    }

    /// Removes an object. Its result is 0.
    pub fn remove(&mut self, slot: u32, object: &CStr) {
        self.start(slot, 0, |rados, io, completion| {
            // SAFETY: a string that outlives the call.
            unsafe { (rados.aio_remove)(io, object.as_ptr(), completion) }
        });
    }

    /// Completes a piece at once: flushes, as completed writes are durable.
    pub fn nothing(&mut self, slot: u32) {
        self.arrivals.tag(slot).piece_is_over(0);
    }

    /// Appends completions. Returns when `done` holds `min`, no I/O is in flight, or `timeout`
    /// passed. Returns at once if a callback is set.
    pub fn collect(&mut self, min: usize, timeout: Option<Duration>, done: &mut Vec<Completion>) {
        let is_watched = self.limit.is_some() || self.patience.is_some();
        if self.calls() || min == 0 || !is_watched {
            return self.arrivals.collect(min, timeout, done);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let look = left.map_or(LOOK, |left| left.min(LOOK));
            self.arrivals.collect(min, Some(look), done);
            self.look_after();
            let is_late = left.is_some_and(|left| left <= look);
            if done.len() >= min || self.is_idle() || is_late {
                return;
            }
        }
    }

    /// Cancels requests that timed out, or all after a stop request if the cluster does not answer.
    pub fn look_after(&mut self) {
        let now = Instant::now();
        if now < self.next_look {
            return;
        }
        // Missed checks do not count, so a pause of this process times no request out.
        self.next_look = now + LOOK;
        let arrived = self.arrivals.arrived();
        let something_came = std::mem::replace(&mut self.arrived, arrived) != arrived;
        if let Some(limit) = &mut self.limit {
            limit.looks += 1;
            for slot in 0..limit.begun.len() as u32 {
                let looks = limit.looks - limit.begun[slot as usize];
                if looks > limit.most_looks && self.arrivals.is_late(slot) {
                    self.completions.cancel(slot, &self.io, &mut self.lent);
                }
            }
        }
        let is_at_an_end = |patience: &mut Patience| match self.gave_up {
            // Requests after the first cancellation only get one interval.
            true => !something_came && patience.is_wished(),
            false => patience.is_over(something_came),
        };
        if self.patience.as_mut().is_some_and(is_at_an_end) {
            self.gave_up = true;
            for slot in 0..self.completions.of_slots.len() as u32 {
                self.completions.cancel(slot, &self.io, &mut self.lent);
            }
        }
    }

    /// Starts a request. A request that cannot be started completes at once.
    fn start(&mut self, slot: u32, counts: usize, call: impl FnOnce(&Rados, Raw, Raw) -> c_int) {
        let (rados, io) = self.io.raw();
        let tag = self.arrivals.tag(slot);
        tag.credit(counts);
        let argument = std::ptr::from_ref(tag).cast_mut().cast();
        let mut completion = null_mut();
        // SAFETY: the tag outlives the request, as `arrivals` waits. A place for the completion.
        let made = unsafe { (rados.aio_create)(argument, Some(is_over), None, &mut completion) };
        if made < 0 {
            return tag.piece_is_over(made);
        }
        // Released by [`Completions::release`]: the library has references of its own.
        self.completions.of_slots[slot as usize].push(Held::Copied(completion));
        let started = call(rados, io, completion);
        if started < 0 {
            tag.piece_is_over(started);
        }
    }
}

/// Length of the leading part of a piece that may differ between writes.
fn changing(constant_from: Option<usize>, piece: Piece) -> usize {
    let before = constant_from.map_or(usize::MAX, |from| from.saturating_sub(piece.at));
    before.min(piece.len)
}

/// Address of a piece's data.
pub(in crate::sys) fn checked_address(memory: &IoMemory, piece: Piece) -> *mut u8 {
    let within = piece.at <= memory.stride() && piece.len <= memory.stride() - piece.at;
    assert!(
        (piece.slot as usize) < memory.slots() && within,
        "piece outside its slot"
    );
    // SAFETY: within the slot, by the assertion.
    unsafe { memory.address(piece.slot).add(piece.at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_before_what_is_constant() {
        let of = |from, at, len| {
            let (slot, offset) = (0, 0);
            let piece = Piece {
                slot,
                at,
                len,
                offset,
            };
            changing(from, piece)
        };
        assert_eq!(of(None, 0, 4096), 4096);
        assert_eq!(of(Some(0), 0, 4096), 0);
        assert_eq!(of(Some(32), 0, 4096), 32);
        assert_eq!(of(Some(32), 16, 4096), 16);
        assert_eq!(of(Some(32), 32, 4096), 0);
        assert_eq!(of(Some(32), 1 << 20, 4096), 0);
        assert_eq!(of(Some(32), 0, 8), 8);
    }
}
