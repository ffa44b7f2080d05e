//! Selects the backend of a job, with its fallbacks.

#[cfg(feature = "ceph")]
use crate::ceph::{CephBackend, backend_of};
use crate::files::WorkerFiles;
use crate::interrupt::Interrupt;
use crate::io::immediate::AtOnce;
use crate::io::io_uring::Uring;
use crate::io::libaio::Aio;
use crate::io::mmap_backend::Mmap;
use crate::io::null::Null;
use crate::io::posix_aio_backend::PosixAio;
use crate::io::sync::{Sync, Vsync};
use crate::io::{Backend, Handle, Slab};
use crate::sys::ring::RingOptions;
use crate::sys::rw::Call;
use crate::worker::io_failure::errno_name;
use iosonde_job::plan::{Direction, Engine, Job};
use iosonde_result::run::BackendUsed;
use iosonde_result::session::RunError;
use std::io;
use std::sync::Arc;

/// A backend of any kind. Matched once before the I/O loop, which is generic over the backend.
pub(super) enum AnyBackend {
    Uring(Box<Uring>),
    Aio(Aio),
    PosixAio(PosixAio),
    Sync(AtOnce<Sync>),
    Vsync(AtOnce<Vsync>),
    Mmap(AtOnce<Mmap>),
    Null(AtOnce<Null>),
    #[cfg(feature = "ceph")]
    Ceph(CephBackend),
}

/// Returns the maximum number of I/Os that the engine keeps in flight for a job.
pub(super) fn depth(job: &Job) -> u32 {
    match job.io.engine.is_synchronous() {
        true => 1,
        false => job.io.iodepth.max(1),
    }
}

/// Creates a job's backend. With `files_change` the files are opened and closed during the run.
pub(super) fn choose(
    job: &Job,
    slab: &Slab,
    files: &WorkerFiles,
    handles: &[Handle],
    files_change: bool,
    interrupt: &Arc<Interrupt>,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    if job.io.engine.is_ceph() {
        return on_cluster(job, files, slab, interrupt);
    }
    let (mut backend, mut used) = match job.io.engine {
        Engine::Auto => automatic(job, slab, files_change)?,
        engine => {
            let backend = named(job, engine, slab, files_change)
                .map_err(|error| unavailable(job, engine, &error))?;
            (backend, used(job, engine, &[]))
        }
    };
    let files = set_files(&mut backend, handles);
    files.map_err(|error| unavailable(job, used.engine, &error))?;
    if let AnyBackend::Uring(uring) = &backend {
        let reasons: Vec<String> = used.reason.iter().chain(uring.refused()).cloned().collect();
        used.reason = in_words(&reasons);
        used.registered_files = uring.registered_files();
        used.fixed_buffers = uring.fixed_buffers();
    }
    Ok((backend, used))
}

/// Creates the backend of a pool or an image. The local page cache is not involved.
#[cfg(feature = "ceph")]
fn on_cluster(
    job: &Job,
    files: &WorkerFiles,
    slab: &Slab,
    interrupt: &Arc<Interrupt>,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    let (backend, ceph) = backend_of(job, files, slab, interrupt)?;
    let used = BackendUsed {
        direct: true,
        ceph: Some(ceph),
        ..used(job, job.io.engine, &[])
    };
    Ok((AnyBackend::Ceph(backend), used))
}

/// Never called: plans with Ceph jobs are refused earlier.
#[cfg(not(feature = "ceph"))]
fn on_cluster(
    job: &Job,
    _: &WorkerFiles,
    _: &Slab,
    _: &Arc<Interrupt>,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    let error = io::Error::from_raw_os_error(libc::ENOSYS);
    Err(unavailable(job, job.io.engine, &error))
}

fn used(job: &Job, engine: Engine, reasons: &[String]) -> BackendUsed {
    BackendUsed {
        engine,
        asked: job.io.engine,
        reason: in_words(reasons),
        direct: job.io.direct,
        registered_files: false,
        fixed_buffers: false,
        ceph: None,
    }
}

fn in_words(reasons: &[String]) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Selects io_uring, else libaio, else psync; the result gives the reason.
fn automatic(
    job: &Job,
    slab: &Slab,
    files_change: bool,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    let mut reasons = Vec::new();
    for engine in [Engine::IoUring, Engine::Libaio, Engine::Psync] {
        match named(job, engine, slab, files_change) {
            Ok(backend) => return Ok((backend, used(job, engine, &reasons))),
            Err(error) => reasons.push(format!(
                "{} is not available: {}",
                engine.name(),
                describe(&error)
            )),
        }
    }
    Err(RunError::Unsupported {
        problem: reasons.join("; "),
        remedy: "run on a kernel or in a container that allows io_uring or native AIO".to_owned(),
    })
}

fn describe(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), errno_name)
}

