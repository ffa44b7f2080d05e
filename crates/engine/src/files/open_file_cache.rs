//! Cache of open files: limits them to `openfiles`, and recreates files for `unlink_each_loop`.

use super::open::{Opener, WriteAccess};
use super::resolve::{FileKind, FileUse, WorkerFiles, target_error};
use crate::io::Handle;
use crate::worker::counters::Shared;
use iosonde_job::plan::{Engine, Job};
use iosonde_result::session::RunError;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Result of a request for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The file is open.
    Ready,
    /// The file was just opened, so the handles have changed.
    Opened,
    /// The limit is reached and all open files are in use: retry after a completion.
    Later,
}

/// Cache entry of a file.
#[derive(Debug, Default)]
struct Place {
    file: Option<File>,
    /// Number of I/Os that use the file.
    busy: u32,
    /// Last use, counted in uses of all files (for LRU).
    used: u64,
}

/// Files of a worker, of which at most `most` are open.
#[derive(Debug)]
pub struct FileKeeper {
    opener: Opener,
    files: Vec<FileUse>,
    places: Vec<Place>,
    handles: Vec<Handle>,
    most: usize,
    open: usize,
    uses: u64,
    pass: u64,
    unlink_each_pass: bool,
    shared: Arc<Shared>,
}

impl FileKeeper {
    /// Creates a cache, if the job needs one.
    ///
    /// # Errors
    /// Fails for engines that need all files open.
    pub fn new(
        job: &Job,
        worker: &WorkerFiles,
        access: WriteAccess<'_>,
        shared: Arc<Shared>,
    ) -> Result<Option<FileKeeper>, RunError> {
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
            return Err(RunError::Unsupported {
                problem: format!(
                    "job {}: ioengine=mmap maps all files for the whole run",
                    job.name
                ),
                remedy: "leave openfiles= and unlink_each_loop out, or use another ioengine"
                    .to_owned(),
            });
        }
        let closed = |file: &FileUse| Handle {
            fd: -1,
            block_device: file.kind == FileKind::BlockDevice,
            size: file.size_needed,
        };
        Ok(Some(FileKeeper {
            opener: Opener::new(job).writing(access),
            handles: worker.files.iter().map(closed).collect(),
            places: worker.files.iter().map(|_| Place::default()).collect(),
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
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// Opens a file if necessary, and counts an I/O that uses it.
    pub fn access(&mut self, file: u32) -> Result<Access, RunError> {
        let index = file as usize;
        let mut access = Access::Ready;
        if self.places[index].file.is_none() {
            if self.open >= self.most && !self.close_one()? {
                return Ok(Access::Later);
            }
            let opened = self.opener.open(&self.files[index])?;
            self.handles[index].fd = opened.as_raw_fd();
            self.places[index].file = Some(opened);
            self.open += 1;
            self.tell();
            access = Access::Opened;
        }
        self.uses += 1;
        let place = &mut self.places[index];
        (place.used, place.busy) = (self.uses, place.busy + 1);
        Ok(access)
    }

    /// Ends the use of a file by an I/O.
    pub fn let_go(&mut self, file: u32) {
        let place = &mut self.places[file as usize];
        place.busy = place.busy.saturating_sub(1);
    }

    /// Called before the first I/O of a pass. `unlink_each_loop` removes all files, which are then
    /// created again. Returns false while I/Os are in flight.
    pub fn begin_pass(&mut self, pass: u64, idle: bool) -> Result<bool, RunError> {
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
                    return Err(target_error(&file.path, "remove", &error));
                }
                _ => {}
            }
        }
        self.pass = pass;
        Ok(true)
    }

    /// Whether each start over of the job drops the page cache.
    pub fn drops_cache(&self) -> bool {
        self.opener.drops_cache
    }

    /// Drops the page cache of one open file. `None` closes all files: opening drops their caches.
    pub fn drop_cache(&mut self, file: Option<u32>) -> Result<(), RunError> {
        let Some(file) = file else {
            return self.close_all();
        };
        let file_use = &self.files[file as usize];
        match &self.places[file as usize].file {
            Some(opened) if self.opener.drops_cache => self
                .opener
                .drop_cache(file_use, opened.as_raw_fd())
                .map_err(|error| target_error(&file_use.path, "drop the cache of", &error)),
            _ => Ok(()),
        }
    }

    /// Writes dirty pages of open files back, because only clean pages can be dropped.
    pub fn write_back(&self) -> Result<(), RunError> {
        for (place, file_use) in self.places.iter().zip(&self.files) {
            if let Some(opened) = &place.file
                && self.opener.drops_cache
            {
                opened
                    .sync_all()
                    .map_err(|error| target_error(&file_use.path, "flush", &error))?;
            }
        }
        Ok(())
    }

    /// Closes all files.
    pub fn close_all(&mut self) -> Result<(), RunError> {
        (0..self.places.len()).try_for_each(|index| self.close(index))
    }

    /// Closes the least recently used idle file. Returns whether there was one.
    fn close_one(&mut self) -> Result<bool, RunError> {
        let idle = |place: &&(usize, &Place)| place.1.file.is_some() && place.1.busy == 0;
        let places = self.places.iter().enumerate();
        let oldest = places
            .filter(|place| idle(&place))
            .min_by_key(|(_, place)| place.used);
        match oldest.map(|(index, _)| index) {
            Some(index) => self.close(index).map(|()| true),
            None => Ok(false),
        }
    }

    fn close(&mut self, index: usize) -> Result<(), RunError> {
        let Some(file) = self.places[index].file.take() else {
            return Ok(());
        };
        self.handles[index].fd = -1;
        self.open -= 1;
        self.tell();
        self.opener.before_close(&self.files[index], &file)
    }

    fn tell(&self) {
        self.shared.open_files.store(self.open as u32, Relaxed);
    }
}
