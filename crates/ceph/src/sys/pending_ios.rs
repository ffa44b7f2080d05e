//! Completions that a library reports by callbacks on its own threads.
//!
//! The [`PendingIo`] of a slot in flight counts the requests of its I/O. The last one to complete
//! puts the slot on the [`CompletionQueue`], which wakes the worker or invokes its callback.

#[cfg(test)]
mod tests;

use iosonde_engine::io::{Completion, CompletionCallback, whole_length};
use std::ffi::c_void;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A pointer of the library, or one that the library passes back to its callback.
pub(super) type LibraryPtr = *mut c_void;

/// Queue of completed I/Os of one worker.
#[derive(Default)]
struct CompletionQueue {
    state: Mutex<CompletionQueueState>,
    arrived: Condvar,
    /// Whether the queue has completions. Checked without the lock.
    any: AtomicBool,
}

#[derive(Default)]
struct CompletionQueueState {
    done: Vec<Completion>,
    /// Total number of completions.
    arrived: u64,
    /// Number of completions that the worker waits for. 0: it does not wait.
    wanted: usize,
    /// Callback on enough completions. `None`: the worker thread sleeps on the condition variable.
    callback: Option<Weak<dyn CompletionCallback>>,
    /// Whether I/Os were abandoned, so that later completions are dropped.
    is_closed: bool,
}

impl CompletionQueue {
    fn state(&self) -> MutexGuard<'_, CompletionQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, completion: Completion) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        state.done.push(completion);
        state.arrived += 1;
        self.any.store(true, Release);
        if state.wanted > 0 && state.done.len() >= state.wanted {
            state.wanted = 0;
            let callback = state.callback.clone();
            // Unlocked first, because the woken thread and the callback take the lock.
            drop(state);
            match callback.map(|callback| callback.upgrade()) {
                None => self.arrived.notify_one(),
                Some(Some(callback)) => callback.on_completions(),
                Some(None) => {}
            }
        }
    }
}

/// State of one I/O in flight.
pub(super) struct PendingIo {
    queue: Arc<CompletionQueue>,
    slot: u32,
    /// Number of its requests in flight.
    pieces: AtomicU32,
    /// Bytes moved so far, at most the length of an I/O.
    moved: AtomicU32,
    /// Negated errno of a failed request. 0: none failed.
    error: AtomicI32,
    /// Whether the I/O timed out and was cancelled for that reason.
    is_late: AtomicBool,
}

impl PendingIo {
    /// Adds the bytes of a request whose result does not report them.
    pub(super) fn credit(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u32, Relaxed);
    }

    /// Records the completion of a request: bytes moved, or the negated errno.
    pub(super) fn complete_piece(&self, value: i32) {
        // Cloned, because the I/O may be reused or dropped as soon as the last request is counted.
        let queue = self.queue.clone();
        if value < 0 {
            let is_late = value == -libc::ECANCELED && self.is_late.load(Relaxed);
            let value = if is_late { -libc::ETIMEDOUT } else { value };
            self.error.store(value, Relaxed);
        } else {
            self.moved.fetch_add(value as u32, Relaxed);
        }
        if self.pieces.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        let result = match self.error.load(Relaxed) {
            0 => whole_length(self.moved.load(Relaxed)),
            error => error,
        };
        queue.put(Completion {
            slot: self.slot,
            result,
        });
    }
}

/// I/Os of a worker's slots, and the queue of their completions.
pub(super) struct PendingIos {
    ios: Box<[PendingIo]>,
    queue: Arc<CompletionQueue>,
    in_flight: usize,
    /// Whether waits busy poll instead of sleeping.
    busy_polls: bool,
    /// Whether a callback is set, so that [`PendingIos::collect`] does not wait.
    has_callback: bool,
    /// Result of all I/Os, once they were abandoned.
    abandoned: Option<i32>,
}

impl PendingIos {
    /// Creates the state for `depth` I/Os in flight.
    pub(super) fn new(depth: usize, busy_polls: bool) -> PendingIos {
        let queue = Arc::new(CompletionQueue::default());
        queue.state().done.reserve(depth);
        let io = |slot| PendingIo {
            queue: queue.clone(),
            slot,
            pieces: AtomicU32::new(0),
            moved: AtomicU32::new(0),
            error: AtomicI32::new(0),
            is_late: AtomicBool::new(false),
        };
        PendingIos {
            ios: (0..depth as u32).map(io).collect(),
            queue,
            in_flight: 0,
            busy_polls,
            has_callback: false,
            abandoned: None,
        }
    }

    /// Sets a callback. [`PendingIos::collect`] no longer waits: the library's thread invokes the
    /// callback once the requested completions have arrived.
    pub(super) fn set_callback(&mut self, callback: Weak<dyn CompletionCallback>) {
        self.queue.state().callback = Some(callback);
        self.has_callback = true;
    }

    /// Removes the callback: [`PendingIos::collect`] waits again.
    pub(super) fn clear_callback(&mut self) {
        self.queue.state().callback = None;
        self.has_callback = false;
    }

    /// Whether a callback is set, so that [`PendingIos::collect`] does not wait.
    pub(super) fn has_callback(&self) -> bool {
        self.has_callback
    }

    /// Total number of completions, collected or not.
    pub(super) fn arrived(&self) -> u64 {
        self.queue.state().arrived
    }

