//! Asynchronous I/O on objects, with the buffers of a worker's slots.
//!
//! Writes are no zero copy: librados copies the data before it returns.

use super::io_ctx::IoCtx;
use super::pending_ios::{LibraryPtr, PendingIo, PendingIos};
use super::rados::Rados;
use super::slot_buffers::{IoPart, SlotBuffers};
use crate::drain_deadline::{CHECK_INTERVAL, DrainDeadline};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::io::{Completion, CompletionCallback};
use iosonde_engine::sys::memory::IoMemory;
use iosonde_job::plan::WrittenParts;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Completions of each slot, kept until its next I/O so that they can be cancelled.
struct Completions {
    rados: &'static Rados,
    of_slots: Box<[Vec<LibraryPtr>]>,
}

impl Completions {
    fn release(&mut self, slot: u32) {
        for completion in self.of_slots[slot as usize].drain(..) {
            // SAFETY: made by rados_aio_create_completion and released once. The library holds
            // references of its own while it needs them.
            unsafe { (self.rados.aio_release)(completion) };
        }
    }

    /// Cancels the requests of a slot, which complete with `ECANCELED`.
    #[cold]
    fn cancel(&self, slot: u32, io: &IoCtx) {
        let (rados, io) = io.raw();
        for completion in &self.of_slots[slot as usize] {
            // SAFETY: the completion is held. Cancelling a completed request has no effect.
            unsafe { (rados.aio_cancel)(io, *completion) };
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
    checks_max: u32,
    checks: u32,
    /// Number of checks when the slot's I/O began.
    begun: Box<[u32]>,
}

/// Requests to a pool, at most one I/O per slot.
pub(crate) struct ObjectRequests {
    /// Declared first, so that its drop waits for all requests.
    pending: PendingIos,
    completions: Completions,
    /// Dropped after `pending`, so that the buffers stay mapped until then.
    buffers: SlotBuffers,
    io: IoCtx,
    limit: Option<TimeLimit>,
    drain_deadline: Option<DrainDeadline>,
    /// Whether requests were cancelled after a stop request.
    gave_up: bool,
    next_check: Instant,
    /// Number of completions at the last check.
    arrived: u64,
}

impl Drop for ObjectRequests {
    fn drop(&mut self) {
        // The library uses buffers until then. No other code checks timeouts now.
        self.pending.clear_callback();
        let mut rest = Vec::new();
        while !self.is_idle() {
            self.collect(1, None, &mut rest);
            rest.clear();
        }
    }
}

/// Callback on completion of a request, on a thread of the library.
extern "C" fn on_completed(completion: LibraryPtr, pending_io: *mut c_void) {
    let value = value_of(completion);
    // SAFETY: passed with the request. Its target lives until the request is counted here.
    unsafe { &*pending_io.cast::<PendingIo>() }.complete_piece(value);
}

/// Result of a completed request. Successful writes return 0: their bytes were credited before.
fn value_of(completion: LibraryPtr) -> c_int {
    let Ok(rados) = Rados::loaded() else {
        return -libc::EIO;
    };
    // SAFETY: the request is complete, and the library holds the completion during the callback.
    unsafe { (rados.aio_value)(completion) }
}

impl ObjectRequests {
    /// Creates requests for `depth` I/Os in flight. `polls`: waits busy poll instead of sleeping.
    pub(crate) fn new(io: IoCtx, depth: usize, polls: bool) -> ObjectRequests {
        ObjectRequests {
            pending: PendingIos::new(depth, polls),
            completions: Completions {
                rados: io.raw().0,
                of_slots: (0..depth).map(|_| Vec::with_capacity(1)).collect(),
            },
            buffers: SlotBuffers::default(),
            io,
            limit: None,
            drain_deadline: None,
            gave_up: false,
            next_check: Instant::now() + CHECK_INTERVAL,
            arrived: 0,
        }
    }

    /// Sets a timeout, after which a request fails with `ETIMEDOUT`, for a client without its own.
    pub(crate) fn set_timeout(&mut self, time: Duration) {
        let checks = time.as_nanos().div_ceil(CHECK_INTERVAL.as_nanos());
        self.limit = Some(TimeLimit {
            checks_max: u32::try_from(checks).unwrap_or(u32::MAX),
            checks: 0,
            begun: vec![0; self.completions.of_slots.len()].into(),
        });
    }

    /// Whether a timeout is set.
    pub(crate) fn has_timeout(&self) -> bool {
        self.limit.is_some()
    }

    /// Sets a callback. [`ObjectRequests::collect`] no longer waits: librados' thread invokes the
    /// callback on completions. The caller must also call [`ObjectRequests::check_timeouts`]
    /// regularly.
    pub(crate) fn set_callback(&mut self, callback: Weak<dyn CompletionCallback>) {
        self.pending.set_callback(callback);
    }

    /// Whether waits busy poll.
    pub(crate) fn busy_polls(&self) -> bool {
        self.pending.busy_polls()
    }

    /// Whether a callback is set.
    pub(crate) fn has_callback(&self) -> bool {
        self.pending.has_callback()
    }

    /// After a stop request, cancels requests (`ECANCELED`) once the cluster stops answering.
    pub(crate) fn drain_on(&mut self, interrupt: &Arc<Interrupt>) {
        self.drain_deadline = Some(DrainDeadline::until(interrupt));
    }

    /// Whether no request is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_idle()
    }

    /// Begins an I/O on the buffer of a slot, like [`ObjectRequests::begin`].
    ///
    /// # Panics
    /// If the slot is in flight, or of the buffers of another worker.
    pub(crate) fn begin_with_buffer(&mut self, memory: &mut IoMemory, slot: u32, pieces: u32) {
        self.buffers.begin(memory, slot);
        self.begin(slot, pieces);
    }

    /// Appends completions like [`ObjectRequests::collect`], of I/Os that all have a buffer.
    pub(crate) fn collect_with_buffers(
        &mut self,
        memory: &mut IoMemory,
        min: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) {
        let before = done.len();
        self.collect(min, timeout, done);
        self.buffers.mark_idle(memory, &done[before..]);
    }

    /// Begins an I/O of `pieces` pieces, each of which one of the calls below must request.
    ///
    /// # Panics
    /// If the slot is in flight.
    pub(crate) fn begin(&mut self, slot: u32, pieces: u32) {
        self.pending.begin(slot, pieces);
        self.completions.release(slot);
        if let Some(limit) = &mut self.limit {
            limit.begun[slot as usize] = limit.checks;
        }
    }

    /// Writes a piece of the slot's buffer. Its result is the length of the piece.
    pub(crate) fn write(&mut self, memory: &IoMemory, piece: IoPart, object: &CStr) {
        let buffer = self.buffers.address(memory, piece);
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

    /// Writes a piece of the slot's buffer to these parts of an object, in one operation, with the
    /// keys of `rados bench`.
    pub(crate) fn write_parts(
        &mut self,
        memory: &IoMemory,
        piece: IoPart,
        object: &CStr,
        parts: WrittenParts,
    ) {
        let from: *const c_char = self.buffers.address(memory, piece).cast_const().cast();
        let (Ok(omap_key), Ok(attribute)) = (
            CString::new(format!("bench-omap-key-{}", piece.offset)),
            CString::new(format!("bench-xattr-key-{}", piece.offset)),
        ) else {
            return self.pending.get(piece.slot).complete_piece(-libc::EINVAL);
        };
        self.start(piece.slot, piece.len, |rados, io, completion| {
            // SAFETY: the library copies data and keys into the operation, and takes the operation
            // over before it is released. The lists of keys, values and lengths have one entry.
            unsafe {
                let operation = (rados.write_op_create)();
                if parts.data {
                    (rados.write_op_write)(operation, from, piece.len, piece.offset);
                }
                if parts.omap {
                    let (keys, values, lengths) = ([omap_key.as_ptr()], [from], [piece.len]);
                    (rados.write_op_omap_set)(
                        operation,
                        keys.as_ptr(),
                        values.as_ptr(),
                        lengths.as_ptr(),
                        1,
                    );
                }
                if parts.xattr {
                    (rados.write_op_setxattr)(operation, attribute.as_ptr(), from, piece.len);
                }
                let name = object.as_ptr();
                let started = (rados.aio_operate)(operation, io, completion, name, null_mut(), 0);
                (rados.write_op_release)(operation);
                started
            }
        });
    }

    /// Reads a piece into the slot's buffer.
    pub(crate) fn read(&mut self, memory: &IoMemory, piece: IoPart, object: &CStr) {
        let buffer = self.buffers.address(memory, piece);
        self.start(piece.slot, 0, |rados, io, completion| {
            // SAFETY: the buffer of a slot in flight outlives the request: `pending` waits.
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

    /// Discards a piece: zeroes it within the object, and does not extend the object.
    pub(crate) fn zero(&mut self, piece: IoPart, object: &CStr) {
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
    pub(crate) fn remove(&mut self, slot: u32, object: &CStr) {
        self.start(slot, 0, |rados, io, completion| {
            // SAFETY: a string that outlives the call.
            unsafe { (rados.aio_remove)(io, object.as_ptr(), completion) }
        });
    }

    /// Completes a piece at once: flushes, as completed writes are durable.
    pub(crate) fn complete_at_once(&mut self, slot: u32) {
        self.pending.get(slot).complete_piece(0);
    }

    /// Appends completions. Returns when `done` holds `min`, no I/O is in flight, or `timeout`
    /// passed. Returns at once if a callback is set.
    pub(crate) fn collect(
        &mut self,
        min: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) {
        let is_watched = self.limit.is_some() || self.drain_deadline.is_some();
        if self.has_callback() || min == 0 || !is_watched {
            return self.pending.collect(min, timeout, done);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let look = left.map_or(CHECK_INTERVAL, |left| left.min(CHECK_INTERVAL));
            self.pending.collect(min, Some(look), done);
            self.check_timeouts();
            let is_late = left.is_some_and(|left| left <= look);
            if done.len() >= min || self.is_idle() || is_late {
                return;
            }
        }
    }

    /// Cancels requests that timed out, or all after a stop request if the cluster does not answer.
    pub(crate) fn check_timeouts(&mut self) {
        let now = Instant::now();
        if now < self.next_check {
            return;
        }
        // Missed checks do not count, so a pause of this process times no request out.
        self.next_check = now + CHECK_INTERVAL;
        let arrived = self.pending.arrived();
        let has_completed = std::mem::replace(&mut self.arrived, arrived) != arrived;
        if let Some(limit) = &mut self.limit {
            limit.checks += 1;
            for slot in 0..limit.begun.len() as u32 {
                let checks = limit.checks - limit.begun[slot as usize];
                if checks > limit.checks_max && self.pending.mark_late(slot) {
                    self.completions.cancel(slot, &self.io);
                }
            }
        }
        let has_expired = |drain_deadline: &mut DrainDeadline| match self.gave_up {
            // Requests after the first cancellation only get one interval.
            true => !has_completed && drain_deadline.is_requested(),
            false => drain_deadline.check_expired(has_completed),
        };
        if self.drain_deadline.as_mut().is_some_and(has_expired) {
            self.gave_up = true;
            for slot in 0..self.completions.of_slots.len() as u32 {
                self.completions.cancel(slot, &self.io);
            }
        }
    }

    /// Starts a request. A request that cannot be started completes at once.
    fn start(
        &mut self,
        slot: u32,
        counts: usize,
        call: impl FnOnce(&Rados, LibraryPtr, LibraryPtr) -> c_int,
    ) {
        let (rados, io) = self.io.raw();
        let pending_io = self.pending.get(slot);
        pending_io.credit(counts);
        let argument = std::ptr::from_ref(pending_io).cast_mut().cast();
        let mut completion = null_mut();
        // SAFETY: `pending_io` outlives the request: `pending` waits. A place for the completion.
        let made =
            unsafe { (rados.aio_create)(argument, Some(on_completed), None, &mut completion) };
        if made < 0 {
            return pending_io.complete_piece(made);
        }
        // Released by [`Completions::release`]: the library has references of its own.
        self.completions.of_slots[slot as usize].push(completion);
        let started = call(rados, io, completion);
        if started < 0 {
            pending_io.complete_piece(started);
        }
    }
}
