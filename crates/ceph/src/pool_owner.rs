//! Owner of a made pool: the process that watches an object in the pool.
//!
//! The object has a namespace of its own, so that no benchmark and no listing sees it.

use crate::error::CephError;
use crate::sys::rados::RadosCluster;
use crate::sys::watches::RadosWatch;
use std::time::Duration;

/// Namespace and name of the object.
const NAMESPACE: &str = "iosonde-owner";
const OBJECT: &str = "owner";
/// Maximum wait for the answers of watchers, which do not answer while they live.
const WATCHER_TIMEOUT: Duration = Duration::from_secs(5);

/// State of the process that made a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolOwner {
    /// It uses the pool, or was killed within the last 30 s.
    Alive,
    /// It has ended, or has lost the connection to the cluster for more than 30 s.
    Gone,
    /// The pool has no object of an owner: its run was killed while it made the pool, or makes it
    /// now.
    Unknown,
}

/// Makes this process the owner of a pool, for as long as the watch keeps its client connected.
pub(crate) fn own_pool(cluster: &RadosCluster, pool: &str) -> Result<RadosWatch, CephError> {
    let objects = cluster.pool(pool, Some(NAMESPACE))?;
    objects.create_new(OBJECT)?;
    objects.watch(OBJECT)
}

/// Returns the state of a pool's owner.
pub(crate) fn find_owner(cluster: &RadosCluster, pool: &str) -> Result<PoolOwner, CephError> {
    let objects = cluster.pool(pool, Some(NAMESPACE))?;
    let is_watched = objects.has_watchers(OBJECT, WATCHER_TIMEOUT)?;
    Ok(match is_watched {
        Some(true) => PoolOwner::Alive,
        Some(false) => PoolOwner::Gone,
        None => PoolOwner::Unknown,
    })
}
