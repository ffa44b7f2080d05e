//! Opens the pool or image of a job, and creates the backend on it.

use super::access::{InFlight, connect_for_objects, connect_to_limit};
use super::stripes::count;
use super::{CephError, Cluster, Image, IoCtx, Lending, connect, version};
use crate::files::WorkerFiles;
use crate::interrupt::Interrupt;
use crate::io::Slab;
use crate::io::rados_backend::Rados;
use crate::io::rbd_backend::Rbd;
use crate::sys::rados::WeakCluster;
use crate::sys::rbd::WeakImage;
use iosonde_job::plan::{Ceph, CephAccess, Direction, Engine, Job, ObjectNames};
use iosonde_result::run::CephUsed;
use iosonde_result::session::RunError;
use iosonde_workload::buffers::constant_from;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Backend of a Ceph engine.
pub(crate) enum CephBackend {
    Rados(Rados),
    Rbd(Rbd),
}

/// Ceph options of a job. The parser ensures that they exist.
pub(super) fn of(job: &Job) -> Result<&Ceph, RunError> {
    job.io.ceph.as_deref().ok_or_else(|| RunError::Unsupported {
        problem: format!("job {}: no pool is named", job.name),
        remedy: "add pool=".to_owned(),
    })
}

/// URI of a pool, object or image, for messages.
pub(super) fn uri(engine: Engine, ceph: &Ceph, object: Option<&str>) -> String {
    let scheme = if engine == Engine::Rbd {
        "rbd"
    } else {
        "rados"
    };
    let parts = [Some(ceph.pool.as_str()), ceph.namespace.as_deref(), object];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("{scheme}://{}", parts.join("/"))
}

/// Name of a job's file in messages.
pub(crate) fn file_name(job: &Job, path: &std::path::Path) -> String {
    match (job.io.engine, job.io.ceph.as_deref()) {
        (engine, Some(ceph)) if engine.is_ceph() => uri(engine, ceph, Some(&object_of(path))),
        _ => path.display().to_string(),
    }
}

/// Opens a job's pool with a client for one worker. Returns whether the worker must limit requests.
fn open_pool(ceph: &Ceph, most: InFlight) -> Result<(IoCtx, bool), RunError> {
    let (client, limits) = connect_to_limit(&ceph.access, most)
        .map_err(|error| error.on(&uri(Engine::Rados, ceph, None)))?;
    Ok((opened(ceph, Ok(client))?, limits))
}

/// Opens a job's pool with the shared client, for operations that are not measured.
pub(super) fn share_pool(ceph: &Ceph) -> Result<IoCtx, RunError> {
    opened(ceph, share(&ceph.access))
}

fn opened(ceph: &Ceph, cluster: Result<Cluster, CephError>) -> Result<IoCtx, RunError> {
    let pool = cluster.and_then(|it| it.pool(&ceph.pool, ceph.namespace.as_deref()));
    pool.map_err(|error| error.on(&uri(Engine::Rados, ceph, None)))
}

/// Shared clients for operations that are not measured, by access.
static CLIENTS: Mutex<Vec<(CephAccess, WeakCluster)>> = Mutex::new(Vec::new());

/// Returns the shared client for what is not measured: a connection costs 10 ms of CPU time.
///
/// # Errors
/// As [`connect`].
pub fn share(access: &CephAccess) -> Result<Cluster, CephError> {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    clients.retain(|(_, client)| client.upgrade().is_some());
    let mut open = clients.iter().filter(|(other, _)| other == access);
    if let Some(client) = open.find_map(|(_, client)| client.upgrade()) {
        return Ok(client);
    }
    let client = connect_for_objects(access)?;
    clients.push((access.clone(), client.downgrade()));
    Ok(client)
}

/// Open images, with their options and whether they are writable.
static IMAGES: Mutex<Vec<(Ceph, bool, WeakImage)>> = Mutex::new(Vec::new());

/// Opens a job's image, or shares the open one: two clients would take the exclusive lock from each
/// other at each write.
pub fn open_image(ceph: &Ceph, writes: bool) -> Result<Image, RunError> {
    let name = ceph.image.as_deref().unwrap_or_default();
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    images.retain(|(.., image)| image.upgrade().is_some());
    let is_same = |other: &Ceph| {
        (&other.access, &other.pool, &other.namespace, &other.image)
            == (&ceph.access, &ceph.pool, &ceph.namespace, &ceph.image)
    };
    let fits = |writable: bool| writable || !writes;
    let mut open = images.iter();
    if let Some(image) = open
        .find(|(other, writable, _)| is_same(other) && fits(*writable))
        .and_then(|(.., image)| image.upgrade())
    {
        return Ok(image);
    }
    let uri = uri(Engine::Rbd, ceph, Some(name));
    let cluster = connect(&ceph.access).map_err(|error| error.on(&uri))?;
    let image = cluster
        .pool(&ceph.pool, ceph.namespace.as_deref())
        .and_then(|pool| Image::open(&pool, name, writes))
        .map_err(|error| error.on(&uri))?;
    images.push((ceph.clone(), writes, image.downgrade()));
    Ok(image)
}

