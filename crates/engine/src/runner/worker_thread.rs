//! The thread of one worker, from its files to its result.

use super::backend_choice::{self, AnyBackend};
use super::commands;
use super::io_scheduler::Schedulers;
use super::job_result::{self, Measured};
use super::log_files::{LogFiles, OpenLogs, Writing};
use super::run_files;
use super::threaded_run::Held;
use super::worker_setup::{self, WorkerResources};
use super::write_guard::{self, FileScope};
use super::{JobClone, epoch_ms};
#[cfg(feature = "ceph")]
use crate::ceph::CephBackend;
use crate::ceph::Estate;
use crate::files::{CachedFiles, FileKeeper, OpenSet, WriteAccess, open_files, pre_read};
use crate::io::Backend;
#[cfg(feature = "ceph")]
use crate::io::rados_backend::Rados;
use crate::sys::memory::LockedMemory;
use crate::sys::thread;
#[cfg(feature = "ceph")]
use crate::worker::callback_driver::{self, CallbackDriver};
use crate::worker::clock::{Clock, RealClock};
use crate::worker::counters::Shared;
use crate::worker::flow::FlowPool;
use crate::worker::io_failure::in_words;
use crate::worker::io_log::IoLog;
use crate::worker::{Outcome, Parts, Step, Worker};
use iosonde_job::plan::{Job, Plan};
use iosonde_machine::cpu_use;
use iosonde_machine::write_hold::WriteHold;
use iosonde_result::observer::WorkerState;
use iosonde_result::run::{BackendUsed, CpuUse, WorkerResult};
use iosonde_result::session::RunError;
use iosonde_workload::Seeds;
use iosonde_workload::rng::Stream;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest sleep of a waiting worker: the longest delay before it notices a stop request.
const NAP: Duration = Duration::from_millis(50);

/// Start barrier of a group of workers.
#[derive(Default)]
pub(super) struct StartBarrier {
    /// The start on the run's clock, or [`NEVER`].
    start_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

/// Start time of a group that does not run.
const NEVER: u64 = u64::MAX;

impl StartBarrier {
    /// Releases the waiting workers, to start at `start_ns`.
    pub(super) fn open(&self, start_ns: u64) {
        *self
            .start_ns
            .lock()
            .unwrap_or_else(|poison| poison.into_inner()) = Some(start_ns);
        self.opened.notify_all();
    }

    /// Cancels the start: the workers that wait return without I/O.
    pub(super) fn call_off(&self) {
        self.start_ns
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .get_or_insert(NEVER);
        self.opened.notify_all();
    }

    fn wait(&self) -> u64 {
        let mut start_ns = self
            .start_ns
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        loop {
            match *start_ns {
                Some(start_ns) => return start_ns,
                None => {
                    start_ns = self
                        .opened
                        .wait(start_ns)
                        .unwrap_or_else(|poison| poison.into_inner())
                }
            }
        }
    }
}

/// Data of a worker's thread.
pub(super) struct WorkerThread<'a> {
    pub(super) plan: &'a Plan,
    /// Clones of all workers, including this one.
    pub(super) clones: &'a [JobClone],
    pub(super) clone: &'a JobClone,
    pub(super) clock: RealClock,
    pub(super) shared: Arc<Shared>,
    pub(super) gate: Arc<StartBarrier>,
    pub(super) flow: Option<Arc<FlowPool>>,
    pub(super) shelf: &'a OpenLogs,
    pub(super) schedulers: &'a Schedulers,
    pub(super) session: &'a Held<'a>,
}

/// A worker that is ready to start.
struct Ready {
    kit: WorkerResources,
    backend: AnyBackend,
    used: BackendUsed,
    keeper: Option<Box<FileKeeper>>,
    logs: Option<LogFiles>,
    /// Kept open and locked while the worker runs.
    files: Arc<OpenSet>,
    /// Keeps other programs from the devices that the worker writes.
    hold: WriteHold,
    _locked: Option<LockedMemory>,
}

