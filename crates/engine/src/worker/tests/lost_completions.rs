//! Tests of a worker whose kernel or library does not return completions.

use super::worker_parts::{DEPTH, job, parts};
use crate::io::{Backend, Completion, FileHandle, Slab};
use crate::worker::clock::RealClock;
use crate::worker::{Worker, WorkerStep};
use iosonde_job::plan::ReadWriteMode;
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
