//! Runs workers on simulated devices: one event loop steps them in order of simulated time.
//!
//! Time does not pass while a worker steps. It advances to the next event once all workers wait, so
//! a simulated run is as exact and repeatable as its device. Time starts at the Unix epoch.

use super::coordinator::{Coordinator, RunContext};
use super::job_result::{self, Measured};
use super::log_files::{LogFiles, OpenLogs, Writing};
use super::worker_setup;
use super::{JobClone, RunMeasurements, backend_choice};
use crate::interrupt::Interrupt;
use crate::io::sim_backend::SimBackend;
use crate::io::{Backend, Handle};
use crate::worker::clock::{Clock, SimClock};
use crate::worker::counters::Shared;
use crate::worker::io_log::{FromWorker, IoLog};
use crate::worker::{Step, Worker};
use iosonde_job::plan::{Engine, Job, Plan};
use iosonde_result::observer::{Observer, WorkerState};
use iosonde_result::session::RunError;
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

/// Whether the plan uses simulated devices. Jobs must not mix real and simulated time.
pub(super) fn is_simulated(plan: &Plan) -> Result<bool, RunError> {
    let simulated = plan
        .jobs
        .iter()
        .filter(|job| job.io.engine == Engine::Sim)
        .count();
    if simulated > 0 && simulated < plan.jobs.len() {
        return Err(RunError::Unsupported {
            problem: "some jobs of this run are simulated and some are not".to_owned(),
            remedy: "use ioengine=sim in all jobs or in none".to_owned(),
        });
    }
    Ok(simulated > 0)
}

/// Devices by their specification.
type Devices = BTreeMap<String, Rc<RefCell<SimDevice>>>;
/// Wear of each device, by its specification without the run's number.
pub(super) type WearByDevice = BTreeMap<String, Wear>;

/// A worker of the simulation.
struct SimWorker {
    worker: Worker<SimBackend, SimClock>,
    shared: Arc<Shared>,
    start_ns: u64,
    measure_from_ns: u64,
}

impl SimWorker {
    fn measured(&self, number: usize) -> Measured {
        Measured {
            tid: number as u32 + 1,
            started_at_ms: self.start_ns.max(self.measure_from_ns) / 1_000_000,
            ..Measured::default()
        }
    }
}

struct Simulation<'a> {
    shelf: OpenLogs,
    plan: &'a Plan,
    clones: &'a [JobClone],
    clock: SimClock,
    devices: Devices,
    /// Wear of the devices from earlier runs of the session.
    worn: WearByDevice,
    actors: BTreeMap<usize, SimWorker>,
    /// Directory for blocks that fail verification.
    dump_directory: &'a Path,
    /// Queue of the workers by the time of their next step.
    agenda: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Returns the device that a job specifies, without wear.
fn described(job: &Job) -> Result<Rc<RefCell<SimDevice>>, RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Unsupported {
        problem: format!("job {}: {error}", job.name),
        remedy: "docs/sim.md lists the keys of a simulated device".to_owned(),
    };
    let text = job.io.sim.as_deref().unwrap_or_default();
    let spec: SimSpec = text.parse().map_err(|error| refused(&error))?;
    SimDevice::shared(spec).map_err(|error| refused(&error))
}

/// Removes the run's number from a specification: all runs share the device.
fn without_run(text: &str) -> String {
    let words = text
        .split(',')
        .filter(|word| !word.trim().starts_with("run="));
    words.collect::<Vec<_>>().join(",")
}

/// Refuses invalid device specifications.
pub(super) fn check(plan: &Plan) -> Result<(), RunError> {
    plan.jobs
        .iter()
        .try_for_each(|job| described(job).map(drop))
}

/// Runs all clones to their end.
pub(super) fn run(
    plan: &Plan,
    clones: &[JobClone],
    worn: &mut WearByDevice,
    (interrupt, dump_directory): (&Interrupt, &Path),
    observer: &mut dyn Observer,
) -> Result<RunMeasurements, RunError> {
    let clock = SimClock::default();
    let around = RunContext {
        interrupt,
        begun: None,
        started_at_ms: 0,
        watch: None,
    };
    let mut crew = Coordinator::new(plan, clones, around, observer);
    let stage = Simulation {
        shelf: OpenLogs::default(),
        plan,
        clones,
        clock: clock.clone(),
        devices: BTreeMap::new(),
        worn: worn.clone(),
        actors: BTreeMap::new(),
        dump_directory,
        agenda: BinaryHeap::new(),
    };
    std::thread::scope(|scope| {
        // Dropped before the join of the log writers, which write until the workers are dropped.
        let mut stage = stage;
        let mut writing = Vec::new();
        while !crew.is_finished() {
            let starting = crew.call_up();
            for number in &starting {
                let logs = stage.enter(*number, &mut crew)?;
                if let Some((logs, from_worker)) = logs {
                    writing.push(logs.write_aside(from_worker, scope)?);
                }
                crew.ready(*number);
            }
            if !starting.is_empty() {
                crew.start(clock.now_ns(), clock.now_ns());
            }
            stage.go_on(&mut crew);
        }
        worn.extend(
            stage
                .devices
                .iter()
                .map(|(text, device)| (without_run(text), device.borrow().wear())),
        );
        writing.into_iter().try_for_each(Writing::end)
    })?;
    Ok(crew.finish(clock.now_ns()))
}

type Logs = Option<(LogFiles, FromWorker)>;

