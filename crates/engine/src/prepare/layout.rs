//! Laying files out: every byte that will be read is written first, with data that do not compress.

use super::resolve::{WorkerFiles, needs_data, target_error};
use crate::interrupt::Interrupt;
use crate::sys::block;
use crate::workload::rng::Rng;
use iosonde_job::plan::{Fallocate, Job};
use iosonde_result::session::RunError;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes written by one call of the layout.
const CHUNK: usize = 4 << 20;

/// What one file needs.
#[derive(Debug, Clone, PartialEq)]
struct Need {
    size: u64,
    size_now: Option<u64>,
    data: bool,
    fallocate: Fallocate,
    create: bool,
    fsync: bool,
    jobs: Vec<String>,
}

/// The files that a plan needs and that are not there yet.
#[derive(Debug, Default)]
pub struct Layout {
    needs: BTreeMap<PathBuf, Need>,
}

/// What the layout has made.
#[derive(Debug, Default)]
pub struct Made {
    /// Files that were not there before.
    pub created: Vec<PathBuf>,
}

impl Layout {
    /// Notes what one worker needs. Files that several workers share are laid out once.
    pub fn add(&mut self, job: &Job, worker: &WorkerFiles) {
        for file in worker.files.iter().filter(|file| !file.block_device) {
            let data = needs_data(job);
            let enough = file.size_now.is_some_and(|size| size >= file.size_needed);
            if enough || job.files.file_append || job.files.create_on_open && !data {
                continue;
            }
            let need = self.needs.entry(file.path.clone()).or_insert_with(|| Need {
                size: 0,
                size_now: file.size_now,
                data: false,
                fallocate: job.files.fallocate,
                create: job.files.allow_file_create,
                fsync: job.files.create_fsync,
                jobs: Vec::new(),
            });
            need.size = need.size.max(file.size_needed);
            need.data |= data;
            if !need.jobs.contains(&job.name) {
                need.jobs.push(job.name.clone());
            }
        }
    }

    /// Refuses, before anything is written, what will not fit.
    pub fn check_space(&self) -> Result<(), RunError> {
        let mut by_directory: BTreeMap<PathBuf, u64> = BTreeMap::new();
        let mut by_device: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
        for (path, need) in &self.needs {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            let there = std::fs::metadata(path)
                .map(|metadata| std::os::unix::fs::MetadataExt::blocks(&metadata) * 512);
            *by_directory.entry(parent.to_owned()).or_default() +=
                need.size.saturating_sub(there.unwrap_or(0));
        }
        for (directory, bytes) in by_directory {
            let metadata = std::fs::metadata(&directory)
                .map_err(|error| target_error(&directory, "use", &error))?;
            let device = std::os::unix::fs::MetadataExt::dev(&metadata);
            by_device.entry(device).or_insert((directory, 0)).1 += bytes;
        }
        for (directory, needed_bytes) in by_device.into_values() {
            let stat = rustix::fs::statvfs(&directory)
                .map_err(|error| target_error(&directory, "measure", &error.into()))?;
            let available_bytes = stat.f_bavail * stat.f_frsize;
            if needed_bytes > available_bytes {
                return Err(RunError::NoSpace {
                    path: directory.display().to_string(),
                    needed_bytes,
                    available_bytes,
                });
            }
        }
        Ok(())
    }

    /// The announcements, in the order of the work: job, files of that job, and their bytes in total.
    pub fn announcements(&self) -> Vec<(String, usize, u64)> {
        let mut lines: Vec<(String, usize, u64)> = Vec::new();
        for need in self.needs.values() {
            lines.push((need.jobs[0].clone(), 1, need.size));
        }
        lines
    }

    /// Whether nothing is to be laid out.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Bytes to be written.
    pub fn bytes(&self) -> u64 {
        self.needs
            .values()
            .filter(|need| need.data)
            .map(|need| need.size)
            .sum()
    }
}

