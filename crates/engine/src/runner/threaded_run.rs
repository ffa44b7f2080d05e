//! Runs workers on real targets, one thread per worker.

use super::coordinator::{Coordinator, RunContext};
use super::io_scheduler::Schedulers;
use super::open_logs::OpenLogs;
use super::session_resources::SessionRefs;
use super::start_barrier::StartBarrier;
use super::worker_thread::WorkerThread;
use super::{JobClone, RunMeasurements};
use crate::clock::{Clock, RealClock};
use crate::counters::WorkerCounters;
use crate::process_stops::{Stops, WatchEnd, watch};
use crate::remedies::no_thread;
use iosonde_job::plan::Plan;
use iosonde_machine::proc_root::System;
use iosonde_result::observer::{Observer, StartDecision};
use iosonde_result::run::WorkerResult;
use iosonde_result::run_error::RunError;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

/// Time from the readiness of a group's last worker to the common start.
const START_AHEAD_NS: u64 = 2_000_000;

/// Interval at which a ready group asks the observer whether it may start.
const START_POLL_NS: u64 = 2_000_000;

enum WorkerMessage {
    /// The worker waits at the start barrier, or cannot run because of the error.
    Ready(usize, Option<RunError>),
    Done(usize, Box<WorkerResult>),
    /// The worker's thread has panicked.
    Lost,
}

/// Stops all workers on drop, so that no thread waits forever, however the run ends.
struct StopOnDrop {
    start_barrier: Arc<StartBarrier>,
    workers: Vec<Arc<WorkerCounters>>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.stop.store(true, Relaxed);
        }
        self.start_barrier.cancel_start();
    }
}

/// The common start of a group of workers.
#[derive(Default)]
struct GroupStart {
    is_complete: bool,
    /// The caches of the complete group were dropped.
    is_cold: bool,
    /// The first group has started. Only this start is synchronised with other machines.
    is_begun: bool,
    /// Whether any worker of the run was prepared.
    is_any_prepared: bool,
    /// The first refusal of the run.
    refused: Option<RunError>,
}

impl GroupStart {
    /// Adds a worker that is prepared, or refused with this error. `is_last` completes the group.
    ///
    /// # Errors
    /// The refusal, if all workers of the group were refused: only then the run fails.
    fn add_worker(&mut self, refusal: Option<RunError>, is_last: bool) -> Result<(), RunError> {
        self.is_any_prepared |= refusal.is_none();
        self.refused = self.refused.take().or(refusal);
        if !is_last {
            return Ok(());
        }
        if !self.is_any_prepared
            && let Some(error) = self.refused.take()
        {
            return Err(error);
        }
        self.is_complete = true;
        Ok(())
    }

    /// Whether the caches must be dropped now: once per complete group of measured jobs.
    fn takes_cold_start(&mut self, coordinator: &Coordinator<'_>) -> bool {
        self.is_complete
            && !coordinator.is_group_of_neighbours()
            && !std::mem::replace(&mut self.is_cold, true)
    }

    /// Limits the wait for a message: a complete group polls for its start.
    fn limit_wait(&self, left_ns: u64) -> u64 {
        match self.is_complete {
            true => left_ns.min(START_POLL_NS),
            false => left_ns,
        }
    }

    /// Returns the current time and the common start, once it is known, on the run's clock.
    fn start_ns(
        &mut self,
        coordinator: &mut Coordinator<'_>,
        clock: &RealClock,
    ) -> Option<(u64, u64)> {
        if !self.is_complete {
            return None;
        }
        // Neighbours start at once, the measured jobs at the instant of all machines.
        let is_of_neighbours = coordinator.is_group_of_neighbours();
        let start = match self.is_begun || is_of_neighbours {
            true => StartDecision::Now,
            false => coordinator.poll_start(),
        };
        let now_ns = clock.now_ns();
        let start_ns = match start {
            StartDecision::Wait => return None,
            StartDecision::Now => now_ns + START_AHEAD_NS,
            StartDecision::At(at) => match at.checked_duration_since(Instant::now()) {
                Some(ahead) => now_ns + ahead.as_nanos() as u64,
                None => now_ns.saturating_sub(at.elapsed().as_nanos() as u64),
            },
        };
        (self.is_complete, self.is_cold) = (false, false);
        self.is_begun |= !is_of_neighbours;
        self.is_any_prepared &= !is_of_neighbours;
        Some((now_ns, start_ns))
    }
}

/// Reports a thread that panics.
struct PanicNotice(Sender<WorkerMessage>);

impl Drop for PanicNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(WorkerMessage::Lost);
        }
    }
}

