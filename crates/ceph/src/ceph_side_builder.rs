//! Parses answers of monitors, manager and OSDs, which are JSON. Pure.

mod file_service;
mod tier_counters;

pub(crate) use file_service::{has_ganesha, metadata_servers};
pub(crate) use tier_counters::tier_activity;

use iosonde_result::ceph::{
    CacheTierActivity, CephPool, CephSide, HealthCheck, OsdCounts, OsdLatency, Redundancy, severity,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Operations of an OSD since its start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct OsdOps {
    /// Number of operations.
    pub(crate) count: u64,
    /// Sum of their latencies in seconds.
    pub(crate) seconds: f64,
    /// Activity of cache tiers.
    pub(crate) tier: CacheTierActivity,
}

/// One answer to `status`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ClusterStatus {
    fsid: String,
    health: String,
    checks: Vec<HealthCheck>,
    osds: OsdCounts,
    pgs: u32,
    recovering: bool,
    recovery_waiting: bool,
    scrubbing: bool,
    recovery_bytes_per_s: u64,
    degraded_objects: u64,
    misplaced_objects: u64,
}

impl ClusterStatus {
    /// Parses the answer to `status`.
    pub(crate) fn parse(status: &Value) -> ClusterStatus {
        let health = &status["health"];
        // Up to Nautilus, the OSD map was nested in another object.
        let map = match &status["osdmap"]["osdmap"] {
            Value::Null => &status["osdmap"],
            map => map,
        };
        let pgs = &status["pgmap"];
        let states: Vec<&str> = pgs["pgs_by_state"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|state| state["state_name"].as_str())
            .collect();
        let any = |what: &[&str]| {
            let mut parts = states.iter().flat_map(|state| state.split('+'));
            parts.any(|part| what.contains(&part))
        };
        let recovery_bytes_per_s = pgs["recovering_bytes_per_sec"].as_u64().unwrap_or(0);
        // The state of a placement group is no evidence: with `norecover` it stays for ever.
        let recovering = is_moving(pgs);
        ClusterStatus {
            fsid: value_text(&status["fsid"]),
            health: value_text(&health["status"]),
            checks: checks(&health["checks"]),
            osds: OsdCounts {
                total: count(&map["num_osds"]),
                up: count(&map["num_up_osds"]),
                r#in: count(&map["num_in_osds"]),
            },
            pgs: count(&pgs["num_pgs"]),
            recovering,
            recovery_waiting: !recovering && any(&RECOVERY_STATES),
            scrubbing: any(&["scrubbing"]),
            recovery_bytes_per_s,
            degraded_objects: pgs["degraded_objects"].as_u64().unwrap_or(0),
            misplaced_objects: pgs["misplaced_objects"].as_u64().unwrap_or(0),
        }
    }

    /// Whether recovery or backfill moves data.
    pub(crate) fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Reason why a measurement would not show the cluster's usual speed. `None` if it would.
    pub(crate) fn disturbance(&self) -> Option<ClusterDisturbance> {
        match self.health.as_str() {
            "HEALTH_ERR" => Some(ClusterDisturbance::HealthError),
            _ => self.recovering.then_some(ClusterDisturbance::Recovery),
        }
    }

    /// Merges a sample into the totals: the worst value of each.
    pub(crate) fn add_to(self, side: &mut CephSide) {
        let activity = &mut side.activity;
        activity.recovery_waiting += u32::from(self.recovery_waiting);
        activity.looks += 1;
        activity.recovering += u32::from(self.recovering);
        activity.scrubbing += u32::from(self.scrubbing);
        raise_maximum(
            &mut activity.recovery_bytes_per_s,
            self.recovery_bytes_per_s,
        );
        raise_maximum(&mut activity.degraded_objects, self.degraded_objects);
        raise_maximum(&mut activity.misplaced_objects, self.misplaced_objects);
        for check in self.checks {
            side.take_check(check);
        }
        if severity(&self.health) >= severity(&side.health) {
            side.health = self.health;
        }
        if side.activity.looks == 1 {
            (side.fsid, side.osds, side.pgs) = (self.fsid, self.osds, self.pgs);
        }
        side.osds.up = side.osds.up.min(self.osds.up);
    }
}

/// Reason to wait before a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterDisturbance {
    /// The cluster is in `HEALTH_ERR`.
    HealthError,
    /// Recovery or backfill moves data.
    Recovery,
}

/// States of placement groups with recovery or backfill that is due.
const RECOVERY_STATES: [&str; 8] = [
    "recovering",
    "recovery_wait",
    "recovery_toofull",
    "recovery_unfound",
    "backfilling",
    "backfill_wait",
    "backfill_toofull",
    "backfill_unfound",
];

/// Whether recovery rates of the cluster or of a pool are above 0.
fn is_moving(rates: &Value) -> bool {
    let rates = ["bytes", "objects", "keys"]
        .map(|what| rates[format!("recovering_{what}_per_sec")].as_f64());
    rates.into_iter().flatten().any(|rate| rate > 0.0)
}

/// Names of the pools whose data are moved, from the answer to `osd pool stats`.
pub(crate) fn recovering_pools(answer: &Value) -> Vec<String> {
    let pools = answer.as_array().into_iter().flatten();
    let moving = pools.filter(|pool| is_moving(&pool["recovery_rate"]));
    moving.map(|pool| value_text(&pool["pool_name"])).collect()
}

