//! Pools that a command makes for its measurement, and removes after it.
//!
//! The metadata of a pool's application names the run that made the pool, so no other pool is ever
//! removed. They also name the CRUSH rule that an erasure code brings, which outlives its pool.

use crate::access::{connect, connect_to_remove};
use crate::error::{CephAction, CephError};
use crate::pool_facts::{
    PoolFacts, RULE_KEY, RUN_KEY, error_checks, find_pool, has_manager, is_becoming_active,
};
use crate::pool_layout::PoolLayout;
use crate::pool_owner::own_pool;
use crate::sys::rados::RadosCluster;
use crate::sys::watches::RadosWatch;
use iosonde_engine::interrupt::Interrupt;
use iosonde_job::plan::CephAccess;
use iosonde_result::run_error::{CephProblem, RunError};
use serde_json::{Value, json};
use std::fmt;
use std::time::{Duration, Instant};

/// Maximum wait until all placement groups accept I/O, and the time between two queries.
const ACTIVE_WAIT: Duration = Duration::from_secs(60);
const ACTIVE_QUERY_INTERVAL: Duration = Duration::from_millis(250);

/// How a pool stores its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolKind {
    /// In copies, as many as the cluster's default.
    Replicated,
    /// By an erasure code.
    Erasure {
        /// Name of the profile. `None`: the cluster's default.
        profile: Option<String>,
    },
    /// As another pool stores its objects.
    Like(PoolLayout),
}

impl PoolKind {
    fn is_erasure(&self) -> bool {
        match self {
            PoolKind::Replicated => false,
            PoolKind::Erasure { .. } => true,
            PoolKind::Like(layout) => layout.profile.is_some(),
        }
    }
}

/// A pool to make.
#[derive(Debug, Clone, Copy)]
pub struct NewPool<'a> {
    /// Name of the pool.
    pub pool: &'a str,
    /// How it stores its objects.
    pub kind: &'a PoolKind,
    /// Application of the pool, e.g. `rbd`.
    pub application: &'a str,
    /// Number of the run that makes it.
    pub run: &'a str,
}

/// A pool that this process made.
#[derive(Debug)]
pub struct MadePool {
    access: CephAccess,
    pool: String,
    run: String,
    facts: PoolFacts,
    /// Shows other clients that the run goes on.
    _owner: RadosWatch,
}

impl MadePool {
    /// Makes a pool, and waits until it accepts I/O. A failure leaves no pool.
    ///
    /// # Errors
    /// A pool that exists, a cluster that reports errors or forbids the removal of pools, or a
    /// client without the rights.
    pub fn make(
        new: &NewPool<'_>,
        access: &CephAccess,
        interrupt: &Interrupt,
    ) -> Result<MadePool, RunError> {
        let uri = pool_uri(new.pool);
        let failed = |error: CephError| error.on(&uri);
        let cluster = connect(access).map_err(failed)?;
        refuse_errors_of_cluster(&cluster, &uri)?;
        if let Some(facts) = pool_facts(&cluster, new.pool).map_err(failed)? {
            return Err(pool_exists(new.pool, facts.run.is_some()));
        }
        if is_removal_forbidden(&cluster) {
            let cause = CephProblem::PoolRemovalForbidden;
            return Err(RunError::unusable_target(uri, cause.into()));
        }
        let rules = crush_rules(&cluster);
        // `osd pool create` also succeeds if the pool exists; `osd pool rename` does not. So the
        // pool is made under a name that no other client uses. A pool that another client makes
        // meanwhile is never taken for this one.
        let first_name = format!("{}pool", new.run);
        let unnamed = NewPool {
            pool: &first_name,
            ..*new
        };
        let action = CephAction::CreatePool(new.pool.to_owned());
        let created = create(&cluster, &unnamed);
        let rule = rules.and_then(|rules| {
            let is_new = |rule: &String| !rules.contains(rule) && is_rule_of(rule, &first_name);
            crush_rules(&cluster)?.into_iter().find(is_new)
        });
        if let Err(error) = created {
            // A refused pool leaves its CRUSH rule, and one that timed out may be made later.
            if rule.is_some() || error.errno() == Some(libc::ETIMEDOUT) {
                delete_or_name(&cluster, &first_name, rule.as_deref())?;
            }
            return Err(failed(of_action(error, action)));
        }
        match prepare_and_rename(&cluster, &unnamed, new.pool, rule.as_deref(), interrupt) {
            Ok((facts, owner)) => Ok(MadePool {
                access: access.clone(),
                pool: new.pool.to_owned(),
                run: new.run.to_owned(),
                facts,
                _owner: owner,
            }),
            Err(error) => {
                // After a timeout, the pool may have its name already.
                let named = pool_facts(&cluster, new.pool).ok().flatten();
                let is_named = named.is_some_and(|facts| facts.run.as_deref() == Some(new.run));
                let made = if is_named { new.pool } else { &first_name };
                delete_or_name(&cluster, made, rule.as_deref())?;
                Err(error)
            }
        }
    }

