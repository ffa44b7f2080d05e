//! Builds the parts of a worker from its job and files.

use super::{JobClone, backend_choice};
use crate::files::{CachedFiles, FileKeeper, FileUse, WorkerFiles, target_error};
use crate::io::{Slab, Slot};
use crate::sys::memory::{IoMemory, MemoryKind};
use crate::worker::counters::Shared;
use crate::worker::flow::{FlowPool, FlowShare};
use crate::worker::io_failure::errno_name;
use crate::worker::io_log::IoLog;
use crate::worker::io_priority::Cmdprio;
use crate::worker::latency_depth::DepthControl;
use crate::worker::pacing::Pacer;
use crate::worker::recorder::Recorder;
use crate::worker::replay::Replayer;
use crate::worker::verification::Verification;
use crate::worker::write_contents::Contents;
use crate::worker::{DepthRules, Limits, Parts, Refill};
use iosonde_job::plan::{Direction, Engine, Job, Measure, Memory, Plan};
use iosonde_job::trace::Trace;
use iosonde_machine::space::is_memory;
use iosonde_result::session::RunError;
use iosonde_workload::buffers::working_set_key;
use iosonde_workload::rng::Stream;
use iosonde_workload::{FileLayout, Generator, Seeds};

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Depth / this: number of slots refilled together where I/O is fast. A device of up to 100,000
/// IOPS is limited by its queue depth, not by the CPU: no slot of it is held back.
const REFILL_SHARE: u32 = 16;
const REFILL_HOLD_NS: u64 = 10_000;
/// The same for files in memory. They have no device queue to keep full. Kernel workers move the
/// data, and each submission of a single I/O takes CPU time from them.
const REFILL_SHARE_IN_MEMORY: u32 = 4;
const REFILL_HOLD_IN_MEMORY_NS: u64 = 40_000;
/// Completions per wait in memory, while the queue is nearly full. The first of two waits for the
/// next of all I/Os in flight: from this depth on, at most 1/24 of the latency.
const TOGETHER_IN_MEMORY: u32 = 2;
const TOGETHER_FROM_DEPTH: u32 = 32;
/// Maximum number of I/Os per call to a device. The kernel holds them back until the call ends
/// (block layer plug), at 1.5 us each: the first of 32 would reach an idle device 50 us late.
const BATCH_TO_DEVICE: u32 = 8;

/// Resources to allocate before a worker can start.
pub(crate) struct WorkerResources {
    pub(crate) slab: Slab,
    generator: Generator,
    contents: Contents,
    verifier: Option<Verification>,
    trace: Option<Arc<Trace>>,
    seeds: Seeds,
}

/// Allocates the resources of a worker.
pub(crate) fn kit(plan: &Plan, clone: &JobClone) -> Result<WorkerResources, RunError> {
    let (job, number, files) = (clone.job(plan), clone.number, clone.files());
    let seeds = Seeds::new(&job.workload, number, super::epoch_ms());
    let layout = match clone.trace() {
        None => files.layout(),
        // A replay does not use the generator's I/Os.
        Some(_) => FileLayout::whole_file(job.workload.block_size.read.max()),
    };
    let generator =
        Generator::new(job, &layout, seeds).map_err(|error| misfit(job, &error.to_string()))?;
    let regions: Vec<_> = layout
        .files
        .iter()
        .map(|file| (file.start_bytes, file.size_bytes))
        .collect();
    let verifier = Verification::new(job, &regions, &generator)
        .map_err(|error| misfit(job, &error.to_string()))?;
    let depth = backend_choice::depth(job);
    let bytes = generator.buffer_bytes().max(512) as usize;
    let mut memory = memory(job, number, depth as usize, bytes)?;
    let writes = job.workload.rw.has(Direction::Write);
    let unit = job.workload.block_size.write.min();
    let mut contents = Contents::new(&job.workload.buffers, unit, files.size_bytes, &seeds);
    if job.workload.buffers.dedupe_global {
        contents.share_working_sets(&global_working_sets(plan));
    }
    if writes {
        contents.prepare(&mut memory);
    }
    let slab = Slab {
        slots: vec![Slot::IDLE; depth as usize].into_boxed_slice(),
        memory,
    };
    Ok(WorkerResources {
        slab,
        generator,
        contents,
        verifier,
        trace: clone.trace().cloned(),
        seeds,
    })
}

/// Returns the working sets of all clones with `dedupe_global`.
fn global_working_sets(plan: &Plan) -> Vec<u64> {
    let sharing =
        super::expand(plan).filter(|(job, ..)| plan.jobs[*job].workload.buffers.dedupe_global);
    let keys = sharing.map(|(job, _, number)| {
        working_set_key(&Seeds::new(
            &plan.jobs[job].workload,
            number,
            super::epoch_ms(),
        ))
    });
    keys.collect()
}

fn misfit(job: &Job, problem: &str) -> RunError {
    RunError::Unsupported {
        problem: format!("job {}: {problem}", job.name),
        remedy: "change the sizes in the job so that they fit each other".to_owned(),
    }
}

