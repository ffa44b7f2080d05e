//! Facts of a pool and its cluster in the answers of the monitors, for a pool that is made. Pure.

use serde_json::Value;
use std::fmt;

/// Keys in the metadata of a pool's application.
pub(crate) const RUN_KEY: &str = "iosonde_run";
pub(crate) const RULE_KEY: &str = "iosonde_crush_rule";

/// Properties of a pool that its maker needs or reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolFacts {
    /// Number of the pool, which is never used again.
    pub(crate) id: i64,
    /// Number of copies or chunks.
    pub(crate) size: u64,
    /// Number of placement groups.
    pub(crate) pgs: u64,
    /// Value of `pg_autoscale_mode`, or empty.
    autoscale: String,
    is_erasure: bool,
    /// Number of the run of iosonde that made the pool.
    pub(crate) run: Option<String>,
    /// CRUSH rule that was made with the pool.
    pub(crate) rule: Option<String>,
}

impl fmt::Display for PoolFacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_erasure {
            true => write!(formatter, "erasure-coded in {} chunks", self.size)?,
            false => write!(formatter, "replicated, size {}", self.size)?,
        }
        write!(formatter, ", {} PGs", self.pgs)?;
        match self.autoscale.as_str() {
            "" => Ok(()),
            "on" => formatter.write_str(
                ", pg_autoscale_mode on: the number of PGs may change during the measurement",
            ),
            mode => write!(formatter, ", pg_autoscale_mode {mode}"),
        }
    }
}

