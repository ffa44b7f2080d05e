//! Tests that full rounds issue and count the same I/Os as the general path.

use super::worker_parts::{SteppedClock, job, parts};
use crate::io::{Backend, Completion, FileHandle, RoundTransfer, Slab};
use crate::sys::memory::IoMemory;
use crate::worker::clock::Clock;
use crate::worker::counters::WorkerCounters;
use crate::worker::recorder::Recorder;
use crate::worker::{Worker, WorkerParts, WorkerStep};
use iosonde_job::plan::*;
use iosonde_result::run::{DirectionStats, SyncStats};
use iosonde_workload::{Io, Op};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const DEPTH: u32 = 4;

/// The outcome of the I/Os of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RoundFate {
    Full,
    /// The first wait returns half of the I/Os.
    Late,
    /// One I/O is short.
    Short,
    /// One I/O fails.
    Failed,
    /// All complete at once, but late.
    Slow,
    /// The fast path does not know the I/Os.
    Declined,
    /// The same, and the worker is to stop.
    DeclinedAtStop,
    ProcessStop,
    StopRequest,
}

#[derive(Debug, Clone, PartialEq)]
struct Call {
    at_ns: u64,
    ios: Vec<(Op, u64, u32)>,
}

struct ScriptedBackend<const ROUNDS: bool> {
    clock: SteppedClock,
    fate_of: fn(usize) -> RoundFate,
    fate: RoundFate,
    pending: Vec<Completion>,
    calls: Rc<RefCell<Vec<Call>>>,
    rounds: Rc<Cell<usize>>,
    shared: Arc<WorkerCounters>,
}

impl<const ROUNDS: bool> ScriptedBackend<ROUNDS> {
    /// Submits I/Os with their slots.
    fn call(&mut self, ios: &[(u32, Op, u64, u32)]) {
        let number = self.calls.borrow().len();
        self.fate = (self.fate_of)(number);
        self.calls.borrow_mut().push(Call {
            at_ns: self.clock.now_ns(),
            ios: ios
                .iter()
                .map(|(_, op, at, len)| (*op, *at, *len))
                .collect(),
        });
        self.clock.pass(100 + number as u64 % 7 * 10);
        for (position, (slot, _, _, len)) in ios.iter().enumerate() {
            let result = match (self.fate, position) {
                (RoundFate::Short, 1) => *len as i32 / 2,
                (RoundFate::Failed, 2) => -libc::EIO,
                _ => *len as i32,
            };
            self.pending.push(Completion {
                slot: *slot,
                result,
            });
        }
        if matches!(
            self.fate,
            RoundFate::StopRequest | RoundFate::DeclinedAtStop
        ) {
            self.shared.stop.store(true, Relaxed);
        }
    }

    /// Lets the time until the completions pass.
    fn complete(&mut self, done: &mut Vec<Completion>) {
        let number = self.calls.borrow().len() as u64;
        self.clock.pass(1_000 + number * 37 % 500);
        match self.fate {
            RoundFate::Late => {
                self.fate = RoundFate::Full;
                let half = self.pending.len() / 2;
                done.extend(self.pending.drain(..half));
                return;
            }
            RoundFate::Slow => self.clock.pass(100_000),
            RoundFate::ProcessStop => self.clock.resumed_ns.set(self.clock.now_ns()),
            _ => {}
        }
        done.append(&mut self.pending);
    }
}

