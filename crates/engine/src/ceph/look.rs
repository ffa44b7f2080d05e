//! Inspects a target in a cluster before a run.

use super::backend::uri;
use super::{CephError, Cluster, Image, connect};
use iosonde_job::Target;
use iosonde_job::plan::{Ceph, CephAccess, Engine};
use iosonde_result::session::RunError;

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A pool.
    Pool {
        /// Bytes that can still be written to the pool. `None` if the cluster does not report them.
        free_bytes: Option<u64>,
    },
    /// An image.
    Image {
        /// Length in bytes.
        bytes: u64,
        /// Whether the image was never written.
        is_empty: bool,
    },
}

/// Inspects a pool or an image.
///
/// # Errors
/// A cluster that cannot be reached, a missing pool or image, or a target that is not Ceph's.
pub fn look(target: &Target, access: &CephAccess) -> Result<Found, RunError> {
    let (engine, pool, namespace, image) = match target {
        Target::Rados { pool, namespace } => (Engine::Rados, pool, namespace.clone(), None),
        Target::Rbd { pool, image } => (Engine::Rbd, pool, None, Some(image.clone())),
        _ => {
            return Err(RunError::Unsupported {
                problem: format!("{target} is not a target of Ceph"),
                remedy: "write rados://POOL or rbd://POOL/IMAGE".to_owned(),
            });
        }
    };
    let ceph = Ceph {
        pool: pool.clone(),
        namespace,
        image,
        ..Ceph::default()
    };
    let name = uri(engine, &ceph, ceph.image.as_deref());
    looked(&ceph, access).map_err(|error| error.on(&name))
}

fn looked(ceph: &Ceph, access: &CephAccess) -> Result<Found, CephError> {
    let cluster = connect(access)?;
    let pool = cluster.pool(&ceph.pool, ceph.namespace.as_deref())?;
    let Some(image) = &ceph.image else {
        return Ok(Found::Pool {
            free_bytes: free_bytes(&cluster, &ceph.pool),
        });
    };
    let image = Image::open(&pool, image, false)?;
    let bytes = image.size_bytes()?;
    Ok(Found::Image {
        bytes,
        is_empty: image.written(0..bytes)?.is_empty(),
    })
}

/// Available bytes of a pool, from `ceph df`, which needs a manager and the capability to read it.
fn free_bytes(cluster: &Cluster, pool: &str) -> Option<u64> {
    let answer = cluster
        .mon_command(r#"{"prefix": "df", "format": "json"}"#)
        .ok()?;
    room_in(&answer, pool)
}

fn room_in(answer: &str, pool: &str) -> Option<u64> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let pools = answer.get("pools")?.as_array()?;
    let ours = pools.iter().find(|other| other["name"] == pool)?;
    ours["stats"]["max_avail"]
        .as_u64()
        .filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_that_of_the_pool_where_the_cluster_knows_it() {
        let answer = r#"{"pools":[{"name":"a","id":1,"stats":{"max_avail":0}},{"name":"b","id":2,"stats":{"max_avail":7}}]}"#;
        assert_eq!(room_in(answer, "b"), Some(7));
        assert_eq!(room_in(answer, "a"), None);
        assert_eq!(room_in(answer, "c"), None);
        assert_eq!(room_in("", "c"), None);
    }
}
