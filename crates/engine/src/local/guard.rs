//! Refusing to write where data of others may be.

use crate::device::guard::check_writable;
use crate::prepare::WorkerFiles;
use iosonde_job::plan::{Direction, Job};
use iosonde_result::session::RunError;
use std::path::PathBuf;

/// Checks all that a job would write and that is there already. What consent overrides comes back as warnings.
pub(super) fn check(
    job: &Job,
    files: &WorkerFiles,
    consent: &[PathBuf],
) -> Result<Vec<String>, RunError> {
    let rw = job.workload.rw;
    let changes = rw.has(Direction::Write) || rw.has(Direction::Trim);
    let mut warnings = Vec::new();
    for file in files
        .files
        .iter()
        .filter(|file| changes && file.size_now.is_some() && job.io.engine.has_paths())
    {
        // allow_mounted_write is fio's consent: it is for the devices that the job itself names.
        let own = [file.path.clone()];
        let consent = if job.files.allow_mounted_write {
            &own[..]
        } else {
            consent
        };
        let overridden =
            check_writable(&file.path, consent).map_err(|refusal| RunError::Refused {
                device: file.path.display().to_string(),
                found: refusal.found(),
                remedy: refusal.remedy(),
            })?;
        warnings.extend(overridden.iter().map(|obstacle| {
            format!(
                "{}: overwriting by consent: {obstacle}",
                file.path.display()
            )
        }));
    }
    Ok(warnings)
}