    /// Name of the pool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Removes the pool with all its objects. A pool of the same name that another run or person
    /// made meanwhile stays.
    ///
    /// # Errors
    /// A cluster that does not answer, or refuses the removal.
    pub fn remove(&self) -> Result<(), RunError> {
        let uri = pool_uri(&self.pool);
        let failed = |error: CephError| error.on(&uri);
        let cluster = connect_to_remove(&self.access).map_err(failed)?;
        let Some(facts) = pool_facts(&cluster, &self.pool).map_err(failed)? else {
            return Ok(());
        };
        if facts.id != self.facts.id || facts.run.as_ref() != Some(&self.run) {
            return Err(RunError::unusable_target(
                uri,
                CephProblem::PoolNotMade.into(),
            ));
        }
        delete_or_name(&cluster, &self.pool, facts.rule.as_deref())
    }
}

impl fmt::Display for MadePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "pool {}, {}", self.pool, self.facts)
    }
}

/// Refuses to make anything in a cluster in `HEALTH_ERR`.
pub(crate) fn refuse_errors_of_cluster(cluster: &RadosCluster, uri: &str) -> Result<(), RunError> {
    let health = query(cluster, &json!({"prefix": "health", "format": "json"}));
    let health = health.map_err(|error| error.on(uri))?;
    match error_checks(&health) {
        None => Ok(()),
        Some(checks) => Err(RunError::unusable_target(
            uri,
            CephProblem::ClusterInError { checks }.into(),
        )),
    }
}

pub(crate) fn pool_uri(pool: &str) -> String {
    format!("rados://{pool}")
}

/// Error: a pool of this name exists.
fn pool_exists(pool: &str, is_made: bool) -> RunError {
    let cause = CephProblem::PoolExists {
        pool: pool.to_owned(),
        is_made,
    };
    RunError::unusable_target(pool_uri(pool), cause.into())
}

/// Prepares a new pool for I/O, and gives it its name. Fails if another pool has that name.
fn prepare_and_rename(
    cluster: &RadosCluster,
    unnamed: &NewPool<'_>,
    name: &str,
    rule: Option<&str>,
    interrupt: &Interrupt,
) -> Result<(PoolFacts, RadosWatch), RunError> {
    let failed = |error: CephError| error.on(&pool_uri(name));
    let facts = set_up(cluster, unnamed, rule).map_err(failed)?;
    let is_active = wait_until_active(cluster, (unnamed.pool, facts.pgs), interrupt);
    if !is_active.map_err(failed)? {
        let cause = CephProblem::PoolNotActive {
            wait_s: ACTIVE_WAIT.as_secs(),
            size: facts.size,
        };
        return Err(RunError::unusable_target(pool_uri(name), cause.into()));
    }
    let owner = own_pool(cluster, unnamed.pool).map_err(failed)?;
    let command = json!({
        "prefix": "osd pool rename",
        "srcpool": unnamed.pool,
        "destpool": name,
    });
    match query(cluster, &command) {
        Err(error) if error.errno() == Some(libc::EEXIST) => Err(pool_exists(name, false)),
        renamed => renamed.map(|_| (facts, owner)).map_err(failed),
    }
}

