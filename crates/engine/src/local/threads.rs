//! Workers on real targets: a thread each.

use super::crew::{Around, Crew};
use super::logfiles::LogShelf;
use super::seat::{Gate, Seat};
use super::{CrewOutcome, LocalRunner, Member};
use crate::clock::{Clock, RealClock};
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::WorkerResult;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// From the moment that all workers of a group are ready to their common start.
const START_AHEAD_NS: u64 = 2_000_000;

enum Message {
    Ready(usize),
    Done(usize, Box<WorkerResult>),
}

/// Runs all clones to their end.
pub(super) fn run(
    plan: &Plan,
    clones: &[Member],
    runner: &LocalRunner,
    around: Around<'_>,
    observer: &mut dyn Observer,
) -> CrewOutcome {
    let clock = RealClock::starting_now();
    let mut crew = Crew::new(plan, clones, around, observer);
    let mut gate = Arc::new(Gate::default());
    let (sender, receiver) = channel();
    let shelf = LogShelf::default();
    std::thread::scope(|scope| {
        while !crew.is_finished() {
            let starting = crew.call_up();
            if !starting.is_empty() {
                gate = Arc::new(Gate::default());
            }
            for number in starting {
                let (clone, shared, flow) =
                    (&clones[number], crew.shared(number), crew.flow(number));
                let seat = Seat {
                    plan,
                    clone,
                    clock,
                    shared,
                    gate: gate.clone(),
                    flow,
                    shelf: &shelf,
                    runner,
                };
                let sender = sender.clone();
                scope.spawn(move || {
                    // The receiver outlives all workers: sending cannot fail.
                    let result = seat.work(|| drop(sender.send(Message::Ready(number))));
                    let _ = sender.send(Message::Done(number, Box::new(result)));
                });
            }
            let left_ns = crew.next_tick_ns().saturating_sub(clock.now_ns());
            match receiver.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(Message::Ready(number)) => {
                    if crew.ready(number) {
                        let now_ns = clock.now_ns();
                        crew.start(now_ns, now_ns + START_AHEAD_NS);
                        gate.open(now_ns + START_AHEAD_NS);
                    }
                }
                Ok(Message::Done(number, result)) => crew.done(number, *result),
                Err(RecvTimeoutError::Timeout) => crew.tick(clock.now_ns()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    crew.finish(clock.now_ns())
}
