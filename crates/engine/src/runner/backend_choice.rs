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
use crate::remote_storage::RemoteStorage;
use crate::sys::ring::RingOptions;
use crate::sys::rw::Call;
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

/// Creates a job's backend. With `files_change` the files are opened and closed during the run.
pub(super) fn choose(
    job: &Job,
    slab: &Slab,
    files: &WorkerFiles,
    handles: &[FileHandle],
    files_change: bool,
    (remote, interrupt): (Option<&dyn RemoteStorage>, &Arc<Interrupt>),
) -> Result<(AnyBackend, BackendUsed), RunError> {
    if let Some(remote) = remote.filter(|_| job.io.engine.is_ceph()) {
        return on_remote(remote, job, files, slab, interrupt);
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
        used.flags = uring.flags().into_iter().map(str::to_owned).collect();
    }
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
        ..used(job, job.io.engine, &[])
    };
    Ok((AnyBackend::Remote(RemoteBackend::new(io)), used))
}

fn used(job: &Job, engine: Engine, reasons: &[String]) -> BackendUsed {
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

fn in_words(reasons: &[String]) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Selects io_uring, else libaio, else psync; the result gives the reason.
fn automatic(
    job: &Job,
    slab: &Slab,
    files_change: bool,
) -> Result<(AnyBackend, BackendUsed), RunError> {
    let mut refused: Vec<RefusedEngine> = Vec::new();
    for engine in [Engine::IoUring, Engine::Libaio, Engine::Psync] {
        match named(job, engine, slab, files_change) {
            Ok(backend) => {
                let reasons: Vec<String> = refused.iter().map(RefusedEngine::to_string).collect();
                return Ok((backend, used(job, engine, &reasons)));
            }
            Err(error) => refused.push(RefusedEngine {
                engine,
                failure: (&error).into(),
            }),
        }
    }
    Err(UnsupportedFeature::NoEngine { refused }.into())
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
            let uring = IoUringBackend::new(depth, options, files, buffers, slab)?;
            AnyBackend::Uring(Box::new(uring))
        }
        Engine::Libaio => AnyBackend::Aio(LibaioBackend::new(depth, io.nowait, sync_flags)?),
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
