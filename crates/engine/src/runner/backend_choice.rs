//! Selects the backend of a job, with its fallbacks.

use crate::files::WorkerFiles;
use crate::interrupt::Interrupt;
use crate::io::immediate::ImmediateBackend;
use crate::io::io_uring::IoUringBackend;
use crate::io::libaio::LibaioBackend;
use crate::io::mmap_backend::Mmap;
use crate::io::null::Null;
use crate::io::posix_aio_backend::PosixAio;
use crate::io::remote::RemoteBackend;
use crate::io::sync::{Sync, Vsync};
use crate::io::{Backend, FileHandle, Slab};
use crate::loop_switches::LoopSwitches;
use crate::remote_storage::RemoteStorage;
use crate::sys::c_library as libc;
use crate::sys::ring::{MinWait, RingOptions};
use crate::sys::rw::{Call, RwFlags};
use crate::worker::Refill;
use iosonde_job::plan::{Direction, Engine, Job};
use iosonde_result::run::BackendUsed;
use iosonde_result::run_error::{RefusedEngine, RunError, UnsupportedFeature};
use std::io;
use std::sync::Arc;

/// A backend of any kind. Matched once before the I/O loop, which is generic over the backend.
pub(super) enum AnyBackend {
    Uring(Box<IoUringBackend>),
    Aio(LibaioBackend),
    PosixAio(PosixAio),
    Sync(ImmediateBackend<Sync>),
    Vsync(ImmediateBackend<Vsync>),
    Mmap(ImmediateBackend<Mmap>),
    Null(ImmediateBackend<Null>),
    Remote(RemoteBackend),
}

/// Returns the maximum number of I/Os that the engine keeps in flight for a job.
pub(super) fn depth(job: &Job) -> u32 {
    match job.io.engine.is_synchronous() {
        true => 1,
        false => job.io.iodepth.max(1),
    }
}

/// Creates a job's backend.
pub(super) fn choose(
    job: &Job,
    slab: &Slab,
    files: &WorkerFiles,
    handles: &[FileHandle],
    circumstances: BackendCircumstances,
    (remote, interrupt): (Option<&dyn RemoteStorage>, &Arc<Interrupt>),
) -> Result<(AnyBackend, BackendUsed), RunError> {
    if let Some(remote) = remote.filter(|_| job.io.engine.is_ceph()) {
        return on_remote(remote, job, files, slab, interrupt);
    }
    let (mut backend, mut used) = match job.io.engine {
        Engine::Auto => automatic(job, slab, circumstances)?,
        engine => {
            let backend = named(job, engine, slab, circumstances)
                .map_err(|error| unavailable(job, engine, &error))?;
            (backend, backend_used(job, engine, &[]))
        }
    };
    let files = set_files(&mut backend, handles);
    files.map_err(|error| unavailable(job, used.engine, &error))?;
    if let AnyBackend::Uring(uring) = &backend {
        let reasons: Vec<String> = used.reason.iter().chain(uring.refused()).cloned().collect();
        used.reason = in_words(&reasons);
        used.registered_files = uring.registered_files();
        used.fixed_buffers = uring.fixed_buffers();
        used.flags = uring.flags().into_iter().map(str::to_owned).collect();
    }
    used.flags.extend(rw_flag_names(job).map(str::to_owned));
    Ok((backend, used))
}

/// Creates the backend of remote storage. The local page cache is not involved.
fn on_remote(
    remote: &dyn RemoteStorage,
    job: &Job,
    files: &WorkerFiles,
    slab: &Slab,
    interrupt: &Arc<Interrupt>,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    let (io, ceph) = remote.open_io(job, files, slab, interrupt)?;
    let used = BackendUsed {
        direct: true,
        ceph: Some(ceph),
        ..backend_used(job, job.io.engine, &[])
    };
    Ok((AnyBackend::Remote(RemoteBackend::new(io)), used))
}

fn backend_used(job: &Job, engine: Engine, reasons: &[String]) -> BackendUsed {
    BackendUsed {
        engine,
        asked: job.io.engine,
        reason: in_words(reasons),
        direct: job.io.direct,
        registered_files: false,
        fixed_buffers: false,
        flags: Vec::new(),
        ceph: None,
    }
}

/// Returns the names of the flags of a job's I/Os. Files that do not support them are refused.
fn rw_flag_names(job: &Job) -> impl Iterator<Item = &'static str> {
    let flags = [("atomic", job.io.atomic), ("uncached", job.io.uncached)];
    let in_force = |(name, is_in_force): (_, bool)| is_in_force.then_some(name);
    flags.into_iter().filter_map(in_force)
}

