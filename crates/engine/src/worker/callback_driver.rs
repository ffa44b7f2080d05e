//! Steps a worker on the library thread that delivers its completions.
//!
//! Waking the worker's own thread for each completion costs as much as a small I/O: one system call
//! to wake it, one to sleep, and two context switches. So the library thread steps the worker
//! itself. The worker's own thread handles the end of the run, stop requests and timeouts.

use crate::io::{Backend, CompletionCallback};
use crate::worker::clock::Clock;
use crate::worker::{Worker, WorkerParts, WorkerStep};
use iosonde_machine::cpu_use;
use iosonde_result::run::CpuUse;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of steps before the worker's own thread unlocks the worker.
const MOST_ROUNDS: u32 = 1000;
/// Interval at which a library thread records its CPU use, in nanoseconds.
const CPU_USE_INTERVAL_NS: u64 = 20_000_000;

thread_local! {
    /// CPU use of this library thread when it was last recorded.
    static NOTED: Cell<Option<CpuUse>> = const { Cell::new(None) };
}

/// A worker that the driver steps: [`Worker`], or a stand-in of a test.
pub(crate) trait StepTarget {
    /// See [`Worker::step`].
    fn step(&mut self) -> WorkerStep;
    /// See [`Worker::now_ns`].
    fn now_ns(&self) -> u64;
    /// Reads the clock and checks the I/Os in flight for timeouts.
    fn check_clock_and_timeouts(&mut self);
}

impl<B: Backend, C: Clock> StepTarget for Worker<B, C> {
    fn step(&mut self) -> WorkerStep {
        Worker::step(self)
    }

    fn now_ns(&self) -> u64 {
        Worker::now_ns(self)
    }

    fn check_clock_and_timeouts(&mut self) {
        self.wake();
        self.check_timeouts();
    }
}

/// A worker, and the lock that a thread holds while it steps the worker.
pub(crate) struct CallbackDriver<W> {
    state: Mutex<DriverState<W>>,
    /// Number of calls. A thread that fails to lock returns: the holder re-reads it after unlock.
    ///
    /// A caller adds to `calls` and then reads the state of the lock; a holder writes that state
    /// (unlock) and then reads `calls`. One of them must see the other's write, or a completion
    /// waits for the next call. Release and acquire do not order a write before a later read of
    /// another location, so each side has a sequentially consistent fence between its two accesses.
    /// If the caller's fence comes first in their total order, the holder reads the new count. If
    /// the holder's comes first, the caller finds the lock free, or held by a later holder, for
    /// which the same holds.
    ///
    /// A holder that reads the new count already when it begins (acquire) sees the completions
    /// before it (release), so it misses none by not starting over.
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
    other_cpu: CpuUse,
    noted_ns: u64,
}

/// Whether a worker with these parts waits for completions only.
pub(crate) fn can_drive(parts: &WorkerParts) -> bool {
    parts.pacer.never_waits()
        && parts.flow.is_none()
        && parts.replayer.is_none()
        && parts.depth_control.is_none()
}

impl<W: StepTarget> CallbackDriver<W> {
    /// Creates a driver without a worker.
    pub(crate) fn new() -> CallbackDriver<W> {
        CallbackDriver {
            state: Mutex::new(DriverState {
                worker: None,
                is_done: false,
                panic: None,
                other_cpu: CpuUse::default(),
                noted_ns: 0,
            }),
            calls: AtomicU64::new(0),
            is_done: Mutex::new(false),
            done: Condvar::new(),
        }
    }

    /// Puts a worker into the driver.
    pub(crate) fn enter(&self, worker: W) {
        self.lock_state().worker = Some(worker);
    }

    /// Takes the worker out, with the CPU use of the library threads that stepped it.
    pub(crate) fn leave(&self) -> Option<(W, CpuUse)> {
        let mut state = self.lock_state();
        let worker = state.worker.take()?;
        Some((worker, state.other_cpu))
    }

