//! Lays files out: writes all data that jobs will read, with data that do not compress.

use super::created::{CreatedFiles, FileId};
use super::file_contents::Filler;
use super::open::ignore_unsupported;
use super::planned_files::ToBe;
use super::resolve::{FileKind, FileUse, WorkerFiles, fills_device, needs_data, target_error};
use crate::interrupt::Interrupt;
use crate::sys::block;
use iosonde_job::plan::{Engine, Fallocate, Job};
use iosonde_machine::space::{self, Need as Room, Shortage, SpaceError, is_boundless};
use iosonde_result::session::RunError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Layout of one file.
#[derive(Debug, Clone, PartialEq)]
struct Need {
    size: u64,
    existed: bool,
    /// Size of an existing file. Its data below this offset belong to the user and are kept.
    from: u64,
    data: bool,
    /// Whether the file is mapped, and so needs its size before the first write.
    mapped: bool,
    /// Whether data are written until the file system is full.
    until_full: bool,
    /// Whether ENOSPC is ignored here, because the job's writes report it.
    may_run_full: bool,
    fallocate: Fallocate,
    create: bool,
    fsync: bool,
    /// Number and job name of the first worker that needs the file.
    owner: (u32, String),
}

/// Files that a plan needs and that are missing or too short.
#[derive(Debug, Default)]
pub struct Layout {
    needs: BTreeMap<PathBuf, Need>,
    /// Final sizes of files, laid out or not, without files that may run out of space.
    sizes: BTreeMap<PathBuf, Size>,
    /// Whether files that jobs write may exceed the available space.
    may_run_full: bool,
}

/// Final size of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    bytes: u64,
    /// Bytes of these that follow the size at the start of the job (`file_append`).
    appended: u64,
}

/// Files and directories created for a run.
#[derive(Debug, Clone, Default)]
pub struct Made {
    /// Created files.
    pub created: CreatedFiles,
    /// Created directories, outer ones first.
    pub directories: Vec<PathBuf>,
}

