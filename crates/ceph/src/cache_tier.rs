//! The cache tier of a pool, for a comparison with and without it.
//!
//! The mode of the tier is changed for a part of the comparison and restored afterwards. The
//! overlay of the base pool stays in place: without it, clients would miss data that the tier has
//! not written back. A new pool with the layout of the base pool stands in for the base pool.

use crate::access::connect;
use crate::error::CephError;
use crate::made_pool::{PoolKind, all_pools, pool_uri, query};
use crate::pool_layout::PoolLayout;
use crate::sys::rados::RadosCluster;
use iosonde_job::plan::CephAccess;
use iosonde_result::run_error::{CephProblem, RunError};
use serde_json::{Value, json};

/// Mode in which a tier takes writes as in `writeback` mode, and passes on reads of objects that it
/// does not hold.
const READ_PROXY: &str = "readproxy";
/// Modes that Ceph restores after `readproxy` at any time. It refuses the others while the tier has
/// objects that are not written back.
const RESTORABLE_MODES: [&str; 2] = ["writeback", "proxy"];

/// A pool with a cache tier in front of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheTier {
    access: CephAccess,
    base: String,
    tier: String,
    mode: String,
    base_layout: PoolLayout,
}

/// Changed mode of a cache tier, to be restored.
#[derive(Debug)]
#[must_use]
pub struct ChangedCacheMode {
    /// The connection that changed the mode. A new one could fail after Ctrl-C.
    cluster: RadosCluster,
    tier: String,
    /// The mode to restore.
    mode: String,
}

impl CacheTier {
    /// Returns the cache tier of a pool.
    ///
    /// # Errors
    /// A pool without a tier, or a cluster that does not answer.
    pub fn find(pool: &str, access: &CephAccess) -> Result<CacheTier, RunError> {
        let uri = pool_uri(pool);
        let failed = |error: CephError| error.on(&uri);
        let cluster = connect(access).map_err(failed)?;
        let pools = all_pools(&cluster).map_err(failed)?;
        let no_tier = || {
            let cause = CephProblem::NoCacheTier {
                pool: pool.to_owned(),
            };
            RunError::unusable_target(&uri, cause.into())
        };
        let (tier, mode) = tier_of(&pools, pool).ok_or_else(no_tier)?;
        let rule = crush_rule(&cluster, pool).map_err(failed)?;
        let base_layout = PoolLayout::find(&pools, pool, rule).ok_or_else(no_tier)?;
        Ok(CacheTier {
            access: access.clone(),
            base: pool.to_owned(),
            tier,
            mode,
            base_layout,
        })
    }

    /// Name of the pool of the tier.
    pub fn tier(&self) -> &str {
        &self.tier
    }

    /// Mode of the tier before the comparison.
    pub fn mode(&self) -> &str {
        &self.mode
    }

    /// Whether the tier is in `readproxy` mode.
    pub fn is_read_proxy(&self) -> bool {
        self.mode == READ_PROXY
    }

    /// Whether the mode of the tier can be restored after `readproxy`.
    pub fn is_restorable(&self) -> bool {
        RESTORABLE_MODES.contains(&self.mode.as_str())
    }

    /// Command that restores the mode of the tier after a run that was killed.
    pub fn restore_command(&self) -> String {
        format!("ceph osd tier cache-mode {} {}", self.tier, self.mode)
    }

    /// Kind of a new pool that stores its objects as the base pool does.
    pub fn kind_of_base(&self) -> PoolKind {
        PoolKind::Like(self.base_layout.clone())
    }