    fn lock_state(&self) -> MutexGuard<'_, DriverState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the worker's own thread: passes the worker and the CPU use of library threads to
    /// `inspect`, checks timeouts, and steps the worker. Returns whether the worker is done.
    ///
    /// # Panics
    /// If the worker panicked, on any thread.
    pub(crate) fn service_worker(&self, inspect: impl FnOnce(&W, &CpuUse)) -> bool {
        let mut inspect = Some(inspect);
        loop {
            let mut state = self.lock_state();
            if let Some(panic) = state.panic.take() {
                drop(state);
                resume_unwind(panic);
            }
            let calls = self.calls.load(Acquire);
            let DriverState {
                worker, other_cpu, ..
            } = &mut *state;
            if let (Some(worker), Some(inspect)) = (worker, inspect.take()) {
                worker.check_clock_and_timeouts();
                inspect(worker, other_cpu);
            }
            let goes_on = state.step(MOST_ROUNDS);
            let is_done = state.is_done;
            drop(state);
            // Orders the unlock before the read of `calls`: see there.
            fence(SeqCst);
            if is_done || !goes_on && self.calls.load(Relaxed) == calls {
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

    fn report_done(&self) {
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
                WorkerStep::Again => {}
                WorkerStep::Wait(_) => return false,
                WorkerStep::Done => {
                    self.is_done = true;
                    return false;
                }
            }
        }
        true
    }

    /// Records the CPU use of this thread, once per `CPU_USE_INTERVAL_NS`.
    fn note_use(&mut self) {
        let now_ns = self.worker.as_ref().map_or(0, W::now_ns);
        if now_ns < self.noted_ns + CPU_USE_INTERVAL_NS && !self.is_done {
            return;
        }
        self.noted_ns = now_ns;
        let now = cpu_use::cpu_use_and_queued();
        let before = NOTED.replace(Some(now)).unwrap_or(now);
        self.other_cpu = self.other_cpu.and(&now.since(&before));
    }
}

impl<W: StepTarget + Send> CompletionCallback for CallbackDriver<W> {
    fn on_completions(&self) {
        self.calls.fetch_add(1, Release);
        // Orders the addition before the read of the lock: see `calls`.
        fence(SeqCst);
        loop {
            // This fails as well if the worker's own thread panicked: the worker is then lost.
            let Ok(mut state) = self.state.try_lock() else {
                return;
            };
            let calls = self.calls.load(Acquire);
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                while state.step(MOST_ROUNDS) {}
                state.note_use();
            }));
            if let Err(panic) = stepped {
                // The worker's own thread resumes the panic: a library thread must not unwind.
                state.panic = Some(panic);
                state.is_done = true;
            }
            let is_done = state.is_done;
            drop(state);
            if is_done {
                return self.report_done();
            }
            // Orders the unlock before the read of `calls`: see there.
            fence(SeqCst);
            if self.calls.load(Relaxed) == calls {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A test worker: takes the items that others put, and is done after `most` of them.
    struct Taker {
        put: Arc<AtomicU64>,
        taken: u64,
        most: u64,
        checks: u64,
        /// Runs once, before the first wait.
        before_wait: Option<Box<dyn FnOnce() + Send>>,
    }

    impl StepTarget for Taker {
        fn step(&mut self) -> WorkerStep {
            if self.taken == self.most {
                return WorkerStep::Done;
            }
            if self.taken == self.put.load(Relaxed) {
                if let Some(late) = self.before_wait.take() {
                    late();
                }
                return WorkerStep::Wait(u64::MAX);
            }
            self.taken += 1;
            WorkerStep::Again
        }

        fn now_ns(&self) -> u64 {
            self.taken
        }

        fn check_clock_and_timeouts(&mut self) {
            self.checks += 1;
        }
    }

    fn driver(most: u64) -> (Arc<AtomicU64>, Arc<CallbackDriver<Taker>>) {
        let put = Arc::new(AtomicU64::new(0));
        let driver = CallbackDriver::new();
        driver.enter(Taker {
            put: put.clone(),
            taken: 0,
            most,
            checks: 0,
            before_wait: None,
        });
        (put, Arc::new(driver))
    }

    #[test]
    fn completion_during_a_step_is_handled() {
        for own in [false, true] {
            let (put, driver) = driver(u64::MAX);
            let (other, items) = (driver.clone(), put.clone());
            // Before the worker unlocks, another thread adds an item and fails to take the lock.
            let late = move || {
                let (other, items) = (other.clone(), items.clone());
                let late = std::thread::spawn(move || {
                    items.fetch_add(1, Relaxed);
                    other.on_completions();
                });
                late.join().unwrap();
            };
            driver.lock_state().worker.as_mut().unwrap().before_wait = Some(Box::new(late));
            match own {
                true => assert!(!driver.service_worker(|_, _| {})),
                false => driver.on_completions(),
            }
            assert_eq!(driver.leave().unwrap().0.taken, 1, "own thread: {own}");
        }
    }

    #[test]
    fn completions_of_many_threads_are_all_taken() {
        const EACH: u64 = 50_000;
        let (put, driver) = driver(u64::MAX);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        put.fetch_add(1, Relaxed);
                        driver.on_completions();
                    }
                });
            }
            scope.spawn(|| (0..1000).for_each(|_| assert!(!driver.service_worker(|_, _| {}))));
        });
        let (taker, _) = driver.leave().unwrap();
        assert_eq!(taker.taken, 3 * EACH);
        assert!(taker.checks >= 1000);
    }

    #[test]
    fn last_step_reports_the_end() {
        let (put, driver) = driver(2);
        assert!(!driver.service_worker(|_, _| {}));
        driver.wait(Duration::from_millis(1));
        put.store(2, Relaxed);
        let other = driver.clone();
        let caller = std::thread::spawn(move || other.on_completions());
        driver.wait(Duration::from_secs(600));
        assert!(
            driver.service_worker(|taker, _| assert_eq!(taker.taken, 2)),
            "it stays done"
        );
        caller.join().unwrap();
        assert!(driver.leave().is_some() && driver.leave().is_none());
        driver.on_completions();
    }

    #[test]
    fn panic_on_a_library_thread_reaches_the_worker() {
        let (put, driver) = driver(u64::MAX);
        let panics = || panic!("as it should");
        driver.lock_state().worker.as_mut().unwrap().before_wait = Some(Box::new(panics));
        put.store(1, Relaxed);
        let other = driver.clone();
        std::thread::spawn(move || other.on_completions())
            .join()
            .unwrap();
        driver.wait(Duration::from_secs(600));
        let caught = catch_unwind(AssertUnwindSafe(|| driver.service_worker(|_, _| {})));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"as it should"));
        let (taker, _) = driver.leave().unwrap();
        assert_eq!(taker.taken, 1);
    }

    #[test]
    fn cpu_time_of_library_threads_counts_as_used() {
        const AT_ONCE: u64 = CPU_USE_INTERVAL_NS;
        let (put, driver) = driver(u64::MAX);
        let other = driver.clone();
        let caller = std::thread::spawn(move || {
            // The first call records no use, as the thread's use before it is unknown.
            for _ in 0..20 {
                put.fetch_add(AT_ONCE / 10, Relaxed);
                other.on_completions();
            }
        });
        caller.join().unwrap();
        let (_, used) = driver.leave().unwrap();
        assert!(used.user_ns + used.system_ns > 0, "{used:?}");
    }
}