/// Pool of this name in the answer to `osd pool ls detail`.
pub(crate) fn find_pool(pools: &Value, name: &str) -> Option<PoolFacts> {
    let found = pools
        .as_array()?
        .iter()
        .find(|pool| pool["pool_name"] == name)?;
    let metadata = |key: &str| {
        let mut applications = found["application_metadata"].as_object()?.values();
        applications.find_map(|keys| Some(keys[key].as_str()?.to_owned()))
    };
    Some(PoolFacts {
        id: found["pool_id"].as_i64()?,
        size: found["size"].as_u64().unwrap_or_default(),
        pgs: found["pg_num"].as_u64().unwrap_or_default(),
        autoscale: found["pg_autoscale_mode"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        is_erasure: found["type"].as_u64() == Some(3),
        run: metadata(RUN_KEY),
        rule: metadata(RULE_KEY),
    })
}

/// Messages of the checks that put a cluster into `HEALTH_ERR`. `None` in any other state.
pub(crate) fn error_checks(health: &Value) -> Option<Vec<String>> {
    if health["status"] != "HEALTH_ERR" {
        return None;
    }
    let checks = health["checks"].as_object().into_iter().flatten();
    let errors = checks.filter(|(_, check)| check["severity"] == "HEALTH_ERR");
    let messages = errors.map(|(name, check)| match check["summary"]["message"].as_str() {
        Some(message) => format!("{name}: {message}"),
        None => name.clone(),
    });
    Some(messages.collect())
}

/// Whether a manager answers, from the answer to `status`. Without one, placement groups are not
/// known.
pub(crate) fn has_manager(status: &Value) -> bool {
    status["mgrmap"]["available"].as_bool().unwrap_or_default()
}

/// Whether some of the `pgs` placement groups of a pool do not accept I/O yet, from the answer to
/// `pg ls-by-pool`. Before Ceph 14, the answer is the list itself.
pub(crate) fn is_becoming_active(listed: &Value, pgs: u64) -> bool {
    let list = listed["pg_stats"].as_array().or(listed.as_array());
    let Some(list) = list else { return false };
    let is_active = |pg: &Value| {
        let state = pg["state"].as_str().unwrap_or_default();
        state.split('+').any(|word| word == "active")
    };
    (list.len() as u64) < pgs || !list.iter().all(is_active)
}

/// Whether clients did I/O on the pool in the last seconds, from the answer to `osd pool stats`.
pub(crate) fn is_in_use(stats: &Value, pool: &str) -> bool {
    let mut pools = stats.as_array().into_iter().flatten();
    let found = pools.find(|other| other["pool_name"] == pool);
    let rates = found.and_then(|found| found["client_io_rate"].as_object());
    let mut rates = rates.into_iter().flatten();
    rates.any(|(_, rate)| rate.as_f64().is_some_and(|rate| rate > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As `ceph osd pool ls detail -f json` of Ceph 16 prints it, without fields that are not read.
    fn pools() -> Value {
        json!([
            {
                "pool_id": 2, "pool_name": "testbench", "type": 1, "size": 3, "pg_num": 32,
                "pg_autoscale_mode": "off", "application_metadata": {"rbd": {}},
            },
            {
                "pool_id": 7, "pool_name": "made", "type": 3, "size": 3, "pg_num": 8,
                "pg_autoscale_mode": "on",
                "application_metadata": {
                    "iosonde": {"iosonde_run": "0123456789", "iosonde_crush_rule": "made"},
                },
            },
        ])
    }

    #[test]
    fn pool_facts_tell_made_pools_from_others() {
        let other = find_pool(&pools(), "testbench").unwrap();
        assert_eq!((other.id, &other.run, &other.rule), (2, &None, &None));
        assert_eq!(
            other.to_string(),
            "replicated, size 3, 32 PGs, pg_autoscale_mode off"
        );
        let made = find_pool(&pools(), "made").unwrap();
        assert_eq!(
            (made.id, made.run.as_deref(), made.rule.as_deref()),
            (7, Some("0123456789"), Some("made"))
        );
        assert_eq!(
            made.to_string(),
            "erasure-coded in 3 chunks, 8 PGs, pg_autoscale_mode on: the number of PGs may change \
             during the measurement"
        );
        assert_eq!(find_pool(&pools(), "none"), None);
        assert_eq!(find_pool(&Value::Null, "made"), None);
    }

    #[test]
    fn pool_with_client_io_is_in_use() {
        // As `ceph osd pool stats -f json` of Ceph 16 prints it.
        let stats = json!([
            {
                "pool_name": "idle", "pool_id": 1, "recovery": {}, "recovery_rate": {},
                "client_io_rate": {},
            },
            {
                "pool_name": "busy", "pool_id": 2, "recovery": {}, "recovery_rate": {},
                "client_io_rate": {
                    "read_bytes_sec": 168_377, "write_bytes_sec": 127_732_130,
                    "read_op_per_sec": 198, "write_op_per_sec": 352,
                },
            },
        ]);
        assert!(is_in_use(&stats, "busy"));
        assert!(!is_in_use(&stats, "idle"));
        assert!(!is_in_use(&Value::Null, "busy"));
    }

    #[test]
    fn only_health_err_refuses_a_pool() {
        let health = |status: &str| {
            json!({
                "status": status,
                "checks": {
                    "OSD_FULL": {
                        "severity": "HEALTH_ERR", "summary": {"message": "1 full osd(s)"},
                    },
                    "POOL_NO_REDUNDANCY": {
                        "severity": "HEALTH_WARN", "summary": {"message": "no replicas"},
                    },
                },
            })
        };
        assert_eq!(error_checks(&health("HEALTH_WARN")), None);
        assert_eq!(
            error_checks(&health("HEALTH_ERR")),
            Some(vec!["OSD_FULL: 1 full osd(s)".to_owned()])
        );
        assert_eq!(error_checks(&Value::Null), None);
    }

    #[test]
    fn placement_groups_of_the_pool_are_awaited_until_active() {
        // As `ceph pg ls-by-pool POOL -f json` of Ceph 16 prints it, without fields that are not
        // read.
        let listed = |state: &str| {
            json!({
                "pg_ready": true,
                "pg_stats": [
                    {"pgid": "7.0", "state": "active+clean"},
                    {"pgid": "7.1", "state": state},
                ],
            })
        };
        assert!(is_becoming_active(&listed("creating+peering"), 2));
        assert!(is_becoming_active(&listed("undersized+peered"), 2));
        assert!(is_becoming_active(&listed("active+clean"), 8));
        assert!(!is_becoming_active(&listed("active+undersized"), 2));
        let list = listed("unknown")["pg_stats"].clone();
        assert!(is_becoming_active(&list, 2));
        assert!(!is_becoming_active(&Value::Null, 2));
    }

    #[test]
    fn manager_is_that_of_the_status() {
        assert!(has_manager(&json!({"mgrmap": {"available": true}})));
        assert!(!has_manager(&json!({"mgrmap": {"available": false}})));
        assert!(!has_manager(&Value::Null));
    }
}
