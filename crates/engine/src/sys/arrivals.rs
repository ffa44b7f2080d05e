//! Completions that a library reports by callbacks on its own threads.
//!
//! The [`Tag`] of a slot in flight counts the requests of its I/O. The last request to complete
//! puts the slot on the [`Board`], which wakes the worker or invokes its callback.

use crate::io::{Called, Completion};
use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A pointer of the library, or one that the library passes back to its callback.
pub(super) type Raw = *mut c_void;

/// Queue of completed I/Os of one worker.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    arrived: Condvar,
    /// Whether the queue has completions. Checked without the lock.
    any: AtomicBool,
}

#[derive(Default)]
struct State {
    done: Vec<Completion>,
    /// Total number of completions.
    arrived: u64,
    /// Number of completions that the worker waits for. 0: it does not wait.
    wanted: usize,
    /// Callback on enough completions. `None`: the worker thread sleeps on the condition variable.
    called: Option<Weak<dyn Called>>,
    /// Whether I/Os were abandoned, so that later completions are dropped.
    is_closed: bool,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
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
            let called = state.called.clone();
            // Unlocked first, because the woken thread and the callback take the lock.
            drop(state);
            match called {
                None => self.arrived.notify_one(),
                Some(called) => {
                    if let Some(called) = called.upgrade() {
                        called.call();
                    }
                }
            }
        }
    }
}

/// State of one I/O in flight.
pub(super) struct Tag {
    board: Arc<Board>,
    slot: u32,
    /// Number of its requests in flight.
    pieces: AtomicU32,
    /// Bytes moved so far.
    moved: AtomicI32,
    /// Negated errno of a failed request. 0: none failed.
    error: AtomicI32,
    /// Whether the I/O timed out and was cancelled for that reason.
    is_late: AtomicBool,
}

impl Tag {
    /// Adds the bytes of a request whose result does not report them.
    pub(super) fn credit(&self, bytes: usize) {
        self.moved.fetch_add(bytes as i32, Relaxed);
    }

    /// Records the completion of a request: bytes moved, or the negated errno.
    pub(super) fn piece_is_over(&self, value: i32) {
        // Cloned, because the tag may be reused or dropped as soon as the last request is counted.
        let board = self.board.clone();
        if value < 0 {
            let is_late = value == -libc::ECANCELED && self.is_late.load(Relaxed);
            let value = if is_late { -libc::ETIMEDOUT } else { value };
            self.error.store(value, Relaxed);
        } else {
            self.moved.fetch_add(value, Relaxed);
        }
        if self.pieces.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        let result = match self.error.load(Relaxed) {
            0 => self.moved.load(Relaxed),
            error => error,
        };
        board.put(Completion {
            slot: self.slot,
            result,
        });
    }
}

/// Tags of a worker's slots, and the queue of their completions.
pub(super) struct Arrivals {
    tags: Box<[Tag]>,
    board: Arc<Board>,
    in_flight: usize,
    /// Whether waits busy poll instead of sleeping.
    polls: bool,
    /// Whether a callback is set, so that [`Arrivals::collect`] does not wait.
    calls: bool,
    /// Result of all I/Os, once they were abandoned.
    abandoned: Option<i32>,
}

impl Arrivals {
    /// Creates the state for `depth` I/Os in flight.
    pub(super) fn new(depth: usize, polls: bool) -> Arrivals {
        let board = Arc::new(Board::default());
        board.state().done.reserve(depth);
        let tag = |slot| Tag {
            board: board.clone(),
            slot,
            pieces: AtomicU32::new(0),
            moved: AtomicI32::new(0),
            error: AtomicI32::new(0),
            is_late: AtomicBool::new(false),
        };
        Arrivals {
            tags: (0..depth as u32).map(tag).collect(),
            board,
            in_flight: 0,
            polls,
            calls: false,
            abandoned: None,
        }
    }

