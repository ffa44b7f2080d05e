//! Files that a plan needs and that are missing or too short: their sizes and the space for them.

use super::file_errors::{target_error, unusable_target};
use super::planned_files::PlannedFiles;
use super::resolve::{fills_device, needs_data};
use crate::worker_files::{FileKind, FileUse, WorkerFiles};
use iosonde_job::plan::{Engine, Fallocate, Job};
use iosonde_machine::space::{self, Shortage, SpaceError, SpaceNeed as Room, is_boundless};
use iosonde_result::run_error::{PathAction, RunError, TargetProblem};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Layout of one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileNeed {
    pub(super) size: u64,
    pub(super) existed: bool,
    /// Size of an existing file. Its data below this offset belong to the user and are kept.
    pub(super) from: u64,
    pub(super) data: bool,
    /// Whether the file is mapped, and so needs its size before the first write.
    pub(super) mapped: bool,
    /// Whether data are written until the file system is full.
    pub(super) until_full: bool,
    /// Whether ENOSPC is ignored here, because the job's writes report it.
    pub(super) may_run_full: bool,
    pub(super) fallocate: Fallocate,
    pub(super) create: bool,
    pub(super) fsync: bool,
    /// Number and job name of the first worker that needs the file.
    pub(super) owner: (u32, String),
}

/// Files that a plan needs and that are missing or too short.
#[derive(Debug, Default)]
pub struct PendingLayout {
    pub(super) needs: BTreeMap<PathBuf, FileNeed>,
    /// Final sizes of files, laid out or not, without files that may run out of space.
    sizes: BTreeMap<PathBuf, FinalSize>,
    /// Whether files that jobs write may exceed the available space.
    may_run_full: bool,
}

/// Final size of a file.
#[derive(Debug, Clone, Copy, Default)]
struct FinalSize {
    bytes: u64,
    /// Bytes of these that follow the size at the start of the job (`file_append`).
    appended: u64,
}

impl PendingLayout {
    /// An empty layout. `may_run_full`: files that jobs write may exceed the available space.
    pub fn new(may_run_full: bool) -> PendingLayout {
        PendingLayout {
            may_run_full,
            ..PendingLayout::default()
        }
    }

    /// Whether writes to a file may end with ENOSPC. Never on a ramfs, which would exhaust memory
    /// first, nor on file systems that show kernel state.
    fn may_find_no_room(&self, job: &Job, path: &Path, data: bool) -> bool {
        let is_written = !data && job.io.engine != Engine::Mmap;
        let may = is_written && (self.may_run_full || job.files.fill_device);
        may && !is_boundless(path) && space::view_of_kernel(path).is_none()
    }

    /// Adds the files of worker `number`. A file shared by several workers is laid out once.
    pub fn add(&mut self, job: &Job, number: u32, worker: &WorkerFiles) {
        if !job.io.engine.has_paths() {
            return;
        }
        let regular = |file: &&FileUse| file.kind == FileKind::Regular;
        for file in worker.files.iter().filter(regular) {
            let data = needs_data(job);
            let enough = file.size_now.is_some_and(|size| size >= file.size_needed);
            // An existing file of sufficient size is used unchanged, even if it is sparse.
            let may_run_full = fills_device(job) || self.may_find_no_room(job, &file.path, data);
            if !enough && !may_run_full {
                let size = self.sizes.entry(file.path.clone()).or_default();
                size.bytes = size.bytes.max(file.size_needed);
                if job.files.file_append {
                    let appended = file.size_needed - file.size_now.unwrap_or(0);
                    size.appended = size.appended.max(appended);
                }
            }
            // As in fio, an open for writing creates an empty file; an open for reading does not.
            if file.size_needed == 0 {
                continue;
            }
            let mapped = job.io.engine == Engine::Mmap;
            let later = !data && (job.files.create_on_open || fills_device(job));
            if !enough && (!later || mapped) {
                self.need(job, number, file, data);
            }
        }
    }

    /// Size of a file when the jobs start, if the layout changes it. `Fallocate::Keep` does not.
    pub(crate) fn size_at_start(&self, path: &Path) -> Option<u64> {
        let grows = |need: &&FileNeed| {
            let sets_size = !matches!(need.fallocate, Fallocate::None | Fallocate::Keep);
            need.data || need.mapped || sets_size
        };
        self.needs.get(path).filter(grows).map(|need| need.size)
    }

