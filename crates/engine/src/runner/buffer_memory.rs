//! Checks that the machine has enough memory for the jobs.
//!
//! Buffers are allocated and touched at once. If they do not fit, the OOM killer ends a process.

use super::backend_choice;
use crate::io::Slot;
use iosonde_job::plan::{Direction, Job, Memory, Plan};
use iosonde_result::run_error::{RunError, UnsupportedFeature};

/// Refuses jobs whose buffers need more than `available` bytes.
pub(super) fn check(plan: &Plan, available: Option<u64>) -> Result<(), RunError> {
    let needed = needed_bytes(plan);
    match available {
        Some(available) if needed > u128::from(available) => {
            Err(UnsupportedFeature::BuffersOverMemory {
                needed_bytes: u64::try_from(needed).unwrap_or(u64::MAX),
                available_bytes: available,
            }
            .into())
        }
        _ => Ok(()),
    }
}

/// Returns the bytes of the largest concurrent group. A job with `wait_for` starts a new group.
fn needed_bytes(plan: &Plan) -> u128 {
    let (mut most, mut group) = (0, 0);
    for job in &plan.jobs {
        if job.schedule.stonewall || job.schedule.wait_for.is_some() {
            group = 0;
        }
        group += of_clone(job) * u128::from(job.numjobs.max(1));
        most = most.max(group);
    }
    most
}

/// Returns a clone's ordinary memory in bytes. Huge pages and files fail where they run short.
fn of_clone(job: &Job) -> u128 {
    let set_aside = match &job.io.mem {
        Memory::Malloc | Memory::Shm | Memory::MmapShared | Memory::Mmap(None) => false,
        Memory::Mmap(Some(_)) | Memory::MmapHuge(_) | Memory::ShmHuge => true,
    };
    let workload = &job.workload;
    let sizes = workload.block_size.iter();
    let block = sizes
        .filter(|(direction, _)| workload.rw.has(*direction) && *direction != Direction::Trim)
        .map(|(_, size)| size.max())
        .max()
        .unwrap_or(0);
    let stride = block
        .max(1)
        .next_multiple_of(job.io.mem_align_bytes.max(4096));
    let buffer = if set_aside { 0 } else { stride };
    u128::from(backend_choice::depth(job)) * (u128::from(buffer) + size_of::<Slot>() as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{BlockSize, Engine, PerDirection};

    fn deep(iodepth: u32, bs: u64) -> Job {
        let mut job = Job::new("deep");
        job.io.engine = Engine::Null;
        job.io.iodepth = iodepth;
        job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(bs));
        job
    }

    fn plan(jobs: Vec<Job>) -> Plan {
        Plan {
            jobs,
            global_options: Vec::new(),
        }
    }

    #[test]
    fn buffers_beyond_memory_are_refused_with_both_sizes() {
        let plan = plan(vec![deep(64, 1 << 30)]);
        let error = check(&plan, Some(4 << 30)).unwrap_err();
        let RunError::NoFeature { cause } = &error else {
            panic!("{error:?}");
        };
        let UnsupportedFeature::BuffersOverMemory {
            needed_bytes,
            available_bytes,
        } = **cause
        else {
            panic!("{error:?}");
        };
        assert_eq!((needed_bytes >> 20, available_bytes), (65536, 4 << 30));
        assert!(check(&plan, Some(65 << 30)).is_ok() && check(&plan, None).is_ok());
    }

    #[test]
    fn stonewalled_jobs_reuse_the_buffer_memory() {
        let (first, mut second) = (deep(1024, 1 << 20), deep(1024, 1 << 20));
        assert!(check(&plan(vec![first.clone(), second.clone()]), Some(3 << 29)).is_err());
        second.schedule.stonewall = true;
        assert!(check(&plan(vec![first.clone(), second]), Some(3 << 29)).is_ok());
        let twice = Job {
            numjobs: 2,
            ..first
        };
        assert!(check(&plan(vec![twice]), Some(3 << 29)).is_err());
    }
}
