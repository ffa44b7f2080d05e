//! Inspects a target in a cluster before a run.

use crate::access::connect;
use crate::error::CephError;
use crate::sys::io_ctx::IoCtx;
use crate::sys::rados::RadosCluster;
use crate::sys::rbd::Image;
use crate::uri::target_uri;
use iosonde_job::TargetUri;
use iosonde_job::plan::{Ceph, CephAccess, Engine};
use iosonde_result::run_error::{CephProblem, RunError, UnsupportedFeature};
use serde_json::Value;

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CephTargetInfo {
    /// A pool.
    Pool {
        /// Bytes that can still be written to the pool, also by its quota. `None` if the cluster
        /// does not report them.
        free_bytes: Option<u64>,
    },
    /// An image.
    Image {
        /// Length in bytes.
        bytes: u64,
        /// Whether the image was never written.
        is_empty: bool,
        /// Whether it is a snapshot, which is read-only.
        is_snapshot: bool,
    },
}

/// Object size for a quota on the number of objects: that of files in a pool.
const QUOTA_OBJECT_BYTES: u64 = 4 << 20;

/// Inspects a pool or an image, for a study that overwrites parts of it.
///
/// # Errors
/// A cluster that cannot be reached, a missing pool or image, an erasure-coded pool that accepts no
/// overwrites, or a target that is not Ceph's.
pub fn inspect_target(target: &TargetUri, access: &CephAccess) -> Result<CephTargetInfo, RunError> {
    let (engine, pool, namespace, image) = match target {
        TargetUri::Rados { pool, namespace } => (Engine::Rados, pool, namespace.clone(), None),
        TargetUri::Rbd {
            pool,
            namespace,
            image,
        } => (Engine::Rbd, pool, namespace.clone(), Some(image.clone())),
        _ => {
            return Err(UnsupportedFeature::NotCephTarget {
                target: target.to_string(),
            }
            .into());
        }
    };
    let ceph = Ceph {
        pool: pool.clone(),
        namespace,
        image,
        ..Ceph::default()
    };
    let name = target_uri(engine, &ceph, ceph.image.as_deref());
    inspect(&ceph, access, &name)
}

fn inspect(ceph: &Ceph, access: &CephAccess, name: &str) -> Result<CephTargetInfo, RunError> {
    let failed = |error: CephError| error.on(name);
    let cluster = connect(access).map_err(failed)?;
    let pool = cluster.pool(&ceph.pool, ceph.namespace.as_deref());
    let pool = pool.map_err(failed)?;
    if let Some(image) = &ceph.image {
        return inspect_image(&pool, image).map_err(failed);
    }
    let pools = answer(
        &cluster,
        r#"{"prefix": "osd pool ls", "detail": "detail", "format": "json"}"#,
    );
    if pools.is_some_and(|pools| refuses_overwrites(&pools, &ceph.pool)) {
        let cause = CephProblem::NoOverwrites {
            pool: ceph.pool.clone(),
        };
        return Err(RunError::unusable_target(name, cause.into()));
    }
    Ok(CephTargetInfo::Pool {
        free_bytes: free_bytes(&cluster, &ceph.pool),
    })
}

fn inspect_image(pool: &IoCtx, image: &str) -> Result<CephTargetInfo, CephError> {
    let is_snapshot = image.contains('@');
    let image = Image::open(pool, image, false)?;
    let bytes = image.size_bytes()?;
    Ok(CephTargetInfo::Image {
        bytes,
        is_empty: image.written(0..bytes)?.is_empty(),
        is_snapshot,
    })
}

/// Answer of the monitors, which needs the capability to read it.
fn answer(cluster: &RadosCluster, command: &str) -> Option<Value> {
    let answer = cluster.mon_command(command).ok()?;
    serde_json::from_str(answer.trim()).ok()
}

/// Whether the pool is erasure-coded and `allow_ec_overwrites` is not set, from the answer to
/// `osd pool ls detail`.
fn refuses_overwrites(pools: &Value, pool: &str) -> bool {
    let mut pools = pools.as_array().into_iter().flatten();
    let found = pools.find(|other| other["pool_name"] == pool);
    found.is_some_and(|found| {
        let flags = found["flags_names"].as_str();
        let allows = |flags: &str| flags.split(',').any(|flag| flag == "ec_overwrites");
        found["type"].as_u64() == Some(3) && flags.is_some_and(|flags| !allows(flags))
    })
}

/// Available bytes of a pool, from `ceph df detail`, which needs a manager.
fn free_bytes(cluster: &RadosCluster, pool: &str) -> Option<u64> {
    let command = r#"{"prefix": "df", "detail": "detail", "format": "json"}"#;
    available_bytes(&answer(cluster, command)?, pool)
}

/// The least of the room on the OSDs and the rests of the quotas.
fn available_bytes(answer: &Value, pool: &str) -> Option<u64> {
    let pools = answer["pools"].as_array()?;
    let stats = &pools.iter().find(|other| other["name"] == pool)?["stats"];
    let positive = |key: &str| stats[key].as_u64().filter(|count| *count > 0);
    let used = |key: &str| stats[key].as_u64().unwrap_or(0);
    let quota_bytes = positive("quota_bytes");
    let quota_objects = positive("quota_objects");
    let rests = [
        positive("max_avail"),
        quota_bytes.map(|quota| quota.saturating_sub(used("stored"))),
        quota_objects.map(|quota| {
            let objects = quota.saturating_sub(used("objects"));
            objects.saturating_mul(QUOTA_OBJECT_BYTES)
        }),
    ];
    rests.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn free_bytes_are_bounded_by_osds_and_quotas() {
        let pool = |name: &str, stats: Value| json!({"name": name, "id": 1, "stats": stats});
        let answer = json!({"pools": [
            pool("a", json!({"max_avail": 0})),
            pool("b", json!({"max_avail": 7, "quota_bytes": 0, "quota_objects": 0, "stored": 9})),
            pool("q", json!({"max_avail": 700, "quota_bytes": 100, "stored": 60})),
            pool("full", json!({"max_avail": 700, "quota_bytes": 100, "stored": 100})),
            pool("o", json!({"max_avail": 1_u64 << 40, "quota_objects": 10, "objects": 8})),
        ]});
        assert_eq!(available_bytes(&answer, "b"), Some(7));
        assert_eq!(available_bytes(&answer, "q"), Some(40));
        assert_eq!(available_bytes(&answer, "full"), Some(0));
        assert_eq!(available_bytes(&answer, "o"), Some(2 * QUOTA_OBJECT_BYTES));
        assert_eq!(available_bytes(&answer, "a"), None);
        assert_eq!(available_bytes(&answer, "c"), None);
        assert_eq!(available_bytes(&Value::Null, "c"), None);
    }

    #[test]
    fn erasure_coded_pools_need_the_flag_for_overwrites() {
        let pools = json!([
            {"pool_name": "r", "type": 1, "flags_names": "hashpspool"},
            {"pool_name": "ec", "type": 3, "flags_names": "hashpspool"},
            {"pool_name": "over", "type": 3, "flags_names": "hashpspool,ec_overwrites"},
            {"pool_name": "old", "type": 3},
        ]);
        let refused =
            ["r", "ec", "over", "old", "none"].map(|pool| refuses_overwrites(&pools, pool));
        assert_eq!(refused, [false, true, false, false, false]);
        assert!(!refuses_overwrites(&Value::Null, "ec"));
    }
}