    /// Whether waits busy poll.
    pub(super) fn busy_polls(&self) -> bool {
        self.busy_polls
    }

    /// Marks a slot's I/O: `ECANCELED` becomes `ETIMEDOUT`. Returns whether it is in flight.
    pub(super) fn mark_late(&self, slot: u32) -> bool {
        let io = &self.ios[slot as usize];
        io.is_late.store(true, Relaxed);
        io.pieces.load(Relaxed) > 0
    }

    /// Whether no I/O is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Begins an I/O of `pieces` requests. Each must complete by [`PendingIo::complete_piece`].
    ///
    /// # Panics
    /// If the slot is in flight, as two I/Os would use its buffer; after [`PendingIos::abandon`].
    pub(super) fn begin(&mut self, slot: u32, pieces: u32) {
        let io = &self.ios[slot as usize];
        assert!(pieces > 0 && io.pieces.load(Acquire) == 0, "slot in flight");
        io.moved.store(0, Relaxed);
        io.error.store(0, Relaxed);
        io.is_late.store(false, Relaxed);
        io.pieces.store(pieces, Release);
        self.in_flight += 1;
    }

    /// I/O of a slot in flight. Its address is stable while `self` lives, and `drop` waits for all
    /// I/Os in flight.
    pub(super) fn get(&self, slot: u32) -> &PendingIo {
        let io = &self.ios[slot as usize];
        assert!(io.pieces.load(Relaxed) > 0, "slot not in flight");
        io
    }

    /// Appends completions. Returns when `done` holds `min`, no I/O is in flight, or `timeout`
    /// passed. Returns at once if a callback is set.
    pub(super) fn collect(
        &mut self,
        min: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) {
        if self.has_callback {
            return self.take(min, done);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let wanted = min.saturating_sub(done.len()).min(self.in_flight);
            if wanted == 0 || self.busy_polls {
                self.take_done(done);
            } else {
                self.sleep(wanted, deadline, done);
            }
            let late = deadline.is_some_and(|end| Instant::now() >= end);
            if done.len() >= min || self.in_flight == 0 || late {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Completes all I/Os in flight with `result` and drops their later completions. Their state is
    /// leaked, and no further I/O can begin (see [`PendingIos::refuse`]).
    pub(super) fn abandon(&mut self, result: i32, done: &mut Vec<Completion>) {
        self.abandoned = Some(result);
        let ios: &'static [PendingIo] = Box::leak(std::mem::take(&mut self.ios));
        while self.in_flight > 0 {
            let mut state = self.queue.state();
            let under_way = ios.iter().filter(|io| io.pieces.load(Acquire) > 0);
            let given_up: Vec<Completion> = under_way
                .map(|io| Completion {
                    slot: io.slot,
                    result,
                })
                .collect();
            // An I/O that completes concurrently reaches the queue shortly.
            if state.done.len() + given_up.len() == self.in_flight {
                state.is_closed = true;
                done.append(&mut state.done);
                done.extend(given_up);
                self.in_flight = 0;
            } else {
                drop(state);
                std::thread::yield_now();
            }
        }
    }

    /// After [`PendingIos::abandon`], completes a new I/O with the same result. Else `false`.
    pub(super) fn refuse(&mut self, slot: u32) -> bool {
        let Some(result) = self.abandoned else {
            return false;
        };
        // The closed queue drops all other completions.
        self.queue.state().done.push(Completion { slot, result });
        self.queue.any.store(true, Release);
        self.in_flight += 1;
        true
    }

    fn take_done(&mut self, done: &mut Vec<Completion>) {
        if self.queue.any.load(Acquire) {
            let mut state = self.queue.state();
            self.in_flight -= state.done.len();
            self.queue.any.store(false, Relaxed);
            done.append(&mut state.done);
        }
    }

    /// Takes completions if there are `min`. Else requests a callback for that number.
    fn take(&mut self, min: usize, done: &mut Vec<Completion>) {
        let mut state = self.queue.state();
        let wanted = min.saturating_sub(done.len()).min(self.in_flight);
        if state.done.len() < wanted {
            state.wanted = wanted;
            return;
        }
        state.wanted = 0;
        self.in_flight -= state.done.len();
        self.queue.any.store(false, Relaxed);
        done.append(&mut state.done);
    }

    /// Sleeps until `wanted` I/Os complete or the deadline passes, and takes the completions.
    fn sleep(&mut self, wanted: usize, deadline: Option<Instant>, done: &mut Vec<Completion>) {
        let queue = &self.queue;
        let mut state = queue.state();
        while state.done.len() < wanted {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            state.wanted = wanted;
            state = match left {
                // Bounded: the worker cancels late I/Os, and the library's timeouts end them.
                None => queue
                    .arrived
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = queue.arrived.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.wanted = 0;
        self.in_flight -= state.done.len();
        queue.any.store(false, Relaxed);
        done.append(&mut state.done);
    }
}

impl Drop for PendingIos {
    fn drop(&mut self) {
        // The library uses the buffers and these I/Os until then. Its timeouts bound the wait.
        self.clear_callback();
        let mut rest = Vec::new();
        while self.in_flight > 0 {
            self.sleep(1, None, &mut rest);
        }
    }
}