/// Returns number and name of the release, `18.2.4 reef`, from the answer to `version`.
pub(crate) fn release(answer: &Value) -> Option<String> {
    let text = answer["version"].as_str()?.strip_prefix("ceph version ")?;
    let mut words = text
        .split_whitespace()
        .filter(|word| !word.starts_with('('));
    let number = words.next()?;
    Some(match words.next() {
        Some(name) => format!("{number} {name}"),
        None => number.to_owned(),
    })
}

fn raise_maximum(known: &mut u64, seen: u64) {
    *known = (*known).max(seen);
}

fn checks(checks: &Value) -> Vec<HealthCheck> {
    let checks = checks.as_object().into_iter().flatten();
    let checks = checks.map(|(name, check)| HealthCheck {
        name: name.clone(),
        message: check["summary"]["message"].as_str().map(str::to_owned),
    });
    checks.collect()
}

/// Pool of this name, from the answer to `osd pool ls detail`. For an erasure code, `profile`
/// queries the profile.
pub(crate) fn ceph_pool(
    pools: &Value,
    name: &str,
    profile: impl FnOnce(&str) -> Option<Value>,
) -> Option<CephPool> {
    let all = pools.as_array()?;
    let found = all.iter().find(|pool| pool["pool_name"] == name)?;
    let redundancy = match found["type"].as_u64() {
        Some(3) => {
            let name = value_text(&found["erasure_code_profile"]);
            let profile = profile(&name);
            let chunks = profile.as_ref().and_then(|profile| {
                let number = |key: &str| profile[key].as_str()?.parse().ok();
                Some((number("k")?, number("m")?))
            });
            Redundancy::Erasure {
                profile: name,
                chunks,
            }
        }
        _ => Redundancy::Replicated {
            size: count(&found["size"]),
            min_size: count(&found["min_size"]),
        },
    };
    Some(CephPool {
        name: name.to_owned(),
        redundancy,
        pgs: count(&found["pg_num"]),
        cache_tier: cache_tier(all, found),
    })
}

/// Data pool of the named or only file system, from the answer to `fs ls`.
pub(crate) fn data_pool(answer: &Value, name: Option<&str>) -> Option<String> {
    let all = answer.as_array()?;
    let found = match (name, &all[..]) {
        (Some(name), all) => all.iter().find(|one| one["name"] == name)?,
        (None, [only]) => only,
        (None, _) => return None,
    };
    Some(found["data_pools"][0].as_str()?.to_owned())
}

fn cache_tier(all: &[Value], pool: &Value) -> Option<String> {
    let tier = pool["read_tier"].as_i64().filter(|id| *id >= 0)?;
    let id = |pool: &&Value| pool["pool_id"].as_i64().or(pool["pool"].as_i64()) == Some(tier);
    let tier = all.iter().find(id)?;
    Some(format!(
        "{} ({})",
        value_text(&tier["pool_name"]),
        value_text(&tier["cache_mode"])
    ))
}

/// Commit and apply latencies in nanoseconds by OSD, from the answer to `osd perf`.
pub(crate) fn osd_latencies(answer: &Value) -> BTreeMap<u32, (u64, u64)> {
    // Before Nautilus, the list was not nested.
    let list = match &answer["osdstats"]["osd_perf_infos"] {
        Value::Null => &answer["osd_perf_infos"],
        list => list,
    };
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|osd| {
        let stats = &osd["perf_stats"];
        let ns = |what: &str| {
            let exact = stats[format!("{what}_latency_ns")].as_u64();
            exact.or_else(|| Some(stats[format!("{what}_latency_ms")].as_u64()? * 1_000_000))
        };
        let id = u32::try_from(osd["id"].as_u64()?).ok()?;
        Some((id, (ns("commit")?, ns("apply")?)))
    })
    .collect()
}

/// Client operations of an OSD, from its answer to `perf dump`.
pub(crate) fn osd_operations(answer: &Value) -> Option<OsdOps> {
    let latency = &answer["osd"]["op_latency"];
    Some(OsdOps {
        count: latency["avgcount"].as_u64()?,
        seconds: latency["sum"].as_f64()?,
        tier: tier_counters::tier_counters(&answer["osd"]),
    })
}

/// Latencies of each OSD between two samples, slowest first.
pub(crate) fn latencies(
    before: &BTreeMap<u32, OsdOps>,
    after: &BTreeMap<u32, OsdOps>,
    perf: &BTreeMap<u32, (u64, u64)>,
) -> Vec<OsdLatency> {
    let mut found: BTreeMap<u32, OsdLatency> = BTreeMap::new();
    for (&osd, &(commit_ns, apply_ns)) in perf {
        let latency = found.entry(osd).or_default();
        (latency.commit_ns, latency.apply_ns) = (Some(commit_ns), Some(apply_ns));
    }
    for (&osd, after) in after {
        // A restarted OSD counts from zero.
        let before = before.get(&osd).copied().unwrap_or_default();
        let count = after.count.saturating_sub(before.count);
        let seconds = (after.seconds - before.seconds).max(0.0);
        let latency = found.entry(osd).or_default();
        latency.ops = count;
        latency.op_ns = seconds * 1e9 / count.max(1) as f64;
    }
    let mut found: Vec<OsdLatency> = found
        .into_iter()
        .map(|(osd, latency)| OsdLatency { osd, ..latency })
        .collect();
    found.sort_by(|a, b| {
        let key = |osd: &OsdLatency| (osd.op_ns, osd.commit_ns.unwrap_or(0) as f64);
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    found
}

fn value_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn count(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
