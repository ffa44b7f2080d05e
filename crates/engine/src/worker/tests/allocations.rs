//! Tests that the I/O loop does not allocate memory, with a counting allocator.

use super::worker_parts::{self, DEPTH, FILE_BYTES, parts};
use crate::io::immediate::ImmediateBackend;
use crate::io::io_uring::IoUringBackend;
use crate::io::libaio::LibaioBackend;
use crate::io::mmap_backend::Mmap;
use crate::io::null::Null;
use crate::io::sync::{Sync, Vsync};
use crate::io::{Backend, FileHandle};
use crate::sys::ring::RingOptions;
use crate::sys::rw::{Call, RwFlags};
use crate::worker::clock::RealClock;
use crate::worker::{Worker, WorkerParts, WorkerStep};
use iosonde_job::plan::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsRawFd;

/// The system's allocator, which counts the requests of each thread.
struct Counting;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // Only fails while a thread exits, when no request is counted.
    let _ = REQUESTS.try_with(|requests| requests.set(requests.get() + 1));
}

#[expect(unsafe_code, reason = "a global allocator cannot be had without")]
// SAFETY: passes each call to the system's allocator. Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the arguments are valid, as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the arguments are valid, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the arguments are valid, as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of passes over the file, large enough that a growing allocation would grow.
const LOOPS: u32 = 12;

/// Runs the job. Returns the number of allocation requests and of I/Os.
fn run<B: Backend>(backend: B, parts: WorkerParts, clock: &RealClock) -> (u64, u64) {
    let mut worker = Worker::new(backend, clock.clone(), parts);
    let before = REQUESTS.get();
    while worker.step() != WorkerStep::Done {}
    let requests = REQUESTS.get() - before;
    let outcome = worker.finish();
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    (requests, outcome.recorder.measured_ios())
}

/// Runs a job with each engine, each on its own file.
fn assert_allocates_nothing(job: &Job) {
    let clock = &RealClock::starting_now();
    let wanted = u64::from(LOOPS) * FILE_BYTES / job.workload.block_size.read.max();
    let check = |engine: &str, (requests, ios): (u64, u64)| {
        assert!(ios >= wanted, "{engine}: {ios} I/Os are too few");
        assert_eq!(requests, 0, "{engine}: {ios} I/Os of {:?}", job.workload);
    };
    fn ready<B: Backend>(mut backend: B, handles: &[FileHandle]) -> B {
        backend.set_files(handles).unwrap();
        backend
    }
    let directory = tempfile::tempdir().unwrap();
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(directory.path().join("file"))
        .unwrap();
    file.set_len(FILE_BYTES).unwrap();
    let handles = [FileHandle {
        fd: file.as_raw_fd(),
        block_device: false,
        size: FILE_BYTES,
    }];
    let worker_parts = |depth| parts(job, depth, clock);

    // The null engine does not return written data.
    if job.verify.is_none() {
        check(
            "null",
            run(
                ImmediateBackend::new(Null, DEPTH),
                worker_parts(DEPTH),
                clock,
            ),
        );
    }
    for register in [true, false] {
        let deep = worker_parts(DEPTH);
        let options = RingOptions::default();
        let uring = IoUringBackend::new(DEPTH, options, register, register, &deep.slab).unwrap();
        let uring = ready(uring, &handles);
        assert_eq!(uring.refused(), [""; 0]);
        check("io_uring", run(uring, deep, clock));
    }
    let aio = LibaioBackend::new(DEPTH, RwFlags::default(), 0).unwrap();
    check(
        "libaio",
        run(ready(aio, &handles), worker_parts(DEPTH), clock),
    );
    let vsync = ready(ImmediateBackend::new(Vsync::new(DEPTH, 0), DEPTH), &handles);
    check("vsync", run(vsync, worker_parts(DEPTH), clock));
    for call in [
        Call::Seek,
        Call::Positioned,
        Call::Vectored2(RwFlags::default()),
    ] {
        let sync = ready(ImmediateBackend::new(Sync::new(call, 0), 1), &handles);
        check("sync", run(sync, worker_parts(1), clock));
    }
    let mmap = ImmediateBackend::new(Mmap::new(true, job.workload.rw.random, false), 1);
    let mmap = ready(mmap, &handles);
    check("mmap", run(mmap, worker_parts(1), clock));
}

fn job(mode: ReadWriteMode, random: bool) -> Job {
    worker_parts::job(mode, random, LOOPS)
}

#[test]
fn random_reads_allocate_nothing() {
    assert_allocates_nothing(&job(ReadWriteMode::Read, true));
}

#[test]
fn sequential_writes_allocate_nothing() {
    assert_allocates_nothing(&job(ReadWriteMode::Write, false));
}

#[test]
fn random_writes_with_syncs_allocate_nothing() {
    let mut job = job(ReadWriteMode::Write, true);
    job.workload.fsync_every = 100;
    job.workload.fdatasync_every = 64;
    assert_allocates_nothing(&job);
}

#[test]
fn mixed_directions_allocate_nothing() {
    assert_allocates_nothing(&job(ReadWriteMode::ReadWrite, true));
}

#[test]
fn block_size_split_and_zipf_allocate_nothing() {
    let mut job = job(ReadWriteMode::ReadWrite, true);
    job.workload.block_size =
        PerDirection::from_value(BlockSize::Split(vec![(4096, 60), (8192, 30), (16384, 10)]));
    assert_allocates_nothing(&job);
    job.workload.distribution = Distribution::Zipf {
        theta: 1.1,
        center: None,
    };
    assert_allocates_nothing(&job);
}

#[test]
fn rate_limited_reads_allocate_nothing() {
    let mut job = job(ReadWriteMode::Read, true);
    job.schedule.rate_iops.read = Some(10_000_000);
    assert_allocates_nothing(&job);
}

#[test]
fn refilled_buffers_allocate_nothing() {
    let mut job = job(ReadWriteMode::Write, true);
    job.workload.buffers.fill = BufferFill::Refill;
    job.workload.buffers.compress_percent = 50;
    assert_allocates_nothing(&job);
}

#[test]
fn verification_with_a_backlog_allocates_nothing() {
    let mut job = job(ReadWriteMode::Write, true);
    job.verify = Some(Verify {
        backlog: 64,
        backlog_batch: 10,
        ..Verify::new(VerifyMethod::Crc32c)
    });
    assert_allocates_nothing(&job);
}

/// All logs, with an entry for each I/O or for each window of `avg_ms` milliseconds.
fn logged(avg_ms: u64) -> Job {
    let mut job = job(ReadWriteMode::ReadWrite, true);
    let name = Some("log".to_owned());
    job.measure.logs = LogPrefixes {
        bw: name.clone(),
        lat: name.clone(),
        iops: name.clone(),
        hist: name,
        hist_ms: 1,
        avg_ms,
        ..LogPrefixes::default()
    };
    job
}

#[test]
fn logs_of_single_ios_allocate_nothing() {
    assert_allocates_nothing(&logged(0));
}

#[test]
fn logs_of_windows_allocate_nothing() {
    assert_allocates_nothing(&logged(1));
}

#[test]
fn test_allocator_counts_allocations() {
    let before = REQUESTS.get();
    let mut list = std::hint::black_box(vec![1u8]);
    list.reserve(100);
    std::hint::black_box(&list);
    assert_eq!(REQUESTS.get() - before, 2);
}
