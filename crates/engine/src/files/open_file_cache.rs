//! Cache of open files: limits them to `openfiles`, and recreates files for `unlink_each_loop`.

use super::file_errors::target_error;
use super::open::{Opener, WriteAccess};
use crate::counters::WorkerCounters;
use crate::io::FileHandle;
use crate::worker_files::{FileKind, FileUse, WorkerFiles};
use iosonde_job::plan::{Engine, Job};
use iosonde_result::run_error::{PathAction, RunError, UnsupportedFeature};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Result of a request for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// The file is open.
    Ready,
    /// The file was just opened, so the handles have changed.
    Opened,
    /// The limit is reached and all open files are in use: retry after a completion.
    Later,
}

/// Cache entry of a file.
#[derive(Debug, Default)]
struct CacheEntry {
    file: Option<File>,
    /// Number of I/Os that use the file.
    busy: u32,
    /// Last use, counted in uses of all files (for LRU).
    used: u64,
}

/// Files of a worker, of which at most `most` are open.
#[derive(Debug)]
pub(crate) struct OpenFileCache {
    opener: Opener,
    files: Vec<FileUse>,
    entries: Vec<CacheEntry>,
    handles: Vec<FileHandle>,
    most: usize,
    open: usize,
    uses: u64,
    pass: u64,
    unlink_each_pass: bool,
    shared: Arc<WorkerCounters>,
}

impl OpenFileCache {
    /// Creates a cache, if the job needs one.
    ///
    /// # Errors
    /// Fails for engines that need all files open.
    pub(crate) fn new(
        job: &Job,
        worker: &WorkerFiles,
        access: WriteAccess<'_>,
        shared: Arc<WorkerCounters>,
    ) -> Result<Option<OpenFileCache>, RunError> {
        let count = worker.files.len();
        let most = match job.files.openfiles as usize {
            0 => count,
            some => some.min(count),
        };
        let passes = job.files.unlink_each_loop;
        if most == count && !passes || !job.io.engine.has_paths() {
            return Ok(None);
        }
        if job.io.engine == Engine::Mmap {
            return Err(UnsupportedFeature::MmapKeepsFilesOpen {
                job: job.name.clone(),
            }
            .into());
        }
        let closed = |file: &FileUse| FileHandle {
            fd: -1,
            block_device: file.kind == FileKind::BlockDevice,
            size: file.size_needed,
        };
        Ok(Some(OpenFileCache {
            opener: Opener::new(job).writing(access),
            handles: worker.files.iter().map(closed).collect(),
            entries: worker.files.iter().map(|_| CacheEntry::default()).collect(),
            files: worker.files.clone(),
            most,
            open: 0,
            uses: 0,
            pass: 1,
            unlink_each_pass: passes,
            shared,
        }))
    }

    /// Handles for the backend. The descriptor of a closed file is -1.
    pub(crate) fn handles(&self) -> &[FileHandle] {
        &self.handles
    }

    /// Opens a file if necessary, and counts an I/O that uses it.
    pub(crate) fn access(&mut self, file: u32) -> Result<FileAccess, RunError> {
        let index = file as usize;
        let mut access = FileAccess::Ready;
        if self.entries[index].file.is_none() {
            if self.open >= self.most && !self.close_one()? {
                return Ok(FileAccess::Later);
            }
            let opened = self.opener.open(&self.files[index])?;
            self.handles[index].fd = opened.as_raw_fd();
            self.entries[index].file = Some(opened);
            self.open += 1;
            assert!(
                self.open <= self.most,
                "{} of at most {} files",
                self.open,
                self.most
            );
            self.report_open_count();
            access = FileAccess::Opened;
        }
        self.uses += 1;
        let entry = &mut self.entries[index];
        (entry.used, entry.busy) = (self.uses, entry.busy + 1);
        Ok(access)
    }

    /// Ends the use of a file by an I/O.
    pub(crate) fn release_file(&mut self, file: u32) {
        let entry = &mut self.entries[file as usize];
        debug_assert!(entry.busy > 0, "an I/O uses file {file}");
        entry.busy = entry.busy.saturating_sub(1);
    }

    /// Called before the first I/O of a pass. `unlink_each_loop` removes all files, which are then
    /// created again. Returns false while I/Os are in flight.
    pub(crate) fn begin_pass(&mut self, pass: u64, idle: bool) -> Result<bool, RunError> {
        if pass == self.pass || !self.unlink_each_pass {
            return Ok(true);
        }
        if !idle {
            return Ok(false);
        }
        self.close_all()?;
        for file in self
            .files
            .iter()
            .filter(|file| file.kind == FileKind::Regular)
        {
            // Another clone may have removed the file.
            match std::fs::remove_file(&file.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(target_error(&file.path, PathAction::Remove, &error));
                }
                _ => {}
            }
        }
        self.pass = pass;
        Ok(true)
    }

    /// Whether each start over of the job drops the page cache.
    pub(crate) fn drops_cache(&self) -> bool {
        self.opener.drops_cache
    }

    /// Drops the page cache of one open file. `None` closes all files: opening drops their caches.
    pub(crate) fn drop_cache(&mut self, file: Option<u32>) -> Result<(), RunError> {
        let Some(file) = file else {
            return self.close_all();
        };
        let file_use = &self.files[file as usize];
        match &self.entries[file as usize].file {
            Some(opened) if self.opener.drops_cache => {
                self.opener.drop_cache(file_use, opened.as_raw_fd())
            }
            _ => Ok(()),
        }
    }

    /// Writes dirty pages of open files back, because only clean pages can be dropped.
    pub(crate) fn write_back(&self) -> Result<(), RunError> {
        if !self.opener.drops_cache {
            return Ok(());
        }
        let files = self.entries.iter().zip(&self.files);
        let mut opened = files.filter_map(|(entry, file)| Some((entry.file.as_ref()?, file)));
        opened.try_for_each(|(opened, file)| self.opener.write_back(file, opened.as_raw_fd()))
    }

    /// Closes all files.
    pub(crate) fn close_all(&mut self) -> Result<(), RunError> {
        (0..self.entries.len()).try_for_each(|index| self.close(index))
    }

    /// Closes the least recently used idle file. Returns whether there was one.
    fn close_one(&mut self) -> Result<bool, RunError> {
        let idle = |entry: &&(usize, &CacheEntry)| entry.1.file.is_some() && entry.1.busy == 0;
        let entries = self.entries.iter().enumerate();
        let oldest = entries
            .filter(|entry| idle(&entry))
            .min_by_key(|(_, entry)| entry.used);
        match oldest.map(|(index, _)| index) {
            Some(index) => self.close(index).map(|()| true),
            None => Ok(false),
        }
    }

    fn close(&mut self, index: usize) -> Result<(), RunError> {
        let Some(file) = self.entries[index].file.take() else {
            return Ok(());
        };
        self.handles[index].fd = -1;
        self.open -= 1;
        self.report_open_count();
        self.opener.before_close(&self.files[index], &file)
    }

    fn report_open_count(&self) {
        debug_assert_eq!(
            self.entries
                .iter()
                .filter(|entry| entry.file.is_some())
                .count(),
            self.open,
            "each open file is counted"
        );
        self.shared.open_files.store(self.open as u32, Relaxed);
    }
}
