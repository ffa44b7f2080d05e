//! Asynchronous I/O on objects, from and to the buffers of a worker's slots.

use super::super::arrivals::{Arrivals, Raw, Tag};
use super::lent::{LENT_FROM, Lender, Lent};
use super::{IoCtx, Rados};
use crate::backend::Completion;
use crate::interrupt::Interrupt;
use crate::sys::memory::IoMemory;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);
/// After the user's wish to stop, requests are given up when none was answered for so long.
const GRACE: Duration = Duration::from_secs(1);

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

/// A completion, by the interface that it is of.
#[derive(Clone, Copy)]
enum Held {
    /// C: data are copied.
    Copied(Raw),
    /// C++: data are lent.
    Lent(&'static Lender, Raw),
}

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
                    Held::Lent(lender, completion) => lender.release(completion),
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

/// The user's wish to stop, and since when nothing was answered despite it.
struct Stopping {
    wish: Arc<Interrupt>,
    silent_since: Option<Instant>,
    gave_up: bool,
}

/// Requests to a pool, at most one I/O for each slot.
pub struct Requests {
    /// Before the rest: nothing is under way when that goes.
    arrivals: Arrivals,
    completions: Completions,
    /// Before the context that it is of.
    lent: Option<Lent>,
    io: IoCtx,
    stopping: Option<Stopping>,
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
            io,
            stopping: None,
        }
    }

    /// Sends large writes from where the data are, when nobody else has this client. The memory that is passed to
    /// [`Requests::write`] must be there for as long as the requests themselves, and where a write has timed out, nothing else
    /// may come into it: it may still be sent.
    pub fn lending(&mut self) {
        self.lent = self.io.lent();
    }

    /// Does not wait for a cluster that is silent once the user wants to stop: its requests end with `ECANCELED`.
    pub fn heed(&mut self, wish: &Arc<Interrupt>) {
        self.stopping = Some(Stopping {
            wish: wish.clone(),
            silent_since: None,
            gave_up: false,
        });
    }

    /// Writes of so many bytes or more are not copied; `None` is none.
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
    }

    /// Writes a piece of the slot's buffer. Its result counts the bytes of the piece.
    pub fn write(&mut self, memory: &IoMemory, piece: Piece, object: &CStr) {
        let buffer = checked_address(memory, piece);
        if piece.len >= LENT_FROM && self.lent.is_some() {
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
        let held = Held::Lent(lent.lender(), completion);
        self.completions.of_slots[piece.slot as usize].push(held);
        // SAFETY: the data are those of a slot in flight, which nobody changes. `arrivals` wait for the request. Where it was
        // given up or has timed out, its worker ends, and uses the slot no more (who wanted `lending` has seen to that); the memory
        // outlives these requests, which own the client and shut it down as they go.
        let started = unsafe { lent.write(object, completion, buffer, piece.len, piece.offset) };
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

    /// Reads a piece into the slot's buffer. Its result counts the bytes that there were.
    pub fn read(&mut self, memory: &IoMemory, piece: Piece, object: &CStr) {
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

    /// Appends what is over. Returns when `done` holds `min`, when nothing is under way, or after `timeout`.
    pub fn collect(&mut self, min: usize, timeout: Option<Duration>, done: &mut Vec<Completion>) {
        if self.stopping.is_none() || min == 0 {
            return self.arrivals.collect(min, timeout, done);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let before = done.len();
            let look = left.map_or(LOOK, |left| left.min(LOOK));
            self.arrivals.collect(min, Some(look), done);
            let is_late = left.is_some_and(|left| left <= look);
            if done.len() >= min || self.is_idle() || is_late {
                return;
            }
            self.look_whether_to_give_up(done.len() > before);
        }
    }

    /// Gives up what is under way, when the user wants to stop and nothing is answered.
    #[cold]
    fn look_whether_to_give_up(&mut self, something_came: bool) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if something_came || !stopping.wish.is_requested() {
            stopping.silent_since = None;
            return;
        }
        let since = *stopping.silent_since.get_or_insert_with(Instant::now);
        // One that was asked for after others were given up waits as little as can be.
        if !stopping.gave_up && since.elapsed() < GRACE {
            return;
        }
        stopping.gave_up = true;
        stopping.silent_since = None;
        let (rados, io) = self.io.raw();
        for completion in self.completions.of_slots.iter().flatten() {
            // SAFETY: the completion is held; one that is over meanwhile is not found, which is as good.
            unsafe {
                match (*completion, &mut self.lent) {
                    (Held::Copied(completion), _) => {
                        (rados.aio_cancel)(io, completion);
                    }
                    (Held::Lent(_, completion), Some(lent)) => lent.cancel(completion),
                    (Held::Lent(..), None) => {}
                }
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
