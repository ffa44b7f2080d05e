//! The thread of one worker, from its files to its result.

use super::backend_choice::{self, AnyBackend};
use super::commands;
use super::io_scheduler::Schedulers;
use super::job_result;
use super::log_files::{LogFiles, LogWriterThread};
use super::open_logs::OpenLogs;
use super::plan_facts::starts_later;
use super::poll_queue_check::note_missing_poll_queues;
use super::session_resources::SessionRefs;
use super::start_barrier::{NEVER, StartBarrier};
use super::thread_settings::{apply_thread_settings, lock_memory, own_priority};
use super::worker_setup::{self, WorkerResources};
use super::write_guard::{self, FileScope};
use super::{JobClone, epoch_ms};
use crate::clock::{Clock, RealClock};
use crate::counters::WorkerCounters;
use crate::files::{CachedFiles, OpenFileCache, OpenSet, WriteAccess, open_files, pre_read};
use crate::remote_storage::file_names;
use crate::sys::memory::LockedMemory;
use crate::worker::WorkerOutput;
use crate::worker::flow::FlowPool;
use crate::worker::io_log::IoLog;
use iosonde_job::plan::{Job, Plan};
use iosonde_machine::write_hold::WriteHold;
use iosonde_result::observer::WorkerState;
use iosonde_result::run::{BackendUsed, WorkerResult};
use iosonde_result::run_error::RunError;
use iosonde_workload::Seeds;
use iosonde_workload::rng::Stream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Longest sleep of a waiting worker: the longest delay before it notices a stop request.
pub(super) const NAP: Duration = Duration::from_millis(50);

/// Data of a worker's thread.
pub(super) struct WorkerThread<'a> {
    pub(super) plan: &'a Plan,
    /// Clones of all workers, including this one.
    pub(super) clones: &'a [JobClone],
    pub(super) clone: &'a JobClone,
    pub(super) clock: RealClock,
    pub(super) shared: Arc<WorkerCounters>,
    pub(super) start_barrier: Arc<StartBarrier>,
    pub(super) flow: Option<Arc<FlowPool>>,
    pub(super) open_logs: &'a OpenLogs,
    pub(super) schedulers: &'a Schedulers,
    pub(super) session: &'a SessionRefs<'a>,
}

