//! Builds the parts of a worker from its job and files.

use super::JobClone;
use super::backend_choice::{self, BackendCircumstances};
use super::buffer_memory::map_buffers;
use crate::counters::WorkerCounters;
use crate::files::{CachedFiles, FileUse, OpenFileCache, WorkerFiles};
use crate::io::{Slab, Slot};
use crate::loop_switches::LoopSwitches;
use crate::worker::flow::{FlowPool, FlowShare};
use crate::worker::io_log::IoLog;
use crate::worker::io_priority::Cmdprio;
use crate::worker::latency_depth::DepthControl;
use crate::worker::pacing::Pacer;
use crate::worker::recorder::Recorder;
use crate::worker::replay::Replayer;
use crate::worker::verification::Verification;
use crate::worker::write_contents::Contents;
use crate::worker::{DepthRules, Refill, WorkerLimits, WorkerParts};
use iosonde_job::plan::{Direction, Engine, Job, MeasureOptions, Plan, ReadWriteMode};
use iosonde_job::trace::Trace;
use iosonde_machine::space::is_memory;
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use iosonde_workload::buffers::working_set_key;
use iosonde_workload::rng::Stream;
use iosonde_workload::{FileLayout, Generator, Seeds};
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

/// Allocates the resources of a worker. `keeps_data`: the target keeps the data that is written. A
/// simulated device that keeps none accesses no buffer, so buffers are neither filled nor touched.
pub(crate) fn allocate_resources(
    plan: &Plan,
    clone: &JobClone,
    keeps_data: bool,
) -> Result<WorkerResources, RunError> {
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
    // Verification accesses buffers on any device.
    let are_accessed = keeps_data || verifier.is_some();
    let mut memory = map_buffers(job, number, (depth as usize, bytes), are_accessed)?;
    let writes = job.workload.rw.has(Direction::Write);
    let unit = job.workload.block_size.write.min();
    let mut contents = Contents::new(&job.workload.buffers, unit, files.size_bytes, &seeds);
    if job.workload.buffers.dedupe_global {
        contents.share_working_sets(&global_working_sets(plan));
    }
    if !are_accessed {
        contents.leave_buffers();
    } else if writes {
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
    let sharing = super::plan_facts::expand(plan)
        .filter(|(job, ..)| plan.jobs[*job].workload.buffers.dedupe_global);
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
    UnsupportedFeature::SizesMismatch {
        job: job.name.clone(),
        problem: problem.to_owned(),
    }
    .into()
}

/// Links of a worker to its surroundings.
pub(crate) struct WorkerLinks {
    pub(crate) shared: Arc<WorkerCounters>,
    pub(crate) flow: Option<Arc<FlowPool>>,
    pub(crate) log: Option<IoLog>,
    pub(crate) open_file_cache: Option<Box<OpenFileCache>>,
    pub(crate) cache: Option<Box<CachedFiles>>,
    /// Names of the files in messages.
    pub(crate) file_names: Vec<String>,
    pub(crate) dump_directory: PathBuf,
}

/// Builds the parts for a start at `start_ns`.
pub(crate) fn build_parts(
    job: &Job,
    files: &WorkerFiles,
    resources: WorkerResources,
    start_ns: u64,
    links: WorkerLinks,
) -> WorkerParts {
    let schedule = &job.schedule;
    let depth = resources.slab.slots.len() as u32;
    let measures_from_ns = match schedule.ramp_time_ns {
        0 => 0,
        ramp_time_ns => start_ns + ramp_time_ns,
    };
    let measure = measure_options(job, depth);
    let pacer = Pacer::new(job, start_ns, resources.seeds.stream(Stream::Arrival, 0));
    let recorder = Recorder::new(&measure, measures_from_ns, links.shared.clone())
        .with_due_times(pacer.has_rate() || job.replay.is_some());
    let verifies_each_pass = !schedule.time_based
        && resources
            .verifier
            .as_ref()
            .is_some_and(Verification::reads_back);
    let (end_sync_files, times_end_sync) = end_sync(job, files);
    let drops_page_cache = matches!(&links.open_file_cache, Some(it) if it.drops_cache());
    let mut generator = resources.generator;
    if verifies_each_pass || times_end_sync || links.cache.is_some() || drops_page_cache {
        generator.stop_where_it_starts_over();
    }
    WorkerParts {
        slab: resources.slab,
        generator,
        contents: resources.contents,
        verifier: resources.verifier,
        replayer: job
            .replay
            .as_ref()
            .zip(resources.trace)
            .map(|(rule, trace)| Box::new(Replayer::new(trace, rule, start_ns))),
        pacer,
        depth_control: schedule
            .latency_target
            .map(|rule| DepthControl::new(rule, depth, start_ns)),
        flow: schedule
            .flow
            .zip(links.flow)
            .map(|(rule, pool)| FlowShare::join(rule, pool)),
        log: links.log,
        recorder,
        shared: links.shared,
        rules: depth_rules(job, depth, are_in_memory(files)),
        limits: worker_limits(job, start_ns),
        errors: job.errors.clone(),
        file_names: links.file_names,
        end_sync_files,
        times_end_sync,
        timed: job.measure.slat || job.measure.clat || job.measure.lat,
        cmdprio: Cmdprio::new(
            job,
            measures_from_ns,
            resources.seeds.stream(Stream::Buffer, 2),
        )
        .map(Box::new),
        open_file_cache: links.open_file_cache,
        cache: links.cache,
        dump_directory: links.dump_directory,
        verifies_each_pass,
    }
}

/// Returns the files to flush at the end of each pass, and whether the job asks for that flush, so
/// that its time belongs to the run time. An image of Ceph that is written is always flushed at the
/// end of the job: a write that librbd's cache acknowledged may fail later, and only a flush
/// returns that error.
fn end_sync(job: &Job, files: &WorkerFiles) -> (Vec<u32>, bool) {
    let writes = job.workload.rw.has(Direction::Write);
    let is_asked = writes && (job.workload.end_fsync || job.workload.fsync_on_close);
    let is_cached = writes && job.io.engine == Engine::Rbd;
    let files = match is_asked || is_cached {
        true => (0..files.files.len() as u32).collect(),
        false => Vec::new(),
    };
    (files, is_asked)
}

/// Returns the latencies to measure.
fn measure_options(job: &Job, depth: u32) -> MeasureOptions {
    // As in fio, the null engine at depth 1 is synchronous: submission and completion coincide.
    let synchronous = job.io.engine == Engine::Null && depth == 1;
    MeasureOptions {
        slat: job.measure.slat && !synchronous,
        ..job.measure.clone()
    }
}

/// Returns the rules of submission and reaping.
fn depth_rules(job: &Job, depth: u32, in_memory: bool) -> DepthRules {
    let switches = LoopSwitches::from_environment();
    let call_limit = call_limit(job, in_memory);
    DepthRules {
        iodepth: depth,
        batch_submit: job.io.batch_submit.unwrap_or(depth).clamp(1, depth),
        call_limit,
        call_limit_at_once: match switches.small_calls || keeps_small_calls(job) {
            true => call_limit,
            false => call_limit.saturating_mul(2),
        },
        complete_min: job.io.batch_complete_min,
        complete_max: job.io.batch_complete_max.unwrap_or(u32::MAX),
        refill: refill(job, depth, in_memory),
        low: job.io.iodepth_low.unwrap_or(depth).clamp(1, depth),
        serialize_overlap: job.io.serialize_overlap || writes_follow_trims(job, depth),
    }
}

/// Whether a write waits for the trim of its block, which io_uring may carry out asynchronously.
/// Other engines return from the submission of a trim when it is complete.
fn writes_follow_trims(job: &Job, depth: u32) -> bool {
    let may_discard_later = matches!(job.io.engine, Engine::Auto | Engine::IoUring);
    depth > 1 && may_discard_later && job.workload.rw.mode == ReadWriteMode::TrimWrite
}

/// Returns the conditions that end a worker with this start.
fn worker_limits(job: &Job, start_ns: u64) -> WorkerLimits {
    let schedule = &job.schedule;
    let measure_from_ns = start_ns + schedule.ramp_time_ns;
    WorkerLimits {
        start_ns,
        deadline_ns: match schedule.runtime_ns {
            0 => u64::MAX,
            runtime_ns => measure_from_ns + runtime_ns,
        },
        max_latency_ns: schedule.max_latency_ns,
        fill_device: job.files.fill_device,
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

/// Whether calls stay small although reaps return all I/Os. A job that waits for several
/// completions reaps them together from any device. libaio waits for an I/O without O_DIRECT in the
/// call that submits it: those of the same call would share its latency.
fn keeps_small_calls(job: &Job) -> bool {
    let waits_in_call = job.io.engine == Engine::Libaio && !job.io.direct;
    job.io.batch_complete_min > 1 || waits_in_call
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

/// Returns the properties of a worker that its backend depends on. With `files_change` the files
/// are opened and closed during the run.
pub(super) fn circumstances(
    (plan, clone): (&Plan, &JobClone),
    shares_sqpoll_thread: bool,
    files_change: bool,
) -> BackendCircumstances {
    let (job, in_memory) = (clone.job(plan), are_in_memory(clone.files()));
    BackendCircumstances {
        files_change,
        refill: refill(job, backend_choice::depth(job), in_memory),
        shares_sqpoll_thread,
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
    use crate::files::FileKind;
    use iosonde_job::plan::{LatencyTarget, ReadWrite};
    use iosonde_workload::FileRegion;

    #[test]
    fn written_image_is_flushed_at_the_end_outside_of_the_run_time() {
        let files = WorkerFiles {
            files: vec![FileUse {
                path: PathBuf::from("rbd://pool/image"),
                kind: FileKind::BlockDevice,
                size_now: Some(4096),
                size_needed: 4096,
                region: FileRegion {
                    start_bytes: 0,
                    size_bytes: 4096,
                    file_bytes: 4096,
                },
            }],
            ..WorkerFiles::NONE
        };
        let flushed = |engine: Engine, mode: ReadWriteMode, end_fsync: bool| {
            let mut job = Job::new("x");
            job.io.engine = engine;
            job.workload.rw = ReadWrite { mode, random: true };
            job.workload.end_fsync = end_fsync;
            end_sync(&job, &files)
        };
        let read_write = ReadWriteMode::ReadWrite;
        assert_eq!(flushed(Engine::Rbd, read_write, false), (vec![0], false));
        assert_eq!(flushed(Engine::Rbd, read_write, true), (vec![0], true));
        let none = (Vec::new(), false);
        assert_eq!(flushed(Engine::Rbd, ReadWriteMode::Read, true), none);
        assert_eq!(flushed(Engine::Rados, ReadWriteMode::Write, false), none);
        let asked = flushed(Engine::Rados, ReadWriteMode::Write, true);
        assert_eq!(asked, (vec![0], true));
    }

    #[test]
    fn trimwrite_of_io_uring_writes_after_the_trim() {
        let mut job = Job::new("x");
        job.workload.rw.mode = ReadWriteMode::TrimWrite;
        let waits = |job: &Job| depth_rules(job, 8, false).serialize_overlap;
        assert!(!waits(&job), "psync trims before it returns");
        job.io.engine = Engine::IoUring;
        assert!(waits(&job));
        job.workload.rw.mode = ReadWriteMode::Trim;
        assert!(!waits(&job));
        job.io.serialize_overlap = true;
        assert!(waits(&job));
    }

    #[test]
    fn submit_call_limit_splits_a_device_queue_by_default() {
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
    fn call_limit_ends_where_completions_are_not_awaited_together() {
        let mut job = Job::new("x");
        job.io.iodepth = 64;
        job.io.engine = Engine::IoUring;
        let limits = |job: &Job| {
            let rules = depth_rules(job, 64, false);
            (rules.call_limit, rules.call_limit_at_once)
        };
        assert_eq!(limits(&job), (8, 16));
        job.io.batch_complete_min = 2;
        assert_eq!(limits(&job), (8, 8));
        job.io.batch_complete_min = 1;
        job.io.engine = Engine::Libaio;
        assert_eq!(limits(&job), (8, 8), "libaio waits in its calls");
        job.io.direct = true;
        assert_eq!(limits(&job), (8, 16));
    }

    #[test]
    fn refill_batches_slots_only_by_default() {
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
    fn completions_are_paired_only_in_memory_at_depth() {
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
