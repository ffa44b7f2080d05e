//! Parts of a worker on one file, for tests.

use crate::io::{Backend, Slab, Slot};
use crate::sys::memory::{IoMemory, MemoryKind};
use crate::worker::clock::Clock;
use crate::worker::counters::WorkerCounters;
use crate::worker::io_log::IoLog;
use crate::worker::pacing::Pacer;
use crate::worker::recorder::Recorder;
use crate::worker::verification::Verification;
use crate::worker::write_contents::Contents;
use crate::worker::{
    DepthRules, Refill, Worker, WorkerLimits, WorkerOutput, WorkerParts, WorkerStep,
};
use iosonde_job::plan::*;
use iosonde_workload::rng::Stream;
use iosonde_workload::{FileLayout, Generator, Seeds};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const FILE_BYTES: u64 = 1 << 20;
pub(crate) const DEPTH: u32 = 16;

/// A clock that only the backend moves on.
#[derive(Clone, Default)]
pub(crate) struct SteppedClock {
    now_ns: Rc<Cell<u64>>,
    pub(crate) resumed_ns: Rc<Cell<u64>>,
}

impl SteppedClock {
    pub(crate) fn pass(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
    }
}

impl Clock for SteppedClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn resumed_ns(&self) -> u64 {
        self.resumed_ns.get()
    }
}

/// Parts of a worker on one file, for a backend with `depth` I/Os in flight.
pub(crate) fn parts(job: &Job, depth: u32, clock: &impl Clock) -> WorkerParts {
    let seeds = Seeds::new(&job.workload, 0, 1);
    let layout = FileLayout::whole_file(FILE_BYTES);
    let generator = Generator::new(job, &layout, seeds).unwrap();
    let bytes = generator.buffer_bytes() as usize;
    let mut memory = IoMemory::map(depth as usize, bytes, 4096, MemoryKind::Pages).unwrap();
    let unit_bytes = job.workload.block_size.write.min();
    let mut contents = Contents::new(&job.workload.buffers, unit_bytes, FILE_BYTES, &seeds);
    contents.prepare(&mut memory);
    let shared = Arc::new(WorkerCounters::default());
    let start_ns = clock.now_ns();
    let logs = &job.measure.logs;
    WorkerParts {
        slab: Slab {
            slots: vec![Slot::IDLE; depth as usize].into(),
            memory,
        },
        verifier: Verification::new(job, &[(0, FILE_BYTES)], &generator).unwrap(),
        generator,
        contents,
        pacer: Pacer::new(job, start_ns, seeds.stream(Stream::Arrival, 0)),
        depth_control: None,
        flow: None,
        log: (*logs != LogPrefixes::default()).then(|| log(logs, start_ns)),
        recorder: Recorder::new(&job.measure, 0, shared.clone()),
        shared,
        rules: DepthRules {
            iodepth: depth,
            batch_submit: depth,
            call_limit: u32::MAX,
            call_limit_at_once: u32::MAX,
            complete_min: 1,
            complete_max: u32::MAX,
            refill: Refill::AT_ONCE,
            low: depth,
            serialize_overlap: false,
        },
        limits: WorkerLimits {
            start_ns,
            deadline_ns: u64::MAX,
            max_latency_ns: PerDirection::default(),
            fill_device: false,
        },
        errors: job.errors.clone(),
        file_names: vec!["file".to_owned()],
        end_sync_files: vec![0],
        times_end_sync: true,
        timed: true,
        cmdprio: None,
        replayer: None,
        open_file_cache: None,
        cache: None,
        dump_directory: Default::default(),
        verifies_each_pass: false,
    }
}

/// A log, and a thread that receives the worker's entries.
fn log(logs: &LogPrefixes, start_ns: u64) -> IoLog {
    let (log, from_worker) = IoLog::new(logs, 0, start_ns);
    std::thread::spawn(move || {
        while let Some(batch) = from_worker.take() {
            from_worker.return_batch(batch);
        }
    });
    log
}

/// Steps a worker to its end, which it reaches in fewer than `limit` steps.
pub(crate) fn run_worker<B: Backend, C: Clock>(
    mut worker: Worker<B, C>,
    limit: usize,
) -> WorkerOutput {
    let steps = (0..limit)
        .take_while(|_| worker.step() != WorkerStep::Done)
        .count();
    assert!(steps < limit, "it does not end");
    worker.finish()
}

/// A job of `loops` passes over the file.
pub(crate) fn job(mode: ReadWriteMode, random: bool, loops: u32) -> Job {
    let mut job = Job::new("of_tests");
    job.workload.rw = ReadWrite { mode, random };
    job.workload.percentage_random = PerDirection::from_value(100);
    job.schedule.loops = loops;
    job.io.iodepth = DEPTH;
    job
}
