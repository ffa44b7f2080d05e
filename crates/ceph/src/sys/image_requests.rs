//! Asynchronous I/O on an image, with the buffers of a worker's slots.
//!
//! Zero copy: librbd decides whether a write copies the data (`rbd_disable_zero_copy_writes`).

mod write_confirmation;

use super::image_writers::ImageWriter;
use super::pending_ios::{LibraryPtr, PendingIo, PendingIos};
use super::rbd::{Image, Rbd};
use super::slot_buffers::{IoPart, SlotBuffers};
use crate::drain_deadline::{CHECK_INTERVAL, DrainDeadline};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::io::Completion;
use iosonde_engine::sys::memory::IoMemory;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Result of abandoned I/Os.
const ABANDONED: i32 = -libc::ECANCELED;

/// Requests to an image, at most one per slot.
pub(crate) struct ImageRequests {
    /// Declared before the image, so that its drop waits for all requests first.
    pending: PendingIos,
    image: Image,
    /// Dropped after `pending`, so that the buffers stay mapped until then.
    buffers: SlotBuffers,
    drain_deadline: Option<DrainDeadline>,
    /// Set if the writes are to be confirmed. Dropped after `pending`, as it writes until then.
    writer: Option<ImageWriter>,
}

/// End of a wait for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CollectEnd {
    /// The wait ended as the caller asked for.
    Collected,
    /// All I/Os in flight were abandoned: librbd may use their buffers until the process ends.
    Abandoned,
}

/// Callback on completion of a request, on a thread of the library.
extern "C" fn on_completed(completion: LibraryPtr, pending_io: *mut c_void) {
    let value = match Rbd::loaded() {
        // SAFETY: the request is complete, and this is the last use of the completion.
        Ok(rbd) => unsafe {
            let value = (rbd.aio_value)(completion);
            (rbd.aio_release)(completion);
            value as i32
        },
        Err(_) => -libc::EIO,
    };
    // SAFETY: passed with the request. Its target lives until the request is counted here.
    unsafe { &*pending_io.cast::<PendingIo>() }.complete_piece(value);
}

impl ImageRequests {
    /// Creates requests for `depth` I/Os in flight. `polls`: waits busy poll instead of sleeping.
    pub(crate) fn new(image: &Image, depth: usize, polls: bool) -> ImageRequests {
        ImageRequests {
            pending: PendingIos::new(depth, polls),
            image: image.clone(),
            buffers: SlotBuffers::default(),
            drain_deadline: None,
            writer: None,
        }
    }

    /// After a stop request, abandons I/Os once the cluster stops answering. librbd cannot cancel
    /// requests: I/Os complete with `ECANCELED`, the image stays open, and the memory gets new
    /// buffers while the old ones stay mapped.
    pub(crate) fn drain_on(&mut self, interrupt: &Arc<Interrupt>) {
        self.drain_deadline = Some(DrainDeadline::until(interrupt));
    }

    /// Writes a piece of the slot's buffer.
    ///
    /// # Panics
    /// As all requests: if the slot is in flight, or of the buffers of another worker.
    pub(crate) fn write(&mut self, memory: &mut IoMemory, piece: IoPart) {
        if let Some(writer) = &mut self.writer {
            writer.note_write(piece.offset, piece.len);
        }
        self.buffers.begin(memory, piece.slot);
        let buffer = self.buffers.address(memory, piece);
        self.start(piece.slot, piece.len, |rbd, image, completion| {
            // SAFETY: the buffer of a slot in flight outlives the request: `pending` waits.
            unsafe {
                let from = buffer.cast_const().cast();
                (rbd.aio_write)(image, piece.offset, piece.len, from, completion)
            }
        });
    }

    /// Reads a piece into the slot's buffer.
    pub(crate) fn read(&mut self, memory: &mut IoMemory, piece: IoPart) {
        self.buffers.begin(memory, piece.slot);
        let buffer = self.buffers.address(memory, piece);
        self.start(piece.slot, 0, |rbd, image, completion| {
            // SAFETY: the buffer outlives the request, as for writes. A slot in flight has no
            // reference to its buffer.
            unsafe { (rbd.aio_read)(image, piece.offset, piece.len, buffer.cast(), completion) }
        });
    }

