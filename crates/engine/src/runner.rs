//! Sessions on this machine: run plans in threads and return results.
//!
//! [`LocalSession::run`] takes the same steps for every plan: find the files ([`crate::files`]),
//! refuse forbidden writes, lay out files, run the jobs (`coordinator`), build the result.

mod access_check;
mod backend_choice;
mod buffer_memory;
mod cold_caches;
mod commands;
mod concurrent_jobs;
mod coordinator;
mod device_watch;
mod eta;
mod io_scheduler;
mod job_clones;
mod job_result;
mod layout_progress;
mod log_files;
mod min_rate_watch;
mod open_logs;
mod permissions;
mod plan_facts;
mod poll_queue_check;
mod replay_plan;
mod run_evidence;
mod run_files;
mod sampler;
mod series_sampler;
mod session_resources;
mod simulated_run;
mod sqpoll_sharing;
mod start_barrier;
mod start_check;
mod status;
mod steady_state_watch;
mod thread_settings;
mod threaded_run;
mod trace_file;
mod worker_drive;
mod worker_setup;
mod worker_thread;
mod write_guard;

pub use crate::files::HeldPaths;
pub use crate::files::PlannedFiles;
use crate::files::{CreatedFiles, CreatedPaths, FileKind, FileUse};
use crate::interrupt::Interrupt;
use crate::remote_storage::{RemoteStorage, resolve_uris};
use crate::sys::thread::raise_open_files;
use cold_caches::DroppedCaches;
use iosonde_job::plan::Plan;
use iosonde_machine::consent::Consent;
use iosonde_machine::host::memory_to_take;
use iosonde_machine::proc_root::System;
use iosonde_machine::write_hold::DeviceHolds;
use iosonde_result::cache_state::ColdLayers;
use iosonde_result::interval::Intervals;
use iosonde_result::observer::Observer;
use iosonde_result::run::{FORMAT, IoFailure, RunEvent, RunResult, Verdict, WorkerResult};
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use iosonde_result::session::Session;
use job_clones::JobClone;
pub use permissions::Permissions;
use replay_plan::ReplayPlan;
use session_resources::{SessionRefs, SessionResources};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Refuses I/O on this machine in a build without the feature `local`.
///
/// # Errors
/// [`UnsupportedFeature::BuiltForClusters`].
pub fn check_build() -> Result<(), RunError> {
    match cfg!(feature = "local") {
        true => Ok(()),
        false => Err(UnsupportedFeature::BuiltForClusters.into()),
    }
}

/// Settings of sessions on this machine.
#[derive(Debug, Clone, Default)]
pub struct LocalRunner {
    /// Targets that may be overwritten whatever they contain, and those that may be in use.
    pub consent: Consent,
    /// Flag with which the user stops a run.
    pub interrupt: Arc<Interrupt>,
    /// Whether created files stay after the session, even an interrupted one (as with fio). Files
    /// of an interrupted layout or a failed run are removed in any case.
    pub keep_files: bool,
    /// Whether a job may start without enough space for its files: as with fio, ENOSPC ends it.
    /// Files to lay out, and those of a ramfs, must always fit.
    pub may_run_full: bool,
    /// Directory for blocks that fail verification (`verify_dump`); empty is the current directory.
    pub dump_directory: PathBuf,
    /// Access to remote storage. `None`: plans that need it are refused.
    pub remote: Option<Arc<dyn RemoteStorage>>,
    /// Whether layout is forbidden (`--readonly`): files to read must exist and be large enough.
    pub readonly: bool,
    /// Files and devices without consent to data loss. A job that writes or removes one, or needs
    /// more data than it holds, is refused whatever its options.
    pub only_read: Vec<PathBuf>,
    /// Limits on the accesses of jobs and traces; `None` allows everything, as with fio.
    pub permissions: Option<Permissions>,
    /// Layers whose caches are dropped before each group of jobs: the client and the OSDs. Nodes
    /// are left to the caller.
    pub cold: ColdLayers,
    /// Whether cold caches of the client are only those of the jobs' files, even for root: others
    /// share the kernel of a pod.
    pub keeps_caches_of_others: bool,
}

impl LocalRunner {
    /// Checks whether a session could run a plan, before anything is created or changed. `planned`
    /// holds the files that earlier plans will leave; the check adds this plan's. Ceph clusters are
    /// not read.
    ///
    /// # Errors
    /// Those with which [`LocalSession::run`] would refuse the plan.
    pub fn check(&self, plan: &Plan, planned: &mut PlannedFiles) -> Result<(), RunError> {
        let plan = resolve_uris(self.remote(), plan)?;
        self.check_permitted(plan.as_ref())?;
        let traced = ReplayPlan::read(plan.as_ref(), self.readonly)?;
        if plan_facts::is_simulated(plan.as_ref())? {
            run_files::resolve_traced_clones(&traced)?;
            return simulated_run::check(&traced.plan);
        }
        check_build()?;
        let memory = memory_to_take(&System::live());
        buffer_memory::check(&traced.plan, memory)?;
        run_files::check(&traced, self, planned)
    }

