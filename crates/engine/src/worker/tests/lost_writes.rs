//! Tests of storage that acknowledges writes, flushes without an error, and has lost the writes.

use super::completing_backend::CompletingBackend;
use super::worker_parts::{DEPTH, job, parts, run_worker};
use crate::io::remote::LostWrites;
use crate::io::{Op, Slot};
use crate::worker::clock::{Clock, SimClock};
use crate::worker::{Worker, WorkerOutput};
use iosonde_job::plan::{Direction, Job, ReadWriteMode};
use iosonde_result::run::IoFailure;

const IO_NS: u64 = 1_000;
const FLUSH_NS: u64 = 1_000_000_000;

const LOST: LostWrites = LostWrites {
    errno: libc::ENOSPC,
    is_ignored: false,
};
const LOST_AND_IGNORED: LostWrites = LostWrites {
    is_ignored: true,
    ..LOST
};

fn writes(loops: u32) -> Job {
    job(ReadWriteMode::Write, true, loops)
}

/// Runs a job that flushes and confirms each pass over its file.
fn run(job: &Job, backend: CompletingBackend<false>) -> WorkerOutput {
    let clock = SimClock::default();
    let mut parts = parts(job, DEPTH, &clock);
    parts.generator.stop_where_it_starts_over();
    parts.limits.fill_device = job.files.fill_device;
    run_worker(Worker::new(backend, clock, parts), 10_000)
}

/// Storage with these results of the confirmations, the last one first.
fn losing(lost_writes: &[LostWrites]) -> CompletingBackend<false> {
    CompletingBackend {
        lost_writes: lost_writes.to_vec(),
        ..Default::default()
    }
}

#[test]
fn lost_writes_fail_the_job_after_its_flush() {
    let clock = SimClock::default();
    let job = writes(1);
    let mut unflushed = parts(&job, DEPTH, &clock);
    unflushed.end_sync_files.clear();
    let output = run_worker(Worker::new(losing(&[LOST]), clock, unflushed), 10_000);
    assert_eq!(output.failure, None, "only flushed files");
    let failure = run(&job, losing(&[LOST])).failure.expect("a failure");
    assert_eq!(failure.errno, libc::ENOSPC);
    assert_eq!(failure.operation, "write");
    assert_eq!(
        failure.message,
        "writes to file fail with ENOSPC, and writes that its cache acknowledged may be lost: the \
         pool is full or its quota is exhausted; see `ceph df`, or use a smaller size="
    );
}

#[test]
fn lost_writes_of_other_jobs_fail_a_job_that_ignores_them() {
    let mut job = writes(1);
    job.errors.ignore[1] = vec![libc::ENOSPC];
    job.files.fill_device = true;
    let failure = run(&job, losing(&[LOST])).failure.expect("a failure");
    assert_eq!(failure.errno, libc::ENOSPC);
}

#[test]
fn lost_writes_that_all_jobs_ignore_are_counted() {
    let output = run(&writes(1), losing(&[LOST_AND_IGNORED]));
    assert_eq!(output.failure, None);
    assert_eq!((output.survived, output.first_error), (1, libc::ENOSPC));
}

#[test]
fn writes_of_each_pass_are_confirmed_after_lost_writes() {
    let output = run(&writes(2), losing(&[LOST, LOST_AND_IGNORED]));
    assert_eq!(output.survived, 1, "the first pass");
    assert_eq!(output.failure.expect("a failure").errno, libc::ENOSPC);
}

#[test]
fn writes_are_confirmed_after_a_failed_flush_that_the_job_ignores() {
    let mut job = writes(1);
    job.errors.ignore[1] = vec![libc::ENOSPC];
    let backend = CompletingBackend {
        carry_out: Box::new(|slot: &Slot| match slot.op {
            Op::Fsync => -libc::ENOSPC,
            _ => 0,
        }),
        ..losing(&[LOST])
    };
    let output = run(&job, backend);
    assert_eq!(output.survived, 1, "the flush");
    assert!(output.failure.is_some());
}

/// Runs a job whose flush fails with this errno, with lost writes. Returns its output and notes.
fn run_failing(flush_errno: i32, lost_writes: LostWrites) -> (WorkerOutput, Vec<String>) {
    let clock = SimClock::default();
    let parts = parts(&writes(1), DEPTH, &clock);
    let shared = parts.shared.clone();
    let backend = CompletingBackend {
        carry_out: Box::new(move |slot: &Slot| match slot.op {
            Op::Fsync => -flush_errno,
            _ => 0,
        }),
        ..losing(&[lost_writes])
    };
    let output = run_worker(Worker::new(backend, clock, parts), 10_000);
    let notes = shared.take_notes().into_iter().map(|note| note.text);
    (output, notes.collect())
}