fn named(job: &Job, engine: Engine, slab: &Slab, files_change: bool) -> io::Result<AnyBackend> {
    let io = &job.io;
    let depth = slab.slots.len() as u32;
    let rw = job.workload.rw;
    let sync_flags = sync_range_flags(job);
    Ok(match engine {
        Engine::IoUring | Engine::Auto => {
            let options = RingOptions {
                iopoll: io.uring.hipri,
                sqpoll: io.uring.sqthread_poll,
                sqpoll_cpu: io.uring.sqthread_poll_cpu,
                nowait: io.nowait,
                force_async: io.uring.force_async,
                vectored: io.uring.nonvectored == Some(false),
                sync_range_flags: sync_flags,
            };
            let files = io.uring.registerfiles.unwrap_or(!files_change);
            let buffers = io.uring.fixedbufs.unwrap_or(true);
            let uring = Uring::new(depth, options, files, buffers, slab)?;
            AnyBackend::Uring(Box::new(uring))
        }
        Engine::Libaio => AnyBackend::Aio(Aio::new(depth, io.nowait, sync_flags)?),
        Engine::Posixaio => AnyBackend::PosixAio(PosixAio::new(depth, sync_flags)),
        Engine::Sync => one_by_one(Sync::new(Call::Seek, sync_flags)),
        Engine::Psync => one_by_one(Sync::new(Call::Positioned, sync_flags)),
        Engine::Pvsync => one_by_one(Sync::new(Call::Vectored, sync_flags)),
        Engine::Pvsync2 => {
            let flags = if io.nowait { libc::RWF_NOWAIT } else { 0 };
            let percent = if io.uring.hipri { io.hipri_percent } else { 0 };
            let sync = Sync::new(Call::Vectored2(flags), sync_flags).polling(percent);
            one_by_one(sync)
        }
        Engine::Vsync => {
            let vsync = AtOnce::new(Vsync::new(depth, sync_flags), depth);
            AnyBackend::Vsync(vsync)
        }
        Engine::Mmap => {
            let write = rw.has(Direction::Write) || rw.has(Direction::Trim);
            let mmap = AtOnce::new(Mmap::new(write, rw.random, job.io.direct), 1);
            AnyBackend::Mmap(mmap)
        }
        Engine::Null => AnyBackend::Null(AtOnce::new(Null, depth)),
        Engine::Sim | Engine::Rados | Engine::Rbd => {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
    })
}

fn one_by_one(sync: Sync) -> AnyBackend {
    AnyBackend::Sync(AtOnce::new(sync, 1))
}

fn sync_range_flags(job: &Job) -> u32 {
    job.workload.sync_file_range.map_or(0, |rule| {
        let bit = |on: bool, flag: u32| if on { flag } else { 0 };
        bit(rule.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
            | bit(rule.write, libc::SYNC_FILE_RANGE_WRITE)
            | bit(rule.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER)
    })
}

fn set_files(backend: &mut AnyBackend, handles: &[Handle]) -> io::Result<()> {
    match backend {
        AnyBackend::Uring(backend) => backend.set_files(handles),
        AnyBackend::Aio(backend) => backend.set_files(handles),
        AnyBackend::PosixAio(backend) => backend.set_files(handles),
        AnyBackend::Sync(backend) => backend.set_files(handles),
        AnyBackend::Vsync(backend) => backend.set_files(handles),
        AnyBackend::Mmap(backend) => backend.set_files(handles),
        AnyBackend::Null(backend) => backend.set_files(handles),
        #[cfg(feature = "ceph")]
        AnyBackend::Ceph(_) => Ok(()),
    }
}

/// Maximum number of entries of an io_uring.
const MOST_ENTRIES: u32 = 32_768;

fn unavailable(job: &Job, engine: Engine, error: &io::Error) -> RunError {
    if engine == Engine::IoUring && depth(job) > MOST_ENTRIES {
        return RunError::Unsupported {
            problem: format!(
                "job {}: iodepth={} is more than the {MOST_ENTRIES} I/Os that io_uring keeps in flight",
                job.name,
                depth(job)
            ),
            remedy: "use a smaller iodepth, and more jobs (numjobs=) to have as many in flight"
                .to_owned(),
        };
    }
    let remedy = match (engine, error.raw_os_error()) {
        (Engine::IoUring, Some(libc::EPERM | libc::ENOSYS)) => {
            "io_uring is blocked here (kernel.io_uring_disabled, or a container's seccomp profile); use ioengine=libaio"
        }
        (Engine::Libaio, Some(libc::EAGAIN)) => {
            "raise fs.aio-max-nr, or use fewer jobs or a smaller iodepth"
        }
        (Engine::IoUring, Some(libc::ENOMEM)) => {
            "raise the limit on locked memory (ulimit -l), or use a smaller iodepth"
        }
        (Engine::Mmap, _) => "the file cannot be mapped; use another ioengine",
        _ => "use another ioengine",
    };
    RunError::Unsupported {
        problem: format!(
            "ioengine={} cannot be used: {}",
            engine.name(),
            describe(error)
        ),
        remedy: remedy.to_owned(),
    }
}
