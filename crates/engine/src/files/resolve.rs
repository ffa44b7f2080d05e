//! Resolves names, sizes and regions of a job's files, without changing anything.

use super::file_errors::{target_error, unusable_target};
use super::region::{FileBeforeJob, behind_offset, end_of_part, min_block};
use crate::remote_storage::{RemoteStorage, image_bytes};
use crate::sys::block;
use crate::worker_files::{FileKind, FileUse, WorkerFiles};
use iosonde_job::plan::{BytesOrPercent, Direction, Engine, Job, JobFiles, MAX_FILE_BYTES};
use iosonde_machine::space::{is_boundless, space};
use iosonde_result::run_error::{PathAction, RunError, TargetProblem, UnsupportedFeature};
use iosonde_workload::FileRegion;
use iosonde_workload::files::start_offset_bytes;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

impl WorkerFiles {
    /// Files with names only, for a job whose files another job creates: sizes are not known yet.
    pub fn by_name(job: &Job, clone: u32) -> Result<WorkerFiles, RunError> {
        let nothing = FileRegion {
            start_bytes: 0,
            size_bytes: 0,
            file_bytes: 0,
        };
        let named = |path| FileUse {
            path,
            kind: FileKind::Regular,
            size_now: None,
            size_needed: 0,
            region: nothing,
        };
        Ok(WorkerFiles {
            files: paths(job, clone)?.into_iter().map(named).collect(),
            size_bytes: 0,
            io_bytes: None,
        })
    }
}

/// Resolves the files of clone `clone` of a job, and their sizes.
pub fn resolve(
    job: &Job,
    clone: u32,
    remote: Option<&dyn RemoteStorage>,
) -> Result<WorkerFiles, RunError> {
    resolve_beside(job, clone, remote, &|_| None)
}

/// Like [`resolve`], with the layout of earlier workers: as in fio, `file_append` starts at the
/// size that their layout gives a file, which `laid_out` returns.
pub(crate) fn resolve_beside(
    job: &Job,
    clone: u32,
    remote: Option<&dyn RemoteStorage>,
    laid_out: &dyn Fn(&Path) -> Option<u64>,
) -> Result<WorkerFiles, RunError> {
    let paths = paths(job, clone)?;
    if matches!(job.io.engine, Engine::Null | Engine::Sim) {
        return without_files(job, clone, &paths);
    }
    let mut files = Vec::with_capacity(paths.len());
    let count = paths.len() as u64;
    for (path, index) in paths.into_iter().zip(0u64..) {
        let end = laid_out(&path).filter(|_| job.files.file_append);
        let existing = existing_file(job, remote, &path)?;
        files.push(one_file(job, clone, (path, existing), (index, count), end)?);
    }
    let sizes = files.iter().map(|file| file.region.size_bytes);
    let regions: u64 = sizes.fold(0, u64::saturating_add);
    if regions == 0 {
        return Err(no_size(job));
    }
    let size_bytes = match job.files.size {
        Some(BytesOrPercent::Bytes(size)) => size.min(regions),
        _ => regions,
    };
    Ok(WorkerFiles {
        files,
        size_bytes,
        io_bytes: io_bytes(&job.files, size_bytes),
    })
}

/// `io_size` in bytes. A percentage refers to the size.
fn io_bytes(files: &JobFiles, size_bytes: u64) -> Option<u64> {
    files.io_size.map(|extent| match extent {
        BytesOrPercent::Bytes(bytes) => bytes,
        BytesOrPercent::Percent(percent) => (size_bytes as f64 * percent / 100.0) as u64,
    })
}

fn no_size(job: &Job) -> RunError {
    unusable_target(Path::new(&job.name), TargetProblem::NoSize)
}

