//! Tests that the fast path of depth 1 issues and counts the same I/Os as the general path.

use super::worker_parts::{SteppedClock, job, parts};
use crate::io::{Backend, Completion, FileHandle, LoneTransfer, Slab, Slot};
use crate::sys::memory::IoMemory;
use crate::worker::clock::Clock;
use crate::worker::counters::WorkerCounters;
use crate::worker::recorder::Recorder;
use crate::worker::{Worker, WorkerParts, WorkerStep};
use iosonde_job::plan::*;
use iosonde_result::interval::IntervalCounts;
use iosonde_result::run::{DirectionStats, IoFailure, RampResult, SyncStats};
use iosonde_workload::{Io, Op};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The outcome of one call of the backend.
#[derive(Clone, Copy, PartialEq)]
enum IoFate {
    Full,
    Short,
    Empty,
    Failed,
    NotTaken,
    NotSubmitted,
    /// The first wait returns without the completion.
    Late,
    FailedWait,
    ProcessStop,
    StopRequest,
}

#[derive(Debug, Clone, PartialEq)]
struct SubmittedIo {
    op: Op,
    offset: u64,
    len: u32,
    moved: u32,
    at_ns: u64,
    is_taken: bool,
    is_full: bool,
    has_latency: bool,
}

type SubmittedIos = Rc<RefCell<Vec<SubmittedIo>>>;

struct ScriptedBackend<const SINGLE: bool, const SYNC: bool, const ALONE: bool> {
    clock: SteppedClock,
    fate_of: fn(usize) -> IoFate,
    fate: IoFate,
    result: Option<i32>,
    submitted: SubmittedIos,
    shared: Arc<WorkerCounters>,
}

impl<const SINGLE: bool, const SYNC: bool, const ALONE: bool> ScriptedBackend<SINGLE, SYNC, ALONE> {
    fn next_fate(&self) -> IoFate {
        (self.fate_of)(self.submitted.borrow().len())
    }

    /// Submits the I/O of a slot.
    fn submit_slot(&mut self, slot: &Slot) {
        let mut submitted = self.submitted.borrow_mut();
        let number = submitted.len();
        let fate = (self.fate_of)(number);
        let is_taken = !matches!(fate, IoFate::NotTaken | IoFate::NotSubmitted);
        let partial = [
            IoFate::Short,
            IoFate::Empty,
            IoFate::Failed,
            IoFate::FailedWait,
        ];
        let is_full = is_taken && !partial.contains(&fate);
        submitted.push(SubmittedIo {
            op: slot.op,
            offset: slot.offset,
            len: slot.len,
            moved: slot.moved,
            at_ns: self.clock.now_ns(),
            is_taken,
            is_full,
            has_latency: is_full && fate != IoFate::ProcessStop,
        });
        self.clock.pass(100 + number as u64 % 7 * 10);
        let rest = (slot.len - slot.moved) as i32;
        if fate == IoFate::StopRequest {
            self.shared.stop.store(true, Relaxed);
        }
        self.fate = fate;
        self.result = is_taken.then_some(match fate {
            IoFate::Short => rest / 2,
            IoFate::Empty => 0,
            IoFate::Failed => -libc::EIO,
            _ => rest,
        });
    }

    /// Lets the time until the completion pass. Returns its result, if the wait does not end
    /// before.
    fn complete(&mut self) -> io::Result<Option<i32>> {
        let number = self.submitted.borrow().len() as u64;
        let slow_ns = if number % 50 == 49 { 200_000 } else { 0 };
        self.clock.pass(1_000 + number * 37 % 500 + slow_ns);
        match self.fate {
            IoFate::Late => {
                self.fate = IoFate::Full;
                return Ok(None);
            }
            IoFate::FailedWait => return Err(io::Error::from_raw_os_error(libc::EIO)),
            IoFate::ProcessStop => self.clock.resumed_ns.set(self.clock.now_ns()),
            _ => {}
        }
        Ok(self.result.take())
    }
}

