//! Files of a job that replays a trace.

use super::resolve::{FileKind, FileUse, WorkerFiles, existing, target_error};
use iosonde_job::plan::Job;
use iosonde_job::trace::{Trace, TracedFile};
use iosonde_result::session::RunError;
use iosonde_workload::FileRegion;
use std::path::PathBuf;

impl WorkerFiles {
    /// Files named in a trace, each as large as its I/Os require.
    pub fn of_trace(job: &Job, clone: u32, trace: &Trace) -> Result<WorkerFiles, RunError> {
        let files = trace
            .files
            .iter()
            .zip(trace.ends())
            .map(|(file, end)| one_file(job, path(job, clone, file), end))
            .collect::<Result<_, _>>()?;
        Ok(WorkerFiles {
            files,
            size_bytes: trace.bytes(),
            io_bytes: None,
        })
    }
}

/// Path of a traced file. Relative names are below `directory`.
fn path(job: &Job, clone: u32, file: &TracedFile) -> PathBuf {
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
        let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
        return Err(match target_error(&path, "open", &missing) {
            RunError::Target { path, problem, .. } => RunError::Target {
                path,
                problem,
                remedy: "say where to replay the trace: replay_redirect=DEVICE or FILE".to_owned(),
            },
            other => other,
        });
    }
    let known = size_now.unwrap_or(0);
    if kind == FileKind::BlockDevice && end > known {
        return Err(RunError::Target {
            path: path.display().to_string(),
            problem: format!("the trace reaches to byte {end}, the device has {known}"),
            remedy: "replay it on a larger device, or bring offsets closer by replay_scale= with replay_align="
                .to_owned(),
        });
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