impl<const ROUNDS: bool> Backend for ScriptedBackend<ROUNDS> {
    const SYNCHRONOUS: bool = false;
    const TRANSFERS_ROUNDS: bool = ROUNDS;

    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        let io_of = |index: &u32| {
            let slot = &slab.slots[*index as usize];
            let moved = u64::from(slot.moved);
            (*index, slot.op, slot.offset + moved, slot.len - slot.moved)
        };
        let ios: Vec<_> = batch.iter().map(io_of).collect();
        self.call(&ios);
        Ok(batch.len())
    }

    fn transfer_round(
        &mut self,
        _: &mut IoMemory,
        ios: &[Io],
        done: &mut Vec<Completion>,
        submitted: impl FnOnce(),
    ) -> RoundTransfer {
        assert!(ROUNDS && self.pending.is_empty());
        let fate = (self.fate_of)(self.calls.borrow().len());
        let has_syncs = ios.iter().any(|io| io.op.direction().is_none());
        let is_declined = matches!(fate, RoundFate::Declined | RoundFate::DeclinedAtStop);
        if fate == RoundFate::DeclinedAtStop {
            self.shared.stop.store(true, Relaxed);
        }
        if is_declined || has_syncs {
            return RoundTransfer::Declined;
        }
        self.rounds.set(self.rounds.get() + 1);
        let ios = (0..).zip(ios);
        let ios: Vec<_> = ios
            .map(|(slot, io)| (slot, io.op, io.offset, io.len))
            .collect();
        self.call(&ios);
        submitted();
        if fate == RoundFate::Late {
            return RoundTransfer::InFlight;
        }
        self.complete(done);
        RoundTransfer::Completed
    }

    fn reap(
        &mut self,
        _: &mut Slab,
        min: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        assert!(min <= self.pending.len(), "a wait would not end");
        if !self.pending.is_empty() {
            self.complete(done);
        }
        Ok(())
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct MeasuredRun {
    calls: Vec<Call>,
    directions: PerDirection<DirectionStats>,
    syncs: SyncStats,
    depths: [[u64; 7]; 3],
    runtime_ns: PerDirection<u64>,
    errors: (u64, i32),
    has_failed: bool,
    live_reads: (u64, u64),
    latency_sum_ns: u64,
    end_ns: u64,
}

/// Returns the measurements and the number of rounds on the fast path.
fn run<const ROUNDS: bool>(
    job: &Job,
    depth: u32,
    fate_of: fn(usize) -> RoundFate,
    adjust: fn(&mut WorkerParts),
) -> (MeasuredRun, usize) {
    let clock = SteppedClock::default();
    clock.pass(1_000);
    let mut worker_parts = parts(job, depth, &clock);
    worker_parts.log = None;
    adjust(&mut worker_parts);
    let shared = worker_parts.shared.clone();
    let calls = Rc::<RefCell<Vec<Call>>>::default();
    let rounds = Rc::<Cell<usize>>::default();
    let backend = ScriptedBackend::<ROUNDS> {
        clock: clock.clone(),
        fate_of,
        fate: RoundFate::Full,
        pending: Vec::new(),
        calls: calls.clone(),
        rounds: rounds.clone(),
        shared: shared.clone(),
    };
    let mut worker = Worker::new(backend, clock, worker_parts);
    assert_eq!(worker.rounds.is_some(), ROUNDS);
    let steps = (0..10_000)
        .take_while(|_| worker.step() != WorkerStep::Done)
        .count();
    assert!(steps < 10_000, "it does not end");
    let output = worker.finish();
    let recorder = &output.recorder;
    let (directions, syncs) = recorder.results(output.runtime_ns);
    let reads = shared.counts(Direction::Read);
    let measured = MeasuredRun {
        calls: calls.take(),
        directions,
        syncs,
        depths: [recorder.level, recorder.submit, recorder.complete],
        runtime_ns: output.runtime_ns,
        errors: (output.survived, output.first_error),
        has_failed: output.failure.is_some(),
        live_reads: (reads.ios, reads.bytes),
        latency_sum_ns: shared.latency_sum_ns.get(),
        end_ns: output.end_ns,
    };
    (measured, rounds.get())
}

/// Runs the job on both paths, at depth 4. At least `rounds_min` calls take the fast path.
fn assert_same(
    job: &Job,
    fate_of: fn(usize) -> RoundFate,
    adjust: fn(&mut WorkerParts),
    rounds_min: usize,
) -> MeasuredRun {
    assert_same_at(job, DEPTH, fate_of, adjust, rounds_min)
}

fn assert_same_at(
    job: &Job,
    depth: u32,
    fate_of: fn(usize) -> RoundFate,
    adjust: fn(&mut WorkerParts),
    rounds_min: usize,
) -> MeasuredRun {
    let (general, none) = run::<false>(job, depth, fate_of, adjust);
    let (fast, rounds) = run::<true>(job, depth, fate_of, adjust);
    assert_eq!(fast, general);
    assert_eq!(none, 0);
    assert!(rounds >= rounds_min, "{rounds} rounds on the fast path");
    assert!(
        rounds < general.calls.len(),
        "the first rounds take the general path"
    );
    fast
}

fn reads(number_ios: u64) -> Job {
    let mut job = job(ReadWriteMode::Read, true, 1);
    job.workload.number_ios = Some(number_ios);
    job
}

#[test]
fn rounds_of_reads_count_the_same() {
    // The last of these ends with a round of three I/Os.
    for number_ios in [64, 128, 203] {
        let rounds_min = number_ios as usize / 4 - 4;
        let measured = assert_same(&reads(number_ios), |_| RoundFate::Full, |_| {}, rounds_min);
        assert_eq!(measured.live_reads, (number_ios, number_ios * 4096));
        assert_eq!(measured.depths[0][2], number_ios / 4 * 4, "depth 4");
    }
}

#[test]
fn rounds_of_several_passes_count_the_same() {
    let job = job(ReadWriteMode::Read, true, 3);
    let measured = assert_same(&job, |_| RoundFate::Full, |_| {}, 150);
    assert_eq!(measured.live_reads.0, 3 * 256);
    assert_same(
        &job,
        |_| RoundFate::Full,
        |parts| parts.generator.stop_where_it_starts_over(),
        150,
    );
}

#[test]
fn rounds_of_mixed_ios_and_syncs_count_the_same() {
    let mut job = job(ReadWriteMode::ReadWrite, true, 1);
    job.workload.number_ios = Some(200);
    let measured = assert_same(&job, |_| RoundFate::Full, |_| {}, 40);
    let writes = measured.calls.iter().flat_map(|call| &call.ios);
    assert!(writes.filter(|io| io.0 == Op::Write).count() > 50);
    job.workload.fsync_every = 30;
    assert_same(&job, |_| RoundFate::Full, |_| {}, 10);
}

#[test]
fn rounds_that_are_not_full_count_the_same() {
    let mut job = reads(240);
    job.errors.continue_read = true;
    let fate_of = |number: usize| match number {
        8 | 30 => RoundFate::Late,
        18 => RoundFate::Short,
        44 => RoundFate::Failed,
        52 | 53 => RoundFate::Declined,
        _ => RoundFate::Full,
    };
    let measured = assert_same(&job, fate_of, |_| {}, 25);
    assert_eq!(measured.errors, (1, libc::EIO));
    assert_eq!(measured.directions.read.short_ios, 1);
    assert_eq!(measured.live_reads.0, 239, "all but the failed one");
    let failed = |number: usize| match number {
        44 => RoundFate::Failed,
        _ => RoundFate::Full,
    };
    assert!(assert_same(&reads(240), failed, |_| {}, 30).has_failed);
}

#[test]
fn rounds_until_a_stop_or_deadline_count_the_same() {
    let stop = |number: usize| match number {
        40 => RoundFate::StopRequest,
        _ => RoundFate::Full,
    };
    let measured = assert_same(&reads(240), stop, |_| {}, 30);
    assert_eq!(measured.live_reads.0, 41 * 4);
    assert_same(
        &reads(240),
        |_| RoundFate::Full,
        |parts| parts.limits.deadline_ns = 60_000,
        30,
    );
    let process_stop = |number: usize| match number {
        10 | 13 | 40 => RoundFate::ProcessStop,
        _ => RoundFate::Full,
    };
    let measured = assert_same(&reads(240), process_stop, |_| {}, 50);
    assert_eq!(measured.directions.read.lat.moments.count, 240 - 3 * 4);
    let measured = assert_same(
        &reads(240),
        |_| RoundFate::Full,
        |parts| {
            let measure = MeasureOptions::default();
            parts.recorder = Recorder::new(&measure, 30_000, parts.shared.clone());
        },
        25,
    );
    assert!(measured.directions.read.total_ios < measured.live_reads.0);
}

#[test]
fn calls_of_rounds_have_the_sizes_of_the_general_path() {
    fn limit_calls(parts: &mut WorkerParts) {
        (parts.rules.call_limit, parts.rules.call_limit_at_once) = (8, 16);
    }
    // Its last round has 10 I/Os.
    let job = reads(250);
    let full = |_: usize| RoundFate::Full;
    let measured = assert_same_at(&job, 12, full, limit_calls, 10);
    let sizes: Vec<usize> = measured.calls.iter().map(|call| call.ios.len()).collect();
    assert_eq!(sizes[..4], [8, 4, 8, 4], "small calls at first");
    assert_eq!(sizes[sizes.len() - 3..], [12, 10, 1], "the flush follows");
    let slow = |number: usize| match number {
        14 | 15 => RoundFate::Slow,
        18 => RoundFate::Short,
        _ => RoundFate::Full,
    };
    let measured = assert_same_at(&job, 12, slow, limit_calls, 3);
    let calls = measured.calls[14..].iter();
    assert!(calls.filter(|call| call.ios.len() == 8).count() > 1);
    assert_same_at(&job, 12, |_| RoundFate::Declined, limit_calls, 0);
}

#[test]
fn declined_round_at_a_stop_counts_the_same() {
    let stop = |number: usize| match number {
        20 => RoundFate::DeclinedAtStop,
        _ => RoundFate::Full,
    };
    let measured = assert_same(&reads(240), stop, |_| {}, 10);
    assert_eq!(measured.live_reads.0, 21 * 4);
}
