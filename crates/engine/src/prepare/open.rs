//! Opening a worker's files the way its job asks for.

use super::resolve::{WorkerFiles, target_error};
use crate::backend::Handle;
use crate::sys::block;
use iosonde_job::plan::{Direction, Fadvise, Job, SyncMode};
use iosonde_result::session::RunError;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// The open files of a worker.
#[derive(Debug, Default)]
pub struct OpenSet {
    files: Vec<File>,
    handles: Vec<Handle>,
}

impl OpenSet {
    /// What a backend needs to know of them.
    pub fn handles(&self) -> &[Handle] {
        &self.files_checked().handles
    }

    fn files_checked(&self) -> &OpenSet {
        debug_assert_eq!(self.files.len(), self.handles.len());
        self
    }
}

/// Opens all files of a worker, drops their caches (`invalidate`) and tells the kernel the order of accesses.
pub fn open_files(job: &Job, worker: &WorkerFiles) -> Result<OpenSet, RunError> {
    let rw = job.workload.rw;
    let changes = rw.has(Direction::Write) || rw.has(Direction::Trim);
    let reads = rw.has(Direction::Read) || job.verify.is_some();
    let mut flags = 0;
    if job.io.direct {
        flags |= libc::O_DIRECT;
    }
    flags |= match job.io.sync {
        SyncMode::None => 0,
        SyncMode::Sync => libc::O_SYNC,
        SyncMode::Dsync => libc::O_DSYNC,
    };
    let mmap = job.io.engine == iosonde_job::plan::Engine::Mmap;
    let mut set = OpenSet {
        files: Vec::new(),
        handles: Vec::new(),
    };
    for file in &worker.files {
        let mut options = OpenOptions::new();
        options
            .read(reads || !changes || mmap)
            .write(changes)
            .custom_flags(flags);
        if changes && !file.block_device && job.files.allow_file_create {
            options.create(true).truncate(false);
        }
        let opened = options
            .open(&file.path)
            .map_err(|error| target_error(&file.path, "open", &error))?;
        let fd = opened.as_raw_fd();
        ready_cache(
            job,
            fd,
            file.region.start_bytes,
            file.region.size_bytes,
            file.block_device,
        )
        .map_err(|error| target_error(&file.path, "drop the cache of", &error))?;
        set.handles.push(Handle {
            fd,
            block_device: file.block_device,
            size: file.size_needed,
        });
        set.files.push(opened);
    }
    Ok(set)
}

fn ready_cache(
    job: &Job,
    fd: i32,
    start: u64,
    length: u64,
    block_device: bool,
) -> std::io::Result<()> {
    if job.files.invalidate && !job.files.pre_read && !job.io.direct {
        if block_device {
            // Not every block device can, and not everybody may: then the advice below has to do.
            let _ = block::flush_device_cache(fd);
        }
        block::drop_cache(fd, start, length).or_else(ignore_unsupported)?;
    }
    match job.files.fadvise {
        Fadvise::None => {}
        Fadvise::Pattern => block::advise_order(fd, start, length, job.workload.rw.random),
        Fadvise::Random => block::advise_order(fd, start, length, true),
        Fadvise::Sequential => block::advise_order(fd, start, length, false),
    }
    Ok(())
}

/// Character devices and pipes have no cache to drop.
fn ignore_unsupported(error: std::io::Error) -> std::io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ESPIPE | libc::EOPNOTSUPP) => Ok(()),
        _ => Err(error),
    }
}
