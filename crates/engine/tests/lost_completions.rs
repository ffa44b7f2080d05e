//! Tests of a worker whose kernel or library does not return completions.

#[path = "common/worker_parts.rs"]
mod worker_parts;

use iosonde_engine::io::{Backend, Completion, Handle, Slab};
use iosonde_engine::worker::clock::RealClock;
use iosonde_engine::worker::{Step, Worker};
use iosonde_job::plan::Mode;
use std::io;
use worker_parts::{DEPTH, job, parts};

/// Accepts I/Os and never completes one.
struct Lost {
    errno: i32,
    taken: usize,
}

impl Backend for Lost {
    const SYNCHRONOUS: bool = false;

    fn submit(&mut self, _: &Slab, batch: &[u32]) -> io::Result<usize> {
        self.taken += batch.len();
        assert!(
            self.taken <= DEPTH as usize,
            "slots in flight are taken again"
        );
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        _: &Slab,
        _: usize,
        _: Option<u64>,
        _: &mut Vec<Completion>,
    ) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(self.errno))
    }

    fn set_files(&mut self, _: &[Handle]) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn end_the_worker_whatever_errors_its_job_survives() {
    for errno in [libc::EIO, libc::EBADF, libc::ENOMEM] {
        let mut job = job(Mode::Read, true, 1);
        job.errors.continue_read = true;
        job.errors.ignore = [vec![errno], vec![errno], vec![errno]];
        let clock = RealClock::starting_now();
        let backend = Lost { errno, taken: 0 };
        let mut worker = Worker::new(backend, clock.clone(), parts(&job, DEPTH, &clock));
        let rounds = (0..100).take_while(|_| worker.step() != Step::Done).count();
        assert!(rounds < 100, "it does not end");
        let failure = worker.finish().failure.expect("a failure");
        assert_eq!(failure.errno, errno);
        let told = format!("with {DEPTH} I/Os in flight");
        assert!(failure.message.contains(&told), "{}", failure.message);
    }
}