    /// Refuses a plan whose jobs access more than their permissions allow.
    fn check_permitted(&self, plan: &Plan) -> Result<(), RunError> {
        match &self.permissions {
            Some(permissions) => permissions.check_plan(plan, self.remote()),
            None => Ok(()),
        }
    }

    /// Returns the existing files and block devices of a plan; none if a trace is unreadable.
    pub fn existing_targets(&self, plan: &Plan) -> Vec<PathBuf> {
        let Ok(traced) = ReplayPlan::read(plan, false) else {
            return Vec::new();
        };
        let paths = run_files::list_named_files(&traced);
        let paths = paths.iter();
        let holds_data = |path: &&PathBuf| {
            let kind = path.metadata().map(|facts| facts.file_type());
            kind.is_ok_and(|kind| kind.is_file() || kind.is_block_device())
        };
        let mut paths: Vec<PathBuf> = paths.filter(holds_data).cloned().collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Returns the access to remote storage.
    fn remote(&self) -> Option<&dyn RemoteStorage> {
        self.remote.as_deref()
    }

    /// Opens a session.
    pub fn open(self) -> LocalSession {
        LocalSession {
            remote: SessionResources::open(self.remote()),
            runner: self,
            made: CreatedPaths::default(),
            held: HeldPaths::default(),
            wear: simulated_run::WearByDevice::default(),
        }
    }
}

/// A session that runs plans on this machine.
#[derive(Debug)]
pub struct LocalSession {
    runner: LocalRunner,
    made: CreatedPaths,
    held: HeldPaths,
    remote: SessionResources,
    /// Wear of the simulated devices from earlier runs.
    wear: simulated_run::WearByDevice,
}

impl LocalSession {
    /// Adds a file or device to [`LocalRunner::only_read`].
    pub fn only_read(&mut self, path: PathBuf) {
        self.runner.only_read.push(path);
    }

    /// Replaces the consent to overwrite targets ([`LocalRunner::consent`]).
    pub fn set_consent(&mut self, consent: Consent) {
        self.runner.consent = consent;
    }

    /// Replaces the layers whose caches are dropped ([`LocalRunner::cold`]).
    pub fn set_cold(&mut self, cold: ColdLayers) {
        self.runner.cold = cold;
    }

    /// Returns the list of paths that the caller has created for plans and keeps open.
    pub fn held_paths(&self) -> HeldPaths {
        self.held.clone()
    }

    /// Restricts jobs to these targets from now on ([`Permissions::targets`]).
    pub fn permit_targets(&mut self, targets: Vec<String>) {
        let permissions = self.runner.permissions.get_or_insert_default();
        permissions.targets = Some(targets);
    }

    /// Sets the directory for logs and blocks that fail verification, and whether jobs may run
    /// commands ([`Permissions`]).
    pub fn permit_outside(&mut self, logs: PathBuf, commands: bool) {
        self.runner.dump_directory.clone_from(&logs);
        let permissions = self.runner.permissions.get_or_insert_default();
        permissions.logs = Some(logs);
        permissions.commands = commands;
    }

    /// Keeps the files of a run until the session ends, or removes them after a failure or an
    /// interrupt.
    fn keep_or_remove_files<'w>(
        &mut self,
        mut made: CreatedPaths,
        clones: &[JobClone],
        mut workers: impl Iterator<Item = &'w WorkerResult>,
    ) {
        for late in clones.iter().filter_map(JobClone::created_at_start) {
            made.extend(late.clone());
        }
        let failed = workers.any(|worker| worker.error.is_some());
        let is_unwanted = self.runner.interrupt.is_requested() && !self.runner.keep_files;
        if failed || is_unwanted {
            made.remove();
        } else {
            self.made.extend(made);
        }
    }
}

