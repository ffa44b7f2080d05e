//! Steps a worker on the library thread that delivers its completions.
//!
//! Waking the worker's own thread for each completion costs as much as a small I/O: one system call
//! to wake it, one to sleep, and two context switches. So the library thread steps the worker
//! itself. The worker's own thread handles the end of the run, stop requests and timeouts.

use crate::io::{Backend, Called};
use crate::worker::clock::Clock;
use crate::worker::{Parts, Step, Worker};
use iosonde_machine::cpu_use;
use iosonde_result::run::CpuUse;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of steps before the worker's own thread unlocks the worker.
const MOST_ROUNDS: u32 = 1000;
/// Interval at which a library thread records its CPU use, in nanoseconds.
const USE_NOTED_NS: u64 = 20_000_000;

thread_local! {
    /// CPU use of this library thread when it was last recorded.
    static NOTED: Cell<Option<CpuUse>> = const { Cell::new(None) };
}

/// A worker that the driver steps: [`Worker`], or a stand-in of a test.
pub(crate) trait StepTarget {
    /// See [`Worker::step`].
    fn step(&mut self) -> Step;
    /// See [`Worker::now_ns`].
    fn now_ns(&self) -> u64;
    /// Reads the clock and checks the I/Os in flight for timeouts.
    fn look_around(&mut self);
}

impl<B: Backend, C: Clock> StepTarget for Worker<B, C> {
    fn step(&mut self) -> Step {
        Worker::step(self)
    }

    fn now_ns(&self) -> u64 {
        Worker::now_ns(self)
    }

    fn look_around(&mut self) {
        self.wake();
        self.look_after();
    }
}

/// A worker, and the lock that a thread holds while it steps the worker.
pub(crate) struct CallbackDriver<W> {
    seat: Mutex<DriverState<W>>,
    /// Number of calls. A thread that fails to lock returns: the holder re-reads it after unlock.
    calls: AtomicU64,
    is_done: Mutex<bool>,
    done: Condvar,
}

struct DriverState<W> {
    worker: Option<W>,
    is_done: bool,
    /// The panic that ended the worker.
    panic: Option<Box<dyn Any + Send>>,
    /// CPU use of the library threads that stepped the worker.
    lent: CpuUse,
    noted_ns: u64,
}

/// Whether a worker with these parts waits for completions only.
pub(crate) fn fits(parts: &Parts) -> bool {
    parts.pacer.is_free()
        && parts.flow.is_none()
        && parts.replayer.is_none()
        && parts.depth_control.is_none()
}

impl<W: StepTarget> CallbackDriver<W> {
    /// Creates a driver without a worker.
    pub(crate) fn new() -> CallbackDriver<W> {
        CallbackDriver {
            seat: Mutex::new(DriverState {
                worker: None,
                is_done: false,
                panic: None,
                lent: CpuUse::default(),
                noted_ns: 0,
            }),
            calls: AtomicU64::new(0),
            is_done: Mutex::new(false),
            done: Condvar::new(),
        }
    }

    /// Puts a worker into the driver.
    pub(crate) fn enter(&self, worker: W) {
        self.seat().worker = Some(worker);
    }

    /// Takes the worker out, with the CPU use of the library threads that stepped it.
    pub(crate) fn leave(&self) -> Option<(W, CpuUse)> {
        let mut seat = self.seat();
        let worker = seat.worker.take()?;
        Some((worker, seat.lent))
    }

    fn seat(&self) -> MutexGuard<'_, DriverState<W>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the worker's own thread: passes the worker and the CPU use of library threads to
    /// `look`, checks timeouts, and steps the worker. Returns whether the worker is done.
    ///
    /// # Panics
    /// If the worker panicked, on any thread.
    pub(crate) fn tend(&self, look: impl FnOnce(&W, &CpuUse)) -> bool {
        let mut look = Some(look);
        loop {
            let mut seat = self.seat();
            if let Some(panic) = seat.panic.take() {
                drop(seat);
                resume_unwind(panic);
            }
            let calls = self.calls.load(SeqCst);
            let DriverState { worker, lent, .. } = &mut *seat;
            if let (Some(worker), Some(look)) = (worker, look.take()) {
                worker.look_around();
                look(worker, lent);
            }
            let goes_on = seat.step(MOST_ROUNDS);
            let is_done = seat.is_done;
            drop(seat);
            fence(SeqCst);
            if is_done || !goes_on && self.calls.load(SeqCst) == calls {
                return is_done;
            }
        }
    }

    /// Waits until the worker is done, but no longer than `most`.
    pub(crate) fn wait(&self, most: Duration) {
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.done.wait_timeout_while(is_done, most, |done| !*done);
        drop(waited);
    }

    fn tell(&self) {
        *self.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.done.notify_all();
    }
}

impl<W: StepTarget> DriverState<W> {
    /// Steps the worker at most `most` times, until it waits or is done. Returns whether to go on.
    fn step(&mut self, most: u32) -> bool {
        let Some(worker) = self.worker.as_mut().filter(|_| !self.is_done) else {
            return false;
        };
        for _ in 0..most {
            match worker.step() {
                Step::Again => {}
                Step::Wait(_) => return false,
                Step::Done => {
                    self.is_done = true;
                    return false;
                }
            }
        }
        true
    }

    /// Records the CPU use of this thread, once per `USE_NOTED_NS`.
    fn note_use(&mut self) {
        let now_ns = self.worker.as_ref().map_or(0, W::now_ns);
        if now_ns < self.noted_ns + USE_NOTED_NS && !self.is_done {
            return;
        }
        self.noted_ns = now_ns;
        let now = cpu_use::cpu_use_and_queued();
        let before = NOTED.replace(Some(now)).unwrap_or(now);
        self.lent = self.lent.and(&now.since(&before));
    }
}