impl WorkerThread<'_> {
    fn job(&self) -> &Job {
        self.clone.job(self.plan)
    }

    /// Runs the worker. Calls `ready` at the start barrier, with the error if it cannot run.
    pub(super) fn work(&self, ready: impl FnOnce(Option<RunError>)) -> WorkerResult {
        let prepared = (!self.prepares_after_delay()).then(|| self.prepare());
        self.shared.enter(WorkerState::Ready);
        let refused = prepared
            .as_ref()
            .and_then(|prepared| prepared.as_ref().err());
        ready(refused.cloned());
        let result = match self.gate.wait() {
            NEVER => Err(RunError::Interrupted),
            gate_ns => {
                let result = self.run_after_delay(prepared, gate_ns);
                self.estate().forget(self.job(), self.clone.files());
                result
            }
        };
        self.shared.open_files.store(0, Relaxed);
        let result = result.unwrap_or_else(|error| self.failed(&error));
        self.shared.enter(job_result::last_state(&result));
        result
    }

    /// Returns the directory for the output of commands: the logs' if set, else `.` as in fio.
    fn output_directory(&self) -> &Path {
        let permissions = self.session.runner.permissions.as_ref();
        let logs = permissions.and_then(|permissions| permissions.logs.as_deref());
        logs.unwrap_or(Path::new(""))
    }

    /// Whether files are opened after `startdelay`: as in fio, `exec_prerun` runs in between.
    fn prepares_after_delay(&self) -> bool {
        let schedule = &self.job().schedule;
        schedule.exec_prerun.is_some() && schedule.startdelay_ns.1 > 0
    }

    fn run_after_delay(
        &self,
        prepared: Option<Result<Option<Ready>, RunError>>,
        gate_ns: u64,
    ) -> Result<WorkerResult, RunError> {
        let prepared = prepared.transpose()?;
        let start_ns = gate_ns.saturating_add(self.delay_ns());
        self.sleep_until(start_ns);
        let (prepared, start_ns) = match prepared {
            Some(prepared) => (prepared, start_ns),
            // A run that was stopped in the delay runs no command.
            None if self.shared.stop.load(Relaxed) => (None, start_ns),
            None => {
                let prepared = self.prepare()?;
                (prepared, self.clock.now_ns())
            }
        };
        match prepared {
            Some(ready) => self.run(ready, start_ns),
            None => Ok(WorkerResult {
                latency_depth: 0,
                ..self.without_io()
            }),
        }
    }

    /// Prepares the worker. `None`: the command before the I/O failed, so there is no I/O.
    fn prepare(&self) -> Result<Option<Ready>, RunError> {
        let (runner, holds) = (self.session.runner, self.session.holds);
        for warning in self.clone.look_again(self.plan, self.session)? {
            self.shared.note(warning);
        }
        let job = self.job();
        self.fill_what_was_discarded()?;
        self.schedulers.switch(job, self.clone)?;
        settle(job, self.clone.clone)?;
        // As in fio, the command runs before files are opened: it may change them or drop caches.
        if let Some(command) = commands::run_before(job, self.output_directory())? {
            self.shared.note(command.note);
            if command.has_failed {
                return Ok(None);
            }
        }
        // The first check may be hours old if other jobs or a command ran in between.
        let which = match run_files::starts_later(self.plan, self.clone.job) {
            true => FileScope::All,
            false => FileScope::Devices,
        };
        let terms = (which, &runner.consent, holds);
        let (_, hold) = write_guard::check(job, self.clone.files(), terms)?;
        let without_files = !job.io.engine.has_paths();
        if job.files.pre_read && !without_files {
            pre_read(self.clone.files())?;
        }
        let shared = self.shared.clone();
        let access = WriteAccess {
            hold: &hold,
            created: self.session.created,
        };
        let keeper = FileKeeper::new(job, self.clone.files(), access, shared)?;
        let files = if without_files || keeper.is_some() {
            OpenSet::default()
        } else {
            open_files(job, self.clone.files(), access)?
        };
        let kit = worker_setup::kit(self.plan, self.clone)?;
        let handles = keeper.as_ref().map_or(files.handles(), FileKeeper::handles);
        let (backend, used) = backend_choice::choose(
            job,
            &kit.slab,
            self.clone.files(),
            handles,
            keeper.is_some(),
            &self.session.runner.interrupt,
        )?;
        let locked = match job.io.lockmem_bytes {
            0 => None,
            bytes => Some(LockedMemory::lock(bytes as usize).map_err(|error| {
                RunError::Unsupported {
                    problem: format!("lockmem={bytes}: {}", in_words(&error)),
                    remedy:
                        "raise the limit on locked memory (ulimit -l), or use a smaller lockmem="
                            .to_owned(),
                }
            })?),
        };
        // As in fio, an engine without paths reports its files as open.
        let open_files = match without_files {
            true => self.clone.files().files.len(),
            false => files.handles().len(),
        };
        self.shared.open_files.store(open_files as u32, Relaxed);
        Ok(Some(Ready {
            kit,
            backend,
            used,
            keeper: keeper.map(Box::new),
            // Opened last, so that a refused worker leaves no empty logs.
            logs: LogFiles::open(self.shelf, self.plan, self.clone)?,
            files: Arc::new(files),
            hold,
            _locked: locked,
        }))
    }

    fn estate(&self) -> MutexGuard<'_, Estate> {
        let estate = self.session.estate.lock();
        estate.unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays out ranges again that an earlier job discarded in a Ceph cluster and a later job reads.
    fn fill_what_was_discarded(&self) -> Result<(), RunError> {
        let terms = self.session.runner.terms();
        let bytes = self
            .estate()
            .make_ready_again(self.plan, self.clones, self.clone, &terms)?;
        if bytes > 0 {
            self.shared.note(format!(
                "{} MiB in the Ceph cluster that a job before has discarded were laid out again",
                bytes.div_ceil(1 << 20)
            ));
        }
        Ok(())
    }

    fn run(&self, mut ready: Ready, start_ns: u64) -> Result<WorkerResult, RunError> {
        let job = self.job();
        let start_delay_ns = self.clock.now_ns().saturating_sub(start_ns);
        let counted_ms = epoch_ms() + job.schedule.ramp_time_ns / 1_000_000;
        let logs = ready.logs.take().map(|logs| logs.counted_from(counted_ms));
        let measured_ns = start_ns + job.schedule.ramp_time_ns;
        let log = logs
            .as_ref()
            .map(|_| IoLog::new(&job.measure.logs, own_priority(job), measured_ns));
        let (log, from_worker) = log.unzip();
        let log = log.map(|log: IoLog| log.begun_at(start_ns));
        std::thread::scope(|scope| {
            let writing = logs
                .zip(from_worker)
                .map(|(logs, from_worker)| logs.write_aside(from_worker, scope))
                .transpose()?;
            let files = self.clone.files();
            let Ready {
                kit,
                backend,
                used,
                keeper,
                files: opened,
                hold,
                logs: _,
                _locked,
            } = ready;
            let company = worker_setup::WorkerLinks {
                shared: self.shared.clone(),
                flow: self.flow.clone(),
                log,
                cache: match keeper {
                    None => CachedFiles::new(job, files, opened.clone()).map(Box::new),
                    Some(_) => None,
                },
                keeper,
                dump_directory: self.session.runner.dump_directory.clone(),
            };
            let parts = worker_setup::parts(job, files, kit, start_ns, company);
            let mut driven = match backend {
                AnyBackend::Uring(backend) => self.drive(*backend, parts, &used),
                AnyBackend::Aio(backend) => self.drive(backend, parts, &used),
                AnyBackend::PosixAio(backend) => self.drive(backend, parts, &used),
                AnyBackend::Sync(backend) => self.drive(backend, parts, &used),
                AnyBackend::Vsync(backend) => self.drive(backend, parts, &used),
                AnyBackend::Mmap(backend) => self.drive(backend, parts, &used),
                AnyBackend::Null(backend) => self.drive(backend, parts, &used),
                #[cfg(feature = "ceph")]
                AnyBackend::Ceph(CephBackend::Rados(backend)) => {
                    self.drive_by_calls(backend, parts, &used)
                }
                #[cfg(feature = "ceph")]
                AnyBackend::Ceph(CephBackend::Rbd(backend)) => self.drive(backend, parts, &used),
            };
            let closed = match driven.outcome.keeper.take() {
                Some(mut keeper) => keeper.close_all(),
                None => opened.before_close(job, files),
            };
            if let Err(error) = closed {
                let failure = crate::worker::io_failure::of_target(&error);
                driven.outcome.failure.get_or_insert(failure);
            }
            // The command may use the device.
            drop(hold);
            if let Some(said) = commands::run_after(job, self.output_directory()) {
                self.shared.note(said);
            }
            let mut result = WorkerResult {
                start_delay_ns,
                ..job_result::of_outcome(
                    self.plan,
                    self.clone,
                    driven.outcome,
                    used,
                    start_ns,
                    driven.measured,
                )
            };
            // A failure of the logs does not discard the measurements.
            if let Err(error) = writing.map_or(Ok(()), Writing::end) {
                let failure = crate::worker::io_failure::of_target(&error);
                result.error.get_or_insert(failure);
            }
            Ok(result)
        })
    }

    /// Returns the delay drawn from the range of `startdelay`.
    fn delay_ns(&self) -> u64 {
        let (low, high) = self.job().schedule.startdelay_ns;
        let seeds = Seeds::new(&self.job().workload, self.clone.number, epoch_ms());
        low + seeds
            .stream(Stream::Delay, 0)
            .below((high - low).saturating_add(1))
    }

    fn sleep_until(&self, until_ns: u64) {
        while self.clock.now_ns() < until_ns && !self.shared.stop.load(Relaxed) {
            self.clock.sleep_until(until_ns, NAP);
        }
    }

    /// Steps the worker to its end.
    fn drive<B: Backend>(&self, backend: B, parts: Parts, used: &BackendUsed) -> Driven {
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
                Step::Again => {}
                Step::Wait(until_ns) => {
                    worker.clock().sleep_until(until_ns, NAP);
                    worker.wake();
                }
                Step::Done => break,
            }
            if !measuring.begun && worker.now_ns() >= measure_from_ns {
                measuring.begin(&self.shared, &alone);
            }
        }
        let measured = measuring.so_far(&alone);
        Driven {
            outcome: worker.finish(),
            measured,
        }
    }

    /// Steps the worker on the library's completion thread, if it waits for completions only.
    #[cfg(feature = "ceph")]
    fn drive_by_calls(&self, mut backend: Rados, parts: Parts, used: &BackendUsed) -> Driven {
        if !backend.can_call() || !callback_driver::fits(&parts) {
            return self.drive(backend, parts, used);
        }
        let limits = parts.limits;
        let measure_from_ns = parts.recorder.measure_from_ns();
        let mut measuring = Measuring::new(&self.shared, measure_from_ns, self.clock.now_ns());
        let stage = Arc::new(CallbackDriver::new());
        let called: Arc<CallbackDriver<Worker<Rados, RealClock>>> = stage.clone();
        backend.call(Arc::<CallbackDriver<_>>::downgrade(&called));
        stage.enter(Worker::new(backend, self.clock.clone(), parts));
        // Removes the worker on this thread: a client cannot be shut down from its own threads.
        let _leaves = Leaves(&stage);
        let moments = [measure_from_ns, limits.deadline_ns];
        loop {
            let tended_ns = self.clock.now_ns();
            let is_done = stage.tend(|worker, lent| {
                if self.shared.asked.load(Relaxed) {
                    self.publish(worker, &measuring.so_far(lent), used, limits.start_ns);
                }
                if !measuring.begun && worker.now_ns() >= measure_from_ns {
                    measuring.begin(&self.shared, lent);
                }
            });
            if is_done {
                break;
            }
            let now_ns = self.clock.now_ns();
            let ahead = moments.iter().filter(|moment| **moment > tended_ns);
            let next = ahead.map(|moment| moment.saturating_sub(now_ns)).min();
            stage.wait(next.map_or(NAP, |left_ns| NAP.min(Duration::from_nanos(left_ns))));
        }
        let (worker, lent) = stage.leave().expect("it entered, and leaves once");
        Driven {
            measured: measuring.so_far(&lent),
            outcome: worker.finish(),
        }
    }

    /// Publishes the statistics so far.
    #[cold]
    fn publish<B: Backend>(
        &self,
        worker: &Worker<B, RealClock>,
        measured: &Measured,
        used: &BackendUsed,
        start_ns: u64,
    ) {
        let (standing, used, measured) = (worker.standing(), used.clone(), *measured);
        let result =
            job_result::of_worker(self.plan, self.clone, &standing, used, start_ns, measured);
        self.shared.publish(result);
    }

    /// Returns the result of a worker that could not start.
    fn failed(&self, error: &RunError) -> WorkerResult {
        WorkerResult {
            error: Some(crate::worker::io_failure::of_target(error)),
            ..self.without_io()
        }
    }

    /// Returns the result of a worker without I/O.
    fn without_io(&self) -> WorkerResult {
        job_result::blank(self.plan, self.clone, job_result::unused(self.job()))
    }
}