/// Client numbers with which this process has images open.
pub(super) fn own_clients() -> Vec<u64> {
    let images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let open = images.iter().filter_map(|(.., image)| image.upgrade());
    open.map(|image| image.pool().cluster().instance_id())
        .collect()
}

/// Length of a job's image in bytes.
pub(crate) fn image_bytes(job: &Job) -> Result<u64, RunError> {
    let ceph = of(job)?;
    let image = open_image(ceph, false)?;
    let name = uri(Engine::Rbd, ceph, ceph.image.as_deref());
    image.size_bytes().map_err(|error| error.on(&name))
}

/// Whether a job writes or discards data.
pub(super) fn changes(job: &Job) -> bool {
    let rw = job.workload.rw;
    rw.has(Direction::Write) || rw.has(Direction::Trim)
}

/// Creates the backend of a job, with its description for the result.
pub(crate) fn backend_of(
    job: &Job,
    files: &WorkerFiles,
    slab: &Slab,
    wish: &Arc<Interrupt>,
) -> Result<(CephBackend, CephUsed), RunError> {
    let depth = slab.slots.len() as u32;
    let ceph = of(job)?;
    if job.io.engine == Engine::Rbd {
        let image = open_image(ceph, changes(job))?;
        let used = used_image(ceph, &image)?;
        let backend = Rbd::new(&image, depth, ceph.busy_poll).heeding(wish);
        return Ok((CephBackend::Rbd(backend), used));
    }
    let io_bytes = slab.memory.stride() as u64;
    let last_byte = ceph.object_bytes.map_or(0, |bytes| bytes - 1);
    let most = InFlight {
        requests: u64::from(depth) * u64::from(count(last_byte, io_bytes, ceph.object_bytes)),
        bytes: u64::from(depth) * io_bytes,
    };
    let (pool, limits) = open_pool(ceph, most)?;
    let names: Vec<String> = files
        .files
        .iter()
        .map(|file| object_of(&file.path))
        .collect();
    let mut used = used(Engine::Rados, ceph, &pool)?;
    let mut backend =
        Rados::new(pool, &names, ceph.object_bytes, depth, ceph.busy_poll).heeding(wish);
    if limits {
        let limit = Duration::from_secs(u64::from(ceph.access.timeout_s.max(1)));
        backend = backend.limited_to(limit);
    }
    let lending = lending(job);
    if lending != Lending::default() {
        // Lending requires that no other code uses the client, which the worker owns.
        backend = backend.lending(lending);
    }
    if is_for_all(lending, job) {
        let fits = |from: &u64| ceph.object_bytes.is_none_or(|bytes| bytes >= *from);
        used.uncopied_from = backend.lends_from().filter(fits);
    }
    if ceph.object_names == ObjectNames::RadosBench {
        backend = backend.named_as_by_rados_bench(&names);
    }
    Ok((CephBackend::Rados(backend), used))
}

/// Data for zero copy. Reads: if no job verifies them. Writes: if a timeout or cancellation ends
/// the job. The write may still be sent, and a worker that continues would change its data.
fn lending(job: &Job) -> Lending {
    let survived = job.errors.ignore.iter().flatten();
    let mut unanswered =
        survived.filter(|errno| [libc::ETIMEDOUT, libc::ECANCELED].contains(errno));
    let writes = changes(job) && unanswered.next().is_none();
    let reads = job.workload.rw.has(Direction::Read);
    // Reads and verification use the same buffers, and would change constant parts.
    let is_alone = writes && !reads && job.replay.is_none() && job.verify.is_none();
    Lending {
        writes,
        reads: reads && job.verify.is_none(),
        constant_from: constant_from(&job.workload.buffers).filter(|_| is_alone),
    }
}

/// Whether zero copy covers all data of a job.
fn is_for_all(lending: Lending, job: &Job) -> bool {
    let reads = job.workload.rw.has(Direction::Read);
    (lending.writes || !changes(job)) && (lending.reads || !reads)
}

/// Object name of a file's path.
pub(super) fn object_of(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Description of an image and its client, for the result.
pub(super) fn used_image(ceph: &Ceph, image: &Image) -> Result<CephUsed, RunError> {
    let cluster = image.pool().cluster();
    let of_client = |name: &str| cluster.get(name).unwrap_or_default();
    Ok(CephUsed {
        cache: Some(cache(|name| image.setting(name), of_client)),
        ..used(Engine::Rbd, ceph, image.pool())?
    })
}

/// Cache policy of an image, or `off`. Like librbd, ignores invalid values in the settings of the
/// image or its pool.
fn cache<'a>(
    of_image: impl Fn(&str) -> Option<&'a str>,
    of_client: impl Fn(&str) -> String,
) -> String {
    let is_on = |value: &str| match value.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    };
    let on = of_image("rbd_cache").and_then(is_on);
    if on.or_else(|| is_on(&of_client("rbd_cache"))) != Some(true) {
        return "off".to_owned();
    }
    let is_policy = |value: &&str| ["writethrough", "writeback", "writearound"].contains(value);
    let policy = of_image("rbd_cache_policy").filter(is_policy);
    policy.map_or_else(|| of_client("rbd_cache_policy"), str::to_owned)
}