    /// Sets a callback. [`Arrivals::collect`] no longer waits: the library's thread invokes the
    /// callback once the requested completions have arrived.
    pub(super) fn call(&mut self, called: Weak<dyn Called>) {
        self.board.state().called = Some(called);
        self.calls = true;
    }

    /// Removes the callback: [`Arrivals::collect`] waits again.
    pub(super) fn uncall(&mut self) {
        self.board.state().called = None;
        self.calls = false;
    }

    /// Whether a callback is set, so that [`Arrivals::collect`] does not wait.
    pub(super) fn calls(&self) -> bool {
        self.calls
    }

    /// Total number of completions, collected or not.
    pub(super) fn arrived(&self) -> u64 {
        self.board.state().arrived
    }

    /// Whether waits busy poll.
    pub(super) fn polls(&self) -> bool {
        self.polls
    }

    /// Marks a slot's I/O: `ECANCELED` becomes `ETIMEDOUT`. Returns whether it is in flight.
    pub(super) fn is_late(&self, slot: u32) -> bool {
        let tag = &self.tags[slot as usize];
        tag.is_late.store(true, Relaxed);
        tag.pieces.load(Relaxed) > 0
    }

    /// Whether no I/O is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Begins an I/O of `pieces` requests. Each must complete by [`Tag::piece_is_over`].
    ///
    /// # Panics
    /// If the slot is in flight, as two I/Os would use its buffer, and after [`Arrivals::abandon`].
    pub(super) fn begin(&mut self, slot: u32, pieces: u32) {
        let tag = &self.tags[slot as usize];
        assert!(
            pieces > 0 && tag.pieces.load(Acquire) == 0,
            "slot in flight"
        );
        tag.moved.store(0, Relaxed);
        tag.error.store(0, Relaxed);
        tag.is_late.store(false, Relaxed);
        tag.pieces.store(pieces, Release);
        self.in_flight += 1;
    }

    /// Tag of a slot in flight. Its address is stable while `self` lives, and `drop` waits for all
    /// I/Os in flight.
    pub(super) fn tag(&self, slot: u32) -> &Tag {
        let tag = &self.tags[slot as usize];
        assert!(tag.pieces.load(Relaxed) > 0, "slot not in flight");
        tag
    }