impl<W: StepTarget + Send> Called for CallbackDriver<W> {
    fn call(&self) {
        self.calls.fetch_add(1, SeqCst);
        fence(SeqCst);
        loop {
            // This fails as well if the worker's own thread panicked: the worker is then lost.
            let Ok(mut seat) = self.seat.try_lock() else {
                return;
            };
            let calls = self.calls.load(SeqCst);
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                while seat.step(MOST_ROUNDS) {}
                seat.note_use();
            }));
            if let Err(panic) = stepped {
                // The worker's own thread resumes the panic: a library thread must not unwind.
                seat.panic = Some(panic);
                seat.is_done = true;
            }
            let is_done = seat.is_done;
            drop(seat);
            if is_done {
                return self.tell();
            }
            fence(SeqCst);
            if self.calls.load(SeqCst) == calls {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    /// A test worker: takes the items that others put, and is done after `most` of them.
    struct Taker {
        put: Arc<AtomicU64>,
        taken: u64,
        most: u64,
        looks: u64,
        /// Runs once, before the first wait.
        before_wait: Option<Box<dyn FnOnce() + Send>>,
    }

    impl StepTarget for Taker {
        fn step(&mut self) -> Step {
            if self.taken == self.most {
                return Step::Done;
            }
            if self.taken == self.put.load(Relaxed) {
                if let Some(late) = self.before_wait.take() {
                    late();
                }
                return Step::Wait(u64::MAX);
            }
            self.taken += 1;
            Step::Again
        }

        fn now_ns(&self) -> u64 {
            self.taken
        }

        fn look_around(&mut self) {
            self.looks += 1;
        }
    }

    fn stage(most: u64) -> (Arc<AtomicU64>, Arc<CallbackDriver<Taker>>) {
        let put = Arc::new(AtomicU64::new(0));
        let stage = CallbackDriver::new();
        stage.enter(Taker {
            put: put.clone(),
            taken: 0,
            most,
            looks: 0,
            before_wait: None,
        });
        (put, Arc::new(stage))
    }

    #[test]
    fn what_comes_while_somebody_steps_is_not_forgotten() {
        for own in [false, true] {
            let (put, stage) = stage(u64::MAX);
            let (other, items) = (stage.clone(), put.clone());
            // Before the worker unlocks, another thread adds an item and fails to take the lock.
            let late = move || {
                let (other, items) = (other.clone(), items.clone());
                let late = std::thread::spawn(move || {
                    items.fetch_add(1, Relaxed);
                    other.call();
                });
                late.join().unwrap();
            };
            stage.seat().worker.as_mut().unwrap().before_wait = Some(Box::new(late));
            match own {
                true => assert!(!stage.tend(|_, _| {})),
                false => stage.call(),
            }
            assert_eq!(stage.leave().unwrap().0.taken, 1, "own thread: {own}");
        }
    }

    #[test]
    fn any_number_of_threads_may_have_news() {
        const EACH: u64 = 50_000;
        let (put, stage) = stage(u64::MAX);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        put.fetch_add(1, Relaxed);
                        stage.call();
                    }
                });
            }
            scope.spawn(|| (0..1000).for_each(|_| assert!(!stage.tend(|_, _| {}))));
        });
        let (taker, _) = stage.leave().unwrap();
        assert_eq!(taker.taken, 3 * EACH);
        assert!(taker.looks >= 1000);
    }

    #[test]
    fn who_steps_to_the_end_says_so() {
        let (put, stage) = stage(2);
        assert!(!stage.tend(|_, _| {}));
        stage.wait(Duration::from_millis(1));
        put.store(2, Relaxed);
        let other = stage.clone();
        let caller = std::thread::spawn(move || other.call());
        stage.wait(Duration::from_secs(600));
        assert!(
            stage.tend(|taker, _| assert_eq!(taker.taken, 2)),
            "it stays done"
        );
        caller.join().unwrap();
        assert!(stage.leave().is_some() && stage.leave().is_none());
        stage.call();
    }

    #[test]
    fn a_panic_on_a_thread_of_a_library_is_one_of_the_worker() {
        let (put, stage) = stage(u64::MAX);
        let panics = || panic!("as it should");
        stage.seat().worker.as_mut().unwrap().before_wait = Some(Box::new(panics));
        put.store(1, Relaxed);
        let other = stage.clone();
        std::thread::spawn(move || other.call()).join().unwrap();
        stage.wait(Duration::from_secs(600));
        let told = catch_unwind(AssertUnwindSafe(|| stage.tend(|_, _| {})));
        assert_eq!(told.unwrap_err().downcast_ref(), Some(&"as it should"));
        let (taker, _) = stage.leave().unwrap();
        assert_eq!(taker.taken, 1);
    }

    #[test]
    fn what_others_use_for_the_worker_counts_as_used() {
        const AT_ONCE: u64 = USE_NOTED_NS;
        let (put, stage) = stage(u64::MAX);
        let other = stage.clone();
        let caller = std::thread::spawn(move || {
            // The first call records no use, as the thread's use before it is unknown.
            for _ in 0..20 {
                put.fetch_add(AT_ONCE / 10, Relaxed);
                other.call();
            }
        });
        caller.join().unwrap();
        let (_, used) = stage.leave().unwrap();
        assert!(used.user_ns + used.system_ns > 0, "{used:?}");
    }
}