/// A worker that is ready to start.
struct PreparedWorker {
    resources: WorkerResources,
    backend: AnyBackend,
    used: BackendUsed,
    open_file_cache: Option<Box<OpenFileCache>>,
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
        let result = match self.start_barrier.wait() {
            NEVER => Err(RunError::Interrupted),
            barrier_ns => {
                let result = self.run_after_delay(prepared, barrier_ns);
                let (job, files) = (self.job(), self.clone.files());
                self.session.remote.forget_discarded(job, files);
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
        prepared: Option<Result<Option<PreparedWorker>, RunError>>,
        barrier_ns: u64,
    ) -> Result<WorkerResult, RunError> {
        let prepared = prepared.transpose()?;
        let start_ns = barrier_ns.saturating_add(self.delay_ns());
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
    fn prepare(&self) -> Result<Option<PreparedWorker>, RunError> {
        let runner = self.session.runner;
        for warning in self.clone.recheck_at_start(self.plan, self.session)? {
            self.shared.note(warning);
        }
        let job = self.job();
        self.refill_discarded_ranges()?;
        self.schedulers.switch(job, self.clone)?;
        apply_thread_settings(job, self.clone.clone)?;
        note_missing_poll_queues(job, self.clone, &self.shared);
        // As in fio, the command runs before files are opened: it may change them or drop caches.
        if let Some(command) = commands::run_before(job, self.output_directory())? {
            self.shared.note(command.note);
            if command.has_failed {
                return Ok(None);
            }
        }
        let hold = self.hold_files()?;
        let without_files = !job.io.engine.has_paths();
        if job.files.pre_read && !without_files {
            pre_read(self.clone.files())?;
        }
        let shared = self.shared.clone();
        let access = WriteAccess {
            hold: &hold,
            created: self.session.created,
        };
        let open_file_cache = OpenFileCache::new(job, self.clone.files(), access, shared)?;
        let files = if without_files || open_file_cache.is_some() {
            OpenSet::default()
        } else {
            open_files(job, self.clone.files(), access)?
        };
        let resources = worker_setup::allocate_resources(self.plan, self.clone, true)?;
        let handles = open_file_cache
            .as_ref()
            .map_or(files.handles(), OpenFileCache::handles);
        let (backend, used) = backend_choice::choose(
            job,
            &resources.slab,
            self.clone.files(),
            handles,
            worker_setup::circumstances(
                (self.plan, self.clone),
                self.session.sqpoll_sharing[self.clone.job],
                open_file_cache.is_some(),
            ),
            (runner.remote(), &runner.interrupt),
        )?;
        let locked = lock_memory(job)?;
        // As in fio, an engine without paths reports its files as open.
        let open_files = match without_files {
            true => self.clone.files().files.len(),
            false => files.handles().len(),
        };
        self.shared.open_files.store(open_files as u32, Relaxed);
        Ok(Some(PreparedWorker {
            resources,
            backend,
            used: self.with_flags(used, &files),
            open_file_cache: open_file_cache.map(Box::new),
            // Opened last, so that a refused worker leaves no empty logs.
            logs: LogFiles::open(self.open_logs, self.plan, self.clone)?,
            files: Arc::new(files),
            hold,
            _locked: locked,
        }))
    }

    /// Checks the files again, and holds those that are written. The first check may be hours old
    /// if other jobs or a command ran in between.
    fn hold_files(&self) -> Result<WriteHold, RunError> {
        let which = match starts_later(self.plan, self.clone.job) {
            true => FileScope::All,
            false => FileScope::Devices,
        };
        let terms = (which, &self.session.runner.consent, self.session.holds);
        let (_, hold) = write_guard::check(self.job(), self.clone.files(), terms)?;
        Ok(hold)
    }

    /// Adds the flags of the open files and of the clock.
    fn with_flags(&self, mut used: BackendUsed, files: &OpenSet) -> BackendUsed {
        let flags = files.flags().chain(self.clock.counter_name());
        used.flags.extend(flags.map(str::to_owned));
        used
    }

    /// Lays out ranges again that an earlier job discarded in a Ceph cluster and a later job reads.
    fn refill_discarded_ranges(&self) -> Result<(), RunError> {
        let (remote, runner) = (self.session.remote, self.session.runner);
        let bytes = remote.refill_discarded_ranges(self.plan, self.clones, self.clone, runner)?;
        if bytes > 0 {
            self.shared.note(format!(
                "{} MiB in the Ceph cluster, which an earlier job had discarded, were laid out \
                 again",
                bytes.div_ceil(1 << 20)
            ));
        }
        Ok(())
    }

    fn run(&self, mut ready: PreparedWorker, start_ns: u64) -> Result<WorkerResult, RunError> {
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
                .map(|(logs, from_worker)| logs.spawn_writer(from_worker, scope))
                .transpose()?;
            let files = self.clone.files();
            let PreparedWorker {
                resources,
                backend,
                used,
                open_file_cache,
                files: opened,
                hold,
                logs: _,
                _locked,
            } = ready;
            let links = worker_setup::WorkerLinks {
                shared: self.shared.clone(),
                flow: self.flow.clone(),
                log,
                cache: match open_file_cache {
                    None => CachedFiles::new(job, files, opened.clone()).map(Box::new),
                    Some(_) => None,
                },
                open_file_cache,
                file_names: file_names(self.session.runner.remote(), job, files),
                dump_directory: self.session.runner.dump_directory.clone(),
            };
            let parts = worker_setup::build_parts(job, files, resources, start_ns, links);
            let mut driven = self.drive_any(backend, parts, &used);
            self.close_files(&mut driven.output, &opened);
            // The command may use the device.
            drop(hold);
            if let Some(said) = commands::run_after(job, self.output_directory()) {
                self.shared.note(said);
            }
            let mut result = WorkerResult {
                start_delay_ns,
                ..job_result::from_output(
                    self.plan,
                    self.clone,
                    driven.output,
                    used,
                    start_ns,
                    driven.measured,
                )
            };
            // A failure of the logs does not discard the measurements.
            if let Err(error) = writing.map_or(Ok(()), LogWriterThread::join) {
                let failure = crate::worker::io_failure::failure_from_error(&error);
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

    /// Closes the files of a worker that is done. An error becomes the worker's failure.
    fn close_files(&self, output: &mut WorkerOutput, opened: &OpenSet) {
        let closed = match output.open_file_cache.take() {
            Some(mut open_file_cache) => open_file_cache.close_all(),
            None => opened.before_close(self.job(), self.clone.files()),
        };
        if let Err(error) = closed {
            let failure = crate::worker::io_failure::failure_from_error(&error);
            output.failure.get_or_insert(failure);
        }
    }

    /// Returns the result of a worker that could not start.
    fn failed(&self, error: &RunError) -> WorkerResult {
        WorkerResult {
            error: Some(crate::worker::io_failure::failure_from_error(error)),
            ..self.without_io()
        }
    }

    /// Returns the result of a worker without I/O.
    fn without_io(&self) -> WorkerResult {
        job_result::blank(self.plan, self.clone, job_result::unused(self.job()))
    }
}
