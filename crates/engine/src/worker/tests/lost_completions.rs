//! Tests of a worker whose kernel or library does not return completions.

use super::completing_backend::CompletingBackend;
use super::worker_parts::{DEPTH, job, parts, run_worker};
use crate::worker::Worker;
use crate::worker::clock::RealClock;
use iosonde_job::plan::{Direction, ReadWriteMode};

#[test]
fn lost_completions_end_the_worker_despite_ignored_errors() {
    for errno in [libc::EIO, libc::EBADF, libc::ENOMEM] {
        let mut job = job(ReadWriteMode::Read, true, 1);
        job.errors.continue_read = true;
        job.errors.ignore = [vec![errno], vec![errno], vec![errno]];
        let clock = RealClock::starting_now();
        let backend = CompletingBackend::<false> {
            completes: (0, errno),
            ..Default::default()
        };
        let worker = Worker::new(backend, clock.clone(), parts(&job, DEPTH, &clock));
        let failure = run_worker(worker, 100).failure.expect("a failure");
        assert_eq!(failure.errno, errno);
        let expected = format!("{DEPTH} I/Os in flight are not counted");
        assert!(failure.message.contains(&expected), "{}", failure.message);
    }
}

#[test]
fn completions_before_a_failed_wait_are_counted() {
    // At depth 1, on the fast path.
    for depth in [DEPTH, 1] {
        let job = job(ReadWriteMode::Read, true, 1);
        let clock = RealClock::starting_now();
        let backend = CompletingBackend::<true> {
            completes: (1, libc::EIO),
            ..Default::default()
        };
        let worker = Worker::new(backend, clock.clone(), parts(&job, depth, &clock));
        let output = run_worker(worker, 100);
        assert_eq!(output.failure.expect("a failure").errno, libc::EIO);
        assert_eq!(output.recorder.ios(Direction::Read), 1, "depth {depth}");
    }
}