#[test]
fn lost_writes_after_a_failed_flush_are_a_note() {
    let (output, notes) = run_failing(libc::EIO, LOST);
    let failure = output.failure.expect("a failure");
    assert_eq!(
        (failure.errno, failure.operation.as_str()),
        (libc::EIO, "fsync")
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("fail with ENOSPC"), "{notes:?}");
    let (output, notes) = run_failing(libc::EIO, LOST_AND_IGNORED);
    assert_eq!(output.failure.expect("a failure").errno, libc::EIO);
    assert_eq!((output.survived, notes.len()), (1, 0), "{notes:?}");
}

#[test]
fn writes_are_not_confirmed_after_abandoned_ios() {
    let (output, notes) = run_failing(libc::ECANCELED, LOST);
    assert_eq!(output.failure.expect("a failure").errno, libc::ECANCELED);
    assert!(!notes.iter().any(|note| note.contains("lost")), "{notes:?}");
}

#[test]
fn refused_confirmation_after_a_failure_is_no_note() {
    let refused = LostWrites {
        errno: libc::ECANCELED,
        is_ignored: false,
    };
    let (output, notes) = run_failing(libc::EIO, refused);
    assert_eq!(output.failure.expect("a failure").errno, libc::EIO);
    assert!(notes.is_empty(), "{notes:?}");
}

/// Runs a job that fails before its flush, with lost writes. Returns its failure and notes.
fn run_failing_early(
    backend: CompletingBackend<false>,
    max_latency_ns: Option<u64>,
) -> (IoFailure, Vec<String>) {
    let clock = SimClock::default();
    let mut parts = parts(&writes(1), DEPTH, &clock);
    parts.limits.max_latency_ns[Direction::Write] = max_latency_ns;
    let shared = parts.shared.clone();
    let of_backend = clock.clone();
    let backend = CompletingBackend {
        carry_out: Box::new(move |_: &Slot| {
            of_backend.advance_to(of_backend.now_ns() + IO_NS);
            0
        }),
        ..backend
    };
    let output = run_worker(Worker::new(backend, clock, parts), 10_000);
    let notes = shared.take_notes().into_iter().map(|note| note.text);
    (output.failure.expect("a failure"), notes.collect())
}

#[test]
fn lost_writes_of_other_jobs_are_a_note_of_a_job_that_fails_early() {
    let (failure, notes) = run_failing_early(losing(&[LOST]), Some(IO_NS / 2));
    assert_eq!(failure.errno, libc::ETIMEDOUT);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("fail with ENOSPC"), "{notes:?}");
}

#[test]
fn writes_are_not_confirmed_after_a_failed_wait() {
    let backend = CompletingBackend {
        completes: (1, libc::EIO),
        ..losing(&[LOST])
    };
    let (failure, notes) = run_failing_early(backend, None);
    assert_eq!(
        (failure.errno, failure.operation.as_str()),
        (libc::EIO, "wait")
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn flush_at_the_end_is_run_time_only_if_the_job_asks_for_it() {
    for (times_end_sync, flush_ns) in [(true, FLUSH_NS), (false, 0)] {
        let job = writes(1);
        let clock = SimClock::default();
        let of_backend = clock.clone();
        let backend = CompletingBackend::<false> {
            carry_out: Box::new(move |slot: &Slot| {
                let io_ns = match slot.op {
                    Op::Fsync => FLUSH_NS,
                    _ => IO_NS,
                };
                of_backend.advance_to(of_backend.now_ns() + io_ns);
                0
            }),
            ..Default::default()
        };
        let mut parts = parts(&job, DEPTH, &clock);
        parts.times_end_sync = times_end_sync;
        let output = run_worker(Worker::new(backend, clock, parts), 10_000);
        let writes_ns = output.recorder.ios(Direction::Write) * IO_NS;
        let runtime_ns = output.runtime_ns[Direction::Write];
        assert!(writes_ns > 0, "it writes");
        assert_eq!(runtime_ns, writes_ns + flush_ns, "{times_end_sync}");
    }
}