impl<const SINGLE: bool, const SYNC: bool, const ALONE: bool> Backend
    for ScriptedBackend<SINGLE, SYNC, ALONE>
{
    const SYNCHRONOUS: bool = SYNC;
    const SINGLE_IOS: bool = SINGLE;
    const TRANSFERS_ALONE: bool = ALONE;

    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        assert_eq!(batch, [0]);
        self.submit_slot(&slab.slots[0]);
        match self.fate {
            IoFate::NotTaken => Ok(0),
            IoFate::NotSubmitted => Err(io::Error::from_raw_os_error(libc::EIO)),
            _ => Ok(1),
        }
    }

    /// Declines each fourth I/O and those that are not submitted, and leaves each third in flight.
    fn transfer_alone(
        &mut self,
        _: &mut IoMemory,
        io: &Io,
        submitted: impl FnOnce(),
    ) -> LoneTransfer {
        assert!(ALONE);
        let number = self.submitted.borrow().len();
        let fate = self.next_fate();
        if number % 4 == 3 || matches!(fate, IoFate::NotTaken | IoFate::NotSubmitted) {
            return LoneTransfer::Declined;
        }
        self.submit_slot(&Slot {
            op: io.op,
            offset: io.offset,
            len: io.len,
            file: io.file,
            ..Slot::IDLE
        });
        submitted();
        if number % 3 == 2 || matches!(fate, IoFate::Late | IoFate::FailedWait) {
            return LoneTransfer::InFlight;
        }
        let completed = self.complete().unwrap();
        LoneTransfer::Completed(completed.unwrap())
    }

    fn reap(
        &mut self,
        _: &mut Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let result = self.complete()?;
        done.extend(result.map(|result| Completion { slot: 0, result }));
        Ok(())
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct MeasuredRun {
    submitted: Vec<SubmittedIo>,
    directions: PerDirection<DirectionStats>,
    syncs: SyncStats,
    depths: [[u64; 7]; 3],
    runtime_ns: PerDirection<u64>,
    failure: Option<IoFailure>,
    errors: (u64, i32),
    only_ramp: Option<Box<RampResult>>,
    live: PerDirection<IntervalCounts>,
    latency_sum_ns: u64,
    end_ns: u64,
}

/// Returns the measurements and the number of the worker's steps.
fn run<const SINGLE: bool, const SYNC: bool, const ALONE: bool>(
    job: &Job,
    fate_of: fn(usize) -> IoFate,
    adjust: fn(&mut WorkerParts),
) -> (MeasuredRun, usize) {
    let clock = SteppedClock::default();
    clock.pass(1_000);
    let mut worker_parts = parts(job, 1, &clock);
    // Jobs with logs take the general path.
    worker_parts.log = None;
    adjust(&mut worker_parts);
    let measure_from_ns = worker_parts.recorder.measure_from_ns();
    let shared = worker_parts.shared.clone();
    let submitted = SubmittedIos::default();
    let backend = ScriptedBackend::<SINGLE, SYNC, ALONE> {
        clock: clock.clone(),
        fate_of,
        fate: IoFate::Full,
        result: None,
        submitted: submitted.clone(),
        shared: shared.clone(),
    };
    let mut worker = Worker::new(backend, clock, worker_parts);
    assert_eq!(worker.singles.is_some(), SINGLE);
    let steps = (0..10_000)
        .take_while(|_| worker.step() != WorkerStep::Done)
        .count();
    assert!(steps < 10_000, "it does not end");
    let output = worker.finish();
    let recorder = &output.recorder;
    let (directions, syncs) = recorder.results(output.runtime_ns);
    let measured = MeasuredRun {
        submitted: submitted.take(),
        directions,
        syncs,
        depths: [recorder.level, recorder.submit, recorder.complete],
        runtime_ns: output.runtime_ns,
        errors: (output.survived, output.first_error),
        live: PerDirection::from_fn(|direction| shared.counts(direction)),
        latency_sum_ns: shared.latency_sum_ns.get(),
        end_ns: output.end_ns,
        only_ramp: output.only_ramp,
        failure: output.failure,
    };
    assert_counts(&measured, measure_from_ns);
    (measured, steps)
}

/// Asserts that the statistics are those of the I/Os that the backend has seen.
fn assert_counts(measured: &MeasuredRun, measure_from_ns: u64) {
    for (direction, op) in [(Direction::Read, Op::Read), (Direction::Write, Op::Write)] {
        let ios = || {
            let submitted = measured.submitted.iter();
            submitted.filter(move |io| io.op == op && io.at_ns >= measure_from_ns)
        };
        let stats = &measured.directions[direction];
        let issued = ios().filter(|io| io.is_taken).count() as u64;
        let full_bytes = ios().filter(|io| io.is_full).map(|io| u64::from(io.len));
        let timed = ios().filter(|io| io.has_latency).count() as u64;
        assert_eq!(stats.total_ios, issued);
        assert_eq!(stats.io_bytes, full_bytes.sum::<u64>());
        assert_eq!(stats.clat.moments.count, timed);
        assert_eq!(stats.lat.moments.count, timed);
    }
}

/// Runs the job on both paths, with backends that complete I/Os at once and later.
fn assert_same(
    job: &Job,
    fate_of: fn(usize) -> IoFate,
    adjust: fn(&mut WorkerParts),
) -> MeasuredRun {
    let general = run::<false, true, false>(job, fate_of, adjust);
    let rows = run::<true, true, false>(job, fate_of, adjust);
    assert_eq!(rows.0, general.0);
    let general = run::<false, false, false>(job, fate_of, adjust);
    let alone = run::<true, false, true>(job, fate_of, adjust);
    assert_eq!(alone.0, general.0);
    let rows = run::<true, false, false>(job, fate_of, adjust);
    assert_eq!(rows.0, general.0);
    assert!(
        rows.1 < general.1,
        "{} steps instead of {}",
        rows.1,
        general.1
    );
    rows.0
}

fn reads(number_ios: u64) -> Job {
    let mut job = job(ReadWriteMode::Read, true, 1);
    job.workload.number_ios = Some(number_ios);
    job
}

#[test]
fn reads_in_part_rows_count_the_same() {
    for number_ios in [64, 77] {
        let measured = assert_same(&reads(number_ios), |_| IoFate::Full, |_| {});
        assert_eq!(measured.live.read.ios, number_ios);
    }
    let mut job = job(ReadWriteMode::Read, true, 1);
    job.files.io_size = Some(BytesOrPercent::Bytes(101 * 4096));
    assert_same(&job, |_| IoFate::Full, |_| {});
}

#[test]
fn several_passes_count_the_same() {
    let job = job(ReadWriteMode::Read, true, 3);
    let measured = assert_same(&job, |_| IoFate::Full, |_| {});
    assert_eq!(measured.live.read.ios, 3 * 256);
    let paused = assert_same(
        &job,
        |_| IoFate::Full,
        |parts| parts.generator.stop_where_it_starts_over(),
    );
    assert_eq!(paused.live.read.ios, 3 * 256);
}

#[test]
fn writes_with_syncs_count_the_same() {
    let mut job = job(ReadWriteMode::Write, true, 1);
    job.workload.fsync_every = 3;
    let measured = assert_same(&job, |_| IoFate::Full, |_| {});
    let syncs = measured.submitted.iter().filter(|io| io.op == Op::Fsync);
    // The flush at the end is not the job's own.
    assert_eq!(measured.syncs.total_ios + 1, syncs.count() as u64);
}

#[test]
fn short_and_failed_ios_count_the_same() {
    let mut job = reads(100);
    job.errors.continue_read = true;
    let fate_of = |number: usize| match number {
        5 | 37 => IoFate::Short,
        20 => IoFate::Empty,
        40 | 41 => IoFate::Failed,
        50 => IoFate::NotTaken,
        60 => IoFate::NotSubmitted,
        70 => IoFate::Late,
        _ => IoFate::Full,
    };
    let measured = assert_same(&job, fate_of, |_| {});
    assert_eq!(measured.errors, (4, libc::EIO));
    let read = &measured.directions.read;
    assert_eq!((read.short_ios, read.drop_ios), (2, 1));
}

#[test]
fn fatal_errors_end_both_paths_alike() {
    let failed = |number: usize| {
        if number == 40 {
            IoFate::Failed
        } else {
            IoFate::Full
        }
    };
    assert!(assert_same(&reads(100), failed, |_| {}).failure.is_some());
    let failed = |number: usize| {
        if number == 40 {
            IoFate::FailedWait
        } else {
            IoFate::Full
        }
    };
    assert!(assert_same(&reads(100), failed, |_| {}).failure.is_some());
}

#[test]
fn stop_within_a_row_counts_the_same() {
    let stop = |number: usize| {
        if number == 40 {
            IoFate::StopRequest
        } else {
            IoFate::Full
        }
    };
    let measured = assert_same(&reads(100), stop, |_| {});
    assert_eq!(measured.live.read.ios, 41);
    assert_same(
        &reads(200),
        |_| IoFate::Full,
        |parts| parts.limits.deadline_ns = 60_000,
    );
}

#[test]
fn stop_of_the_process_leaves_out_the_same_latency() {
    let fate_of = |number: usize| match number {
        10 | 13 | 40 => IoFate::ProcessStop,
        _ => IoFate::Full,
    };
    let measured = assert_same(&reads(100), fate_of, |_| {});
    assert_eq!(measured.directions.read.lat.moments.count, 97);
}

#[test]
fn ramp_before_rows_counts_the_same() {
    let measured = assert_same(
        &reads(100),
        |_| IoFate::Full,
        |parts| {
            let measure = MeasureOptions::default();
            parts.recorder = Recorder::new(&measure, 30_000, parts.shared.clone());
        },
    );
    assert!(measured.directions.read.total_ios < measured.live.read.ios);
}
