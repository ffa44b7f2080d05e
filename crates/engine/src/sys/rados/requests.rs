//! Asynchronous I/O on objects, from and to the buffers of a worker's slots.

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

/// The part of an I/O that lies in one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Slot of the I/O.
    pub slot: u32,
    /// Where in the slot's buffer it begins.
    pub at: usize,
    /// Its length in bytes.
    pub len: usize,
    /// Where in the object it begins.
    pub offset: u64,
}

/// What is not copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lending {
    /// What is written.
    pub writes: bool,
    /// What is read: nobody looks at it.
    pub reads: bool,
    /// From this byte of a slot's buffer on all its writes hold the same; `None`: they do not.
    pub constant_from: Option<usize>,
}

/// A completion, by the interface that it is of.
enum Held {
    /// C: data are copied.
    Copied(Raw),
    /// C++: data are lent, or received.
    Lent(&'static Lender, Raw, Option<Received>),
}

/// A slot's pieces of more places or lengths than these make it forget the first of them.
const MOST_CONSTANTS: usize = 16;

/// Completions of the library by slot, kept until the slot's next I/O, so that they can be cancelled at any time.
struct Completions {
    rados: &'static Rados,
    of_slots: Box<[Vec<Held>]>,
}

impl Completions {
    fn release(&mut self, slot: u32) {
        for completion in self.of_slots[slot as usize].drain(..) {
            // SAFETY: made by the same interface, and forgotten here. The library holds its own reference for as long as it
            // needs it.
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
    /// Has what is under way for a slot end with `ECANCELED`.
    #[cold]
    fn cancel(&self, slot: u32, io: &IoCtx, lent: &mut Option<Lent>) {
        let (rados, io) = io.raw();
        for completion in &self.of_slots[slot as usize] {
            // SAFETY: the completion is held; one that is over meanwhile is not found, which is as good.
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

// SAFETY: the library counts references to completions under a lock; any thread may release them.
unsafe impl Send for Completions {}

/// How long a request may take. librados would set a timer for each, which costs a client a tenth of its processor time with small
/// requests; looks at all of them, a few times a second, cost nothing.
struct TimeLimit {
    most_looks: u32,
    looks: u32,
    /// Looks there had been when the slot's I/O began.
    begun: Box<[u32]>,
}

/// Requests to a pool, at most one I/O for each slot.
pub struct Requests {
    /// Before the rest: nothing is under way when that goes.
    arrivals: Arrivals,
    completions: Completions,
    /// Before the context that it is of.
    lent: Option<Lent>,
    lending: Lending,
    /// By slot, what its writes have in common: the pieces of one write, which may lie in several objects, and of writes of some lengths.
    constants: Box<[Vec<Constant>]>,
    io: IoCtx,
    limit: Option<TimeLimit>,
    patience: Option<Patience>,
    /// Requests were given up because the user wants to stop.
    gave_up: bool,
    next_look: Instant,
    /// I/Os that had been answered at the last look.
    arrived: u64,
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Buffers are the library's until then, and nobody else looks after what is not answered.
        self.arrivals.uncall();
        let mut rest = Vec::new();
        while !self.is_idle() {
            self.collect(1, None, &mut rest);
            rest.clear();
        }
    }
}

/// The library calls this from one of its threads when a request is over.
extern "C" fn is_over(completion: Raw, tag: *mut c_void) {
    let value = value_of(completion);
    // SAFETY: the tag was given with the request, and lives until the request is counted as over, here.
    unsafe { &*tag.cast::<Tag>() }.piece_is_over(value);
}

/// What has become of a request that is over. For writes that is 0 if all went well: their bytes are credited before.
fn value_of(completion: Raw) -> c_int {
    let Ok(rados) = Rados::loaded() else {
        return -libc::EIO;
    };
    // SAFETY: the completion is over, and the library holds it while it calls back.
    unsafe { (rados.aio_value)(completion) }
}

impl Requests {
    /// Room for `depth` I/Os in flight. With `polls` waits burn the processor instead of sleeping.
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

    /// Ends what is not answered within this time with `ETIMEDOUT`, for a client without a limit of its own.
    pub fn limit(&mut self, time: Duration) {
        let looks = time.as_nanos().div_ceil(LOOK.as_nanos());
        self.limit = Some(TimeLimit {
            most_looks: u32::try_from(looks).unwrap_or(u32::MAX),
            looks: 0,
            begun: vec![0; self.completions.of_slots.len()].into(),
        });
    }

    /// Whether there is such a limit.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// From here on [`Requests::collect`] does not wait: librados' thread calls when there is something to collect. The caller sees to it that
    /// [`Requests::look_after`] is called, too.
    pub fn call(&mut self, called: Weak<dyn Called>) {
        self.arrivals.call(called);
    }

    /// Whether waits burn the processor.
    pub fn polls(&self) -> bool {
        self.arrivals.polls()
    }

    /// Whether somebody is called.
    pub fn calls(&self) -> bool {
        self.arrivals.calls()
    }

    /// Sends large writes from where the data are, and leaves what large reads bring where it came, when nobody else has this client.
    ///
    /// For writes the memory that is passed to [`Requests::write`] must be there for as long as the requests themselves, and where a write
    /// has timed out, nothing else may come into it: it may still be sent. What is said to be constant must be: librados computes the
    /// checksum of it once. After reads the slot's buffer holds what it held before.
    pub fn lending(&mut self, which: Lending) {
        self.lending = which;
        if which.writes || which.reads {
            self.lent = self.io.lent();
        }
    }

    /// Does not wait for a cluster that is silent once the user wants to stop: its requests end with `ECANCELED`.
    pub fn heed(&mut self, wish: &Arc<Interrupt>) {
        self.patience = Some(Patience::until(wish));
    }

    /// Pieces of so many bytes or more are not copied, as far as was asked for; `None` is none.
    pub fn lends_from(&self) -> Option<u64> {
        self.lent.as_ref().map(|_| LENT_FROM as u64)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.arrivals.is_idle()
    }

    /// Begins an I/O of so many pieces, each of which is then to be asked for by one of the calls below.
    ///
    /// # Panics
    /// When the slot is in flight.
    pub fn begin(&mut self, slot: u32, pieces: u32) {
        self.arrivals.begin(slot, pieces);
        self.completions.release(slot);
        if let Some(limit) = &mut self.limit {
            limit.begun[slot as usize] = limit.looks;
        }
    }

    /// Writes a piece of the slot's buffer. Its result counts the bytes of the piece.
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

    /// Writes a piece from where it is.
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
                // SAFETY: it does not change, by the promise of who wanted `lending`; the memory outlives these requests.
                known.push(unsafe { lent.constant(start, length) });
                known.len() - 1
            });
            &known[at]
        });
        // SAFETY: the data are those of a slot in flight, which nobody changes. `arrivals` wait for the request. Where it was
        // given up or has timed out, its worker ends, and uses the slot no more (who wanted `lending` has seen to that); the memory
        // outlives these requests, which own the client and shut it down as they go.
        let started = unsafe {
            let data = (buffer, changing);
            lent.write(object, completion, data, constant, piece.offset)
        };
        if started < 0 {
            tag.piece_is_over(started);
        }
    }