fn memory(job: &Job, number: u32, slots: usize, bytes: usize) -> Result<IoMemory, RunError> {
    let huge = job.io.hugepage_bytes as usize;
    let file = match &job.io.mem {
        Memory::Mmap(Some(name)) | Memory::MmapHuge(Some(name)) => Some(memory_file(name, number)?),
        _ => None,
    };
    let kind = match (&job.io.mem, &file) {
        (Memory::MmapHuge(_), Some(file)) => MemoryKind::File(file.as_raw_fd(), huge),
        (_, Some(file)) => MemoryKind::File(file.as_raw_fd(), 1),
        (Memory::Malloc | Memory::Mmap(_), None) => MemoryKind::Pages,
        (Memory::Shm | Memory::MmapShared, None) => MemoryKind::Shared,
        (Memory::ShmHuge, None) => MemoryKind::SharedHugePages(huge),
        (Memory::MmapHuge(_), None) => MemoryKind::HugePages(huge),
    };
    IoMemory::map(slots, bytes, job.io.mem_align_bytes as usize, kind).map_err(|error| {
        let remedy = match kind {
            MemoryKind::HugePages(_) | MemoryKind::SharedHugePages(_) => {
                "reserve huge pages of hugepage-size (sysctl vm.nr_hugepages), or leave mem= out"
            }
            MemoryKind::File(..) => "name a file where there is room, or leave mem= out",
            _ => "use a smaller iodepth, block size or number of jobs",
        };
        RunError::Unsupported {
            problem: format!(
                "job {}: no memory for {slots} buffers of {bytes} bytes: {}",
                job.name,
                error
                    .raw_os_error()
                    .map_or_else(|| error.to_string(), errno_name)
            ),
            remedy: remedy.to_owned(),
        }
    })
}

/// Creates the file of `mem=mmap:FILE`, one per worker, as workers must not share buffers. The file
/// must not exist; it is unlinked at once, and the mapping keeps it.
fn memory_file(name: &str, number: u32) -> Result<File, RunError> {
    let path = match number {
        0 => PathBuf::from(name),
        number => PathBuf::from(format!("{name}.{number}")),
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| target_error(&path, "make", &error))?;
    // Another process may have removed the name already.
    let _ = std::fs::remove_file(&path);
    Ok(file)
}

/// Links of a worker to its surroundings.
pub(crate) struct WorkerLinks {
    pub(crate) shared: Arc<Shared>,
    pub(crate) flow: Option<Arc<FlowPool>>,
    pub(crate) log: Option<IoLog>,
    pub(crate) keeper: Option<Box<FileKeeper>>,
    pub(crate) cache: Option<Box<CachedFiles>>,
    pub(crate) dump_directory: PathBuf,
}

/// Builds the parts for a start at `start_ns`.
pub(crate) fn parts(
    job: &Job,
    files: &WorkerFiles,
    kit: WorkerResources,
    start_ns: u64,
    company: WorkerLinks,
) -> Parts {
    let schedule = &job.schedule;
    let measure_from_ns = start_ns + schedule.ramp_time_ns;
    let deadline_ns = if schedule.runtime_ns == 0 {
        u64::MAX
    } else {
        measure_from_ns + schedule.runtime_ns
    };
    let depth = kit.slab.slots.len() as u32;
    let measures_from_ns = if schedule.ramp_time_ns == 0 {
        0
    } else {
        measure_from_ns
    };
    // As in fio, the null engine at depth 1 is synchronous: submission and completion coincide.
    let synchronous = job.io.engine == Engine::Null && depth == 1;
    let measure = Measure {
        slat: job.measure.slat && !synchronous,
        ..job.measure.clone()
    };
    let pacer = Pacer::new(job, start_ns, kit.seeds.stream(Stream::Arrival, 0));
    let recorder = Recorder::new(&measure, measures_from_ns, company.shared.clone())
        .with_due_times(pacer.has_rate() || job.replay.is_some());
    let verifies_each_pass =
        !schedule.time_based && kit.verifier.as_ref().is_some_and(Verification::reads_back);
    let in_memory = are_in_memory(files);
    let syncs_at_end = (job.workload.end_fsync || job.workload.fsync_on_close)
        && job.workload.rw.has(Direction::Write);
    let keeper_drops = company.keeper.as_ref().is_some_and(|it| it.drops_cache());
    let mut generator = kit.generator;
    if verifies_each_pass || syncs_at_end || company.cache.is_some() || keeper_drops {
        generator.stop_where_it_starts_over();
    }
    Parts {
        slab: kit.slab,
        generator,
        contents: kit.contents,
        verifier: kit.verifier,
        replayer: job
            .replay
            .as_ref()
            .zip(kit.trace)
            .map(|(rule, trace)| Box::new(Replayer::new(trace, rule, start_ns))),
        pacer,
        depth_control: schedule
            .latency_target
            .map(|rule| DepthControl::new(rule, depth, start_ns)),
        flow: schedule
            .flow
            .zip(company.flow)
            .map(|(rule, pool)| FlowShare::join(rule, pool)),
        log: company.log,
        recorder,
        shared: company.shared,
        rules: DepthRules {
            iodepth: depth,
            batch_submit: job.io.batch_submit.unwrap_or(depth).clamp(1, depth),
            call_limit: call_limit(job, in_memory),
            complete_min: job.io.batch_complete_min,
            complete_max: job.io.batch_complete_max.unwrap_or(u32::MAX),
            refill: refill(job, depth, in_memory),
            low: job.io.iodepth_low.unwrap_or(depth).clamp(1, depth),
            serialize_overlap: job.io.serialize_overlap,
        },
        limits: Limits {
            start_ns,
            deadline_ns,
            max_latency_ns: schedule.max_latency_ns,
            fill_device: job.files.fill_device,
        },
        errors: job.errors.clone(),
        file_names: files
            .files
            .iter()
            .map(|file| crate::ceph::file_name(job, &file.path))
            .collect(),
        end_sync_files: if syncs_at_end {
            (0..files.files.len() as u32).collect()
        } else {
            Vec::new()
        },
        timed: job.measure.slat || job.measure.clat || job.measure.lat,
        cmdprio: Cmdprio::new(job, measures_from_ns, kit.seeds.stream(Stream::Buffer, 2))
            .map(Box::new),
        keeper: company.keeper,
        cache: company.cache,
        dump_directory: company.dump_directory,
        verifies_each_pass,
    }
}

