//! Runs workers on simulated devices: one event loop steps them in order of simulated time.
//!
//! Time does not pass while a worker steps. It advances to the next event once all workers wait, so
//! a simulated run is as exact and repeatable as its device. Time starts at the Unix epoch.

use super::coordinator::{Coordinator, RunContext};
use super::job_result::{self, MeasuredThread};
use super::log_files::{LogFiles, LogWriterThread};
use super::open_logs::OpenLogs;
use super::worker_setup;
use super::{JobClone, RunMeasurements, backend_choice};
use crate::clock::{Clock, SimClock};
use crate::counters::WorkerCounters;
use crate::interrupt::Interrupt;
use crate::io::sim_backend::SimBackend;
use crate::io::{Backend, FileHandle};
use crate::remote_storage::file_names;
use crate::worker::io_log::{FromWorker, IoLog};
use crate::worker::{Worker, WorkerStep};
use iosonde_job::plan::{Job, Plan};
use iosonde_job::run_number::without_run_number;
use iosonde_result::observer::{Observer, WorkerState};
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use iosonde_sim::{SimDevice, SimSpec, Wear};
use iosonde_workload::Seeds;
use iosonde_workload::rng::Stream;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of steps without an advance of time. More steps are a defect of the program.
const MOST_STEPS_AT_ONCE: u32 = 10_000_000;

/// Devices by their specification.
type Devices = BTreeMap<String, Rc<RefCell<SimDevice>>>;
/// Wear of each device, by its specification without the run's number.
pub(super) type WearByDevice = BTreeMap<String, Wear>;

/// A worker of the simulation.
struct SimWorker {
    worker: Worker<SimBackend, SimClock>,
    shared: Arc<WorkerCounters>,
    start_ns: u64,
    measure_from_ns: u64,
}

impl SimWorker {
    fn measured(&self, number: usize) -> MeasuredThread {
        MeasuredThread {
            tid: number as u32 + 1,
            started_at_ms: self.start_ns.max(self.measure_from_ns) / 1_000_000,
            ..MeasuredThread::default()
        }
    }
}

struct Simulation<'a> {
    open_logs: OpenLogs,
    plan: &'a Plan,
    clones: &'a [JobClone],
    clock: SimClock,
    devices: Devices,
    /// Wear of the devices from earlier runs of the session.
    wear: WearByDevice,
    workers: BTreeMap<usize, SimWorker>,
    /// Directory for blocks that fail verification.
    dump_directory: &'a Path,
    /// Queue of the workers by the time of their next step.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Returns the device that a job specifies, without wear.
fn build_device(job: &Job) -> Result<Rc<RefCell<SimDevice>>, RunError> {
    let refused = |error: &dyn std::fmt::Display| {
        RunError::from(UnsupportedFeature::InvalidSimulation {
            job: job.name.clone(),
            problem: error.to_string(),
        })
    };
    let text = job.io.sim.as_deref().unwrap_or_default();
    let spec: SimSpec = text.parse().map_err(|error| refused(&error))?;
    SimDevice::shared(spec).map_err(|error| refused(&error))
}

/// Refuses invalid device specifications.
pub(super) fn check(plan: &Plan) -> Result<(), RunError> {
    plan.jobs
        .iter()
        .try_for_each(|job| build_device(job).map(drop))
}

