//! Stands for the Ceph engines in programs that are built without them.

use crate::files::WorkerFiles;
use crate::interrupt::Interrupt;
use crate::runner::Member;
use iosonde_job::plan::{CephAccess, Job, Plan};
use iosonde_machine::consent::Consent;
use iosonde_result::host::TargetInfo;
use iosonde_result::observer::Observer;
use iosonde_result::session::RunError;
use std::sync::Arc;
use std::time::Instant;

/// What a session has in clusters: nothing.
#[derive(Debug, Default)]
pub(crate) struct Estate {}

/// A look at a cluster: none.
#[allow(dead_code, reason = "nothing is looked at here")]
#[derive(Debug)]
pub(crate) struct Watch;

impl Watch {
    /// There is nothing to look at.
    pub(crate) fn of(_: &Plan, _: &[TargetInfo], _: &CephAccess) -> Option<Watch> {
        None
    }

    /// Nothing was seen.
    pub(crate) fn end(self, _: bool) -> iosonde_result::ceph::CephSide {
        Default::default()
    }
}

/// What bounds the preparation of a run.
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

/// No image is known.
pub(crate) fn image_bytes(job: &Job) -> Result<u64, RunError> {
    Err(absent(job))
}

impl Estate {
    /// Refuses plans that need a cluster.
    pub(crate) fn make_ready(
        &mut self,
        plan: &Plan,
        _: &[Member],
        _: &Terms<'_>,
        _: Instant,
        _: &mut dyn Observer,
    ) -> Result<(), RunError> {
        match plan.jobs.iter().find(|job| job.io.engine.is_ceph()) {
            Some(job) => Err(absent(job)),
            None => Ok(()),
        }
    }

    /// Nothing is known.
    pub(crate) fn forget(&mut self, _: &Job, _: &WorkerFiles) {}

    /// There is nothing to write.
    pub(crate) fn make_ready_again(
        &mut self,
        _: &Plan,
        _: &[Member],
        _: &Member,
        _: &Terms<'_>,
    ) -> Result<u64, RunError> {
        Ok(0)
    }

    /// There is nothing to remove.
    pub(crate) fn remove(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// How messages name a file of a job.
pub(crate) fn file_name(_: &Job, path: &std::path::Path) -> String {
    path.display().to_string()
}