/// Description of the client and its pool, for the result.
pub(super) fn used(engine: Engine, ceph: &Ceph, pool: &IoCtx) -> Result<CephUsed, RunError> {
    let name = uri(engine, ceph, ceph.image.as_deref());
    let cluster = pool.cluster();
    let is_rbd = engine == Engine::Rbd;
    let client = match is_rbd {
        true => super::rbd_version().map(|version| format!("librbd {version}")),
        false => version().map(|version| format!("librados {version}")),
    };
    Ok(CephUsed {
        client: client.map_err(|error| error.on(&name))?,
        fsid: cluster.fsid().map_err(|error| error.on(&name))?,
        pool: ceph.pool.clone(),
        namespace: ceph.namespace.clone(),
        image: ceph.image.clone().filter(|_| is_rbd),
        object_bytes: ceph.object_bytes.filter(|_| !is_rbd),
        cache: None,
        uncopied_from: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{BufferFill, Mode, Replay, Verify, VerifyMethod};

    #[test]
    fn what_somebody_may_still_need_is_copied() {
        let mut job = Job::new("x");
        let all = |job: &Job| {
            let lending = lending(job);
            (lending.writes, lending.reads, is_for_all(lending, job))
        };
        job.workload.rw.mode = Mode::Read;
        assert_eq!(all(&job), (false, true, true));
        job.workload.rw.mode = Mode::Write;
        assert_eq!(all(&job), (true, false, true));
        job.workload.rw.mode = Mode::ReadWrite;
        assert_eq!(all(&job), (true, true, true));
        job.errors.ignore[1] = vec![libc::ETIMEDOUT];
        assert_eq!(all(&job), (false, true, false));
        job.errors = Default::default();
        job.verify = Some(Verify::new(VerifyMethod::Crc32c));
        assert_eq!(all(&job), (true, false, false));
        job.workload.rw.mode = Mode::Write;
        assert_eq!(all(&job), (true, false, true));
    }

    #[test]
    fn the_cache_is_that_of_the_image_before_that_of_the_client() {
        let told = |of_image: &[(&str, &'static str)], of_client: &[(&str, &str)]| {
            let find = |list: &[(&str, &'static str)], name: &str| {
                let found = list.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| *value)
            };
            let client = |name: &str| {
                let found = of_client.iter().find(|(known, _)| *known == name);
                found.map_or_else(String::new, |(_, value)| (*value).to_owned())
            };
            cache(|name| find(of_image, name), client)
        };
        let (on, policy) = (("rbd_cache", "true"), ("rbd_cache_policy", "writearound"));
        assert_eq!(told(&[], &[on, policy]), "writearound");
        assert_eq!(told(&[], &[("rbd_cache", "false"), policy]), "off");
        for off in ["false", "False", "0"] {
            assert_eq!(told(&[("rbd_cache", off)], &[on, policy]), "off");
        }
        for on in ["true", "1"] {
            let own = [("rbd_cache", on), ("rbd_cache_policy", "writeback")];
            assert_eq!(told(&own, &[("rbd_cache", "false"), policy]), "writeback");
        }
        let wrong = [("rbd_cache", "yes"), ("rbd_cache_policy", "fast")];
        assert_eq!(told(&wrong, &[on, policy]), "writearound");
    }

    #[test]
    fn only_what_nobody_changes_is_constant() {
        let mut job = Job::new("x");
        job.workload.rw.mode = Mode::Write;
        assert_eq!(lending(&job).constant_from, None, "they are scrambled");
        job.workload.buffers.fill = BufferFill::RadosBench;
        assert_eq!(lending(&job).constant_from, Some(32));
        job.workload.buffers.fill = BufferFill::Refill;
        assert_eq!(lending(&job).constant_from, None);
        for fill in [BufferFill::Once, BufferFill::Zero] {
            job.workload.buffers.fill = fill;
            assert_eq!(lending(&job).constant_from, Some(0));
        }
        job.workload.buffers.compress_percent = 50;
        assert_eq!(lending(&job).constant_from, None, "it is made anew");
        job.workload.buffers.compress_percent = 0;
        job.workload.buffers.dedupe_percent = 50;
        assert_eq!(lending(&job).constant_from, None, "it is made anew");
        job.workload.buffers.dedupe_percent = 0;
        job.workload.rw.mode = Mode::ReadWrite;
        assert_eq!(lending(&job).constant_from, None, "reads come into them");
        job.workload.rw.mode = Mode::Write;
        job.verify = Some(Verify::new(VerifyMethod::Crc32c));
        assert_eq!(lending(&job).constant_from, None, "headers come into them");
        job.verify = None;
        job.replay = Some(Replay::default());
        assert_eq!(lending(&job).constant_from, None, "a trace may read");
    }
}
