//! Memory of the I/O buffers of jobs.
//!
//! Buffers are allocated and touched at once, except for simulated devices that keep no data. If
//! they do not fit, the OOM killer ends a process.

use super::backend_choice;
use super::concurrent_jobs::heaviest_concurrent_jobs;
use crate::files::target_error;
use crate::io::Slot;
use crate::sys::memory::{IoMemory, MemoryKind, UnlinkedFile};
use iosonde_job::plan::{Direction, Job, Memory, Plan};
use iosonde_result::run_error::{BufferMemory, PathAction, RunError, UnsupportedFeature};
use std::path::PathBuf;

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

/// Returns the bytes of the jobs that may run at one time and need most.
fn needed_bytes(plan: &Plan) -> u128 {
    let of_job = |job: &Job| of_clone(job) * u128::from(job.numjobs.max(1));
    let jobs = heaviest_concurrent_jobs(plan, None, of_job).into_iter();
    jobs.map(|job| of_job(&plan.jobs[job])).sum()
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

/// Maps the buffers of clone `number`: this many slots of this many bytes. Ordinary pages that are
/// not accessed are not allocated.
pub(super) fn map_buffers(
    job: &Job,
    number: u32,
    (slots, bytes): (usize, usize),
    are_accessed: bool,
) -> Result<IoMemory, RunError> {
    let huge = job.io.hugepage_bytes as usize;
    let file = match &job.io.mem {
        Memory::Mmap(Some(name)) | Memory::MmapHuge(Some(name)) => Some(memory_file(name, number)?),
        _ => None,
    };
    let kind = match (&job.io.mem, &file) {
        (Memory::MmapHuge(_), Some(file)) => MemoryKind::File(file, huge),
        (_, Some(file)) => MemoryKind::File(file, 1),
        (Memory::Malloc | Memory::Mmap(_), None) if are_accessed => MemoryKind::Pages,
        (Memory::Malloc | Memory::Mmap(_), None) => MemoryKind::Unpopulated,
        (Memory::Shm | Memory::MmapShared, None) => MemoryKind::Shared,
        (Memory::ShmHuge, None) => MemoryKind::SharedHugePages(huge),
        (Memory::MmapHuge(_), None) => MemoryKind::HugePages(huge),
    };
    IoMemory::map(slots, bytes, job.io.mem_align_bytes as usize, kind).map_err(|error| {
        let memory = match kind {
            MemoryKind::HugePages(_) | MemoryKind::SharedHugePages(_) => BufferMemory::HugePages,
            MemoryKind::File(..) => BufferMemory::File,
            _ => BufferMemory::Ordinary,
        };
        RunError::from(UnsupportedFeature::NoBufferMemory {
            job: job.name.clone(),
            slots: slots as u64,
            buffer_bytes: bytes as u64,
            memory,
            failure: (&error).into(),
        })
    })
}

/// Creates the file of `mem=mmap:FILE`, one per worker, as workers must not share buffers.
fn memory_file(name: &str, number: u32) -> Result<UnlinkedFile, RunError> {
    let path = match number {
        0 => PathBuf::from(name),
        number => PathBuf::from(format!("{name}.{number}")),
    };
    UnlinkedFile::create(&path).map_err(|error| target_error(&path, PathAction::Create, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{BlockSize, Engine, PerDirection};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

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

    /// Whether the page at this address has memory or was swapped out: proc_pid_pagemap(5).
    fn has_page(address: *const u8) -> bool {
        let mut entry = [0; 8];
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let at = address as u64 / 4096 * 8;
        pagemap.read_exact_at(&mut entry, at).unwrap();
        u64::from_ne_bytes(entry) >> 62 != 0
    }

    #[test]
    fn buffers_that_are_not_accessed_take_no_memory() {
        let job = deep(4, 1 << 20);
        for are_accessed in [true, false] {
            let memory = map_buffers(&job, 0, (4, 1 << 20), are_accessed).unwrap();
            assert_eq!(has_page(memory.address(2)), are_accessed);
        }
    }

    #[test]
    fn waiting_job_needs_memory_beside_jobs_that_it_does_not_wait_for() {
        let mut jobs = vec![deep(2048, 1 << 20), deep(1, 4096), deep(2048, 1 << 20)];
        (jobs[0].name, jobs[1].name) = ("long".to_owned(), "short".to_owned());
        jobs[2].schedule.wait_for = Some("short".to_owned());
        assert!(check(&plan(jobs.clone()), Some(3 << 30)).is_err());
        jobs[2].schedule.wait_for = Some("long".to_owned());
        assert!(check(&plan(jobs), Some(3 << 30)).is_ok());
    }
}