/// Paths below `directory`, from `filename` or `filename_format`.
fn paths(job: &Job, clone: u32) -> Result<Vec<PathBuf>, RunError> {
    let files = &job.files;
    if job.io.engine == Engine::Rbd {
        let image = job.io.ceph.as_ref().and_then(|ceph| ceph.image.clone());
        return Ok(vec![PathBuf::from(image.unwrap_or_default())]);
    }
    let prefix = match files.directories.len() {
        0 => String::new(),
        count => {
            // As in fio, all files of `filename` are in the first directory.
            let made_up = files.filenames.is_empty();
            let directory = &files.directories[if made_up { clone as usize % count } else { 0 }];
            check_directory(job, directory)?;
            format!("{}/", directory.trim_end_matches('/'))
        }
    };
    let names: Vec<String> = if files.filenames.is_empty() && !files.opendir.is_empty() {
        Vec::new()
    } else if files.filenames.is_empty() {
        let format = files
            .filename_format
            .as_deref()
            .unwrap_or("$jobname.$jobnum.$filenum");
        let job_name = files.section.as_ref().unwrap_or(&job.name);
        (0..files.nrfiles)
            .map(|file| file_name(format, job_name, clone, file))
            .collect()
    } else {
        files.filenames.clone()
    };
    let mut paths: Vec<PathBuf> = names
        .into_iter()
        .map(|name| PathBuf::from(format!("{prefix}{name}")))
        .collect();
    for directory in &files.opendir {
        paths.extend(files_below(Path::new(directory))?);
    }
    Ok(paths)
}

/// All files below a directory, sorted by path.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut found = Vec::new();
    add_files_below(directory, &mut found)
        .map_err(|error| target_error(directory, PathAction::Read, &error))?;
    found.sort();
    Ok(found)
}

/// Requires that `directory` exists: only directories within file names are created.
fn check_directory(job: &Job, directory: &str) -> Result<(), RunError> {
    if !job.io.engine.has_paths() {
        return Ok(());
    }
    let path = Path::new(directory);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(unusable_target(path, TargetProblem::FileAsDirectory)),
        Err(error) => Err(target_error(path, PathAction::Use, &error)),
    }
}

/// Expands `filename_format`.
fn file_name(format: &str, job: &str, clone: u32, file: u32) -> String {
    let mut name = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        name.push_str(&rest[..at]);
        let tail = &rest[at..];
        let lower = tail.to_ascii_lowercase();
        let (value, length) = if lower.starts_with("$jobname") {
            // As in fio, a slash in a job's name makes a directory.
            (job.to_owned(), 8)
        } else if lower.starts_with("$jobnum") {
            (clone.to_string(), 7)
        } else if lower.starts_with("$filenum") {
            (file.to_string(), 8)
        } else if lower.starts_with("$clientuid") {
            (String::new(), 10)
        } else {
            ("$".to_owned(), 1)
        };
        name.push_str(&value);
        rest = &tail[length..];
    }
    name.push_str(rest);
    name
}

