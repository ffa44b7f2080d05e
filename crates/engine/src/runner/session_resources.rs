//! Resources of a session that its workers share.

use super::layout_progress::LayoutProgress;
use super::{JobClone, LocalRunner};
use crate::files::{CreatedFiles, WorkerFiles, needs_data};
use crate::remote_storage::{
    PrepareEvents, PreparePolicy, RemoteResources, RemoteRun, RemoteStorage, RemoteWorker,
};
use iosonde_job::plan::{Job, Plan};
use iosonde_machine::write_hold::DeviceHolds;
use iosonde_result::host::TargetInfo;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunEvent;
use iosonde_result::run_error::RunError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Resources of the session while its workers run.
pub(super) struct SessionRefs<'a> {
    pub(super) runner: &'a LocalRunner,
    pub(super) remote: &'a SessionResources,
    pub(super) holds: &'a DeviceHolds,
    pub(super) created: &'a CreatedFiles,
    /// Targets by which the clusters of `--cold osd` are found. Empty without it.
    pub(super) targets: &'a [TargetInfo],
    /// For each job, whether its workers share a kernel thread of io_uring, unless the user decides
    /// otherwise.
    pub(super) sqpoll_sharing: &'a [bool],
}

/// The remote resources of a session, shared by its workers. Empty without remote storage.
#[derive(Debug, Default)]
pub(crate) struct SessionResources(Mutex<Option<Box<dyn RemoteResources>>>);

impl SessionResources {
    /// Creates the resources of a session.
    pub(crate) fn open(remote: Option<&dyn RemoteStorage>) -> SessionResources {
        SessionResources(Mutex::new(remote.map(RemoteStorage::open_resources)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn RemoteResources>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`RemoteResources::prepare_files`]. `begun` is the start of the run.
    pub(crate) fn prepare_files(
        &self,
        plan: &Plan,
        clones: &[JobClone],
        runner: &LocalRunner,
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let mut guard = self.lock();
        let Some(resources) = guard.as_mut() else {
            return Ok(());
        };
        let waiting = |clone: &JobClone| {
            let job = &plan.jobs[clone.job];
            (clone.job, job.io.engine.is_ceph() && needs_data(job))
        };
        let mut events = ObserverEvents {
            workers: clones.iter().map(waiting).collect(),
            begun,
            progress: None,
            observer,
        };
        resources.prepare_files(&remote_run(plan, clones, runner), &mut events)
    }

    /// See [`RemoteResources::refill_discarded_ranges`].
    pub(crate) fn refill_discarded_ranges(
        &self,
        plan: &Plan,
        clones: &[JobClone],
        starting: &JobClone,
        runner: &LocalRunner,
    ) -> Result<u64, RunError> {
        match self.lock().as_mut() {
            Some(resources) if plan.jobs[starting.job].io.engine.is_ceph() => {
                let run = remote_run(plan, clones, runner);
                resources.refill_discarded_ranges(&run, starting.number)
            }
            _ => Ok(0),
        }
    }

    /// See [`RemoteResources::forget_discarded`].
    pub(crate) fn forget_discarded(&self, job: &Job, files: &WorkerFiles) {
        if let Some(resources) = self.lock().as_mut() {
            resources.forget_discarded(job, files);
        }
    }

    /// See [`RemoteResources::remove`].
    pub(crate) fn remove(&self) -> Result<(), RunError> {
        self.lock().as_mut().map_or(Ok(()), |it| it.remove())
    }
}

fn remote_run<'a>(
    plan: &'a Plan,
    clones: &'a [JobClone],
    runner: &'a LocalRunner,
) -> RemoteRun<'a> {
    let worker = |clone: &'a JobClone| RemoteWorker {
        number: clone.number,
        job: &plan.jobs[clone.job],
        files: clone.files(),
    };
    RemoteRun {
        workers: clones.iter().map(worker).collect(),
        policy: PreparePolicy {
            consent: &runner.consent,
            readonly: runner.readonly,
            // Only jobs of studies and suites have limits.
            keeps_data: runner.permissions.is_some(),
            interrupt: &runner.interrupt,
        },
    }
}

/// Passes the progress of a preparation to the observer of the run.
struct ObserverEvents<'a> {
    /// Job of each worker, and whether its files may have to be laid out.
    workers: Vec<(usize, bool)>,
    begun: Instant,
    progress: Option<LayoutProgress>,
    observer: &'a mut dyn Observer,
}

impl PrepareEvents for ObserverEvents<'_> {
    fn message(&mut self, message: String) {
        self.observer.event(&RunEvent {
            at_ns: self.begun.elapsed().as_nanos() as u64,
            message,
        });
    }

    fn begin_layout(&mut self, total_bytes: u64) {
        let progress = LayoutProgress::new(total_bytes, &self.workers, self.begun);
        self.progress = Some(progress);
    }

    fn written(&mut self, bytes: u64) {
        if let Some(progress) = &mut self.progress {
            // A study that knows enough ends its cell, not the layout before it: only the user can.
            let _ = progress.report_written(bytes, self.observer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Permissions;

    #[test]
    fn data_of_images_are_kept_in_sessions_with_limits() {
        let keeps = |permissions: Option<Permissions>| {
            let runner = LocalRunner {
                permissions,
                ..LocalRunner::default()
            };
            remote_run(&Plan::default(), &[], &runner).policy.keeps_data
        };
        assert!(keeps(Some(Permissions::default())));
        assert!(!keeps(None), "as with fio");
    }
}