/// Sends a command to the monitors and parses the answer. Null: the answer is not JSON.
pub(crate) fn query(cluster: &RadosCluster, command: &Value) -> Result<Value, CephError> {
    let answer = cluster.mon_command(&command.to_string())?;
    Ok(serde_json::from_str(answer.trim()).unwrap_or(Value::Null))
}

fn create(cluster: &RadosCluster, new: &NewPool<'_>) -> Result<(), CephError> {
    let command = match new.kind {
        PoolKind::Replicated => json!({
            "prefix": "osd pool create",
            "pool": new.pool,
            "pool_type": "replicated",
        }),
        PoolKind::Erasure { profile } => json!({
            "prefix": "osd pool create",
            "pool": new.pool,
            "pool_type": "erasure",
            "erasure_code_profile": profile.as_deref().unwrap_or("default"),
        }),
        PoolKind::Like(layout) => layout.create_command(new.pool),
    };
    query(cluster, &command).map(|_| ())
}

/// Names the operation on the pool instead of the command to the monitors.
fn of_action(error: CephError, action: CephAction) -> CephError {
    match error {
        CephError::Call { errno, said, .. } => CephError::Call {
            action,
            errno,
            said,
        },
        other => other,
    }
}

/// Sets the application, its metadata, and what an erasure code needs to be overwritten.
fn set_up(
    cluster: &RadosCluster,
    new: &NewPool<'_>,
    rule: Option<&str>,
) -> Result<PoolFacts, CephError> {
    let (pool, application) = (new.pool, new.application);
    query(
        cluster,
        &json!({"prefix": "osd pool application enable", "pool": pool, "app": application}),
    )?;
    let keys = [(RUN_KEY, Some(new.run)), (RULE_KEY, rule)];
    for (key, value) in keys {
        let Some(value) = value else { continue };
        query(
            cluster,
            &json!({
                "prefix": "osd pool application set",
                "pool": pool,
                "app": application,
                "key": key,
                "value": value,
            }),
        )?;
    }
    if new.kind.is_erasure() {
        query(
            cluster,
            &json!({
                "prefix": "osd pool set",
                "pool": pool,
                "var": "allow_ec_overwrites",
                "val": "true",
            }),
        )?;
    }
    pool_facts(cluster, pool)?.ok_or_else(|| CephError::Call {
        action: CephAction::OpenPool(pool.to_owned()),
        errno: libc::ENOENT,
        said: String::new(),
    })
}

fn delete(cluster: &RadosCluster, pool: &str, rule: Option<&str>) -> Result<(), CephError> {
    query(
        cluster,
        &json!({
            "prefix": "osd pool delete",
            "pool": pool,
            "pool2": pool,
            "yes_i_really_really_mean_it": true,
        }),
    )?;
    let Some(rule) = rule else {
        return Ok(());
    };
    let command = json!({"prefix": "osd crush rule rm", "name": rule});
    match query(cluster, &command) {
        // Another pool uses the rule by now.
        Err(error) if error.errno() == Some(libc::EBUSY) => Ok(()),
        removed => removed.map(|_| ()),
    }
}

/// Deletes a pool. The error names the command that deletes it later.
pub(crate) fn delete_or_name(
    cluster: &RadosCluster,
    pool: &str,
    rule: Option<&str>,
) -> Result<(), RunError> {
    delete(cluster, pool, rule).map_err(|error| match error {
        CephError::Call { errno, said, .. } => {
            let cause = CephProblem::PoolNotRemoved {
                pool: pool.to_owned(),
                errno,
                said,
            };
            RunError::unusable_target(pool_uri(pool), cause.into())
        }
        other => other.on(&pool_uri(pool)),
    })
}

