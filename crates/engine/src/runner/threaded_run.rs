//! Runs workers on real targets, one thread per worker.

use super::coordinator::{Coordinator, RunContext};
use super::io_scheduler::Schedulers;
use super::log_files::OpenLogs;
use super::worker_thread::{StartBarrier, WorkerThread};
use super::{JobClone, LocalRunner, RunMeasurements};
use crate::ceph::Estate;
use crate::files::CreatedFiles;
use crate::worker::clock::{Clock, RealClock};
use crate::worker::counters::Shared;
use crate::worker::io_failure::no_thread;
use crate::worker::process_stops::{Stops, WatchEnd, watch};
use iosonde_job::plan::Plan;
use iosonde_machine::write_hold::DeviceHolds;
use iosonde_result::observer::{Observer, Start};
use iosonde_result::run::WorkerResult;
use iosonde_result::session::RunError;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Time from the readiness of a group's last worker to the common start.
const START_AHEAD_NS: u64 = 2_000_000;

/// Interval at which a ready group asks the observer whether it may start.
const START_LOOK_NS: u64 = 2_000_000;

enum Message {
    /// The worker waits at the start barrier, or cannot run because of the error.
    Ready(usize, Option<RunError>),
    Done(usize, Box<WorkerResult>),
    /// The worker's thread has panicked.
    Lost,
}

/// Stops all workers on drop, so that no thread waits forever, however the run ends.
struct StopOnDrop {
    gate: Arc<StartBarrier>,
    workers: Vec<Arc<Shared>>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.stop.store(true, Relaxed);
        }
        self.gate.call_off();
    }
}

/// The common start of a group of workers.
#[derive(Default)]
struct GroupStart {
    is_complete: bool,
    /// The first group has started. Only this start is synchronised with other machines.
    is_begun: bool,
}

impl GroupStart {
    /// Returns the current time and the common start, once it is known, on the run's clock.
    fn start_ns(&mut self, crew: &mut Coordinator<'_>, clock: &RealClock) -> Option<(u64, u64)> {
        if !self.is_complete {
            return None;
        }
        let start = match self.is_begun {
            true => Start::Now,
            false => crew.may_start(),
        };
        let now_ns = clock.now_ns();
        let start_ns = match start {
            Start::Wait => return None,
            Start::Now => now_ns + START_AHEAD_NS,
            Start::At(at) => match at.checked_duration_since(Instant::now()) {
                Some(ahead) => now_ns + ahead.as_nanos() as u64,
                None => now_ns.saturating_sub(at.elapsed().as_nanos() as u64),
            },
        };
        *self = GroupStart {
            is_complete: false,
            is_begun: true,
        };
        Some((now_ns, start_ns))
    }
}

/// Reports a thread that panics.
struct PanicNotice(Sender<Message>);

impl Drop for PanicNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Message::Lost);
        }
    }
}

/// Resources of the session while its workers run.
pub(super) struct Held<'a> {
    pub(super) runner: &'a LocalRunner,
    pub(super) estate: &'a Mutex<Estate>,
    pub(super) holds: &'a DeviceHolds,
    pub(super) created: &'a CreatedFiles,
}

/// Runs all clones to their end. An error means that no job ran, or that a thread was refused.
pub(super) fn run(
    plan: &Plan,
    clones: &[JobClone],
    session: &Held<'_>,
    around: RunContext<'_>,
    observer: &mut dyn Observer,
) -> Result<RunMeasurements, RunError> {
    let stops = Arc::new(Stops::default());
    let clock = RealClock::starting_now();
    let origin_ns = clock.origin_ns();
    let clock = match plan.counts_stops() {
        true => clock,
        false => clock.without(stops.clone()),
    };
    let mut crew =
        Coordinator::new(plan, clones, around, observer).on(clock.clone(), stops.clone());
    let (sender, receiver) = channel();
    let shelf = OpenLogs::default();
    let schedulers = Schedulers::default();
    let (mut any_prepared, mut refused) = (false, None);
    let mut line = GroupStart::default();
    std::thread::scope(|scope| {
        let mut way_home = StopOnDrop {
            gate: Arc::default(),
            workers: (0..clones.len())
                .map(|number| crew.shared(number))
                .collect(),
        };
        stops.begin();
        let watched = &stops;
        let watching = Builder::new().spawn_scoped(scope, move || watch(watched, origin_ns));
        // If the kernel refuses this thread, the threads of the workers report the error.
        let _watch_end =
            WatchEnd::new(watching.ok().as_ref().map(|it| it.thread().clone()), &stops);
        while !crew.is_finished() {
            let starting = crew.call_up();
            if !starting.is_empty() {
                way_home.gate = Arc::default();
            }
            for number in starting {
                let (clone, shared, flow) =
                    (&clones[number], crew.shared(number), crew.flow(number));
                let seat = WorkerThread {
                    plan,
                    clones,
                    clone,
                    clock: clock.clone(),
                    shared,
                    gate: way_home.gate.clone(),
                    flow,
                    shelf: &shelf,
                    schedulers: &schedulers,
                    session,
                };
                let word = PanicNotice(sender.clone());
                let work = move || {
                    // The receiver is gone if the run was cancelled.
                    let result =
                        seat.work(|refusal| drop(word.0.send(Message::Ready(number, refusal))));
                    let _ = word.0.send(Message::Done(number, Box::new(result)));
                };
                Builder::new().spawn_scoped(scope, work).map_err(|error| {
                    let whose = format!("for worker {} of {}", number + 1, clones.len());
                    no_thread(&whose, &error)
                })?;
            }
            let left_ns = crew.next_tick_ns().saturating_sub(clock.now_ns());
            let left_ns = if line.is_complete {
                left_ns.min(START_LOOK_NS)
            } else {
                left_ns
            };
            match receiver.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(Message::Ready(number, refusal)) => {
                    any_prepared |= refusal.is_none();
                    refused = refused.or(refusal);
                    if crew.ready(number) {
                        // The run fails only if all workers of the group were refused.
                        if !any_prepared && let Some(error) = refused.take() {
                            return Err(error);
                        }
                        line.is_complete = true;
                    }
                }
                Ok(Message::Done(number, result)) => crew.done(number, *result),
                Err(RecvTimeoutError::Timeout) => crew.tick(clock.now_ns()),
                Ok(Message::Lost) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some((now_ns, start_ns)) = line.start_ns(&mut crew, &clock) {
                crew.start(now_ns, start_ns);
                way_home.gate.open(start_ns);
            }
        }
        Ok(())
    })?;
    Ok(crew.finish(clock.now_ns()))
}