fn add_files_below(directory: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add_files_below(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Regions for engines without files, with the sizes of the options.
fn without_files(job: &Job, clone: u32, paths: &[PathBuf]) -> Result<WorkerFiles, RunError> {
    let count = paths.len().max(1) as u64;
    let each = match (job.files.filesize, job.files.size) {
        (Some((_, high)), _) => high,
        (None, Some(BytesOrPercent::Bytes(size))) => size / count,
        (None, _) => return Err(no_size(job)),
    };
    let start_bytes = start_offset_bytes(&job.files, clone, each, min_block(job));
    let size_bytes = match job.files.filesize {
        Some(_) => behind_offset(each, start_bytes, Path::new(&job.name))?,
        None => each,
    };
    let region = FileRegion {
        start_bytes,
        size_bytes,
        file_bytes: end_of_part(start_bytes, size_bytes, Path::new(&job.name))?,
    };
    // Without `size`, the job's size is the sum of its files.
    let regions = size_bytes.saturating_mul(count);
    let size = match job.files.size {
        Some(BytesOrPercent::Bytes(size)) => size,
        Some(BytesOrPercent::Percent(percent)) => {
            (regions as f64 * percent.min(100.0) / 100.0) as u64
        }
        None => regions,
    };
    let files = paths
        .iter()
        .map(|path| FileUse {
            path: path.clone(),
            kind: FileKind::Regular,
            size_now: Some(region.file_bytes),
            size_needed: region.file_bytes,
            region,
        })
        .collect();
    Ok(WorkerFiles {
        files,
        size_bytes: size,
        io_bytes: io_bytes(&job.files, size),
    })
}

fn one_file(
    job: &Job,
    clone: u32,
    (path, (size_now, kind)): (PathBuf, (Option<u64>, FileKind)),
    (index, count): (u64, u64),
    laid_out: Option<u64>,
) -> Result<FileUse, RunError> {
    let known = size_now.max(laid_out).unwrap_or(0);
    let wanted = wanted_size(job, known, kind, index, count, &path)?;
    let file = FileBeforeJob {
        path: &path,
        kind,
        bytes: known,
    };
    let (start, size_bytes) = file.part(job, clone, wanted)?;
    let needed = match kind {
        FileKind::BlockDevice => known,
        FileKind::Regular | FileKind::Stream => end_of_part(start, size_bytes, &path)?.max(known),
    };
    let region = FileRegion {
        start_bytes: start,
        size_bytes,
        file_bytes: needed,
    };
    Ok(FileUse {
        path,
        kind,
        size_now,
        size_needed: needed,
        region,
    })
}

/// Current size and type of a job's file. Objects are looked up later. An image is like a device.
fn existing_file(
    job: &Job,
    remote: Option<&dyn RemoteStorage>,
    path: &Path,
) -> Result<(Option<u64>, FileKind), RunError> {
    match job.io.engine {
        Engine::Rados => Ok((None, FileKind::Regular)),
        Engine::Rbd => Ok((Some(image_bytes(remote, job)?), FileKind::BlockDevice)),
        _ => existing(path),
    }
}

/// Current size and type of the file at a path.
pub(super) fn existing(path: &Path) -> Result<(Option<u64>, FileKind), RunError> {
    if path == Path::new("-") {
        return Err(unusable_target(path, TargetProblem::StandardStream));
    }
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((None, FileKind::Regular));
        }
        Err(error) => return Err(target_error(path, PathAction::Inspect, &error)),
    };
    let kind = metadata.file_type();
    if metadata.is_dir() {
        return Err(unusable_target(path, TargetProblem::DirectoryAsFile));
    }
    if kind.is_block_device() {
        let file = std::fs::File::open(path)
            .map_err(|error| target_error(path, PathAction::Open, &error))?;
        let size = block::device_size_bytes(file.as_raw_fd())
            .map_err(|error| target_error(path, PathAction::Measure, &error))?;
        return Ok((Some(size), FileKind::BlockDevice));
    }
    if kind.is_fifo() || kind.is_socket() {
        return Err(unusable_target(path, TargetProblem::PipeOrSocket));
    }
    match kind.is_file() {
        true => Ok((Some(metadata.len()), FileKind::Regular)),
        false => Ok((Some(0), FileKind::Stream)),
    }
}

/// File size requested by `filesize` or `size`. `None` keeps the size, also with a percentage.
fn wanted_size(
    job: &Job,
    known: u64,
    kind: FileKind,
    index: u64,
    count: u64,
    path: &Path,
) -> Result<Option<u64>, RunError> {
    if let Some((low, high)) = job.files.filesize {
        // Derived from the index, so that a file has the same size in every run.
        let span = (high - low).saturating_add(1);
        let drawn = low + iosonde_workload::rng::mix64(index + 1) % span;
        return Ok(Some(
            if low == high {
                low
            } else {
                drawn - drawn % min_block(job).max(1)
            }
            .max(low),
        ));
    }
    if fills_device(job) && kind == FileKind::Regular {
        if job.io.engine == Engine::Mmap {
            return Err(UnsupportedFeature::MmapFixedSize {
                job: job.name.clone(),
            }
            .into());
        }
        return room_to_fill(job, known, path);
    }
    Ok(match job.files.size {
        Some(BytesOrPercent::Bytes(size)) => Some(size / count.max(1)),
        Some(BytesOrPercent::Percent(_)) | None => None,
    })
}

/// Whether the job writes until the file system is full. As in fio, `size` overrides `fill_device`.
pub(super) fn fills_device(job: &Job) -> bool {
    job.files.fill_device && job.files.size.is_none()
}