impl Session for LocalSession {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let begun = Instant::now();
        let plan = resolve_uris(self.runner.remote(), plan)?;
        let plan = plan.as_ref();
        self.runner.check_permitted(plan)?;
        if let Some(permissions) = &self.runner.permissions {
            permissions.make_log_directories(plan)?;
        }
        let traced = ReplayPlan::read(plan, self.runner.readonly)?;
        if plan_facts::is_simulated(plan)? {
            return simulated(plan, &traced, &mut self.wear, &self.runner, observer);
        }
        check_build()?;
        let started_at_ms = epoch_ms();
        raise_open_files();
        let asked = plan;
        let plan = &traced.plan;
        buffer_memory::check(plan, memory_to_take(&System::live()))?;
        let holds = DeviceHolds::default();
        let created = CreatedFiles::after(self.made.created.ids()).with_held(self.held.clone());
        let (clones, made, _hold) =
            run_files::prepare_files(&traced, (&self.runner, &holds), &created, begun, observer)?;
        let created = created.with_commands(plan_facts::has_commands(plan));
        self.remote
            .prepare_files(plan, &clones, &self.runner, begun, observer)
            .inspect_err(|_| made.remove())?;
        let targets = device_watch::targets(plan, &clones);
        let cold_targets = self.runner.cold_targets(&targets);
        let remote = self.runner.remote();
        let cluster = remote.and_then(|remote| remote.watch(plan, &targets));
        let mut watch = device_watch::DeviceWatch::begin(plan, &clones, targets);
        let context = coordinator::RunContext {
            interrupt: &self.runner.interrupt,
            begun: Some(begun),
            started_at_ms,
            watch: Some(&mut watch),
        };
        let session = SessionRefs {
            runner: &self.runner,
            remote: &self.remote,
            holds: &holds,
            created: &created,
            targets: &cold_targets,
            sqpoll_sharing: &sqpoll_sharing::decide_sqpoll_sharing(plan),
        };
        let mut outcome = threaded_run::run(plan, &clones, &session, context, observer)
            .inspect_err(|_| made.remove())?;
        let all = || outcome.workers.iter().chain(&outcome.neighbours);
        self.keep_or_remove_files(made, &clones, all());
        let is_given_up = |error: &IoFailure| error.errno == libc::ECANCELED;
        let given_up = all().any(|worker| worker.error.as_ref().is_some_and(is_given_up));
        let ceph = cluster.map(|cluster| cluster.finish_sampling(given_up));
        let report = watch.finish_report(plan, &outcome, ceph.as_ref());
        outcome.series = report.series;
        unlink(plan, &clones, &self.made.created);
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        let elapsed_ns = elapsed_ns.saturating_sub(outcome.stopped_ns);
        Ok(RunResult {
            host: iosonde_machine::host::describe_host(&System::live()),
            targets: report.targets,
            disks: report.disks,
            verdicts: report.verdicts,
            nfs: report.nfs,
            caches: (outcome.dropped).cache_states(plan, &outcome.workers, ceph.is_some()),
            ceph,
            ..result(asked, outcome, started_at_ms, elapsed_ns)
        })
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        if !self.runner.keep_files {
            self.made.remove();
        }
        // As with fio, objects do not outlive the run.
        self.remote.remove()
    }
}

/// Runs a plan on simulated devices. The result holds no data of this machine.
fn simulated(
    plan: &Plan,
    traced: &ReplayPlan,
    wear: &mut simulated_run::WearByDevice,
    runner: &LocalRunner,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    let clones = run_files::resolve_traced_clones(traced)?;
    let bounds = (&*runner.interrupt, runner.dump_directory.as_path());
    let outcome = simulated_run::run(&traced.plan, &clones, wear, bounds, observer)?;
    let elapsed_ns = outcome.elapsed_ns;
    Ok(result(plan, outcome, 0, elapsed_ns))
}

/// Converts the measurements of a run into a result, without host, targets and devices.
fn result(plan: &Plan, outcome: RunMeasurements, started_at_ms: u64, elapsed_ns: u64) -> RunResult {
    RunResult {
        format: FORMAT,
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")).to_owned(),
        started_at_ms,
        elapsed_ns,
        plan: plan.clone(),
        host: Default::default(),
        targets: Vec::new(),
        labels: Default::default(),
        workers: outcome.workers,
        neighbours: outcome.neighbours,
        disks: Vec::new(),
        intervals: outcome.intervals,
        series: outcome.series,
        pods: Vec::new(),
        shared_file: None,
        nodes: Vec::new(),
        ceph: None,
        nfs: Vec::new(),
        caches: Vec::new(),
        events: outcome.events,
        verdicts: Vec::new(),
        notes: outcome.notes,
    }
}

/// Removes the files of jobs that ask for it (`unlink`).
fn unlink(plan: &Plan, clones: &[JobClone], created: &CreatedFiles) {
    for clone in clones {
        let job = &plan.jobs[clone.job];
        if job.files.unlink && job.io.engine.has_paths() {
            let regular = |file: &&FileUse| file.kind == FileKind::Regular;
            for file in clone.files().files.iter().filter(regular) {
                // Another clone may have removed the file already.
                let _ = std::fs::remove_file(&file.path);
                created.forget(&file.path);
            }
        }
    }
}

/// Measurements of a run.
#[derive(Default)]
pub(crate) struct RunMeasurements {
    pub(crate) workers: Vec<WorkerResult>,
    pub(crate) neighbours: Vec<WorkerResult>,
    pub(crate) intervals: Intervals,
    pub(crate) series: iosonde_result::machine::MachineSeries,
    pub(crate) events: Vec<RunEvent>,
    pub(crate) elapsed_ns: u64,
    /// Length of the process stops, if they are left out.
    pub(crate) stopped_ns: u64,
    /// Verdict on the process stops, left out or not.
    pub(crate) stopped: Option<Verdict>,
    pub(crate) dropped: DroppedCaches,
    /// Notes for the result, e.g. on logs that were cut.
    pub(crate) notes: Vec<String>,
}

impl RunMeasurements {
    /// Adds a note, if there is one.
    fn with_note(mut self, note: Option<String>) -> RunMeasurements {
        self.notes.extend(note);
        self
    }
}

/// Returns the current time in milliseconds of the Unix epoch.
pub(crate) fn epoch_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as u64)
}