fn in_words(reasons: &[String]) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Properties of a worker that its backend depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackendCircumstances {
    /// Whether files are opened and closed during the run.
    pub(super) files_change: bool,
    /// When the worker submits I/Os for free slots.
    pub(super) refill: Refill,
    /// Whether the workers of the job share a kernel thread, unless the user decides otherwise.
    pub(super) shares_sqpoll_thread: bool,
}

/// Returns the engines of `ioengine=auto` that have the flags of the job's reads and writes, the
/// best first.
fn engines_of_auto(job: &Job) -> &'static [Engine] {
    match (job.io.uncached, job.io.atomic) {
        (true, _) => &[Engine::IoUring],
        (false, true) => &[Engine::IoUring, Engine::Libaio],
        (false, false) => &[Engine::IoUring, Engine::Libaio, Engine::Psync],
    }
}

/// Selects io_uring, else libaio, else psync; the result gives the reason.
fn automatic(
    job: &Job,
    slab: &Slab,
    circumstances: BackendCircumstances,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    let mut refused: Vec<RefusedEngine> = Vec::new();
    for engine in engines_of_auto(job).iter().copied() {
        match named(job, engine, slab, circumstances) {
            Ok(backend) => {
                let reasons: Vec<String> = refused.iter().map(RefusedEngine::to_string).collect();
                return Ok((backend, backend_used(job, engine, &reasons)));
            }
            Err(error) => refused.push(RefusedEngine {
                engine,
                failure: (&error).into(),
            }),
        }
    }
    Err(UnsupportedFeature::NoEngine { refused }.into())
}

