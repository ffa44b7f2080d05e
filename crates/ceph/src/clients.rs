//! Clients of clusters and open images, shared where sharing does not change a measurement.

use crate::access::{WorkerLoad, connect, connect_for_objects, connect_to_limit};
use crate::error::CephError;
use crate::open_handles::OpenHandles;
use crate::sys::io_ctx::IoCtx;
use crate::sys::rados::{RadosCluster, WeakCluster, require_librados};
use crate::sys::rbd::{Image, WeakImage};
use crate::uri::target_uri;
use iosonde_job::plan::{Ceph, CephAccess, Engine};
use iosonde_result::run_error::RunError;
use std::sync::PoisonError;

/// Opens a job's pool with a client for one worker. Returns whether the worker must limit requests.
pub(crate) fn open_pool(ceph: &Ceph, most: WorkerLoad) -> Result<(IoCtx, bool), RunError> {
    let (client, limits) = connect_to_limit(&ceph.access, most)
        .map_err(|error| error.on(&target_uri(Engine::Rados, ceph, None)))?;
    Ok((pool_of(ceph, Ok(client))?, limits))
}

/// Opens a job's pool with the shared client, for operations that are not measured.
pub(crate) fn open_shared_pool(ceph: &Ceph) -> Result<IoCtx, RunError> {
    pool_of(ceph, share_client(&ceph.access))
}

fn pool_of(ceph: &Ceph, cluster: Result<RadosCluster, CephError>) -> Result<IoCtx, RunError> {
    let pool = cluster.and_then(|it| it.pool(&ceph.pool, ceph.namespace.as_deref()));
    pool.map_err(|error| error.on(&target_uri(Engine::Rados, ceph, None)))
}

/// Shared clients for operations that are not measured, by access.
static CLIENTS: OpenHandles<CephAccess, Option<WeakCluster>> = OpenHandles::new();

/// Returns the shared client for what is not measured: a connection costs 10 ms of CPU time.
///
/// # Errors
/// A cluster that cannot be reached, or refuses the client.
pub fn share_client(access: &CephAccess) -> Result<RadosCluster, CephError> {
    require_librados()?;
    let handle = CLIENTS.handles_of_key(access);
    let mut shared = handle.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = shared.as_ref().and_then(WeakCluster::upgrade) {
        return Ok(client);
    }
    let client = connect_for_objects(access)?;
    *shared = Some(client.downgrade());
    Ok(client)
}

/// Access, pool, namespace and name of an image.
type ImageKey = (CephAccess, String, Option<String>, Option<String>);

/// Open images, each with whether it is writable.
static IMAGES: OpenHandles<ImageKey, Vec<(bool, WeakImage)>> = OpenHandles::new();

/// Opens a job's image, or shares the open one: two clients would take the exclusive lock from each
/// other at each write.
pub(crate) fn open_image(ceph: &Ceph, writes: bool) -> Result<Image, RunError> {
    let name = ceph.image.as_deref().unwrap_or_default();
    let failed = |error: CephError| error.on(&target_uri(Engine::Rbd, ceph, Some(name)));
    require_librados().map_err(failed)?;
    let key = (
        ceph.access.clone(),
        ceph.pool.clone(),
        ceph.namespace.clone(),
        ceph.image.clone(),
    );
    let handles = IMAGES.handles_of_key(&key);
    let mut images = handles.lock().unwrap_or_else(PoisonError::into_inner);
    images.retain(|(_, image)| image.upgrade().is_some());
    let mut fitting = images.iter().filter(|(writable, _)| *writable || !writes);
    if let Some(image) = fitting.find_map(|(_, image)| image.upgrade()) {
        return Ok(image);
    }
    let cluster = connect(&ceph.access).map_err(failed)?;
    let image = cluster
        .pool(&ceph.pool, ceph.namespace.as_deref())
        .and_then(|pool| Image::open(&pool, name, writes))
        .map_err(failed)?;
    images.push((writes, image.downgrade()));
    Ok(image)
}

/// Client numbers with which this process has images open.
pub(crate) fn own_client_ids() -> Vec<u64> {
    let mut numbers = Vec::new();
    for handles in IMAGES.handles_of_all_keys() {
        let images = handles.lock().unwrap_or_else(PoisonError::into_inner);
        let open = images.iter().filter_map(|(_, image)| image.upgrade());
        numbers.extend(open.map(|image| image.pool().cluster().instance_id()));
    }
    numbers
}
