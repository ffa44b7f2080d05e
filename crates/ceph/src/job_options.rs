//! Options of a job that the preparation of its files and its backend share.

use iosonde_job::plan::{Ceph, Direction, Job};
use iosonde_result::run_error::{RunError, UnsupportedFeature};

/// Ceph options of a job. The parser ensures that they exist.
pub(crate) fn ceph_options(job: &Job) -> Result<&Ceph, RunError> {
    job.io.ceph.as_deref().ok_or_else(|| {
        RunError::from(UnsupportedFeature::NoPool {
            job: job.name.clone(),
        })
    })
}

/// Whether a job writes or discards data.
pub(crate) fn changes_data(job: &Job) -> bool {
    let rw = job.workload.rw;
    rw.has(Direction::Write) || rw.has(Direction::Trim)
}