/// Whether only ENOSPC ends the job's writes, or the layout of its file.
pub(crate) fn fills_all(job: &Job) -> bool {
    let of_ios = job.files.io_size.is_some() || job.workload.number_ios.is_some();
    let is_bounded = of_ios || job.schedule.runtime_ns > 0;
    fills_device(job) && (needs_data(job) || !is_bounded)
}

/// File size beyond the file system, so that writes reach ENOSPC. `None`: read what exists.
fn room_to_fill(job: &Job, known: u64, path: &Path) -> Result<Option<u64>, RunError> {
    if needs_data(job) && known > 0 {
        return Ok(None);
    }
    if is_boundless(path) {
        return Err(unusable_target(path, TargetProblem::FillOfRamfs));
    }
    let space =
        space(path).map_err(|error| target_error(path, PathAction::MeasureFileSystem, &error))?;
    let beyond = space.total_bytes.saturating_mul(2).min(MAX_FILE_BYTES / 2);
    Ok(Some(beyond.max(known)))
}

/// Whether the job needs data before it starts. As in fio, a mapped file is filled.
pub fn needs_data(job: &Job) -> bool {
    let is_mapped = job.io.engine == Engine::Mmap;
    job.workload.rw.has(Direction::Read) || job.files.overwrite || is_mapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_files_a_job_is_as_large_as_filesize_says() {
        let size = |options: &str| {
            let words = format!("--name=a --ioengine=null {options}");
            let words: Vec<std::ffi::OsString> = words.split(' ').map(Into::into).collect();
            let parsed = iosonde_job::parse(&words, &iosonde_job::env::FakeEnv::new()).unwrap();
            let made = resolve(&parsed.plan.jobs[0], 0, None)?;
            Ok::<_, RunError>((made.size_bytes, made.files[0].region.size_bytes))
        };
        assert_eq!(size("--filesize=1m"), Ok((1 << 20, 1 << 20)));
        assert_eq!(size("--filesize=1m --nrfiles=4"), Ok((4 << 20, 1 << 20)));
        assert_eq!(size("--filesize=1m --size=50%"), Ok((512 << 10, 1 << 20)));
        assert_eq!(
            size("--filesize=1m --offset=256k"),
            Ok((768 << 10, 768 << 10))
        );
        let error = RunError::unusable_target("a", TargetProblem::NoSize);
        assert_eq!(size("--size=50%"), Err(error));
    }

    #[test]
    fn region_beyond_8_eib_is_an_error() {
        let resolved = |options: &str| {
            let words = format!("--name=a --filename=/nonexistent {options}");
            let words: Vec<std::ffi::OsString> = words.split(' ').map(Into::into).collect();
            let parsed = iosonde_job::parse(&words, &iosonde_job::env::FakeEnv::new()).unwrap();
            resolve(&parsed.plan.jobs[0], 2, None).map(drop)
        };
        for engine in ["null", "psync"] {
            for options in [
                "--size=9223372036854775807 --offset=4k",
                "--size=1m --offset=9223372036854775807 --offset_increment=9223372036854775807",
            ] {
                let error = resolved(&format!("--ioengine={engine} {options}"));
                let limit = match &error {
                    Err(RunError::UnusableTarget { cause, .. }) => match **cause {
                        TargetProblem::OffsetOverMaximum { limit_bytes, .. } => Some(limit_bytes),
                        _ => None,
                    },
                    _ => None,
                };
                assert_eq!(limit, Some(MAX_FILE_BYTES), "{engine} {options}: {error:?}");
            }
        }
        assert!(resolved("--filesize=0-9223372036854775807").is_ok());
        let many = "--ioengine=null --filesize=9223372036854775807 --nrfiles=4";
        assert!(resolved(many).is_ok());
    }

    #[test]
    fn file_names_follow_the_format() {
        assert_eq!(
            file_name("$jobname.$jobnum.$filenum", "job", 2, 7),
            "job.2.7"
        );
        assert_eq!(file_name("x$JobNum$$y", "job", 3, 0), "x3$$y");
        assert_eq!(file_name("$jobname", "a/b", 0, 0), "a/b");
        assert_eq!(file_name("f.$clientuid.$jobnum", "a", 1, 0), "f..1");
    }
}
