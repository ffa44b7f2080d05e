//! Opens a worker's files as its job requests.

use super::created::{CreatedFiles, FileOpenError};
use super::file_errors::{ignore_unsupported, must_not_create, target_error};
use super::rw_flag_check::check_rw_flags;
use crate::io::FileHandle;
use crate::loop_switches::LoopSwitches;
use crate::sys::block;
use crate::sys::c_library as libc;
use crate::worker_files::{FileKind, FileUse, WorkerFiles};
use iosonde_job::plan::{Direction, Engine, Fadvise, Job, SyncMode};
use iosonde_machine::proc_root::device_number;
use iosonde_machine::write_hold::WriteHold;
use iosonde_result::run_error::{PathAction, RunError, WriteRefusal};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

/// Size of one read of `pre_read`, in bytes.
const PRE_READ_BYTES: usize = 1 << 20;

/// Targets that a worker may write.
#[derive(Debug, Clone, Copy)]
pub struct WriteAccess<'a> {
    /// Block devices that the worker holds.
    pub hold: &'a WriteHold,
    /// Files that the run created.
    pub created: &'a CreatedFiles,
}

/// The open files of a worker.
#[derive(Debug, Default)]
pub struct OpenSet {
    files: Vec<File>,
    handles: Vec<FileHandle>,
}

impl OpenSet {
    /// Files as the backend needs them.
    pub fn handles(&self) -> &[FileHandle] {
        debug_assert_eq!(self.files.len(), self.handles.len());
        &self.handles
    }

    /// Names of the flags in force of all open files that the result has no field of its own for.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let is_noatime = |file: &File| {
            let flags = rustix::fs::fcntl_getfl(file);
            flags.is_ok_and(|flags| flags.bits() & libc::O_NOATIME.cast_unsigned() != 0)
        };
        let in_force = !self.files.is_empty() && self.files.iter().all(is_noatime);
        in_force.then_some("noatime").into_iter()
    }

    /// Carries out `fsync_on_close` before the files are closed.
    pub(crate) fn before_close(&self, job: &Job, worker: &WorkerFiles) -> Result<(), RunError> {
        let opener = Opener::new(job);
        let mut files = worker.files.iter().zip(&self.files);
        files.try_for_each(|(file, opened)| opener.before_close(file, opened))
    }
}

/// Opens all files of a worker. It may write to the block devices that it holds only.
pub fn open_files(
    job: &Job,
    worker: &WorkerFiles,
    access: WriteAccess<'_>,
) -> Result<OpenSet, RunError> {
    let opener = Opener::new(job).writing(access);
    let mut set = OpenSet::default();
    for file in &worker.files {
        let opened = opener.open(file)?;
        set.handles.push(FileHandle {
            fd: opened.as_raw_fd(),
            block_device: file.kind == FileKind::BlockDevice,
            size: file.size_needed,
        });
        set.files.push(opened);
    }
    // Files that the layout or the calls above have created were not checked before.
    check_rw_flags(job, worker)?;
    Ok(set)
}

/// Page cache of a job's files, which the job drops each time it starts over (`invalidate`).
#[derive(Debug)]
pub(crate) struct CachedFiles {
    opener: Opener,
    files: Vec<FileUse>,
    /// Open while the worker runs.
    opened: Arc<OpenSet>,
}

impl CachedFiles {
    /// `None` if the job bypasses the page cache or keeps its contents.
    pub(crate) fn new(
        job: &Job,
        worker: &WorkerFiles,
        opened: Arc<OpenSet>,
    ) -> Option<CachedFiles> {
        let opener = Opener::new(job);
        opener.drops_cache.then(|| CachedFiles {
            opener,
            files: worker.files.clone(),
            opened,
        })
    }

    /// Drops the page cache of one file, or of all files.
    pub(crate) fn drop_cache(&self, file: Option<u32>) -> Result<(), RunError> {
        self.each(file, |file, fd| self.opener.drop_cache(file, fd))
    }

    /// Writes dirty pages of all files back, because only clean pages can be dropped.
    pub(crate) fn write_back(&self) -> Result<(), RunError> {
        self.each(None, |file, fd| self.opener.write_back(file, fd))
    }

    fn each(
        &self,
        only: Option<u32>,
        act: impl Fn(&FileUse, RawFd) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let files = self.files.iter().zip(&self.opened.handles).zip(0..);
        files
            .filter(|((file, _), number)| {
                only.is_none_or(|only| only == *number) && file.kind != FileKind::Stream
            })
            .try_for_each(|((file, handle), _)| act(file, handle.fd))
    }
}

