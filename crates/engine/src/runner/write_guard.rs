//! Refuses writes where data of others may be.

use crate::files::{FileKind, FileUse, WorkerFiles};
use iosonde_job::plan::{Direction, Job};
use iosonde_machine::consent::Consent;
use iosonde_machine::write_hold::{DeviceHolds, WriteHold};
use iosonde_machine::write_obstacles::lasting_name;
use iosonde_result::run_error::{FileHarm, RunError, TargetProblem};
use std::path::PathBuf;

/// The files to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileScope {
    All,
    /// All but regular files.
    Devices,
}

/// Checks existing files that a job would write, and holds its block devices. Returns warnings on
/// obstacles that consent overrides.
pub(super) fn check(
    job: &Job,
    files: &WorkerFiles,
    (which, consent, holds): (FileScope, &Consent, &DeviceHolds),
) -> Result<(Vec<String>, WriteHold), RunError> {
    let rw = job.workload.rw;
    let changes = rw.has(Direction::Write) || rw.has(Direction::Trim);
    let (mut warnings, mut hold) = (Vec::new(), WriteHold::default());
    if !changes || !job.io.engine.has_paths() {
        return Ok((warnings, hold));
    }
    let is_checked = |file: &&FileUse| {
        let is_regular = file.kind == FileKind::Regular;
        file.size_now.is_some() && (which == FileScope::All || !is_regular)
    };
    for file in files.files.iter().filter(is_checked) {
        let path = &file.path;
        let (overridden, held) = holds
            .hold(path, consent, job.files.allow_mounted_write)
            .map_err(|refusal| {
                RunError::write_refused(path.display().to_string(), refusal.cause())
            })?;
        hold.extend(held);
        warnings.extend(overridden.iter().map(|obstacle| {
            let path = path.display();
            format!("{path}: overwriting by consent: {obstacle}")
        }));
    }
    Ok((warnings, hold))
}

/// Refuses to write, extend or remove read-only files.
pub(super) fn protect_read_only<'a>(
    workers: impl Iterator<Item = (&'a Job, &'a WorkerFiles)>,
    only_read: &[PathBuf],
) -> Result<(), RunError> {
    // Under any name. A missing file has no data to lose.
    let kept: Vec<PathBuf> = only_read
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    if kept.is_empty() {
        return Ok(());
    }
    for (job, files) in workers.filter(|(job, _)| job.io.engine.has_paths()) {
        for file in &files.files {
            let is_kept = file
                .path
                .canonicalize()
                .is_ok_and(|path| kept.contains(&path));
            if let (true, Some(harm)) = (is_kept, file_harm(job, file)) {
                return Err(RunError::unusable_target(
                    file.path.display().to_string(),
                    TargetProblem::ReadOnly {
                        job: job.name.clone(),
                        harm,
                        consent_name: lasting_name(&file.path).display().to_string(),
                    },
                ));
            }
        }
    }
    Ok(())
}

/// Returns how a job would change a file, if it would.
fn file_harm(job: &Job, file: &FileUse) -> Option<FileHarm> {
    let rw = job.workload.rw;
    let size = file.size_now.unwrap_or(0);
    if rw.has(Direction::Write) || rw.has(Direction::Trim) {
        Some(FileHarm::Write)
    } else if job.files.unlink || job.files.unlink_each_loop {
        Some(FileHarm::Remove)
    } else if file.size_needed > size {
        Some(FileHarm::Extend {
            needed_bytes: file.size_needed,
            file_bytes: size,
        })
    } else {
        None
    }
}