    /// Writes a piece of the slot's buffer as all that the object holds; the piece's offset is not used.
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

    /// Reads a piece into the slot's buffer, or to nowhere, see [`Requests::lending`]. Its result counts the bytes that there were.
    pub fn read(&mut self, memory: &IoMemory, piece: Piece, object: &CStr) {
        if piece.len >= LENT_FROM && self.lending.reads && self.lent.is_some() {
            return self.receive(piece, object);
        }
        let buffer = checked_address(memory, piece);
        self.start(piece.slot, 0, |rados, io, completion| {
            // SAFETY: the buffer is that of a slot in flight, and outlives the request: `arrivals` wait for it.
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

    /// Reads a piece into memory of the library's own.
    fn receive(&mut self, piece: Piece, object: &CStr) {
        let Some(lent) = &mut self.lent else { return };
        let tag = self.arrivals.tag(piece.slot);
        let completion = lent.completion(std::ptr::from_ref(tag).cast_mut().cast(), is_over);
        // SAFETY: what is received is kept with the completion until the slot's next I/O, and `arrivals` wait for this one.
        let (started, received) = unsafe { lent.read(object, completion, piece.len, piece.offset) };
        let held = Held::Lent(lent.lender(), completion, Some(received));
        self.completions.of_slots[piece.slot as usize].push(held);
        if started < 0 {
            tag.piece_is_over(started);
        }
    }

    /// Discards a piece: zeros where it lies within the object, nothing behind its end.
    pub fn zero(&mut self, piece: Piece, object: &CStr) {
        self.start(piece.slot, piece.len, |rados, io, completion| {
            // SAFETY: the operation is released after the library has taken it over.
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
            // SAFETY: a text that outlives the call.
            unsafe { (rados.aio_remove)(io, object.as_ptr(), completion) }
        });
    }

    /// Ends a piece without asking for anything: flushes, of which there is nothing to do, as what is written is safe.
    pub fn nothing(&mut self, slot: u32) {
        self.arrivals.tag(slot).piece_is_over(0);
    }

    /// Appends what is over. Returns when `done` holds `min`, when nothing is under way, or after `timeout`; at once where somebody is
    /// called.
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

    /// Gives up what takes longer than it may, and all when the user wants to stop and nothing is answered.
    pub fn look_after(&mut self) {
        let now = Instant::now();
        if now < self.next_look {
            return;
        }
        // Looks that were missed do not count: nobody is late because this program stood still.
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
            // One that was asked for after others were given up waits as little as can be.
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

    /// Starts one request. What cannot be started is over at once.
    fn start(&mut self, slot: u32, counts: usize, call: impl FnOnce(&Rados, Raw, Raw) -> c_int) {
        let (rados, io) = self.io.raw();
        let tag = self.arrivals.tag(slot);
        tag.credit(counts);
        let argument = std::ptr::from_ref(tag).cast_mut().cast();
        let mut completion = null_mut();
        // SAFETY: the tag outlives the request, because `arrivals` wait for it; a place for the completion.
        let made = unsafe { (rados.aio_create)(argument, Some(is_over), None, &mut completion) };
        if made < 0 {
            return tag.piece_is_over(made);
        }
        // Whoever made it releases it, here: the library has references of its own.
        self.completions.of_slots[slot as usize].push(Held::Copied(completion));
        let started = call(rados, io, completion);
        if started < 0 {
            tag.piece_is_over(started);
        }
    }
}

/// How much of a piece, from its beginning on, may differ from write to write.
fn changing(constant_from: Option<usize>, piece: Piece) -> usize {
    let before = constant_from.map_or(usize::MAX, |from| from.saturating_sub(piece.at));
    before.min(piece.len)
}

/// The address of a piece's data.
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