impl Layout {
    /// An empty layout. `may_run_full`: files that jobs write may exceed the available space.
    pub fn new(may_run_full: bool) -> Layout {
        Layout {
            may_run_full,
            ..Layout::default()
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
    pub fn size_at_start(&self, path: &Path) -> Option<u64> {
        let grows = |need: &&Need| {
            let sets_size = !matches!(need.fallocate, Fallocate::None | Fallocate::Keep);
            need.data || need.mapped || sets_size
        };
        self.needs.get(path).filter(grows).map(|need| need.size)
    }

    fn need(&mut self, job: &Job, number: u32, file: &FileUse, data: bool) {
        let may_run_full = self.may_find_no_room(job, &file.path, data);
        let need = self.needs.entry(file.path.clone()).or_insert_with(|| Need {
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
    pub fn refuse_writes(&self) -> Result<(), RunError> {
        let Some((path, need)) = self.needs.iter().next() else {
            return Ok(());
        };
        let found = match need.existed {
            true => format!("it has {} bytes", need.from),
            false => "it does not exist".to_owned(),
        };
        Err(RunError::Target {
            path: path.display().to_string(),
            problem: format!(
                "{found}, job {} needs {} bytes of it, and --readonly forbids to lay them out",
                need.owner.1, need.size
            ),
            remedy: "use a size= that the file has, name another file, or leave --readonly out"
                .to_owned(),
        })
    }

    /// Checks before any write that all files fit, next to those that earlier plans will leave.
    pub fn check_space(&self, to_be: &ToBe) -> Result<(), RunError> {
        let own = self.sizes.keys().map(|path| self.room_beside(path, to_be));
        let own: Vec<Room> = own.collect();
        // A full file system only matters to files that need more space of it.
        let wanted: BTreeSet<u64> = (own.iter().filter(|room| room.bytes > 0))
            .filter_map(|room| file_system(&room.path))
            .collect();
        let is_wanted =
            |room: &Room| file_system(&room.path).is_some_and(|at| wanted.contains(&at));
        let left = to_be.needs().filter(is_wanted);
        let rooms: Vec<Room> = own.iter().cloned().chain(left).collect();
        space::check(&rooms).map_err(|error| match error {
            SpaceError::Short(short) => no_space(&short, &own, to_be),
            SpaceError::View { path, fs_type } => RunError::Target {
                path: path.display().to_string(),
                problem: format!("{fs_type} keeps no data, it shows the kernel's state"),
                remedy: "name a directory on a disk, e.g. directory=/var/tmp".to_owned(),
            },
            SpaceError::Unknown { path, source } => target_error(&path, "measure", &source),
        })
    }

    /// Space that a file needs beyond its size after the earlier plans.
    fn room_beside(&self, path: &Path, to_be: &ToBe) -> Room {
        let before = Room::to_fill(path, to_be.size(path)).bytes;
        let mut room = Room::to_fill(path, self.size_beside(path, to_be));
        room.bytes = room.bytes.saturating_sub(before);
        room
    }

    /// Final size of a file, given its size after the earlier plans. 0 if it does not grow.
    pub fn size_beside(&self, path: &Path, to_be: &ToBe) -> u64 {
        let size = self.sizes.get(path).copied().unwrap_or_default();
        let appended = to_be.size(path).saturating_add(size.appended);
        match size.appended {
            0 => size.bytes,
            _ => size.bytes.max(appended),
        }
    }

    /// Announcements, one for each worker with a layout: job name, number of files, total bytes.
    pub fn announcements(&self) -> Vec<(String, usize, u64)> {
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
fn no_space(short: &Shortage, own: &[Room], to_be: &ToBe) -> RunError {
    let at = file_system(&short.path);
    let there = own.iter().filter(|room| file_system(&room.path) == at);
    RunError::NoSpace {
        path: short.path.display().to_string(),
        needed_bytes: there.fold(0, |sum, room| sum.saturating_add(room.bytes)),
        available_bytes: (short.available_bytes).saturating_sub(to_be.taken_bytes(&short.path)),
    }
}

/// Lays out all files and adds new ones to `created`. A failure or a request of `stops` removes
/// them; with `keep`, an interrupt keeps complete ones. Calls `written` with the bytes so far.
pub fn lay_out(
    layout: &Layout,
    keep: bool,
    stops: &[&Interrupt],
    created: &CreatedFiles,
    written: &mut dyn FnMut(u64),
) -> Result<Made, RunError> {
    let mut made = Made {
        created: created.clone(),
        directories: Vec::new(),
    };
    let mut finished = Vec::new();
    match lay_out_into(&mut made, &mut finished, layout, stops, written) {
        Ok(()) => Ok(made),
        Err(error) => {
            let is_kept = keep && matches!(error, RunError::Interrupted);
            if !is_kept {
                finished.into_iter().for_each(|path| created.remove(path));
            }
            made.remove_directories();
            Err(error)
        }
    }
}

fn lay_out_into<'a>(
    made: &mut Made,
    finished: &mut Vec<&'a Path>,
    layout: &'a Layout,
    stops: &[&Interrupt],
    written: &mut dyn FnMut(u64),
) -> Result<(), RunError> {
    let mut filler = Filler::default();
    let mut done = 0;
    // Identities of existing files that this layout has extended, to recognise their other names.
    let mut extended = BTreeSet::new();
    for (path, need) in &layout.needs {
        if stops.iter().any(|stop| stop.is_requested()) {
            return Err(RunError::Interrupted);
        }
        if !need.existed && !need.create {
            return Err(must_not_create(path));
        }
        made.parents_of(path)?;
        let (file, is_new) = open_to_lay_out(path, need, &made.created, &mut extended)?;
        let before = done;
        let outcome = one_file(path, &file, need, &mut filler, stops, &mut |bytes| {
            done = before + bytes;
            written(done);
        });
        match outcome {
            Ok(()) if is_new => finished.push(path.as_path()),
            Ok(()) => {}
            Err(error) => {
                // An incomplete file is of no use.
                if is_new {
                    made.created.remove(path);
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Opens a file that is as it was at its check, or fails. Returns whether it was created now.
fn open_to_lay_out(
    path: &Path,
    need: &Need,
    created: &CreatedFiles,
    extended: &mut BTreeSet<FileId>,
) -> Result<(File, bool), RunError> {
    let fail = |error: std::io::Error| target_error(path, "look at", &error);
    let mut options = OpenOptions::new();
    // O_NONBLOCK, because the path may have become a FIFO.
    options.write(true).custom_flags(libc::O_NONBLOCK);
    let (file, is_new) = match need.existed {
        true => (created.open_existing(path, &options), false),
        false => match created.open_missing(path, &options, false) {
            Ok((file, is_new)) => (Ok(file), is_new),
            Err(error) => (Err(error), false),
        },
    };
    let doing = if need.existed { "open" } else { "make" };
    let file = file.map_err(|failure| failure.into_error(path, doing))?;
    if need.existed {
        let found = file.metadata().map_err(fail)?;
        let id = FileId::of(&found);
        if found.len() != need.from && !extended.contains(&id) && !created.has(id) {
            return Err(has_changed(path, need.from, found.len()));
        }
        extended.insert(id);
    }
    Ok((file, is_new))
}

/// Error: another program writes to the file.
fn has_changed(path: &Path, before: u64, now: u64) -> RunError {
    RunError::Target {
        path: path.display().to_string(),
        problem: format!(
            "it had {before} bytes when the run began and has {now} bytes now, so another program uses it; it is left as it is"
        ),
        remedy: "name another file, or run it again once that program has ended".to_owned(),
    }
}

/// Error: the file does not exist, and `allow_file_create=0`.
pub(super) fn must_not_create(path: &Path) -> RunError {
    RunError::Target {
        path: path.display().to_string(),
        problem: "it does not exist, and allow_file_create=0 forbids to make it".to_owned(),
        remedy: "name an existing file, or leave allow_file_create out".to_owned(),
    }
}

impl Made {
    /// Creates the missing parent directories of a path, as fio does.
    pub fn parents_of(&mut self, path: &Path) -> Result<(), RunError> {
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|parent| !parent.as_os_str().is_empty() && !parent.exists())
            .collect();
        for directory in missing.into_iter().rev() {
            std::fs::create_dir(directory)
                .map_err(|error| target_error(directory, "make", &error))?;
            self.directories.push(directory.to_owned());
        }
        Ok(())
    }

    /// Adds files and directories that another layout has created.
    pub fn extend(&mut self, other: Made) {
        self.created.extend(&other.created);
        self.directories.extend(other.directories);
    }

    /// Removes all created files and directories.
    pub fn remove(&self) {
        self.created.remove_all();
        self.remove_directories();
    }

    fn remove_directories(&self) {
        for path in self.directories.iter().rev() {
            // A directory with files of others is kept.
            let _ = std::fs::remove_dir(path);
        }
    }
}

fn one_file(
    path: &Path,
    file: &File,
    need: &Need,
    filler: &mut Filler,
    stops: &[&Interrupt],
    written: &mut dyn FnMut(u64),
) -> Result<(), RunError> {
    let fail = |doing: &'static str| move |error: std::io::Error| target_error(path, doing, &error);
    if need.until_full {
        filler.until_full(path, file, need.from, stops, written)?;
    } else {
        match reserve(file, need) {
            Err(error) if need.may_run_full && error.raw_os_error() == Some(libc::ENOSPC) => {}
            reserved => reserved.map_err(fail("reserve space for"))?,
        }
        if need.data || need.mapped {
            grow(file, need.size).map_err(fail("size"))?;
        }
        if need.data {
            filler.fill(path, file, need.from..need.size, stops, written)?;
        }
    }
    if need.fsync && need.data {
        file.sync_all().map_err(fail("flush"))?;
    }
    if need.size > need.from {
        // As in fio, regardless of `invalidate`: reads of laid-out data reach the device.
        block::drop_cache(file.as_raw_fd(), need.from, need.size - need.from)
            .or_else(ignore_unsupported)
            .map_err(fail("drop the cache of"))?;
    }
    Ok(())
}

/// Reserves space by the method of `fallocate`, and sets the size.
fn reserve(file: &File, need: &Need) -> std::io::Result<()> {
    let fd = file.as_raw_fd();
    let unsupported = |error: &std::io::Error| {
        matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
    };
    match need.fallocate {
        Fallocate::Native => match block::fallocate(fd, 0, 0, need.size) {
            Err(error) if unsupported(&error) => grow(file, need.size),
            other => other,
        },
        Fallocate::Keep => match block::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, 0, need.size) {
            Err(error) if unsupported(&error) => Ok(()),
            other => other,
        },
        Fallocate::Posix => block::posix_fallocate(fd, need.size),
        Fallocate::Truncate => grow(file, need.size),
        // Writes extend the file.
        Fallocate::None => Ok(()),
    }
}

/// Extends a file. Never truncates it.
fn grow(file: &File, bytes: u64) -> std::io::Result<()> {
    match file.metadata()?.len() < bytes {
        true => file.set_len(bytes),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out_after(change: impl Fn(&Path)) -> (tempfile::TempDir, Result<Made, RunError>) {
        let scratch = tempfile::tempdir().unwrap();
        let name = scratch.path().to_str().unwrap();
        std::fs::write(scratch.path().join("there"), [1; 100]).unwrap();
        let words = format!(
            "--directory={name} --rw=read --bs=512 --size=4k --name=a --filename=missing --name=b --filename=there"
        );
        let words: Vec<std::ffi::OsString> = words.split(' ').map(Into::into).collect();
        let plan = iosonde_job::parse(&words, &iosonde_job::env::FakeEnv::new());
        let mut layout = Layout::new(false);
        for (number, job) in (0..).zip(&plan.unwrap().plan.jobs) {
            let files = super::super::resolve(job, 0).unwrap();
            layout.add(job, number, &files);
        }
        change(scratch.path());
        let made = lay_out(&layout, false, &[], &CreatedFiles::default(), &mut |_| {});
        (scratch, made)
    }

    #[test]
    fn file_that_appears_before_its_layout_is_left_alone() {
        let (scratch, made) = lay_out_after(|_| {});
        made.unwrap().remove();
        assert!(!scratch.path().join("missing").exists());
        assert_eq!(
            std::fs::read(scratch.path().join("there")).unwrap()[..100],
            [1; 100]
        );
        let (scratch, made) = lay_out_after(|directory| {
            std::fs::write(directory.join("missing"), "precious").unwrap();
        });
        let error = made.unwrap_err().to_string();
        assert!(
            error.contains("missing") && error.contains("another program"),
            "{error}"
        );
        assert_eq!(
            std::fs::read(scratch.path().join("missing")).unwrap(),
            b"precious"
        );
    }

    #[test]
    fn file_that_changes_before_its_layout_is_left_alone() {
        for bytes in [50, 200, 8192] {
            let (scratch, made) = lay_out_after(|directory| {
                std::fs::write(directory.join("there"), vec![2; bytes]).unwrap();
            });
            let error = made.unwrap_err().to_string();
            assert!(error.contains(&format!("has {bytes} bytes now")), "{error}");
            assert_eq!(
                std::fs::read(scratch.path().join("there")).unwrap(),
                vec![2; bytes]
            );
            assert!(
                !scratch.path().join("missing").exists(),
                "the file made before it is removed"
            );
        }
    }
}