    fn need(&mut self, job: &Job, number: u32, file: &FileUse, data: bool) {
        let may_run_full = self.may_find_no_room(job, &file.path, data);
        let need = self
            .needs
            .entry(file.path.clone())
            .or_insert_with(|| FileNeed {
                size: 0,
                existed: file.size_now.is_some(),
                from: file.size_now.unwrap_or(0),
                data: false,
                mapped: false,
                until_full: false,
                may_run_full: true,
                fallocate: job.files.fallocate,
                create: job.files.allow_file_create,
                fsync: job.files.create_fsync,
                owner: (number, job.name.clone()),
            });
        need.size = need.size.max(file.size_needed);
        need.data |= data;
        need.mapped |= job.io.engine == Engine::Mmap;
        need.may_run_full &= may_run_full;
        need.until_full |= data && fills_device(job);
    }

    /// Refuses layout with `--readonly`: creating a file, or extending one that is too short.
    pub(crate) fn refuse_writes(&self) -> Result<(), RunError> {
        let Some((path, need)) = self.needs.iter().next() else {
            return Ok(());
        };
        Err(unusable_target(
            path,
            TargetProblem::LayoutForbidden {
                job: need.owner.1.clone(),
                file_bytes: need.existed.then_some(need.from),
                needed_bytes: need.size,
            },
        ))
    }

    /// Checks before any write that all files fit, next to those that earlier plans will leave.
    pub(crate) fn check_space(&self, planned: &PlannedFiles) -> Result<(), RunError> {
        let own = self
            .sizes
            .keys()
            .map(|path| self.room_beside(path, planned));
        let own: Vec<Room> = own.collect();
        // A full file system only matters to files that need more space of it.
        let wanted: BTreeSet<u64> = (own.iter().filter(|room| room.bytes > 0))
            .filter_map(|room| file_system(&room.path))
            .collect();
        let is_wanted =
            |room: &Room| file_system(&room.path).is_some_and(|at| wanted.contains(&at));
        let left = planned.needs().filter(is_wanted);
        let rooms: Vec<Room> = own.iter().cloned().chain(left).collect();
        space::check(&rooms).map_err(|error| match error {
            SpaceError::Short(short) => no_space(&short, &own, planned),
            SpaceError::View { path, fs_type } => {
                unusable_target(&path, TargetProblem::PseudoFileSystem { fs_type })
            }
            SpaceError::Unknown { path, source } => {
                target_error(&path, PathAction::Measure, &source)
            }
        })
    }

    /// Space that a file needs beyond its size after the earlier plans.
    fn room_beside(&self, path: &Path, planned: &PlannedFiles) -> Room {
        let before = Room::to_fill(path, planned.size(path)).bytes;
        let mut room = Room::to_fill(path, self.size_beside(path, planned));
        room.bytes = room.bytes.saturating_sub(before);
        room
    }

    /// Final size of a file, given its size after the earlier plans. 0 if it does not grow.
    pub(crate) fn size_beside(&self, path: &Path, planned: &PlannedFiles) -> u64 {
        let size = self.sizes.get(path).copied().unwrap_or_default();
        let appended = planned.size(path).saturating_add(size.appended);
        match size.appended {
            0 => size.bytes,
            _ => size.bytes.max(appended),
        }
    }

    /// Announcements, one for each worker with a layout: job name, number of files, total bytes.
    pub(crate) fn announcements(&self) -> Vec<(String, usize, u64)> {
        let mut of_workers: BTreeMap<u32, (String, usize, u64)> = BTreeMap::new();
        for need in self.needs.values() {
            let (number, job) = &need.owner;
            let line = of_workers
                .entry(*number)
                .or_insert_with(|| (job.clone(), 0, 0));
            line.1 += 1;
            line.2 += need.size.saturating_sub(need.from);
        }
        of_workers.into_values().collect()
    }

    /// Whether a worker needs files that will be laid out.
    pub fn concerns(&self, worker: &WorkerFiles) -> bool {
        let mut files = worker.files.iter();
        files.any(|file| self.needs.contains_key(&file.path))
    }

    /// Whether no file has to be laid out.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Bytes to write.
    pub fn bytes(&self) -> u64 {
        let data = self.needs.values().filter(|need| need.data);
        data.map(|need| need.size.saturating_sub(need.from)).sum()
    }
}

/// Identity of the file system of a path.
fn file_system(path: &Path) -> Option<u64> {
    space::space(path).ok().map(|space| space.file_system)
}

/// Error with the figures at that time: space that earlier plans will take is not available.
fn no_space(short: &Shortage, own: &[Room], planned: &PlannedFiles) -> RunError {
    let at = file_system(&short.path);
    let there = own.iter().filter(|room| file_system(&room.path) == at);
    RunError::NoSpace {
        path: short.path.display().to_string(),
        needed_bytes: there.fold(0, |sum, room| sum.saturating_add(room.bytes)),
        available_bytes: (short.available_bytes).saturating_sub(planned.taken_bytes(&short.path)),
    }
}