    /// Appends completions. Returns when `done` holds `min`, no I/O is in flight, or `timeout`
    /// passed. Returns at once if a callback is set.
    pub(super) fn collect(
        &mut self,
        min: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) {
        if self.calls {
            return self.take(min, done);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let wanted = min.saturating_sub(done.len()).min(self.in_flight);
            if wanted == 0 || self.polls {
                self.look(done);
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

    /// Completes all I/Os in flight with `result` and drops their later completions. The tags are
    /// leaked, and no further I/O can begin (see [`Arrivals::refuse`]).
    pub(super) fn abandon(&mut self, result: i32, done: &mut Vec<Completion>) {
        self.abandoned = Some(result);
        let tags: &'static [Tag] = Box::leak(std::mem::take(&mut self.tags));
        while self.in_flight > 0 {
            let mut state = self.board.state();
            let under_way = tags.iter().filter(|tag| tag.pieces.load(Acquire) > 0);
            let given_up: Vec<Completion> = under_way
                .map(|tag| Completion {
                    slot: tag.slot,
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

    /// After [`Arrivals::abandon`], completes a new I/O with the same result. Else returns `false`.
    pub(super) fn refuse(&mut self, slot: u32) -> bool {
        let Some(result) = self.abandoned else {
            return false;
        };
        // The closed queue drops all other completions.
        self.board.state().done.push(Completion { slot, result });
        self.board.any.store(true, Release);
        self.in_flight += 1;
        true
    }

    fn look(&mut self, done: &mut Vec<Completion>) {
        if self.board.any.load(Acquire) {
            let mut state = self.board.state();
            self.in_flight -= state.done.len();
            self.board.any.store(false, Relaxed);
            done.append(&mut state.done);
        }
    }

    /// Takes completions if there are `min`. Else requests a callback for that number.
    fn take(&mut self, min: usize, done: &mut Vec<Completion>) {
        let mut state = self.board.state();
        let wanted = min.saturating_sub(done.len()).min(self.in_flight);
        if state.done.len() < wanted {
            state.wanted = wanted;
            return;
        }
        state.wanted = 0;
        self.in_flight -= state.done.len();
        self.board.any.store(false, Relaxed);
        done.append(&mut state.done);
    }

    /// Sleeps until `wanted` I/Os complete or the deadline passes, and takes the completions.
    fn sleep(&mut self, wanted: usize, deadline: Option<Instant>, done: &mut Vec<Completion>) {
        let board = &self.board;
        let mut state = board.state();
        while state.done.len() < wanted {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            state.wanted = wanted;
            state = match left {
                None => board
                    .arrived
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = board.arrived.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.wanted = 0;
        self.in_flight -= state.done.len();
        board.any.store(false, Relaxed);
        done.append(&mut state.done);
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        // The library uses buffers and tags until then. Its timeouts bound the wait.
        self.uncall();
        let mut rest = Vec::new();
        while self.in_flight > 0 {
            self.sleep(1, None, &mut rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_is_over_with_the_last_of_its_requests() {
        let mut arrivals = Arrivals::new(2, false);
        arrivals.begin(1, 2);
        arrivals.begin(0, 1);
        let mut done = Vec::new();
        arrivals.tag(1).piece_is_over(512);
        arrivals.collect(0, None, &mut done);
        assert!(done.is_empty());
        arrivals.tag(0).piece_is_over(-libc::ETIMEDOUT);
        arrivals.tag(1).piece_is_over(1024);
        arrivals.collect(2, None, &mut done);
        let found: Vec<_> = done.iter().map(|done| (done.slot, done.result)).collect();
        assert_eq!(found, [(0, -libc::ETIMEDOUT), (1, 1536)]);
        assert!(arrivals.is_idle());
    }

    #[test]
    fn what_is_abandoned_ends_once_and_what_comes_later_goes_to_nobody() {
        for _ in 0..200 {
            let mut arrivals = Arrivals::new(3, false);
            let mut tags = Vec::new();
            for slot in 0..3 {
                arrivals.begin(slot, 1);
                tags.push(std::ptr::from_ref(arrivals.tag(slot)) as usize);
            }
            let late = tags[2];
            // SAFETY: abandoned tags are leaked, so they are never freed.
            let over = |tag: usize| unsafe { &*(tag as *const Tag) }.piece_is_over(512);
            let other = std::thread::spawn(move || over(tags[1]));
            let mut done = Vec::new();
            arrivals.abandon(-libc::ECANCELED, &mut done);
            assert!(arrivals.is_idle());
            over(late);
            other.join().unwrap();
            drop(arrivals);
            let mut slots: Vec<u32> = done.iter().map(|done| done.slot).collect();
            slots.sort_unstable();
            assert_eq!(slots, [0, 1, 2]);
            let result_of = |slot| done.iter().find(|done| done.slot == slot).unwrap().result;
            assert_eq!(result_of(0), -libc::ECANCELED);
            assert!([512, -libc::ECANCELED].contains(&result_of(1)));
        }
    }

    #[test]
    fn what_comes_after_the_others_were_abandoned_ends_as_they_did() {
        for polls in [false, true] {
            let mut arrivals = Arrivals::new(2, polls);
            assert!(!arrivals.refuse(0));
            arrivals.begin(0, 1);
            let mut done = Vec::new();
            arrivals.abandon(-libc::ECANCELED, &mut done);
            done.clear();
            for slot in [1, 0] {
                assert!(arrivals.refuse(slot));
                assert!(!arrivals.is_idle());
                arrivals.collect(1, None, &mut done);
                assert!(arrivals.is_idle());
                let found: Vec<_> = done
                    .drain(..)
                    .map(|done| (done.slot, done.result))
                    .collect();
                assert_eq!(found, [(slot, -libc::ECANCELED)]);
            }
        }
    }

    #[test]
    fn one_failed_request_fails_its_io() {
        let mut arrivals = Arrivals::new(1, false);
        arrivals.begin(0, 2);
        arrivals.tag(0).piece_is_over(-libc::EIO);
        arrivals.tag(0).piece_is_over(4096);
        let mut done = Vec::new();
        arrivals.collect(1, None, &mut done);
        assert_eq!(done[0].result, -libc::EIO);
    }

    #[test]
    fn who_is_called_is_called_once_when_there_is_what_was_asked_for() {
        #[derive(Default)]
        struct Calls(AtomicU32);
        impl Called for Calls {
            fn call(&self) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let calls = Arc::new(Calls::default());
        let mut arrivals = Arrivals::new(4, false);
        let called: Arc<Calls> = calls.clone();
        arrivals.call(Arc::<Calls>::downgrade(&called));
        (0..4).for_each(|slot| arrivals.begin(slot, 1));
        let mut done = Vec::new();
        arrivals.tag(0).piece_is_over(0);
        assert_eq!(calls.0.load(Relaxed), 0, "nobody waits yet");
        arrivals.collect(3, None, &mut done);
        assert!(done.is_empty(), "too few are left where they are");
        arrivals.tag(1).piece_is_over(0);
        assert_eq!(calls.0.load(Relaxed), 0);
        arrivals.tag(2).piece_is_over(0);
        arrivals.tag(3).piece_is_over(0);
        assert_eq!(calls.0.load(Relaxed), 1);
        arrivals.collect(3, None, &mut done);
        assert_eq!(done.len(), 4);
        assert!(arrivals.is_idle());
        // Without a callback, `collect` waits.
        drop((calls, called));
        arrivals.begin(0, 1);
        arrivals.collect(1, None, &mut done);
        arrivals.tag(0).piece_is_over(0);
        arrivals.uncall();
        arrivals.collect(5, None, &mut done);
        assert_eq!(done.len(), 5);
    }

    #[test]
    fn what_is_cancelled_because_it_took_too_long_has_timed_out() {
        let mut arrivals = Arrivals::new(2, false);
        (0..2).for_each(|slot| arrivals.begin(slot, 1));
        assert!(arrivals.is_late(0));
        (0..2).for_each(|slot| arrivals.tag(slot).piece_is_over(-libc::ECANCELED));
        let mut done = Vec::new();
        arrivals.collect(2, None, &mut done);
        let results: Vec<i32> = done.iter().map(|done| done.result).collect();
        assert_eq!(results, [-libc::ETIMEDOUT, -libc::ECANCELED]);
        assert!(!arrivals.is_late(0), "it is not under way");
        arrivals.begin(0, 1);
        arrivals.tag(0).piece_is_over(-libc::ECANCELED);
        arrivals.collect(3, None, &mut done);
        assert_eq!(done[2].result, -libc::ECANCELED, "that was the one before");
    }

    #[test]
    fn a_wait_ends_when_another_thread_reports_or_with_its_time() {
        for polls in [false, true] {
            let mut arrivals = Arrivals::new(1, polls);
            arrivals.begin(0, 1);
            let mut done = Vec::new();
            arrivals.collect(1, Some(Duration::from_millis(1)), &mut done);
            assert!(done.is_empty());
            let tag = std::ptr::from_ref(arrivals.tag(0)) as usize;
            let other = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                // SAFETY: the tag lives until its I/O completes, which this call does.
                unsafe { &*(tag as *const Tag) }.piece_is_over(7);
            });
            arrivals.collect(1, None, &mut done);
            assert_eq!(done[0].result, 7);
            other.join().unwrap();
        }
    }
}
