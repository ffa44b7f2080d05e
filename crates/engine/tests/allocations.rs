//! Tests that the I/O loop does not allocate memory, with a counting allocator.

#[path = "common/worker_parts.rs"]
mod worker_parts;

use iosonde_engine::io::immediate::AtOnce;
use iosonde_engine::io::io_uring::Uring;
use iosonde_engine::io::libaio::Aio;
use iosonde_engine::io::mmap_backend::Mmap;
use iosonde_engine::io::null::Null;
use iosonde_engine::io::sync::{Sync, Vsync};
use iosonde_engine::io::{Backend, Handle};
use iosonde_engine::sys::ring::RingOptions;
use iosonde_engine::sys::rw::Call;
use iosonde_engine::worker::clock::RealClock;
use iosonde_engine::worker::{Parts, Step, Worker};
use iosonde_job::plan::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsRawFd;
use worker_parts::{DEPTH, FILE_BYTES, parts};

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
fn run<B: Backend>(backend: B, parts: Parts, clock: &RealClock) -> (u64, u64) {
    let mut worker = Worker::new(backend, clock.clone(), parts);
    let before = REQUESTS.get();
    while worker.step() != Step::Done {}
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
    fn ready<B: Backend>(mut backend: B, handles: &[Handle]) -> B {
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
    let handles = [Handle {
        fd: file.as_raw_fd(),
        block_device: false,
        size: FILE_BYTES,
    }];
    let of = |depth| parts(job, depth, clock);

    // The null engine does not return written data.
    if job.verify.is_none() {
        check("null", run(AtOnce::new(Null, DEPTH), of(DEPTH), clock));
    }
    for register in [true, false] {
        let deep = of(DEPTH);
        let options = RingOptions::default();
        let uring = Uring::new(DEPTH, options, register, register, &deep.slab).unwrap();
        let uring = ready(uring, &handles);
        assert_eq!(uring.refused(), [""; 0]);
        check("io_uring", run(uring, deep, clock));
    }
    let aio = Aio::new(DEPTH, false, 0).unwrap();
    check("libaio", run(ready(aio, &handles), of(DEPTH), clock));
    let vsync = ready(AtOnce::new(Vsync::new(DEPTH, 0), DEPTH), &handles);
    check("vsync", run(vsync, of(DEPTH), clock));
    for call in [Call::Seek, Call::Positioned, Call::Vectored2(0)] {
        let sync = ready(AtOnce::new(Sync::new(call, 0), 1), &handles);
        check("sync", run(sync, of(1), clock));
    }
    let mmap = AtOnce::new(Mmap::new(true, job.workload.rw.random, false), 1);
    let mmap = ready(mmap, &handles);
    check("mmap", run(mmap, of(1), clock));
}

fn job(mode: Mode, random: bool) -> Job {
    worker_parts::job(mode, random, LOOPS)
}

#[test]
fn random_reads() {
    assert_allocates_nothing(&job(Mode::Read, true));
}

#[test]
fn sequential_writes() {
    assert_allocates_nothing(&job(Mode::Write, false));
}

#[test]
fn random_writes_with_syncs() {
    let mut job = job(Mode::Write, true);
    job.workload.fsync_every = 100;
    job.workload.fdatasync_every = 64;
    assert_allocates_nothing(&job);
}

#[test]
fn a_mix_of_directions() {
    assert_allocates_nothing(&job(Mode::ReadWrite, true));
}

#[test]
fn a_split_of_block_sizes_and_a_distribution() {
    let mut job = job(Mode::ReadWrite, true);
    job.workload.block_size =
        PerDirection::all(BlockSize::Split(vec![(4096, 60), (8192, 30), (16384, 10)]));
    assert_allocates_nothing(&job);
    job.workload.distribution = Distribution::Zipf {
        theta: 1.1,
        center: None,
    };
    assert_allocates_nothing(&job);
}

#[test]
fn rates() {
    let mut job = job(Mode::Read, true);
    job.schedule.rate_iops.read = Some(10_000_000);
    assert_allocates_nothing(&job);
}

#[test]
fn refilled_buffers() {
    let mut job = job(Mode::Write, true);
    job.workload.buffers.fill = BufferFill::Refill;
    job.workload.buffers.compress_percent = 50;
    assert_allocates_nothing(&job);
}

#[test]
fn verification_with_a_backlog() {
    let mut job = job(Mode::Write, true);
    job.verify = Some(Verify {
        backlog: 64,
        backlog_batch: 10,
        ..Verify::new(VerifyMethod::Crc32c)
    });
    assert_allocates_nothing(&job);
}

/// All logs, with an entry for each I/O or for each window of `avg_ms` milliseconds.
fn logged(avg_ms: u64) -> Job {
    let mut job = job(Mode::ReadWrite, true);
    let name = Some("log".to_owned());
    job.measure.logs = Logs {
        bw: name.clone(),
        lat: name.clone(),
        iops: name.clone(),
        hist: name,
        hist_ms: 1,
        avg_ms,
        ..Logs::default()
    };
    job
}

#[test]
fn logs_of_single_ios() {
    assert_allocates_nothing(&logged(0));
}

#[test]
fn logs_of_windows() {
    assert_allocates_nothing(&logged(1));
}

#[test]
fn an_allocation_is_counted() {
    let before = REQUESTS.get();
    let mut list = std::hint::black_box(vec![1u8]);
    list.reserve(100);
    std::hint::black_box(&list);
    assert_eq!(REQUESTS.get() - before, 2);
}