    /// Discards a piece of the image.
    pub(crate) fn discard(&mut self, memory: &mut IoMemory, piece: IoPart) {
        self.buffers.begin(memory, piece.slot);
        self.start(piece.slot, piece.len, |rbd, image, completion| {
            // SAFETY: the call takes no buffer, only the completion.
            unsafe { (rbd.aio_discard)(image, piece.offset, piece.len as u64, completion) }
        });
    }

    /// Makes earlier writes durable.
    pub(crate) fn flush(&mut self, memory: &mut IoMemory, slot: u32) {
        self.buffers.begin(memory, slot);
        self.start(slot, 0, |rbd, image, completion| {
            // SAFETY: the call takes no buffer, only the completion.
            unsafe { (rbd.aio_flush)(image, completion) }
        });
    }

    /// Appends completions, whose slots are no longer in flight. Returns once `done` holds `min`,
    /// none is in flight, or after `timeout`.
    pub(crate) fn collect(
        &mut self,
        memory: &mut IoMemory,
        min: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) {
        let before = done.len();
        match self.wait(min, timeout, done) {
            CollectEnd::Collected => self.buffers.mark_idle(memory, &done[before..]),
            CollectEnd::Abandoned => self.buffers.abandon(memory, &done[before..], ABANDONED),
        }
    }

    /// Waits for completions and appends them.
    fn wait(
        &mut self,
        min: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> CollectEnd {
        let Some(drain_deadline) = self.drain_deadline.as_mut().filter(|_| min > 0) else {
            self.pending.collect(min, timeout, done);
            return CollectEnd::Collected;
        };
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let before = done.len();
            let look = left.map_or(CHECK_INTERVAL, |left| left.min(CHECK_INTERVAL));
            self.pending.collect(min, Some(look), done);
            let is_late = left.is_some_and(|left| left <= look);
            let is_expired = drain_deadline.check_expired(done.len() > before);
            if done.len() >= min || self.pending.is_idle() || is_late {
                return CollectEnd::Collected;
            }
            if is_expired {
                self.give_up(done);
                return CollectEnd::Abandoned;
            }
        }
    }

    #[cold]
    fn give_up(&mut self, done: &mut Vec<Completion>) {
        self.image.leave_open();
        self.pending.abandon(ABANDONED, done);
    }

    /// Starts the only request of a slot. After requests were abandoned, each completes at once: a
    /// job that ignores `ECANCELED` still flushes at its end.
    fn start(
        &mut self,
        slot: u32,
        counts: usize,
        call: impl FnOnce(&Rbd, LibraryPtr, LibraryPtr) -> c_int,
    ) {
        if self.pending.refuse(slot) {
            return;
        }
        self.pending.begin(slot, 1);
        self.request(slot, counts, call);
    }

    /// Starts a request of a slot in flight. A request that cannot be started completes at once.
    fn request(
        &mut self,
        slot: u32,
        counts: usize,
        call: impl FnOnce(&Rbd, LibraryPtr, LibraryPtr) -> c_int,
    ) {
        let (rbd, image) = self.image.raw();
        let pending_io = self.pending.get(slot);
        pending_io.credit(counts);
        let argument = std::ptr::from_ref(pending_io).cast_mut().cast();
        let mut completion = null_mut();
        // SAFETY: `pending_io` outlives the request: `pending` waits. A place for the completion.
        let made = unsafe { (rbd.aio_create)(argument, on_completed, &mut completion) };
        if made < 0 {
            return pending_io.complete_piece(made);
        }
        let started = call(rbd, image, completion);
        if started < 0 {
            // SAFETY: the library did not accept the request and will not call back.
            unsafe { (rbd.aio_release)(completion) };
            pending_io.complete_piece(started);
        }
    }
}
