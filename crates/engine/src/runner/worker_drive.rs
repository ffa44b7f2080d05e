//! Steps a worker from its start to its end, and measures its thread.

use super::backend_choice::AnyBackend;
use super::epoch_ms;
use super::job_result::{self, MeasuredThread};
use super::worker_thread::{NAP, WorkerThread};
use crate::clock::{Clock, RealClock};
use crate::counters::WorkerCounters;
use crate::io::Backend;
use crate::io::remote::RemoteBackend;
use crate::sys::thread;
use crate::worker::callback_driver::{self, CallbackDriver};
use crate::worker::{Worker, WorkerOutput, WorkerParts, WorkerStep};
use iosonde_machine::cpu_use;
use iosonde_result::observer::WorkerState;
use iosonde_result::run::{BackendUsed, CpuUse};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl WorkerThread<'_> {
    /// Steps the worker to its end, with a backend of any kind.
    pub(super) fn drive_any(
        &self,
        backend: AnyBackend,
        parts: WorkerParts,
        used: &BackendUsed,
    ) -> DrivenWorker {
        match backend {
            AnyBackend::Uring(backend) => self.drive(*backend, parts, used),
            AnyBackend::Aio(backend) => self.drive(backend, parts, used),
            AnyBackend::PosixAio(backend) => self.drive(backend, parts, used),
            AnyBackend::Sync(backend) => self.drive(backend, parts, used),
            AnyBackend::Vsync(backend) => self.drive(backend, parts, used),
            AnyBackend::Mmap(backend) => self.drive(backend, parts, used),
            AnyBackend::Null(backend) => self.drive(backend, parts, used),
            AnyBackend::Remote(backend) => self.drive_by_callbacks(backend, parts, used),
        }
    }

    /// Steps the worker to its end.
    fn drive<B: Backend>(
        &self,
        backend: B,
        parts: WorkerParts,
        used: &BackendUsed,
    ) -> DrivenWorker {
        let start_ns = parts.limits.start_ns;
        let measure_from_ns = parts.recorder.measure_from_ns();
        let mut worker = Worker::new(backend, self.clock.clone(), parts);
        let mut measuring = Measuring::new(&self.shared, measure_from_ns, self.clock.now_ns());
        let alone = CpuUse::default();
        loop {
            if self.shared.asked.load(Relaxed) {
                self.publish(&worker, &measuring.so_far(&alone), used, start_ns);
            }
            match worker.step() {
                WorkerStep::Again => {}
                WorkerStep::Wait(until_ns) => {
                    worker.clock().sleep_until(until_ns, NAP);
                    worker.wake();
                }
                WorkerStep::Done => break,
            }
            if !measuring.begun && worker.now_ns() >= measure_from_ns {
                measuring.begin(&self.shared, &alone);
            }
        }
        let measured = measuring.so_far(&alone);
        if let Some(note) = worker.clock().counter_note() {
            self.shared.note(note);
        }
        DrivenWorker {
            output: worker.finish(),
            measured,
        }
    }

    /// Steps the worker on the library's completion thread, if it waits for completions only.
    fn drive_by_callbacks(
        &self,
        mut backend: RemoteBackend,
        parts: WorkerParts,
        used: &BackendUsed,
    ) -> DrivenWorker {
        let driver = Arc::new(CallbackDriver::new());
        let called: Arc<CallbackDriver<Worker<RemoteBackend, RealClock>>> = driver.clone();
        let callback = Arc::<CallbackDriver<_>>::downgrade(&called);
        if !callback_driver::can_drive(&parts) || !backend.set_callback(callback) {
            return self.drive(backend, parts, used);
        }
        let limits = parts.limits;
        let measure_from_ns = parts.recorder.measure_from_ns();
        let mut measuring = Measuring::new(&self.shared, measure_from_ns, self.clock.now_ns());
        driver.enter(Worker::new(backend, self.clock.clone(), parts));
        // Removes the worker on this thread: a client cannot be shut down from its own threads.
        let _leave_on_drop = LeaveOnDrop(&driver);
        let moments = [measure_from_ns, limits.deadline_ns];
        loop {
            let serviced_ns = self.clock.now_ns();
            let is_done = driver.service_worker(|worker, other_cpu| {
                if self.shared.asked.load(Relaxed) {
                    self.publish(worker, &measuring.so_far(other_cpu), used, limits.start_ns);
                }
                if !measuring.begun && worker.now_ns() >= measure_from_ns {
                    measuring.begin(&self.shared, other_cpu);
                }
            });
            if is_done {
                break;
            }
            let now_ns = self.clock.now_ns();
            let ahead = moments.iter().filter(|moment| **moment > serviced_ns);
            let next = ahead.map(|moment| moment.saturating_sub(now_ns)).min();
            driver.wait(next.map_or(NAP, |left_ns| NAP.min(Duration::from_nanos(left_ns))));
        }
        let (worker, other_cpu) = driver.leave().expect("it entered, and leaves once");
        DrivenWorker {
            measured: measuring.so_far(&other_cpu),
            output: worker.finish(),
        }
    }

    /// Publishes the statistics so far.
    #[cold]
    fn publish<B: Backend>(
        &self,
        worker: &Worker<B, RealClock>,
        measured: &MeasuredThread,
        used: &BackendUsed,
        start_ns: u64,
    ) {
        let (snapshot, used, measured) = (worker.snapshot(), used.clone(), *measured);
        let result =
            job_result::from_snapshot(self.plan, self.clone, &snapshot, used, start_ns, measured);
        self.shared.publish(result);
    }
}

/// Takes the worker out of its driver on drop.
struct LeaveOnDrop<'a, W: callback_driver::StepTarget>(&'a CallbackDriver<W>);

impl<W: callback_driver::StepTarget> Drop for LeaveOnDrop<'_, W> {
    fn drop(&mut self) {
        drop(self.0.leave());
    }
}

/// A worker that has ended.
pub(super) struct DrivenWorker {
    pub(super) output: WorkerOutput,
    pub(super) measured: MeasuredThread,
}

/// The measured part of a worker's run.
struct Measuring {
    begun: bool,
    before: CpuUse,
    started_at_ms: u64,
}

impl Measuring {
    fn new(shared: &WorkerCounters, measure_from_ns: u64, now_ns: u64) -> Measuring {
        let mut measuring = Measuring {
            begun: false,
            before: cpu_use::cpu_use_and_queued(),
            started_at_ms: epoch_ms(),
        };
        if measure_from_ns > now_ns {
            shared.enter(WorkerState::Ramp);
        } else {
            measuring.begin(shared, &CpuUse::default());
        }
        measuring
    }

    /// Starts the measured part. `other_cpu` is the CPU use of other threads for the worker.
    fn begin(&mut self, shared: &WorkerCounters, other_cpu: &CpuUse) {
        self.begun = true;
        self.before = cpu_use::cpu_use_and_queued().and(other_cpu);
        self.started_at_ms = epoch_ms();
        shared.enter(WorkerState::Running);
    }

    fn so_far(&self, other: &CpuUse) -> MeasuredThread {
        MeasuredThread {
            tid: thread::thread_id(),
            cpu: cpu_use::cpu_use_and_queued().and(other).since(&self.before),
            started_at_ms: self.started_at_ms,
        }
    }
}
