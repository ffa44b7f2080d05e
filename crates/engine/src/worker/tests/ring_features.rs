//! Tests that optional features of a ring change no I/O of a job.

use super::worker_parts::{DEPTH, FILE_BYTES, job, parts, run_worker};
use crate::io::io_uring::IoUringBackend;
use crate::io::{Backend, FileHandle};
use crate::sys::ring::RingOptions;
use crate::worker::Worker;
use crate::worker::clock::RealClock;
use iosonde_job::plan::{ReadWriteMode, Verify, VerifyMethod};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Bound of a worker's steps, far more than the waits between its I/Os need.
const STEPS_MAX: usize = 100_000_000;

/// Writes a file at a rate and verifies it. Returns the number of I/Os, or the errno of a failure.
fn write_and_verify(options: RingOptions) -> Result<u64, i32> {
    let mut job = job(ReadWriteMode::Write, true, 1);
    job.verify = Some(Verify::new(VerifyMethod::Crc32c));
    job.schedule.rate_iops.write = Some(20_000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let buffered = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    buffered.set_len(FILE_BYTES).unwrap();
    // Some file systems refuse O_DIRECT, such as tmpfs before Linux 6.6.
    let direct = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    let file = direct.unwrap_or(buffered);
    let clock = RealClock::starting_now();
    let parts = parts(&job, DEPTH, &clock);
    let mut uring = IoUringBackend::new(DEPTH, options, false, false, &parts.slab).unwrap();
    let handle = FileHandle {
        fd: file.as_raw_fd(),
        block_device: false,
        size: FILE_BYTES,
    };
    uring.set_files(&[handle]).unwrap();
    let output = run_worker(Worker::new(uring, clock, parts), STEPS_MAX);
    match output.failure {
        Some(failure) => Err(failure.errno),
        None => Ok(output.recorder.measured_ios()),
    }
}

#[test]
fn ring_features_change_neither_counts_nor_contents() {
    let none = RingOptions::default();
    let count = write_and_verify(none);
    assert!(count.is_ok_and(|ios| ios >= FILE_BYTES / 4096), "{count:?}");
    let shared = RingOptions {
        sqpoll: true,
        shared_sqpoll: Some(3),
        ..none
    };
    let counts = std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(|| write_and_verify(shared)));
        workers.map(|worker| worker.join().unwrap())
    });
    assert_eq!(counts, [count; 2]);
    // A file system or device that cannot poll refuses both alike.
    let polled = RingOptions {
        iopoll: true,
        ..none
    };
    let hybrid = RingOptions {
        hybrid_poll: true,
        ..polled
    };
    assert_eq!(write_and_verify(hybrid), write_and_verify(polled));
}