/// Returns the maximum number of I/Os in one call, if the job sets no batch size.
fn call_limit(job: &Job, in_memory: bool) -> u32 {
    let has_device = !in_memory && !matches!(job.io.engine, Engine::Null | Engine::Sim);
    match job.io.batch_submit {
        None if has_device => BATCH_TO_DEVICE,
        _ => u32::MAX,
    }
}

/// Returns when the worker submits I/Os for free slots.
fn refill(job: &Job, depth: u32, in_memory: bool) -> Refill {
    // A job's own batch settings apply as they are, and in a simulation submission costs nothing. A
    // depth search needs exact depths, most of them far below the job's.
    let exact = job.io.batch_submit.is_some()
        || job.io.engine == Engine::Sim
        || job.schedule.latency_target.is_some();
    if exact {
        return Refill::AT_ONCE;
    }
    let (share, hold_ns) = if in_memory {
        (REFILL_SHARE_IN_MEMORY, REFILL_HOLD_IN_MEMORY_NS)
    } else {
        (REFILL_SHARE, REFILL_HOLD_NS)
    };
    let in_pairs = in_memory && depth >= TOGETHER_FROM_DEPTH && job.io.batch_complete_max.is_none();
    Refill {
        slots: (depth / share).max(1),
        hold_ns,
        together: if in_pairs { TOGETHER_IN_MEMORY } else { 1 },
    }
}

/// Whether all files are on a file system in memory.
fn are_in_memory(files: &WorkerFiles) -> bool {
    let in_memory = |file: &FileUse| is_memory(&file.path);
    !files.files.is_empty() && files.files.iter().all(in_memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::LatencyTarget;

    #[test]
    fn a_device_gets_its_queue_in_parts_unless_the_job_says_otherwise() {
        let mut job = Job::new("x");
        job.io.iodepth = 64;
        job.io.engine = Engine::IoUring;
        assert_eq!(call_limit(&job, false), 8);
        assert_eq!(call_limit(&job, true), u32::MAX);
        job.io.batch_submit = Some(32);
        assert_eq!(call_limit(&job, false), u32::MAX);
        job.io.batch_submit = None;
        job.io.engine = Engine::Null;
        assert_eq!(call_limit(&job, false), u32::MAX);
    }

    #[test]
    fn slots_wait_for_company_only_where_nothing_is_said_of_the_depth() {
        let refill = |job: &Job, in_memory| refill(job, job.io.iodepth, in_memory).slots;
        let mut job = Job::new("x");
        assert_eq!(refill(&job, false), 1);
        job.io.iodepth = 64;
        assert_eq!((refill(&job, false), refill(&job, true)), (4, 16));
        job.io.batch_submit = Some(8);
        assert_eq!(refill(&job, true), 1);
        job.io.batch_submit = None;
        job.schedule.latency_target = Some(LatencyTarget {
            target_ns: 100_000,
            window_ns: 1_000_000,
            percentile: 99.0,
            run: false,
        });
        assert_eq!(refill(&job, true), 1, "a depth of 2 must not become 1");
    }

    #[test]
    fn completions_come_in_pairs_only_from_memory_and_at_depth() {
        let together = |job: &Job, in_memory| refill(job, job.io.iodepth, in_memory).together;
        let mut job = Job::new("x");
        job.io.iodepth = 31;
        assert_eq!(together(&job, true), 1);
        job.io.iodepth = 32;
        assert_eq!((together(&job, false), together(&job, true)), (1, 2));
        job.io.batch_complete_max = Some(1);
        assert_eq!(together(&job, true), 1);
    }
}