    /// Sets the tier to `readproxy`. `None` if the cluster's release does not offer it.
    ///
    /// # Errors
    /// A client without the rights, or a cluster that does not answer.
    pub fn change_to_read_proxy(&self) -> Result<Option<ChangedCacheMode>, RunError> {
        debug_assert!(self.is_restorable());
        let failed = |error: CephError| error.on(&pool_uri(&self.base));
        let cluster = connect(&self.access).map_err(failed)?;
        match set_mode(&cluster, &self.tier, READ_PROXY) {
            Ok(()) => Ok(Some(ChangedCacheMode {
                cluster,
                tier: self.tier.clone(),
                mode: self.mode.clone(),
            })),
            Err(error) if is_not_offered(&error) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

impl ChangedCacheMode {
    /// Restores the mode.
    ///
    /// # Errors
    /// The cluster does not answer or refuses. The error names the command that restores the mode.
    pub fn restore(self) -> Result<(), RunError> {
        let restored = set_mode(&self.cluster, &self.tier, &self.mode);
        restored.map_err(|error| match error.errno() {
            Some(errno) => {
                let cause = CephProblem::CacheModeNotRestored {
                    tier: self.tier.clone(),
                    mode: self.mode.clone(),
                    errno,
                };
                RunError::unusable_target(pool_uri(&self.tier), cause.into())
            }
            None => error.on(&pool_uri(&self.tier)),
        })
    }
}

fn set_mode(cluster: &RadosCluster, tier: &str, mode: &str) -> Result<(), CephError> {
    let command = json!({"prefix": "osd tier cache-mode", "pool": tier, "mode": mode});
    query(cluster, &command).map(|_| ())
}

/// Whether the monitors do not know the mode, or want a confirmation for it. A client without the
/// rights gets another error.
fn is_not_offered(error: &CephError) -> bool {
    let errno = error.errno();
    errno.is_some_and(|errno| [libc::EINVAL, libc::EPERM, libc::EOPNOTSUPP].contains(&errno))
}

/// Name of the CRUSH rule of a pool.
fn crush_rule(cluster: &RadosCluster, pool: &str) -> Result<String, CephError> {
    let command = json!({
        "prefix": "osd pool get",
        "pool": pool,
        "var": "crush_rule",
        "format": "json",
    });
    let answer = query(cluster, &command)?;
    Ok(answer["crush_rule"].as_str().unwrap_or_default().to_owned())
}

/// Name and mode of the tier in front of a pool, from the answer to `osd pool ls detail`.
fn tier_of(pools: &Value, pool: &str) -> Option<(String, String)> {
    let all = pools.as_array()?;
    let base = all.iter().find(|found| found["pool_name"] == pool)?;
    let id = base["read_tier"].as_i64().filter(|id| *id >= 0)?;
    let is_tier = |found: &&Value| {
        let found_id = found["pool_id"].as_i64().or(found["pool"].as_i64());
        found_id == Some(id)
    };
    let tier = all.iter().find(is_tier)?;
    let text = |key: &str| Some(tier[key].as_str()?.to_owned());
    Some((text("pool_name")?, text("cache_mode")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::CephAction;

    #[test]
    fn tier_is_found_by_the_id_in_its_base_pool() {
        // As Ceph 16 answers `osd pool ls detail`, without fields that are not read.
        let pools = json!([
            {"pool_id": 5, "pool_name": "cold", "read_tier": 6, "write_tier": 6,
             "cache_mode": "none", "tiers": [6], "tier_of": -1},
            {"pool_id": 6, "pool_name": "hot", "read_tier": -1, "write_tier": -1,
             "cache_mode": "writeback", "tiers": [], "tier_of": 5}
        ]);
        let found = tier_of(&pools, "cold");
        assert_eq!(found, Some(("hot".to_owned(), "writeback".to_owned())));
        assert_eq!(tier_of(&pools, "hot"), None);
        assert_eq!(tier_of(&pools, "none"), None);
        assert_eq!(tier_of(&Value::Null, "cold"), None);
    }

    #[test]
    fn only_modes_that_can_be_restored_are_changed() {
        let tier = |mode: &str| CacheTier {
            access: CephAccess::default(),
            base: "cold".to_owned(),
            tier: "hot".to_owned(),
            mode: mode.to_owned(),
            base_layout: layout(),
        };
        assert!(tier("writeback").is_restorable() && tier("proxy").is_restorable());
        for mode in ["readonly", "none", "forward"] {
            assert!(!tier(mode).is_restorable(), "{mode}");
        }
        let expected = "ceph osd tier cache-mode hot writeback";
        assert_eq!(tier("writeback").restore_command(), expected);
    }

    fn layout() -> PoolLayout {
        let pools = json!([{"pool_name": "cold", "type": 1, "size": 2, "pg_num": 8}]);
        PoolLayout::find(&pools, "cold", "fast".to_owned()).unwrap()
    }

    #[test]
    fn unknown_mode_differs_from_missing_rights() {
        let refused = |errno| CephError::Call {
            action: CephAction::Query("the monitors".to_owned()),
            errno,
            said: String::new(),
        };
        assert!(is_not_offered(&refused(libc::EINVAL)));
        assert!(is_not_offered(&refused(libc::EPERM)));
        assert!(!is_not_offered(&refused(libc::EACCES)));
        assert!(!is_not_offered(&refused(libc::ETIMEDOUT)));
    }
}