/// Whether the first monitor is known to refuse the removal of pools. Its running configuration is
/// known to the manager only.
fn is_removal_forbidden(cluster: &RadosCluster) -> bool {
    let monitors = query(cluster, &json!({"prefix": "mon dump", "format": "json"}));
    let Ok(monitors) = monitors else {
        return false;
    };
    let Some(name) = monitors["mons"][0]["name"].as_str() else {
        return false;
    };
    let command = json!({
        "prefix": "config show",
        "who": format!("mon.{name}"),
        "key": "mon_allow_pool_delete",
    });
    let answer = cluster.mon_command(&command.to_string());
    answer.is_ok_and(|value| value.trim() == "false")
}

/// Whether Ceph makes a CRUSH rule of this name with an erasure-coded pool: that of the pool, or a
/// fixed one with the default profile.
fn is_rule_of(rule: &str, pool: &str) -> bool {
    rule == pool || rule == "erasure-code"
}

/// Names of all CRUSH rules. `None` if they are not known: then no rule counts as new.
fn crush_rules(cluster: &RadosCluster) -> Option<Vec<String>> {
    let command = json!({"prefix": "osd crush rule ls", "format": "json"});
    let rules = query(cluster, &command).ok()?;
    let names = rules.as_array()?.iter();
    let names = names.filter_map(|name| Some(name.as_str()?.to_owned()));
    Some(names.collect())
}

pub(crate) fn all_pools(cluster: &RadosCluster) -> Result<Value, CephError> {
    query(
        cluster,
        &json!({"prefix": "osd pool ls", "detail": "detail", "format": "json"}),
    )
}

pub(crate) fn pool_facts(
    cluster: &RadosCluster,
    pool: &str,
) -> Result<Option<PoolFacts>, CephError> {
    all_pools(cluster).map(|pools| find_pool(&pools, pool))
}

/// Waits until all placement groups of a pool accept I/O, so that no measurement includes their
/// creation. Returns whether they do, as far as the cluster reports it. Fails if the manager does
/// not answer before the timeout of the client.
fn wait_until_active(
    cluster: &RadosCluster,
    (pool, pgs): (&str, u64),
    interrupt: &Interrupt,
) -> Result<bool, CephError> {
    let status = query(cluster, &json!({"prefix": "status", "format": "json"}));
    if !status.is_ok_and(|status| has_manager(&status)) {
        return Ok(true);
    }
    let command = json!({"prefix": "pg ls-by-pool", "poolstr": pool, "format": "json"});
    let deadline = Instant::now() + ACTIVE_WAIT;
    while Instant::now() < deadline {
        let is_waited_for = is_waited_for(query(cluster, &command), pgs)?;
        if !is_waited_for || interrupt.is_requested() {
            return Ok(true);
        }
        std::thread::sleep(ACTIVE_QUERY_INTERVAL);
    }
    Ok(false)
}

/// Whether the placement groups of a pool are waited for after this answer of the manager.
fn is_waited_for(answer: Result<Value, CephError>, pgs: u64) -> Result<bool, CephError> {
    match answer {
        Ok(listed) => Ok(is_becoming_active(&listed, pgs)),
        Err(error) => match error.errno() {
            // The manager does not know the pool yet.
            Some(libc::ENOENT) => Ok(true),
            // A manager that hangs counts as available until the monitors replace it.
            Some(libc::ETIMEDOUT) => Err(of_action(
                error,
                CephAction::Query("the manager".to_owned()),
            )),
            // The client may lack the right to ask.
            _ => Ok(false),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(errno: i32) -> Result<Value, CephError> {
        Err(CephError::Call {
            action: CephAction::Query("the monitors".to_owned()),
            errno,
            said: String::new(),
        })
    }

    #[test]
    fn manager_that_does_not_answer_ends_the_wait_with_its_name() {
        assert!(is_waited_for(failed(libc::ENOENT), 8).unwrap());
        assert!(!is_waited_for(failed(libc::EACCES), 8).unwrap());
        let error = is_waited_for(failed(libc::ETIMEDOUT), 8).unwrap_err();
        let CephError::Call { action, errno, .. } = error else {
            panic!("another error");
        };
        let CephAction::Query(daemon) = action else {
            panic!("another action");
        };
        assert_eq!((daemon.as_str(), errno), ("the manager", libc::ETIMEDOUT));
    }
}