/// Lays out all files. Those made are removed again when it fails or is interrupted.
pub fn lay_out(
    layout: &Layout,
    interrupt: &Interrupt,
    written: &mut dyn FnMut(u64),
) -> Result<Made, RunError> {
    let mut made = Made::default();
    let mut done = 0;
    for (path, need) in &layout.needs {
        let existed = need.size_now.is_some();
        if !existed && !need.create {
            made.remove();
            return Err(RunError::Target {
                path: path.display().to_string(),
                problem: "it does not exist, and allow_file_create=0 forbids to make it".to_owned(),
                remedy: "name an existing file, or leave allow_file_create out".to_owned(),
            });
        }
        if !existed {
            made.created.push(path.clone());
        }
        let before = done;
        let result = one_file(path, need, interrupt, &mut |bytes| {
            done = before + bytes;
            written(done);
        });
        if let Err(error) = result {
            made.remove();
            return Err(error);
        }
    }
    Ok(made)
}

impl Made {
    /// Removes what was made.
    pub fn remove(&self) {
        for path in &self.created {
            // A file that is gone already is what is wanted.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn one_file(
    path: &Path,
    need: &Need,
    interrupt: &Interrupt,
    written: &mut dyn FnMut(u64),
) -> Result<(), RunError> {
    let fail = |doing: &'static str| move |error: std::io::Error| target_error(path, doing, &error);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(fail("make"))?;
    reserve(&file, need).map_err(fail("reserve space for"))?;
    if need.data {
        file.set_len(need.size).map_err(fail("size"))?;
        fill(path, &file, need.size, interrupt, written)?;
    }
    if need.fsync {
        file.sync_all().map_err(fail("flush"))?;
    }
    Ok(())
}

/// Reserves space as `fallocate` says, and sets the size.
fn reserve(file: &File, need: &Need) -> std::io::Result<()> {
    let fd = file.as_raw_fd();
    let unsupported = |error: &std::io::Error| {
        matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
    };
    match need.fallocate {
        Fallocate::Native => match block::fallocate(fd, 0, 0, need.size) {
            Err(error) if unsupported(&error) => file.set_len(need.size),
            other => other,
        },
        Fallocate::Keep => block::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, 0, need.size),
        Fallocate::Posix => block::posix_fallocate(fd, need.size),
        Fallocate::Truncate => file.set_len(need.size),
        // A job that only writes makes its file grow by itself, but one that writes at random needs its size.
        Fallocate::None => file.set_len(need.size),
    }
}

/// Writes incompressible data over the whole file, past the page cache where the file system allows it.
fn fill(
    path: &Path,
    file: &File,
    size: u64,
    interrupt: &Interrupt,
    written: &mut dyn FnMut(u64),
) -> Result<(), RunError> {
    let direct = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .ok();
    let mut memory =
        crate::sys::memory::IoMemory::map(1, CHUNK, 0, crate::sys::memory::MemoryKind::Pages)
            .map_err(|error| target_error(path, "find memory to fill", &error))?;
    let mut rng = Rng::new(size ^ crate::workload::rng::mix64(path.as_os_str().len() as u64));
    let mut offset = 0;
    while offset < size {
        if interrupt.is_requested() {
            return Err(RunError::Interrupted);
        }
        let length = (size - offset).min(CHUNK as u64) as usize;
        rng.fill(memory.slot_mut(0, length));
        let chunk = memory.slot(0, length);
        let whole = length % 4096 == 0;
        let outcome = match &direct {
            Some(direct) if whole => direct
                .write_all_at(chunk, offset)
                .or_else(|_| file.write_all_at(chunk, offset)),
            _ => file.write_all_at(chunk, offset),
        };
        outcome.map_err(|error| target_error(path, "write", &error))?;
        offset += length as u64;
        written(offset);
    }
    let mut file = file;
    file.flush()
        .map_err(|error| target_error(path, "write", &error))
}