/// Takes the worker out of its driver on drop.
#[cfg(feature = "ceph")]
struct Leaves<'a, W: callback_driver::StepTarget>(&'a CallbackDriver<W>);

#[cfg(feature = "ceph")]
impl<W: callback_driver::StepTarget> Drop for Leaves<'_, W> {
    fn drop(&mut self) {
        drop(self.0.leave());
    }
}

struct Driven {
    outcome: Outcome,
    measured: Measured,
}

/// The measured part of a worker's run.
struct Measuring {
    begun: bool,
    before: CpuUse,
    started_at_ms: u64,
}

impl Measuring {
    fn new(shared: &Shared, measure_from_ns: u64, now_ns: u64) -> Measuring {
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

    /// Starts the measured part. `lent` is the CPU use of other threads for the worker.
    fn begin(&mut self, shared: &Shared, lent: &CpuUse) {
        self.begun = true;
        self.before = cpu_use::cpu_use_and_queued().and(lent);
        self.started_at_ms = epoch_ms();
        shared.enter(WorkerState::Running);
    }

    fn so_far(&self, lent: &CpuUse) -> Measured {
        Measured {
            tid: thread::id(),
            cpu: cpu_use::cpu_use_and_queued().and(lent).since(&self.before),
            started_at_ms: self.started_at_ms,
        }
    }
}

/// Returns the job's I/O priority in the kernel's encoding; 0 stands for none.
fn own_priority(job: &Job) -> u16 {
    job.io.ioprio.map_or(0, thread::ioprio_bits)
}

/// Applies the CPU affinity, priorities and memory policy of the job to the thread.
fn settle(job: &Job, clone: u32) -> Result<(), RunError> {
    let io = &job.io;
    let refused = |what: String| {
        move |error: std::io::Error| RunError::Unsupported {
            problem: format!("{what} is refused: {error}"),
            remedy: "leave the option out, or run with the permission that it needs".to_owned(),
        }
    };
    if let Some(cpus) = &io.cpus_allowed {
        check_numbers("cpus_allowed", "processor", cpus, CPUS_ONLINE)?;
        let mine = if io.cpus_split {
            vec![cpus[clone as usize % cpus.len()]]
        } else {
            cpus.clone()
        };
        thread::set_affinity(&mine).map_err(refused(format!("cpus_allowed={mine:?}")))?;
    }
    if let Some(nodes) = &io.numa_cpu_nodes {
        check_numbers("numa_cpu_nodes", "NUMA node", nodes, NODES_ONLINE)?;
        let cpus = cpus_of_nodes(nodes);
        thread::set_affinity(&cpus).map_err(refused(format!("numa_cpu_nodes={nodes:?}")))?;
    }
    if let Some(policy) = &io.numa_mem_policy {
        thread::set_memory_policy(policy).map_err(refused("numa_mem_policy".to_owned()))?;
    }
    if let Some(nice) = io.nice {
        thread::set_nice(nice).map_err(refused(format!("nice={nice}")))?;
    }
    if let Some(priority) = io.ioprio {
        thread::set_ioprio(priority).map_err(refused("prio".to_owned()))?;
    }
    thread::set_fine_timers();
    // Last, as another user may lack the rights for the calls above.
    thread::set_identity(io.uid, io.gid).map_err(refused("uid or gid".to_owned()))
}

/// sysfs files that list the online processors and NUMA nodes.
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
const NODES_ONLINE: &str = "/sys/devices/system/node/online";

/// Refuses processors or NUMA nodes that this machine lacks: the kernel accepts a mask if any
/// exists. Without the sysfs file, only the kernel's own check applies.
fn check_numbers(option: &str, what: &str, asked: &[u32], path: &str) -> Result<(), RunError> {
    match std::fs::read_to_string(path) {
        Ok(online) => check_listed(option, what, asked, &online),
        Err(_) => Ok(()),
    }
}

fn check_listed(option: &str, what: &str, asked: &[u32], online: &str) -> Result<(), RunError> {
    let there = cpu_list(online);
    let Some(missing) = asked.iter().find(|number| !there.contains(number)) else {
        return Ok(());
    };
    let online = online.trim();
    Err(RunError::Unsupported {
        problem: format!("{option}: there is no {what} {missing}; this machine has {online}"),
        remedy: format!("name some of {online}"),
    })
}

/// Returns the processors of NUMA nodes, as sysfs lists them.
fn cpus_of_nodes(nodes: &[u32]) -> Vec<u32> {
    let lists = nodes.iter().filter_map(|node| {
        std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok()
    });
    lists.flat_map(|list| cpu_list(&list)).collect()
}

/// Parses a list such as `0-3,8`.
fn cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.parse::<u32>().ok()?..=high.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_of_sysfs() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list("\n"), [] as [u32; 0]);
    }

    #[test]
    fn processor_that_is_missing_is_refused_with_those_there_are() {
        let check = |asked: &[u32]| check_listed("cpus_allowed", "processor", asked, "0-1,4\n");
        assert!(check(&[0, 4]).is_ok());
        let Err(RunError::Unsupported { problem, .. }) = check(&[0, 1, 2]) else {
            panic!("2 is not there");
        };
        assert_eq!(
            problem,
            "cpus_allowed: there is no processor 2; this machine has 0-1,4"
        );
    }
}
