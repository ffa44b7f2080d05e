//! Checks that the machine has enough memory for the jobs.
//!
//! Buffers are allocated and touched at once. If they do not fit, the OOM killer ends a process.

use super::backend_choice;
use crate::io::Slot;
use iosonde_job::plan::{Direction, Job, Memory, Plan};
use iosonde_result::session::RunError;

/// Refuses jobs whose buffers need more than `available` bytes.
pub(super) fn check(plan: &Plan, available: Option<u64>) -> Result<(), RunError> {
    let needed = needed_bytes(plan);
    match available {
        Some(available) if needed > u128::from(available) => Err(RunError::Unsupported {
            problem: format!(
                "the buffers of the jobs that run together need {} MiB (iodepth x block size x numjobs), and {} MiB of memory \
                 are available",
                needed >> 20,
                available >> 20
            ),
            remedy: "use a smaller iodepth, block size or number of jobs".to_owned(),
        }),
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
        job.workload.block_size = PerDirection::all(BlockSize::Fixed(bs));
        job
    }

    fn plan(jobs: Vec<Job>) -> Plan {
        Plan {
            jobs,
            global_options: Vec::new(),
        }
    }

    #[test]
    fn more_than_there_is_is_refused_with_both_figures() {
        let plan = plan(vec![deep(64, 1 << 30)]);
        let error = check(&plan, Some(4 << 30)).unwrap_err().to_string();
        assert!(
            error.contains("need 65536 MiB") && error.contains("4096 MiB of memory"),
            "{error}"
        );
        assert!(check(&plan, Some(65 << 30)).is_ok() && check(&plan, None).is_ok());
    }

    #[test]
    fn jobs_behind_a_wall_have_the_memory_of_those_before() {
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
