//! Pools that killed runs made: found by the metadata of their application, removed if their owner
//! is gone.

use crate::access::connect;
use crate::error::{CephAction, CephError};
use crate::made_pool::{all_pools, delete_or_name, pool_facts, pool_uri, query};
use crate::pool_facts::{PoolFacts, find_pool, has_manager, is_in_use};
use crate::pool_owner::{PoolOwner, find_owner};
use crate::sys::rados::RadosCluster;
use iosonde_job::plan::CephAccess;
use iosonde_result::run_error::{CephProblem, RunError};
use serde_json::{Value, json};

/// Target in errors that concern no single pool.
const OPTION: &str = "--made-pool";

/// Pools of a cluster that `--make-pool` made, by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftoverPools {
    /// Pools whose owner was gone, which were removed.
    pub removed: Vec<String>,
    /// Pools in use, which stay.
    pub in_use: Vec<String>,
    /// Pools that name no owner, which stay: their run may be making them.
    pub unknown: Vec<String>,
}

/// Removes all pools of a cluster that `--make-pool` made and whose owner is gone.
///
/// # Errors
/// A cluster that does not answer, or refuses a removal.
pub fn remove_leftover_pools(access: &CephAccess) -> Result<LeftoverPools, RunError> {
    let failed = |error: CephError| error.on(OPTION);
    let cluster = connect(access).map_err(failed)?;
    let pools = all_pools(&cluster).map_err(failed)?;
    let mut leftovers = LeftoverPools::default();
    for (pool, facts) in made_pools(&pools) {
        match skip_missing_pool(remove_if_left(&cluster, &pool, &facts))? {
            PoolOutcome::Removed => leftovers.removed.push(pool),
            PoolOutcome::InUse => leftovers.in_use.push(pool),
            PoolOutcome::Unknown => leftovers.unknown.push(pool),
            PoolOutcome::Missing => {}
        }
    }
    Ok(leftovers)
}

/// State of a pool that `--make-pool` made, after [`remove_if_left`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolOutcome {
    /// Its owner was gone, and it was removed.
    Removed,
    /// It is in use.
    InUse,
    /// It names no owner.
    Unknown,
    /// Another client has removed it since the pools were listed.
    Missing,
}

/// Removes a pool that `--make-pool` made if its owner is gone.
fn remove_if_left(
    cluster: &RadosCluster,
    pool: &str,
    facts: &PoolFacts,
) -> Result<PoolOutcome, RunError> {
    let failed = |error: CephError| error.on(&pool_uri(pool));
    match find_owner(cluster, pool).map_err(failed)? {
        // A removed pool has no object of an owner either.
        PoolOwner::Unknown => match pool_facts(cluster, pool).map_err(failed)? {
            Some(_) => Ok(PoolOutcome::Unknown),
            None => Ok(PoolOutcome::Missing),
        },
        PoolOwner::Gone if !has_client_io(cluster, pool)? => {
            delete_or_name(cluster, pool, facts.rule.as_deref())?;
            Ok(PoolOutcome::Removed)
        }
        PoolOwner::Alive | PoolOwner::Gone => Ok(PoolOutcome::InUse),
    }
}

/// A pool that another client removes meanwhile is no error: its run may end, or a second
/// `cleanup` may be faster.
fn skip_missing_pool(outcome: Result<PoolOutcome, RunError>) -> Result<PoolOutcome, RunError> {
    match outcome {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(PoolOutcome::Missing),
        other => other,
    }
}

/// Removes a pool that a killed run made. Returns whether the pool names no owner: its run was
/// killed while it made the pool.
///
/// # Errors
/// A pool that `--make-pool` did not make or that is in use, or a cluster that refuses the removal.
pub fn remove_made_pool(pool: &str, access: &CephAccess) -> Result<bool, RunError> {
    let uri = pool_uri(pool);
    let failed = |error: CephError| error.on(&uri);
    let cluster = connect(access).map_err(failed)?;
    let found = pool_facts(&cluster, pool).map_err(failed)?;
    let Some(facts) = found else {
        let missing = CephError::Call {
            action: CephAction::OpenPool(pool.to_owned()),
            errno: libc::ENOENT,
            said: String::new(),
        };
        return Err(failed(missing));
    };
    if facts.run.is_none() {
        let cause = CephProblem::PoolNotMade;
        return Err(RunError::unusable_target(uri, cause.into()));
    }
    let owner = find_owner(&cluster, pool).map_err(failed)?;
    let refusal = match owner {
        PoolOwner::Alive => Some("its run goes on, or was killed less than 30 s ago"),
        _ if has_client_io(&cluster, pool)? => Some("clients use the pool, so its run may go on"),
        PoolOwner::Gone | PoolOwner::Unknown => None,
    };
    match refusal {
        None => {
            delete_or_name(&cluster, pool, facts.rule.as_deref())?;
            Ok(owner == PoolOwner::Unknown)
        }
        Some(said) => {
            let cause = CephProblem::PoolNotRemoved {
                pool: pool.to_owned(),
                errno: libc::EBUSY,
                said: said.to_owned(),
            };
            Err(RunError::unusable_target(uri, cause.into()))
        }
    }
}

/// Pools that `--make-pool` made, in the answer to `osd pool ls detail`.
fn made_pools(pools: &Value) -> Vec<(String, PoolFacts)> {
    let listed = pools.as_array().into_iter().flatten();
    let names = listed.filter_map(|pool| pool["pool_name"].as_str());
    let made = names.filter_map(|name| {
        let facts = find_pool(pools, name).filter(|facts| facts.run.is_some());
        Some((name.to_owned(), facts?))
    });
    made.collect()
}

/// Whether clients did I/O on a pool in the last seconds, as far as a manager reports it.
fn has_client_io(cluster: &RadosCluster, pool: &str) -> Result<bool, RunError> {
    let failed = |error: CephError| error.on(&pool_uri(pool));
    let status = query(cluster, &json!({"prefix": "status", "format": "json"})).map_err(failed)?;
    if !has_manager(&status) {
        return Ok(false);
    }
    let command = json!({"prefix": "osd pool stats", "pool_name": pool, "format": "json"});
    let stats = query(cluster, &command).map_err(failed)?;
    Ok(is_in_use(&stats, pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_that_is_removed_meanwhile_is_skipped() {
        let failed = |action, errno| {
            let call = CephError::Call {
                action,
                errno,
                said: String::new(),
            };
            skip_missing_pool(Err(call.on("rados://made")))
        };
        let open = || CephAction::OpenPool("made".to_owned());
        assert_eq!(failed(open(), libc::ENOENT), Ok(PoolOutcome::Missing));
        assert!(failed(open(), libc::EPERM).is_err());
        assert!(failed(CephAction::Connect, libc::ETIMEDOUT).is_err());
        let removed = skip_missing_pool(Ok(PoolOutcome::Removed));
        assert_eq!(removed, Ok(PoolOutcome::Removed));
    }

    #[test]
    fn made_pools_are_those_with_the_number_of_a_run() {
        let pools = json!([
            {"pool_id": 2, "pool_name": "testbench", "application_metadata": {"rbd": {}}},
            {
                "pool_id": 7, "pool_name": "made",
                "application_metadata": {
                    "rbd": {"iosonde_run": "iosonde-0123456789-"},
                },
            },
        ]);
        let found = made_pools(&pools);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["made"]);
        assert!(made_pools(&Value::Null).is_empty());
    }
}