/// Runs all clones to their end.
pub(super) fn run(
    plan: &Plan,
    clones: &[JobClone],
    wear: &mut WearByDevice,
    (interrupt, dump_directory): (&Interrupt, &Path),
    observer: &mut dyn Observer,
) -> Result<RunMeasurements, RunError> {
    let clock = SimClock::default();
    let context = RunContext {
        interrupt,
        begun: None,
        started_at_ms: 0,
        watch: None,
    };
    let mut coordinator = Coordinator::new(plan, clones, context, observer);
    let simulation = Simulation {
        open_logs: OpenLogs::new(None),
        plan,
        clones,
        clock: clock.clone(),
        devices: BTreeMap::new(),
        wear: wear.clone(),
        workers: BTreeMap::new(),
        dump_directory,
        queue: BinaryHeap::new(),
    };
    std::thread::scope(|scope| {
        // Dropped before the join of the log writers, which write until the workers are dropped.
        let mut simulation = simulation;
        let mut writing = Vec::new();
        while !coordinator.is_finished() {
            let starting = coordinator.next_group();
            for number in &starting {
                let logs = simulation.add_worker(*number, &mut coordinator)?;
                if let Some((logs, from_worker)) = logs {
                    writing.push(logs.spawn_writer(from_worker, scope)?);
                }
                coordinator.mark_ready(*number);
            }
            if !starting.is_empty() {
                coordinator.start(clock.now_ns(), clock.now_ns());
            }
            simulation.step_next(&mut coordinator);
        }
        wear.extend(
            simulation
                .devices
                .iter()
                .map(|(text, device)| (without_run_number(text), device.borrow().wear())),
        );
        writing.into_iter().try_for_each(LogWriterThread::join)
    })?;
    Ok(coordinator.finish(clock.now_ns()))
}

type LogsToWrite = Option<(LogFiles, FromWorker)>;