/// Starts the thread of worker `number` of `count`.
fn spawn_worker<'scope>(
    scope: &'scope Scope<'scope, '_>,
    worker_thread: WorkerThread<'scope>,
    (number, count): (usize, usize),
    sender: &Sender<WorkerMessage>,
) -> Result<(), RunError> {
    let panic_notice = PanicNotice(sender.clone());
    let work = move || {
        // The receiver is gone if the run was cancelled.
        let ready = |refusal| drop(panic_notice.0.send(WorkerMessage::Ready(number, refusal)));
        let result = worker_thread.work(ready);
        let _ = panic_notice
            .0
            .send(WorkerMessage::Done(number, Box::new(result)));
    };
    match Builder::new().spawn_scoped(scope, work) {
        Ok(_) => Ok(()),
        Err(error) => {
            let whose = format!("for worker {} of {count}", number + 1);
            Err(no_thread(&whose, &error))
        }
    }
}

/// Starts the thread that detects stops of the process until the returned guard is dropped.
fn spawn_stop_watch<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stops: &'scope Arc<Stops>,
    origin_ns: u64,
) -> WatchEnd {
    stops.begin();
    let watching = Builder::new().spawn_scoped(scope, move || watch(stops, origin_ns));
    // If the kernel refuses this thread, the threads of the workers report the error.
    WatchEnd::new(watching.ok().as_ref().map(|it| it.thread().clone()), stops)
}

/// Waits for a message or the next tick, and handles it. Returns false if a thread has panicked.
fn handle_next_message(
    receiver: &Receiver<WorkerMessage>,
    coordinator: &mut Coordinator<'_>,
    clock: &RealClock,
    group_start: &mut GroupStart,
) -> Result<bool, RunError> {
    let left_ns = coordinator.next_tick_ns().saturating_sub(clock.now_ns());
    let left_ns = group_start.limit_wait(left_ns);
    match receiver.recv_timeout(Duration::from_nanos(left_ns)) {
        Ok(WorkerMessage::Ready(number, refusal)) => {
            let is_last = coordinator.mark_ready(number);
            group_start.add_worker(refusal, is_last)?;
        }
        Ok(WorkerMessage::Done(number, result)) => coordinator.record_result(number, *result),
        Err(RecvTimeoutError::Timeout) => coordinator.tick(clock.now_ns()),
        Ok(WorkerMessage::Lost) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
    }
    Ok(true)
}

/// Runs all clones to their end. An error means that no job ran, or that a thread was refused.
pub(super) fn run(
    plan: &Plan,
    clones: &[JobClone],
    session: &SessionRefs<'_>,
    context: RunContext<'_>,
    observer: &mut dyn Observer,
) -> Result<RunMeasurements, RunError> {
    let stops = Arc::new(Stops::default());
    let clock = RealClock::starting_now().with_counter(&System::live());
    let origin_ns = clock.origin_ns();
    let clock = match plan.counts_stops() {
        true => clock,
        false => clock.without(stops.clone()),
    };
    let mut coordinator =
        Coordinator::new(plan, clones, context, observer).with_clock(clock.clone(), stops.clone());
    let (sender, receiver) = channel();
    let open_logs = OpenLogs::new(session.runner.permissions.as_ref());
    let schedulers = Schedulers::default();
    let mut group_start = GroupStart::default();
    std::thread::scope(|scope| {
        let mut stop_guard = StopOnDrop {
            start_barrier: Arc::default(),
            workers: (0..clones.len())
                .map(|number| coordinator.shared(number))
                .collect(),
        };
        let _watch_end = spawn_stop_watch(scope, &stops, origin_ns);
        while !coordinator.is_finished() {
            let starting = coordinator.next_group();
            if !starting.is_empty() {
                stop_guard.start_barrier = Arc::default();
            }
            for number in starting {
                let (clone, shared, flow) = (
                    &clones[number],
                    coordinator.shared(number),
                    coordinator.flow(number),
                );
                let worker_thread = WorkerThread {
                    plan,
                    clones,
                    clone,
                    clock: clock.clone(),
                    shared,
                    start_barrier: stop_guard.start_barrier.clone(),
                    flow,
                    open_logs: &open_logs,
                    schedulers: &schedulers,
                    session,
                };
                spawn_worker(scope, worker_thread, (number, clones.len()), &sender)?;
            }
            if !handle_next_message(&receiver, &mut coordinator, &clock, &mut group_start)? {
                break;
            }
            if group_start.takes_cold_start(&coordinator) {
                let dropped = coordinator.dropped_caches();
                dropped.drop_again(plan, clones, session)?;
            }
            if let Some((now_ns, start_ns)) = group_start.start_ns(&mut coordinator, &clock) {
                coordinator.start(now_ns, start_ns);
                stop_guard.start_barrier.open(start_ns);
            }
        }
        Ok::<(), RunError>(())
    })?;
    let measured = coordinator.finish(clock.now_ns());
    Ok(measured.with_note(open_logs.cut_note()))
}