/// Reads the regions of all files into the page cache (`pre_read`).
pub fn pre_read(worker: &WorkerFiles) -> Result<(), RunError> {
    let mut buffer = vec![0; PRE_READ_BYTES];
    for file in &worker.files {
        let failed = |error: std::io::Error| target_error(&file.path, PathAction::PreRead, &error);
        let opened = File::open(&file.path).map_err(failed)?;
        let mut offset = file.region.start_bytes;
        let end = offset + file.region.size_bytes;
        while offset < end {
            let wanted = (end - offset).min(PRE_READ_BYTES as u64) as usize;
            match opened.read_at(&mut buffer[..wanted], offset) {
                Ok(0) => break,
                Ok(read) => offset += read as u64,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    Ok(())
}

/// Opens a file with O_NOATIME, which saves the kernel a comparison of times for each read. A file
/// of another owner is opened without the flag, as the kernel refuses it (EPERM), and so are all
/// files with `atime`.
fn without_atime(
    (kind, atime): (FileKind, bool),
    open: impl Fn(i32) -> Result<File, FileOpenError>,
) -> Result<File, FileOpenError> {
    if kind == FileKind::Stream || atime {
        return open(0);
    }
    match open(libc::O_NOATIME) {
        Err(FileOpenError::Io(error)) if error.raw_os_error() == Some(libc::EPERM) => open(0),
        opened => opened,
    }
}

/// Options with which a job opens its files.
#[derive(Debug, Clone)]
pub(super) struct Opener {
    read: bool,
    write: bool,
    create: bool,
    flags: i32,
    invalidate: bool,
    /// Whether each start over of the job drops the page cache too.
    pub(super) drops_cache: bool,
    /// Whether accesses are random, for posix_fadvise(2). `None`: no advice.
    order: Option<bool>,
    fsync_on_close: bool,
    /// `write_hint` with the kernel's value.
    write_hint: Option<u64>,
    /// Block devices that may be written.
    hold: WriteHold,
    created: CreatedFiles,
}

impl Opener {
    /// Derives the options from those of a job.
    pub(super) fn new(job: &Job) -> Opener {
        let rw = job.workload.rw;
        let changes = rw.has(Direction::Write) || rw.has(Direction::Trim);
        let reads = rw.has(Direction::Read) || job.verify.is_some();
        let direct = if job.io.direct { libc::O_DIRECT } else { 0 };
        let sync = match job.io.sync {
            SyncMode::None => 0,
            SyncMode::Sync => libc::O_SYNC,
            SyncMode::Dsync => libc::O_DSYNC,
        };
        let invalidate = job.files.invalidate && !job.files.pre_read;
        let is_cached = !job.io.direct || job.io.engine == Engine::Mmap;
        Opener {
            read: reads || !changes || job.io.engine == Engine::Mmap,
            write: changes,
            create: changes && job.files.allow_file_create,
            flags: direct | sync,
            invalidate,
            drops_cache: invalidate && is_cached && job.io.engine.has_paths(),
            order: match job.files.fadvise {
                Fadvise::None => None,
                Fadvise::Pattern => Some(rw.random),
                Fadvise::Random => Some(true),
                Fadvise::Sequential => Some(false),
            },
            fsync_on_close: changes && job.workload.fsync_on_close,
            write_hint: job.io.write_hint.map(|hint| hint as u64),
            hold: WriteHold::default(),
            created: CreatedFiles::default(),
        }
    }

    /// Allows writes to the checked block devices and to the files of the run.
    pub(super) fn writing(self, access: WriteAccess<'_>) -> Opener {
        Opener {
            hold: access.hold.clone(),
            created: access.created.clone(),
            ..self
        }
    }

    /// Opens a file, drops its page cache (`invalidate`) and advises the order of accesses.
    pub(super) fn open(&self, file: &FileUse) -> Result<File, RunError> {
        let atime = LoopSwitches::from_environment().atime;
        let opened = without_atime((file.kind, atime), |noatime| {
            let mut options = OpenOptions::new();
            options
                .read(self.read)
                .write(self.write)
                .custom_flags(self.flags | noatime);
            self.open_file(file, &mut options)
        })
        .map_err(|failure| match failure {
            FileOpenError::Io(error) => self.open_error(file, &error),
            others => others.into_error(&file.path, PathAction::Open),
        })?;
        if self.write {
            self.refuse_unchecked(file, &opened)?;
        }
        self.ready_cache(file, opened.as_raw_fd())?;
        if let Some(hint) = self.write_hint {
            block::set_write_hint(opened.as_raw_fd(), hint)
                .map_err(|error| target_error(&file.path, PathAction::SetWriteHint, &error))?;
        }
        Ok(opened)
    }

    fn open_file(&self, file: &FileUse, options: &mut OpenOptions) -> Result<File, FileOpenError> {
        let path = &file.path;
        if !self.write || file.kind != FileKind::Regular {
            return self.created.open_by_descriptor(path, options);
        }
        if !self.create {
            return self.created.open_existing(path, options);
        }
        if file.size_now.is_some() {
            match self.created.open_existing(path, options) {
                // `unlink_each_loop` has removed the file.
                Err(FileOpenError::Io(error)) if error.kind() == ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        // O_DIRECT may be refused (EINVAL), and O_NOATIME (EPERM).
        let (file, _) = self.created.open_missing(path, options, true)?;
        Ok(file)
    }

    fn open_error(&self, file: &FileUse, error: &std::io::Error) -> RunError {
        match error.raw_os_error() {
            Some(libc::ENOENT) if self.write && !self.create => must_not_create(&file.path),
            // Studies fall back to buffered I/O on this error.
            Some(errno @ libc::EINVAL) if self.flags & libc::O_DIRECT != 0 => {
                RunError::DirectRefused {
                    path: file.path.display().to_string(),
                    errno,
                }
            }
            _ => target_error(&file.path, PathAction::Open, error),
        }
    }

    /// Refuses a block device that was not checked: its name was reused since the check.
    fn refuse_unchecked(&self, file: &FileUse, opened: &File) -> Result<(), RunError> {
        let metadata = opened
            .metadata()
            .map_err(|error| target_error(&file.path, PathAction::Inspect, &error))?;
        let number = device_number(metadata.rdev() as _);
        if metadata.file_type().is_block_device() && !self.hold.has(number) {
            return Err(RunError::write_refused(
                file.path.display().to_string(),
                WriteRefusal::DeviceRenamed,
            ));
        }
        Ok(())
    }

    /// Drops the page cache of a file's region.
    pub(super) fn drop_cache(&self, file: &FileUse, fd: RawFd) -> Result<(), RunError> {
        if file.kind == FileKind::BlockDevice {
            // Fails for some devices and without privileges. The advice below then has to suffice.
            let _ = block::flush_device_cache(fd);
        }
        let (start, length) = (file.region.start_bytes, file.region.size_bytes);
        block::drop_cache(fd, start, length)
            .or_else(ignore_unsupported)
            .map_err(|error| target_error(&file.path, PathAction::DropCache, &error))
    }

    /// Writes the dirty pages of a file back, if the job may write it.
    pub(super) fn write_back(&self, file: &FileUse, fd: RawFd) -> Result<(), RunError> {
        match self.write && file.kind != FileKind::Stream {
            true => block::flush(fd)
                .map_err(|error| target_error(&file.path, PathAction::Flush, &error)),
            false => Ok(()),
        }
    }

    fn ready_cache(&self, file: &FileUse, fd: RawFd) -> Result<(), RunError> {
        let (start, length) = (file.region.start_bytes, file.region.size_bytes);
        if self.invalidate && file.kind != FileKind::Stream {
            self.drop_cache(file, fd)?;
        }
        if let Some(random) = self.order {
            block::advise_order(fd, start, length, random);
        }
        Ok(())
    }

    /// Carries out `fsync_on_close`.
    pub(super) fn before_close(&self, use_: &FileUse, file: &File) -> Result<(), RunError> {
        if self.fsync_on_close && use_.kind != FileKind::Stream {
            file.sync_all()
                .map_err(|error| target_error(&use_.path, PathAction::Flush, &error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Flags of each attempt to open a file whose owner is another user.
    fn attempts_on_foreign_file(kind: FileKind, atime: bool, errno: i32) -> (Vec<i32>, bool) {
        let attempts = RefCell::new(Vec::new());
        let opened = without_atime((kind, atime), |flags| {
            attempts.borrow_mut().push(flags);
            match flags {
                0 => Ok(File::open("/dev/null")?),
                _ => Err(std::io::Error::from_raw_os_error(errno).into()),
            }
        });
        (attempts.into_inner(), opened.is_ok())
    }

    #[test]
    fn foreign_file_is_opened_without_noatime() {
        let noatime = libc::O_NOATIME;
        for kind in [FileKind::Regular, FileKind::BlockDevice] {
            let refused = attempts_on_foreign_file(kind, false, libc::EPERM);
            assert_eq!(refused, (vec![noatime, 0], true));
            let failed = attempts_on_foreign_file(kind, false, libc::EINVAL);
            assert_eq!(failed, (vec![noatime], false), "another error is reported");
            let with_atime = attempts_on_foreign_file(kind, true, libc::EINVAL);
            assert_eq!(
                with_atime,
                (vec![0], true),
                "a benchmark leaves the flag out"
            );
        }
        let stream = attempts_on_foreign_file(FileKind::Stream, false, libc::EPERM);
        assert_eq!(stream, (vec![0], true));
    }

    #[test]
    fn own_files_are_read_without_access_times() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("there"), [1; 4096]).unwrap();
        let words = format!(
            "--name=a --directory={} --filename=there --rw=read --bs=512 --size=4k",
            scratch.path().display()
        );
        let words: Vec<std::ffi::OsString> = words.split(' ').map(Into::into).collect();
        let parsed = iosonde_job::parse(&words, &iosonde_job::env::FakeEnv::new()).unwrap();
        let job = &parsed.plan.jobs[0];
        let files = super::super::resolve(job, 0, None).unwrap();
        let access = WriteAccess {
            hold: &WriteHold::default(),
            created: &CreatedFiles::default(),
        };
        let opened = open_files(job, &files, access).unwrap();
        assert_eq!(opened.flags().collect::<Vec<_>>(), ["noatime"]);
        assert_eq!(OpenSet::default().flags().count(), 0);
    }
}
