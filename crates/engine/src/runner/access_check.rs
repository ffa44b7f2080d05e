//! Checks files against the settings of the session, before anything is created or written.

use super::{LocalRunner, write_guard};
use crate::files::{PendingLayout, WorkerFiles, check_rw_flags};
use iosonde_job::plan::Job;
use iosonde_result::run_error::RunError;

/// Refuses files outside of the permissions, writes to read-only targets, files without a flag of
/// the job's reads and writes, and with `--readonly` any layout.
pub(super) fn check_access<'a>(
    runner: &LocalRunner,
    workers: impl Iterator<Item = (&'a Job, &'a WorkerFiles)> + Clone,
    layout: &PendingLayout,
) -> Result<(), RunError> {
    if let Some(permissions) = &runner.permissions {
        permissions.check_files(workers.clone())?;
    }
    write_guard::protect_read_only(workers.clone(), &runner.only_read)?;
    for (job, files) in workers {
        check_rw_flags(job, files)?;
    }
    match runner.readonly {
        true => layout.refuse_writes(),
        false => Ok(()),
    }
}