impl Simulation<'_> {
    /// Creates a worker that starts now.
    fn enter(&mut self, number: usize, crew: &mut Coordinator<'_>) -> Result<Logs, RunError> {
        let clone = &self.clones[number];
        let job = &self.plan.jobs[clone.job];
        let device = self.device(job)?;
        let kit = worker_setup::kit(self.plan, clone)?;
        let (low, high) = job.schedule.startdelay_ns;
        let mut delays = Seeds::new(&job.workload, clone.number, 0).stream(Stream::Delay, 0);
        let start_ns = self.clock.now_ns() + low + delays.below((high - low).saturating_add(1));
        let (log, logs) = match LogFiles::open(&self.shelf, self.plan, clone)? {
            Some(logs) => {
                let measured_ns = start_ns + job.schedule.ramp_time_ns;
                let (log, from_worker) = IoLog::new(&job.measure.logs, 0, measured_ns);
                let logs = logs.counted_from(measured_ns / 1_000_000);
                (Some(log.begun_at(start_ns)), Some((logs, from_worker)))
            }
            None => (None, None),
        };
        let shared = crew.shared(number);
        shared
            .open_files
            .store(clone.files().files.len() as u32, Relaxed);
        let company = worker_setup::WorkerLinks {
            shared: shared.clone(),
            flow: crew.flow(number),
            log,
            keeper: None,
            cache: None,
            dump_directory: self.dump_directory.to_owned(),
        };
        let parts = worker_setup::parts(job, clone.files(), kit, start_ns, company);
        let measure_from_ns = parts.recorder.measure_from_ns();
        shared.enter(WorkerState::Ready);
        let mut backend = SimBackend::new(device, self.clock.clone(), job.io.direct);
        let handles = self.handles(clone);
        backend
            .set_files(&handles)
            .map_err(|error| RunError::Unsupported {
                problem: format!(
                    "job {}: the simulated device does not hold its files: {error}",
                    job.name
                ),
                remedy: "use a smaller size=, or a larger capacity of the simulated device"
                    .to_owned(),
            })?;
        let worker = Worker::new(backend, self.clock.clone(), parts);
        self.actors.insert(
            number,
            SimWorker {
                worker,
                shared,
                start_ns,
                measure_from_ns,
            },
        );
        self.agenda.push(Reverse((start_ns, number)));
        Ok(logs)
    }

    fn device(&mut self, job: &Job) -> Result<Rc<RefCell<SimDevice>>, RunError> {
        let text = job.io.sim.clone().unwrap_or_default();
        if let Some(device) = self.devices.get(&text) {
            return Ok(device.clone());
        }
        let device = described(job)?;
        if let Some(wear) = self.worn.get(&without_run(&text)) {
            device.borrow_mut().age(*wear);
        }
        self.devices.insert(text, device.clone());
        Ok(device)
    }

    /// Returns the handles of a clone's files: a file's index by name, over all workers.
    fn handles(&self, clone: &JobClone) -> Vec<Handle> {
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
            .map(|file| Handle {
                fd: name_of(&file.path),
                block_device: false,
                size: file.size_needed,
            })
            .collect()
    }

    /// Steps the next worker, or ticks the coordinator if the tick is due first.
    fn go_on(&mut self, crew: &mut Coordinator<'_>) {
        let Some(&Reverse((at_ns, number))) = self.agenda.peek() else {
            return;
        };
        if crew.next_tick_ns() <= at_ns {
            self.clock
                .advance_to(crew.next_tick_ns().max(self.clock.now_ns()));
            crew.tick(self.clock.now_ns());
            return self.publish();
        }
        self.agenda.pop();
        self.clock.advance_to(at_ns.max(self.clock.now_ns()));
        let Some(actor) = self.actors.get_mut(&number) else {
            return;
        };
        actor.worker.wake();
        let mut steps = 0;
        loop {
            let now_ns = self.clock.now_ns();
            match actor.shared.state() {
                WorkerState::Ready | WorkerState::Ramp if now_ns >= actor.measure_from_ns => {
                    actor.shared.enter(WorkerState::Running);
                }
                WorkerState::Ready => actor.shared.enter(WorkerState::Ramp),
                _ => {}
            }
            match actor.worker.step() {
                Step::Again => steps += 1,
                Step::Wait(until_ns) if until_ns > now_ns => {
                    self.agenda.push(Reverse((until_ns, number)));
                    return;
                }
                Step::Wait(_) => steps += 1,
                Step::Done => return self.leave(number, crew),
            }
            assert!(
                steps < MOST_STEPS_AT_ONCE,
                "a simulated worker never lets time go on"
            );
        }
    }

    /// Publishes the requested statistics.
    fn publish(&self) {
        for (number, actor) in &self.actors {
            if !actor.shared.asked.load(Relaxed) {
                continue;
            }
            let clone = &self.clones[*number];
            let used = job_result::unused(&self.plan.jobs[clone.job]);
            let (standing, measured) = (actor.worker.standing(), actor.measured(*number));
            let start_ns = actor.start_ns;
            let result =
                job_result::of_worker(self.plan, clone, &standing, used, start_ns, measured);
            actor.shared.publish(result);
        }
    }

    fn leave(&mut self, number: usize, crew: &mut Coordinator<'_>) {
        let Some(actor) = self.actors.remove(&number) else {
            return;
        };
        let clone = &self.clones[number];
        let job = &self.plan.jobs[clone.job];
        debug_assert!(backend_choice::depth(job) >= 1);
        let (used, measured) = (job_result::unused(job), actor.measured(number));
        let outcome = actor.worker.finish();
        let result =
            job_result::of_outcome(self.plan, clone, outcome, used, actor.start_ns, measured);
        actor.shared.enter(job_result::last_state(&result));
        crew.done(number, result);
    }
}
