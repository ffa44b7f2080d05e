//! Files of a job that replays a trace.

use super::file_errors::unusable_target;
use super::resolve::existing;
use crate::worker_files::{FileKind, FileUse, WorkerFiles};
use iosonde_job::plan::Job;
use iosonde_job::trace::{Trace, TracedFile};
use iosonde_result::run_error::{RunError, TargetProblem};
use iosonde_workload::FileRegion;
use std::path::PathBuf;

impl WorkerFiles {
    /// Files named in a trace, each as large as its I/Os require.
    pub(crate) fn from_trace(
        job: &Job,
        clone: u32,
        trace: &Trace,
    ) -> Result<WorkerFiles, RunError> {
        let files = trace
            .files
            .iter()
            .zip(trace.ends())
            .map(|(file, end)| one_file(job, traced_path(job, clone, file), end))
            .collect::<Result<_, _>>()?;
        Ok(WorkerFiles {
            files,
            size_bytes: trace.bytes(),
            io_bytes: None,
        })
    }
}

/// Path of a traced file. Relative names are below `directory`.
fn traced_path(job: &Job, clone: u32, file: &TracedFile) -> PathBuf {
    let name = match file {
        TracedFile::Path(name) => PathBuf::from(name),
        TracedFile::Device { major, minor } => PathBuf::from(format!("/dev/block/{major}:{minor}")),
    };
    let directories = &job.files.directories;
    match directories.len() {
        0 => name,
        count => PathBuf::from(&directories[clone as usize % count]).join(name),
    }
}

fn one_file(job: &Job, path: PathBuf, end: u64) -> Result<FileUse, RunError> {
    if !job.io.engine.has_paths() {
        return Ok(file_use(path, FileKind::Regular, Some(end), end));
    }
    let (size_now, kind) = existing(&path)?;
    if size_now.is_none() && path.starts_with("/dev") {
        let errno = libc::ENOENT;
        return Err(unusable_target(
            &path,
            TargetProblem::NoReplayDevice { errno },
        ));
    }
    let known = size_now.unwrap_or(0);
    if kind == FileKind::BlockDevice && end > known {
        return Err(unusable_target(
            &path,
            TargetProblem::TraceAfterDevice {
                trace_bytes: end,
                device_bytes: known,
            },
        ));
    }
    Ok(file_use(path, kind, size_now, end.max(known)))
}

fn file_use(path: PathBuf, kind: FileKind, size_now: Option<u64>, bytes: u64) -> FileUse {
    FileUse {
        path,
        kind,
        size_now,
        size_needed: bytes,
        region: FileRegion {
            start_bytes: 0,
            size_bytes: bytes,
            file_bytes: bytes,
        },
    }
}
