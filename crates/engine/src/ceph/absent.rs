//! Replaces the Ceph engines in builds without the feature `ceph`.

use crate::files::WorkerFiles;
use crate::interrupt::Interrupt;
use crate::runner::JobClone;
use iosonde_job::plan::{CephAccess, Job, Plan};
use iosonde_machine::consent::Consent;
use iosonde_result::host::TargetInfo;
use iosonde_result::observer::Observer;
use iosonde_result::session::RunError;
use std::sync::Arc;
use std::time::Instant;

/// Resources of a session in clusters: none.
#[derive(Debug, Default)]
pub(crate) struct Estate {}

/// Cluster sampler: never created.
#[allow(dead_code, reason = "nothing is looked at here")]
#[derive(Debug)]
pub(crate) struct Watch;

impl Watch {
    /// There is no cluster to sample.
    pub(crate) fn of(_: &Plan, _: &[TargetInfo], _: &CephAccess) -> Option<Watch> {
        None
    }

    /// No observations.
    pub(crate) fn end(self, _: bool) -> iosonde_result::ceph::CephSide {
        Default::default()
    }
}

/// Policy for the preparation of a run.
#[allow(dead_code, reason = "nothing is prepared here")]
pub(crate) struct Terms<'a> {
    pub(crate) consent: &'a Consent,
    pub(crate) readonly: bool,
    pub(crate) interrupt: &'a Arc<Interrupt>,
}

fn absent(job: &Job) -> RunError {
    RunError::Unsupported {
        problem: format!(
            "job {}: ioengine={} is not part of this program",
            job.name,
            job.io.engine.name()
        ),
        remedy: "run iosonde itself on a machine that reaches the Ceph cluster".to_owned(),
    }
}

/// Fails, as there are no images.
pub(crate) fn image_bytes(job: &Job) -> Result<u64, RunError> {
    Err(absent(job))
}

impl Estate {
    /// Fails for plans that need a cluster.
    pub(crate) fn make_ready(
        &mut self,
        plan: &Plan,
        _: &[JobClone],
        _: &Terms<'_>,
        _: Instant,
        _: &mut dyn Observer,
    ) -> Result<(), RunError> {
        match plan.jobs.iter().find(|job| job.io.engine.is_ceph()) {
            Some(job) => Err(absent(job)),
            None => Ok(()),
        }
    }

    /// Nothing is recorded.
    pub(crate) fn forget(&mut self, _: &Job, _: &WorkerFiles) {}

    /// Nothing has to be written.
    pub(crate) fn make_ready_again(
        &mut self,
        _: &Plan,
        _: &[JobClone],
        _: &JobClone,
        _: &Terms<'_>,
    ) -> Result<u64, RunError> {
        Ok(0)
    }

    /// Nothing has to be removed.
    pub(crate) fn remove(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// Name of a job's file in messages.
pub(crate) fn file_name(_: &Job, path: &std::path::Path) -> String {
    path.display().to_string()
}
