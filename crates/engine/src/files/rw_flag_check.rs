//! Checks that the files of a job support the flags of its reads and writes (`atomic`,
//! `uncached`), before anything is written.

use super::file_errors::{target_error, unusable_target};
use crate::sys::c_library as libc;
use crate::sys::rw::check_uncached_read;
use crate::worker_files::{FileKind, WorkerFiles};
use iosonde_job::plan::{BlockSize, Direction, Job};
use iosonde_machine::atomic_writes::atomic_write_limits;
use iosonde_result::doctor::AtomicWriteLimits;
use iosonde_result::run_error::{PathAction, RunError, TargetProblem};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Refuses files that do not support `atomic` or `uncached` of a job, and blocks beyond the limits
/// of atomic writes. Files that do not exist yet are checked once they are open.
pub(crate) fn check_rw_flags(job: &Job, files: &WorkerFiles) -> Result<(), RunError> {
    let has_flags = job.io.atomic || job.io.uncached;
    if !has_flags || !job.io.engine.has_paths() {
        return Ok(());
    }
    for file in files.files.iter().filter(|it| it.kind != FileKind::Stream) {
        let path = file.path.as_path();
        let refused = |problem| unusable_target(path, problem);
        let failed = |error: io::Error| target_error(path, PathAction::Inspect, &error);
        if job.io.atomic {
            let limits = existing(atomic_write_limits(path)).map_err(failed)?;
            let problem = limits.and_then(|limits| atomic_problem(job, limits));
            problem.map_or(Ok(()), |problem| Err(refused(problem)))?;
        }
        if job.io.uncached
            && let Some(errno) = uncached_refusal(path)
        {
            let job = job.name.clone();
            return Err(refused(TargetProblem::UncachedRefused { job, errno }));
        }
    }
    Ok(())
}

/// Turns the absence of a file into `None`.
fn existing<T>(queried: io::Result<T>) -> io::Result<Option<T>> {
    match queried {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the problem of atomic writes of a job to a file with these limits.
fn atomic_problem(job: &Job, limits: Option<AtomicWriteLimits>) -> Option<TargetProblem> {
    let Some(limits) = limits else {
        return Some(TargetProblem::NoAtomicWrites {
            job: job.name.clone(),
        });
    };
    let sizes = &job.workload.block_size[Direction::Write];
    Some(TargetProblem::AtomicBlockSize {
        job: job.name.clone(),
        block_bytes: misfit(sizes, limits)?,
        min_bytes: limits.min_bytes,
        max_bytes: limits.max_bytes,
    })
}

/// Returns a block that cannot be written atomically: each has a power of two within the limits.
fn misfit(sizes: &BlockSize, limits: AtomicWriteLimits) -> Option<u64> {
    let fits = |bytes: &u64| {
        bytes.is_power_of_two() && (limits.min_bytes..=limits.max_bytes).contains(bytes)
    };
    match sizes {
        BlockSize::Fixed(bytes) => [*bytes].into_iter().find(|bytes| !fits(bytes)),
        // Three times the smallest block is the first size that is no power of two.
        BlockSize::Range { min, max } => [*min, *max, 3 * *min]
            .into_iter()
            .find(|bytes| bytes <= max && !fits(bytes)),
        BlockSize::Split(parts) => parts
            .iter()
            .map(|(bytes, _)| *bytes)
            .find(|bytes| !fits(bytes)),
    }
}

/// Returns the errno of a read with RWF_DONTCACHE, if the kernel or the file system refuses it. A
/// file that this process may not read is not tried.
fn uncached_refusal(path: &Path) -> Option<i32> {
    let file = File::open(path).ok()?;
    let refused = check_uncached_read(file.as_raw_fd()).err()?.raw_os_error();
    refused.filter(|errno| *errno == libc::EOPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FileUse;
    use iosonde_workload::FileRegion;

    const LIMITS: AtomicWriteLimits = AtomicWriteLimits {
        min_bytes: 4096,
        max_bytes: 16384,
    };

    fn files(path: &Path) -> WorkerFiles {
        WorkerFiles {
            files: vec![FileUse {
                path: path.to_owned(),
                kind: FileKind::Regular,
                size_now: None,
                size_needed: 4096,
                region: FileRegion {
                    start_bytes: 0,
                    size_bytes: 4096,
                    file_bytes: 4096,
                },
            }],
            ..WorkerFiles::NONE
        }
    }

    #[test]
    fn blocks_beyond_the_atomic_limits_are_refused() {
        let fixed = |bytes| misfit(&BlockSize::Fixed(bytes), LIMITS);
        for bytes in [4096, 8192, 16384] {
            assert_eq!(fixed(bytes), None);
        }
        for bytes in [512, 12288, 32768] {
            assert_eq!(fixed(bytes), Some(bytes));
        }
        let range = |min, max| misfit(&BlockSize::Range { min, max }, LIMITS);
        assert_eq!(range(4096, 8192), None);
        assert_eq!(range(4096, 16384), Some(12288));
        assert_eq!(range(2048, 4096), Some(2048));
        assert_eq!(range(8192, 32768), Some(32768));
        let split =
            |sizes: [u64; 2]| misfit(&BlockSize::Split(sizes.map(|it| (it, 50)).into()), LIMITS);
        assert_eq!(split([4096, 16384]), None);
        assert_eq!(split([4096, 65536]), Some(65536));
    }

    #[test]
    fn atomic_refusal_names_the_limits() {
        let mut job = Job::new("a");
        job.workload.block_size.write = BlockSize::Fixed(512);
        let expected = TargetProblem::AtomicBlockSize {
            job: "a".to_owned(),
            block_bytes: 512,
            min_bytes: 4096,
            max_bytes: 16384,
        };
        assert_eq!(atomic_problem(&job, Some(LIMITS)), Some(expected));
        job.workload.block_size.write = BlockSize::Fixed(4096);
        assert_eq!(atomic_problem(&job, Some(LIMITS)), None);
        let unsupported = atomic_problem(&job, None);
        assert!(matches!(
            unsupported,
            Some(TargetProblem::NoAtomicWrites { .. })
        ));
    }

    #[test]
    fn pseudo_file_refuses_atomic_and_uncached_io() {
        let refusal = |set: fn(&mut Job)| {
            let mut job = Job::new("a");
            set(&mut job);
            match check_rw_flags(&job, &files(Path::new("/proc/self/status"))) {
                Err(RunError::UnusableTarget { cause, .. }) => *cause,
                other => panic!("{other:?}"),
            }
        };
        let uncached = refusal(|job| job.io.uncached = true);
        assert!(
            matches!(
                uncached,
                TargetProblem::UncachedRefused {
                    errno: libc::EOPNOTSUPP,
                    ..
                }
            ),
            "{uncached:?}"
        );
        let atomic = refusal(|job| job.io.atomic = true);
        assert!(
            matches!(atomic, TargetProblem::NoAtomicWrites { .. }),
            "{atomic:?}"
        );
    }

    #[test]
    fn missing_files_are_checked_later() {
        let mut job = Job::new("a");
        (job.io.atomic, job.io.uncached) = (true, true);
        check_rw_flags(&job, &files(Path::new("/nonexistent/file"))).unwrap();
    }
}
