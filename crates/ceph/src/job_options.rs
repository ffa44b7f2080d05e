//! Options of a job that the preparation of its files and its backend share.

use iosonde_job::plan::{Ceph, Direction, Job};
use iosonde_result::run_error::{RunError, UnsupportedFeature};

/// Ceph options of a job. The parser ensures that they exist.
pub(crate) fn ceph_options(job: &Job) -> Result<&Ceph, RunError> {
    job.io.ceph.as_deref().ok_or_else(|| {
        RunError::from(UnsupportedFeature::NoPool {
            job: job.name.clone(),
        })
    })
}

/// Whether the cache of librbd shall acknowledge the writes of a job. As in fio, a job with
/// `direct=1` does not ask for it.
pub(crate) fn uses_write_cache(job: &Job) -> bool {
    writes_data(job) && !job.io.direct
}

/// Whether a job writes data. With `verify_only`, it reads those of an earlier run instead.
pub(crate) fn writes_data(job: &Job) -> bool {
    let only_verifies = job.verify.as_ref().is_some_and(|verify| verify.verify_only);
    job.workload.rw.has(Direction::Write) && !only_verifies
}

/// Whether a job writes or discards data.
pub(crate) fn changes_data(job: &Job) -> bool {
    let rw = job.workload.rw;
    rw.has(Direction::Write) || rw.has(Direction::Trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{ReadWrite, ReadWriteMode, Verify, VerifyMethod};

    #[test]
    fn buffered_writes_use_the_write_cache() {
        let uses = |mode: ReadWriteMode, direct: bool| {
            let mut job = Job::new("a");
            job.workload.rw = ReadWrite { mode, random: true };
            job.io.direct = direct;
            uses_write_cache(&job)
        };
        assert!(uses(ReadWriteMode::Write, false));
        assert!(!uses(ReadWriteMode::Write, true));
        assert!(!uses(ReadWriteMode::Read, false));
    }

    #[test]
    fn job_that_only_verifies_writes_no_data() {
        let mut job = Job::new("a");
        job.io.direct = false;
        for mode in [ReadWriteMode::Write, ReadWriteMode::ReadWrite] {
            job.workload.rw = ReadWrite { mode, random: true };
            for (verify_only, writes) in [(false, true), (true, false)] {
                job.verify = Some(Verify {
                    verify_only,
                    ..Verify::new(VerifyMethod::Crc32c)
                });
                assert_eq!(
                    (writes_data(&job), uses_write_cache(&job)),
                    (writes, writes)
                );
            }
        }
    }
}
