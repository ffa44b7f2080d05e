//! Lays files out: writes all data that jobs will read, with data that do not compress.

use super::created::{CreatedFiles, FileId};
use super::created_paths::CreatedPaths;
use super::file_contents::Filler;
use super::file_errors::{ignore_unsupported, must_not_create, target_error, unusable_target};
use super::pending_layout::{FileNeed, PendingLayout};
use crate::interrupt::Interrupt;
use crate::sys::block;
use crate::sys::c_library as libc;
use iosonde_job::plan::Fallocate;
use iosonde_result::run_error::{PathAction, RunError, TargetProblem};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Lays out all files and adds new ones to `created`. A failure or a request of `stops` removes
/// them; with `keep`, an interrupt keeps complete ones. Calls `written` with the bytes so far.
pub fn lay_out(
    layout: &PendingLayout,
    keep: bool,
    stops: &[&Interrupt],
    created: &CreatedFiles,
    written: &mut dyn FnMut(u64),
) -> Result<CreatedPaths, RunError> {
    let mut made = CreatedPaths {
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
    made: &mut CreatedPaths,
    finished: &mut Vec<&'a Path>,
    layout: &'a PendingLayout,
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
        made.create_parents(path)?;
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
    need: &FileNeed,
    created: &CreatedFiles,
    extended: &mut BTreeSet<FileId>,
) -> Result<(File, bool), RunError> {
    let fail = |error: std::io::Error| target_error(path, PathAction::Inspect, &error);
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
    let doing = if need.existed {
        PathAction::Open
    } else {
        PathAction::Create
    };
    let file = file.map_err(|failure| failure.into_error(path, doing))?;
    if need.existed {
        let found = file.metadata().map_err(fail)?;
        let id = FileId::from_metadata(&found);
        if found.len() != need.from && !extended.contains(&id) && !created.has(id) {
            return Err(has_changed(path, need.from, found.len()));
        }
        extended.insert(id);
    }
    Ok((file, is_new))
}

/// Error: another program writes to the file.
fn has_changed(path: &Path, before: u64, now: u64) -> RunError {
    unusable_target(
        path,
        TargetProblem::ChangedByOthers {
            before_bytes: before,
            now_bytes: now,
        },
    )
}

fn one_file(
    path: &Path,
    file: &File,
    need: &FileNeed,
    filler: &mut Filler,
    stops: &[&Interrupt],
    written: &mut dyn FnMut(u64),
) -> Result<(), RunError> {
    let fail = |doing: PathAction| move |error: std::io::Error| target_error(path, doing, &error);
    if need.until_full {
        filler.until_full(path, file, need.from, stops, written)?;
    } else {
        match reserve(file, need) {
            Err(error) if need.may_run_full && error.raw_os_error() == Some(libc::ENOSPC) => {}
            reserved => reserved.map_err(fail(PathAction::Reserve))?,
        }
        if need.data || need.mapped {
            extend_file(file, need.size).map_err(fail(PathAction::Resize))?;
        }
        if need.data {
            filler.fill(path, file, need.from..need.size, stops, written)?;
        }
    }
    if need.fsync && need.data {
        file.sync_all().map_err(fail(PathAction::Flush))?;
    }
    if need.size > need.from {
        // As in fio, regardless of `invalidate`: reads of laid-out data reach the device.
        block::drop_cache(file.as_raw_fd(), need.from, need.size - need.from)
            .or_else(ignore_unsupported)
            .map_err(fail(PathAction::DropCache))?;
    }
    Ok(())
}

/// Reserves space by the method of `fallocate`, and sets the size.
fn reserve(file: &File, need: &FileNeed) -> std::io::Result<()> {
    let fd = file.as_raw_fd();
    let unsupported = |error: &std::io::Error| {
        matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
    };
    match need.fallocate {
        Fallocate::Native => match block::fallocate(fd, 0, 0, need.size) {
            Err(error) if unsupported(&error) => extend_file(file, need.size),
            other => other,
        },
        Fallocate::Keep => match block::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, 0, need.size) {
            Err(error) if unsupported(&error) => Ok(()),
            other => other,
        },
        Fallocate::Posix => block::posix_fallocate(fd, need.size),
        Fallocate::Truncate => extend_file(file, need.size),
        // Writes extend the file.
        Fallocate::None => Ok(()),
    }
}

/// Extends a file. Never truncates it.
fn extend_file(file: &File, bytes: u64) -> std::io::Result<()> {
    match file.metadata()?.len() < bytes {
        true => file.set_len(bytes),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out_after(
        change: impl Fn(&Path),
    ) -> (tempfile::TempDir, Result<CreatedPaths, RunError>) {
        let scratch = tempfile::tempdir().unwrap();
        let name = scratch.path().to_str().unwrap();
        std::fs::write(scratch.path().join("there"), [1; 100]).unwrap();
        let words = format!(
            "--directory={name} --rw=read --bs=512 --size=4k --name=a --filename=missing \
             --name=b --filename=there"
        );
        let words: Vec<std::ffi::OsString> = words.split(' ').map(Into::into).collect();
        let plan = iosonde_job::parse(&words, &iosonde_job::env::FakeEnv::new());
        let mut layout = PendingLayout::new(false);
        for (number, job) in (0..).zip(&plan.unwrap().plan.jobs) {
            let files = super::super::resolve(job, 0, None).unwrap();
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
        let path = scratch.path().join("missing").display().to_string();
        let expected = RunError::unusable_target(path, TargetProblem::CreatedByOthers);
        assert_eq!(made.map(drop), Err(expected));
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
            let path = scratch.path().join("there").display().to_string();
            let changed = TargetProblem::ChangedByOthers {
                before_bytes: 100,
                now_bytes: bytes as u64,
            };
            let expected = RunError::unusable_target(path, changed);
            assert_eq!(made.map(drop), Err(expected));
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
