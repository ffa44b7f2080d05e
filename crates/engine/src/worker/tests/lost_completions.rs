//! Tests of a worker whose kernel or library does not return completions.

use super::worker_parts::{DEPTH, job, parts};
use crate::io::{Backend, Completion, FileHandle, Slab};
use crate::worker::clock::RealClock;
use crate::worker::{Worker, WorkerStep};
use iosonde_job::plan::{Direction, ReadWriteMode};
use std::io;

/// Accepts I/Os and never completes one.
struct Lost {
    errno: i32,
    taken: usize,
}

impl Backend for Lost {
    const SYNCHRONOUS: bool = false;

    fn submit(&mut self, _: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        self.taken += batch.len();
        assert!(
            self.taken <= DEPTH as usize,
            "slots in flight are taken again"
        );
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        _: &mut Slab,
        _: usize,
        _: Option<u64>,
        _: &mut Vec<Completion>,
    ) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(self.errno))
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lost_completions_end_the_worker_despite_ignored_errors() {
    for errno in [libc::EIO, libc::EBADF, libc::ENOMEM] {
        let mut job = job(ReadWriteMode::Read, true, 1);
        job.errors.continue_read = true;
        job.errors.ignore = [vec![errno], vec![errno], vec![errno]];
        let clock = RealClock::starting_now();
        let backend = Lost { errno, taken: 0 };
        let mut worker = Worker::new(backend, clock.clone(), parts(&job, DEPTH, &clock));
        let rounds = (0..100)
            .take_while(|_| worker.step() != WorkerStep::Done)
            .count();
        assert!(rounds < 100, "it does not end");
        let failure = worker.finish().failure.expect("a failure");
        assert_eq!(failure.errno, errno);
        let expected = format!("{DEPTH} I/Os in flight are not counted");
        assert!(failure.message.contains(&expected), "{}", failure.message);
    }
}

/// Completes one I/O in the call whose wait fails, and then none.
struct FailsAfterOne {
    first: Option<u32>,
}

impl Backend for FailsAfterOne {
    const SYNCHRONOUS: bool = false;
    const SINGLE_IOS: bool = true;

    fn submit(&mut self, _: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        slab: &mut Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        if let Some(slot) = self.first.take() {
            let result = slab.slots[slot as usize].len as i32;
            done.push(Completion { slot, result });
        }
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn completions_before_a_failed_wait_are_counted() {
    // At depth 1, on the fast path.
    for (depth, slot) in [(DEPTH, 3), (1, 0)] {
        let job = job(ReadWriteMode::Read, true, 1);
        let clock = RealClock::starting_now();
        let backend = FailsAfterOne { first: Some(slot) };
        let mut worker = Worker::new(backend, clock.clone(), parts(&job, depth, &clock));
        let rounds = (0..100)
            .take_while(|_| worker.step() != WorkerStep::Done)
            .count();
        assert!(rounds < 100, "it does not end");
        let output = worker.finish();
        assert_eq!(output.failure.expect("a failure").errno, libc::EIO);
        assert_eq!(output.recorder.ios(Direction::Read), 1, "depth {depth}");
    }
}