impl Simulation<'_> {
    /// Creates a worker that starts now.
    fn add_worker(
        &mut self,
        number: usize,
        coordinator: &mut Coordinator<'_>,
    ) -> Result<LogsToWrite, RunError> {
        let clone = &self.clones[number];
        let job = &self.plan.jobs[clone.job];
        let device = self.device(job)?;
        let keeps_data = device.borrow().stores();
        let resources = worker_setup::allocate_resources(self.plan, clone, keeps_data)?;
        let (low, high) = job.schedule.startdelay_ns;
        let mut delays = Seeds::new(&job.workload, clone.number, 0).stream(Stream::Delay, 0);
        let start_ns = self.clock.now_ns() + low + delays.below((high - low).saturating_add(1));
        let (log, logs) = match LogFiles::open(&self.open_logs, self.plan, clone)? {
            Some(logs) => {
                let measured_ns = start_ns + job.schedule.ramp_time_ns;
                let (log, from_worker) = IoLog::new(&job.measure.logs, 0, measured_ns);
                let logs = logs.counted_from(measured_ns / 1_000_000);
                (Some(log.begun_at(start_ns)), Some((logs, from_worker)))
            }
            None => (None, None),
        };
        let shared = coordinator.shared(number);
        shared
            .open_files
            .store(clone.files().files.len() as u32, Relaxed);
        let links = worker_setup::WorkerLinks {
            shared: shared.clone(),
            flow: coordinator.flow(number),
            log,
            open_file_cache: None,
            cache: None,
            file_names: file_names(None, job, clone.files()),
            dump_directory: self.dump_directory.to_owned(),
        };
        let parts = worker_setup::build_parts(job, clone.files(), resources, start_ns, links);
        let measure_from_ns = parts.recorder.measure_from_ns();
        shared.enter(WorkerState::Ready);
        let mut backend = SimBackend::new(device, self.clock.clone(), job.io.direct);
        let handles = self.handles(clone);
        backend.set_files(&handles).map_err(|error| {
            RunError::from(UnsupportedFeature::SimulatedDeviceTooSmall {
                job: job.name.clone(),
                failure: (&error).into(),
            })
        })?;
        let worker = Worker::new(backend, self.clock.clone(), parts);
        self.workers.insert(
            number,
            SimWorker {
                worker,
                shared,
                start_ns,
                measure_from_ns,
            },
        );
        self.queue.push(Reverse((start_ns, number)));
        Ok(logs)
    }

    fn device(&mut self, job: &Job) -> Result<Rc<RefCell<SimDevice>>, RunError> {
        let text = job.io.sim.clone().unwrap_or_default();
        if let Some(device) = self.devices.get(&text) {
            return Ok(device.clone());
        }
        let device = build_device(job)?;
        if let Some(wear) = self.wear.get(&without_run_number(&text)) {
            device.borrow_mut().age(*wear);
        }
        self.devices.insert(text, device.clone());
        Ok(device)
    }

    /// Returns the handles of a clone's files: a file's index by name, over all workers.
    fn handles(&self, clone: &JobClone) -> Vec<FileHandle> {
        let name_of = |path: &Path| {
            let mut paths = self
                .clones
                .iter()
                .flat_map(|clone| &clone.files().files)
                .map(|file| &file.path);
            paths.position(|known| known == path).unwrap_or(0) as i32
        };
        clone
            .files()
            .files
            .iter()
            .map(|file| FileHandle {
                fd: name_of(&file.path),
                block_device: false,
                size: file.size_needed,
            })
            .collect()
    }

    /// Steps the next worker, or ticks the coordinator if the tick is due first.
    fn step_next(&mut self, coordinator: &mut Coordinator<'_>) {
        let Some(&Reverse((at_ns, number))) = self.queue.peek() else {
            return;
        };
        if coordinator.next_tick_ns() <= at_ns {
            self.clock
                .advance_to(coordinator.next_tick_ns().max(self.clock.now_ns()));
            coordinator.tick(self.clock.now_ns());
            return self.publish();
        }
        self.queue.pop();
        self.clock.advance_to(at_ns.max(self.clock.now_ns()));
        let Some(sim_worker) = self.workers.get_mut(&number) else {
            return;
        };
        sim_worker.worker.wake();
        let mut steps = 0;
        loop {
            let now_ns = self.clock.now_ns();
            match sim_worker.shared.state() {
                WorkerState::Ready | WorkerState::Ramp if now_ns >= sim_worker.measure_from_ns => {
                    sim_worker.shared.enter(WorkerState::Running);
                }
                WorkerState::Ready => sim_worker.shared.enter(WorkerState::Ramp),
                _ => {}
            }
            match sim_worker.worker.step() {
                WorkerStep::Again => steps += 1,
                WorkerStep::Wait(until_ns) if until_ns > now_ns => {
                    self.queue.push(Reverse((until_ns, number)));
                    return;
                }
                WorkerStep::Wait(_) => steps += 1,
                WorkerStep::Done => return self.finish_worker(number, coordinator),
            }
            assert!(
                steps < MOST_STEPS_AT_ONCE,
                "a simulated worker never lets time go on"
            );
        }
    }

    /// Publishes the requested statistics.
    fn publish(&self) {
        for (number, sim_worker) in &self.workers {
            if !sim_worker.shared.asked.load(Relaxed) {
                continue;
            }
            let clone = &self.clones[*number];
            let used = job_result::unused(&self.plan.jobs[clone.job]);
            let (snapshot, measured) = (sim_worker.worker.snapshot(), sim_worker.measured(*number));
            let start_ns = sim_worker.start_ns;
            let result =
                job_result::from_snapshot(self.plan, clone, &snapshot, used, start_ns, measured);
            sim_worker.shared.publish(result);
        }
    }

    fn finish_worker(&mut self, number: usize, coordinator: &mut Coordinator<'_>) {
        let Some(sim_worker) = self.workers.remove(&number) else {
            return;
        };
        let clone = &self.clones[number];
        let job = &self.plan.jobs[clone.job];
        debug_assert!(backend_choice::depth(job) >= 1);
        let (used, measured) = (job_result::unused(job), sim_worker.measured(number));
        let output = sim_worker.worker.finish();
        let result = job_result::from_output(
            self.plan,
            clone,
            output,
            used,
            sim_worker.start_ns,
            measured,
        );
        sim_worker.shared.enter(job_result::last_state(&result));
        coordinator.record_result(number, result);
    }
}