fn named(
    job: &Job,
    engine: Engine,
    slab: &Slab,
    circumstances: BackendCircumstances,
) -> io::Result<AnyBackend> {
    let io = &job.io;
    let depth = slab.slots.len() as u32;
    let rw = job.workload.rw;
    let sync_flags = sync_range_flags(job);
    let rw_flags = RwFlags::from_job(io);
    Ok(match engine {
        Engine::IoUring | Engine::Auto => {
            let options = ring_options(job, circumstances);
            let files = io
                .uring
                .registerfiles
                .unwrap_or(!circumstances.files_change);
            let buffers = io.uring.fixedbufs.unwrap_or(true);
            let uring = IoUringBackend::new(depth, options, files, buffers, slab)?;
            AnyBackend::Uring(Box::new(uring))
        }
        Engine::Libaio => AnyBackend::Aio(LibaioBackend::new(depth, rw_flags, sync_flags)?),
        Engine::Posixaio => AnyBackend::PosixAio(PosixAio::new(depth, sync_flags)),
        Engine::Sync => one_by_one(Sync::new(Call::Seek, sync_flags)),
        Engine::Psync => one_by_one(Sync::new(Call::Positioned, sync_flags)),
        Engine::Pvsync => one_by_one(Sync::new(Call::Vectored, sync_flags)),
        Engine::Pvsync2 => {
            let percent = if io.uring.hipri { io.hipri_percent } else { 0 };
            let sync = Sync::new(Call::Vectored2(rw_flags), sync_flags).polling(percent);
            one_by_one(sync)
        }
        Engine::Vsync => {
            let vsync = ImmediateBackend::new(Vsync::new(depth, sync_flags), depth);
            AnyBackend::Vsync(vsync)
        }
        Engine::Mmap => {
            let write = rw.has(Direction::Write) || rw.has(Direction::Trim);
            let mmap = ImmediateBackend::new(Mmap::new(write, rw.random, job.io.direct), 1);
            AnyBackend::Mmap(mmap)
        }
        Engine::Null => AnyBackend::Null(ImmediateBackend::new(Null, depth)),
        Engine::Sim | Engine::Rados | Engine::Rbd => {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
    })
}

fn ring_options(job: &Job, circumstances: BackendCircumstances) -> RingOptions {
    let io = &job.io;
    let switches = LoopSwitches::from_environment();
    // Workers of a job refer to the same job of the plan, unless they replay a late trace.
    let number = std::ptr::from_ref(job).addr();
    let BackendCircumstances {
        files_change,
        refill,
        shares_sqpoll_thread,
    } = circumstances;
    let shares_sqpoll = switches.shares_sqpoll.unwrap_or(shares_sqpoll_thread);
    let min_wait = MinWait {
        slots: refill.slots,
        wait_us: (refill.hold_ns / 1_000) as u32,
    };
    let holds_back = refill.slots > 1 && min_wait.wait_us > 0;
    RingOptions {
        iopoll: io.uring.hipri,
        sqpoll: io.uring.sqthread_poll,
        sqpoll_cpu: io.uring.sqthread_poll_cpu,
        rw_flags: RwFlags::from_job(io),
        force_async: io.uring.force_async,
        vectored: io.uring.nonvectored == Some(false),
        sync_range_flags: sync_range_flags(job),
        // A file that is opened during the run is not probed.
        discards: job.workload.rw.has(Direction::Trim)
            && !files_change
            && !switches.blocking_discard,
        sqarray: switches.sqarray,
        plain_descriptor: switches.plain_descriptor,
        no_iowait: switches.no_iowait,
        min_wait: (switches.min_wait && holds_back).then_some(min_wait),
        hybrid_poll: switches.hybrid_poll,
        shared_sqpoll: shares_sqpoll.then_some(number),
        sharing_rings: job.numjobs.max(1),
    }
}

fn one_by_one(sync: Sync) -> AnyBackend {
    AnyBackend::Sync(ImmediateBackend::new(sync, 1))
}

fn sync_range_flags(job: &Job) -> u32 {
    job.workload.sync_file_range.map_or(0, |rule| {
        let bit = |on: bool, flag: u32| if on { flag } else { 0 };
        bit(rule.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
            | bit(rule.write, libc::SYNC_FILE_RANGE_WRITE)
            | bit(rule.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER)
    })
}

fn set_files(backend: &mut AnyBackend, handles: &[FileHandle]) -> io::Result<()> {
    match backend {
        AnyBackend::Uring(backend) => backend.set_files(handles),
        AnyBackend::Aio(backend) => backend.set_files(handles),
        AnyBackend::PosixAio(backend) => backend.set_files(handles),
        AnyBackend::Sync(backend) => backend.set_files(handles),
        AnyBackend::Vsync(backend) => backend.set_files(handles),
        AnyBackend::Mmap(backend) => backend.set_files(handles),
        AnyBackend::Null(backend) => backend.set_files(handles),
        AnyBackend::Remote(backend) => backend.set_files(handles),
    }
}

/// Maximum number of entries of an io_uring.
const MOST_ENTRIES: u32 = 32_768;

fn unavailable(job: &Job, engine: Engine, error: &io::Error) -> RunError {
    if engine == Engine::IoUring && depth(job) > MOST_ENTRIES {
        return UnsupportedFeature::IodepthOverMaximum {
            job: job.name.clone(),
            iodepth: depth(job),
            limit: MOST_ENTRIES,
        }
        .into();
    }
    UnsupportedFeature::EngineUnavailable {
        engine,
        failure: error.into(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_engines_have_the_flags_of_the_job() {
        let mut job = Job::new("x");
        assert_eq!(engines_of_auto(&job).len(), 3);
        job.io.atomic = true;
        let with_atomic = engines_of_auto(&job);
        assert_eq!(with_atomic, [Engine::IoUring, Engine::Libaio]);
        job.io.uncached = true;
        assert_eq!(engines_of_auto(&job), [Engine::IoUring]);
    }

    #[test]
    fn rw_flags_are_named_if_the_job_has_them() {
        let mut job = Job::new("x");
        let names = |job: &Job| rw_flag_names(job).collect::<Vec<_>>();
        assert_eq!(names(&job), [""; 0]);
        job.io.uncached = true;
        assert_eq!(names(&job), ["uncached"]);
        (job.io.atomic, job.io.uncached) = (true, false);
        assert_eq!(names(&job), ["atomic"]);
    }

    #[test]
    fn workers_of_one_job_share_a_kernel_thread_if_cpus_are_few() {
        let jobs = [Job::new("x"), Job::new("y")];
        let group = |job: &Job, shares_sqpoll_thread| {
            let circumstances = BackendCircumstances {
                files_change: false,
                refill: Refill::AT_ONCE,
                shares_sqpoll_thread,
            };
            ring_options(job, circumstances).shared_sqpoll
        };
        assert_eq!(group(&jobs[0], false), None);
        let [first, second] = jobs.each_ref().map(|job| group(job, true));
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(group(&jobs[0], true), first);
    }

    #[test]
    fn only_trimming_jobs_discard_through_the_ring() {
        let circumstances = |files_change| BackendCircumstances {
            files_change,
            refill: Refill::AT_ONCE,
            shares_sqpoll_thread: false,
        };
        let mut job = Job::new("x");
        assert!(!ring_options(&job, circumstances(false)).discards);
        job.workload.rw.mode = iosonde_job::plan::ReadWriteMode::Trim;
        assert!(ring_options(&job, circumstances(false)).discards);
        assert!(!ring_options(&job, circumstances(true)).discards);
        assert_eq!(ring_options(&job, circumstances(false)).min_wait, None);
    }
}
