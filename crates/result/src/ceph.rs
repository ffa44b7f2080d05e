//! State of a Ceph cluster, and its activity during a run.

mod cache_tier;
mod health_check;
mod metadata_server;

pub use cache_tier::CacheTierActivity;
pub use health_check::HealthCheck;
pub use metadata_server::MetadataServer;

use crate::ceph_hardware::CephHardware;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State and activity of a Ceph cluster. Only notes if it did not answer (`activity.looks` is 0).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephSide {
    /// fsid of the cluster.
    pub fsid: String,
    /// Version and name of the release that the monitors run, e.g. `18.2.4 reef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Worst health: `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`, or empty if there was no answer.
    pub health: String,
    /// Messages of the cluster's health checks, one sentence each.
    #[schemars(with = "Vec<String>")]
    pub checks: Vec<HealthCheck>,
    /// Numbers of OSDs.
    pub osds: OsdCounts,
    /// Number of placement groups of all pools.
    pub pgs: u32,
    /// Pool that the run used.
    pub pool: Option<CephPool>,
    /// Further pools, if the run used several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_pools: Vec<CephPool>,
    /// Recovery, scrubs and degraded objects.
    pub activity: CephActivity,
    /// Devices, hosts and networks of the OSDs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<CephHardware>,
    /// Latencies of the OSDs, the slowest first.
    pub osd_latency: Vec<OsdLatency>,
    /// Activity of cache tiers, if a pool of the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_tier: Option<CacheTierActivity>,
    /// Active metadata servers, if the run used a mounted file system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_servers: Vec<MetadataServer>,
    /// Facts that could not be determined, with the reason.
    pub notes: Vec<String>,
}

impl CephSide {
    /// Returns all pools that the run used.
    pub fn pools(&self) -> impl Iterator<Item = &CephPool> {
        self.pool.iter().chain(&self.more_pools)
    }

    /// Adds the activity during another run on the same cluster.
    pub fn merge(&mut self, other: &CephSide) {
        // The state of a cluster that did not answer is ignored.
        match (self.activity.looks, other.activity.looks) {
            (_, 0) => {}
            (0, _) => self.take_state(other),
            _ => self.merge_state(other),
        }
        self.activity.merge(&other.activity);
        if other.hardware.is_some() {
            self.hardware.clone_from(&other.hardware);
        }
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        for pool in other.pools() {
            self.take_pool(pool);
        }
        for osd in &other.osd_latency {
            match self.osd_latency.iter_mut().find(|mine| mine.osd == osd.osd) {
                Some(mine) => mine.merge(osd),
                None => self.osd_latency.push(*osd),
            }
        }
        self.osd_latency.sort_by(|a, b| b.op_ns.total_cmp(&a.op_ns));
        if let Some(activity) = &other.cache_tier {
            self.cache_tier.get_or_insert_default().merge(activity);
        }
        for server in &other.metadata_servers {
            self.take_metadata_server(server);
        }
    }

    /// Adds a sample of a metadata server.
    pub fn take_metadata_server(&mut self, server: &MetadataServer) {
        let mut mine = self.metadata_servers.iter_mut();
        let known = mine.find(|mine| (&mine.name, mine.rank) == (&server.name, server.rank));
        match known {
            Some(known) => known.merge(server),
            None => self.metadata_servers.push(server.clone()),
        }
    }

    fn take_state(&mut self, other: &CephSide) {
        self.fsid.clone_from(&other.fsid);
        self.version.clone_from(&other.version);
        self.health.clone_from(&other.health);
        self.checks.clone_from(&other.checks);
        (self.osds, self.pgs) = (other.osds, other.pgs);
    }

    fn merge_state(&mut self, other: &CephSide) {
        if severity(&other.health) > severity(&self.health) {
            self.health.clone_from(&other.health);
        }
        debug_assert!(severity(&self.health) >= severity(&other.health));
        for check in &other.checks {
            self.take_check(check.clone());
        }
        // The number of OSDs may change between runs. Counts of different times are not an outage.
        let down = |osds: &OsdCounts| osds.total.saturating_sub(osds.up);
        if down(&other.osds) >= down(&self.osds) {
            self.osds = other.osds;
        }
        self.pgs = other.pgs;
    }

    /// Returns the health checks as sentences.
    pub(crate) fn check_texts(&self) -> Vec<String> {
        self.checks.iter().map(HealthCheck::to_string).collect()
    }

    /// Adds a health check, replacing the last one of its name, since counts in messages change.
    pub fn take_check(&mut self, check: HealthCheck) {
        self.checks.retain(|known| known.name != check.name);
        self.checks.push(check);
    }

    /// Adds or replaces a pool: its latest state counts.
    fn take_pool(&mut self, pool: &CephPool) {
        let is_it = |known: &&mut CephPool| known.name == pool.name;
        let is_first = self.pool.is_none();
        let mut mine = self.pool.iter_mut().chain(&mut self.more_pools);
        match mine.find(is_it) {
            Some(known) => known.clone_from(pool),
            None if is_first => self.pool = Some(pool.clone()),
            None => self.more_pools.push(pool.clone()),
        }
    }

    /// Returns the disturbances during the run, as sentences without a full stop.
    pub fn marks(&self) -> Vec<String> {
        [self.recovery(), self.scrub(), self.outage()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns a sentence on recovery or backfill, if there was any.
    fn recovery(&self) -> Option<String> {
        let activity = &self.activity;
        (activity.recovering > 0).then(|| activity.recovery_text())
    }

    /// Returns a sentence on OSDs that were down for a part of the time, if there were any.
    fn outage(&self) -> Option<String> {
        let osds = &self.osds;
        (osds.up < osds.total).then(|| osds.outage_text(&self.check_texts()))
    }

    /// Returns a sentence on scrubs of placement groups, if there were any.
    fn scrub(&self) -> Option<String> {
        let activity = &self.activity;
        (activity.scrubbing > 0).then(|| activity.scrub_text())
    }
}

/// Adds the observations of a run to those of earlier runs.
pub fn add_ceph_side(known: &mut Option<CephSide>, side: &CephSide) {
    match known {
        Some(known) => known.merge(side),
        None => *known = Some(side.clone()),
    }
}

/// Returns the severity of a health status, or 0 if the cluster reported none.
pub fn severity(health: &str) -> u8 {
    match health {
        "HEALTH_OK" => 1,
        "HEALTH_WARN" => 2,
        "HEALTH_ERR" => 3,
        _ => 0,
    }
}

/// Numbers of OSDs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct OsdCounts {
    /// OSDs in the OSD map.
    pub total: u32,
    /// OSDs that run.
    pub up: u32,
    /// OSDs that hold data.
    pub r#in: u32,
}

/// A Ceph pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephPool {
    /// Name of the pool.
    pub name: String,
    /// Redundancy of the pool.
    pub redundancy: Redundancy,
    /// Number of placement groups.
    pub pgs: u32,
    /// Cache tier in front of the pool, and its mode (`writeback`, `readproxy`, ...).
    pub cache_tier: Option<String>,
}

/// Redundancy of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Redundancy {
    /// Replication.
    Replicated {
        /// Number of replicas of each object.
        size: u32,
        /// Number of replicas that must be available for I/O.
        min_size: u32,
    },
    /// Erasure coding.
    Erasure {
        /// Name of the erasure code profile.
        profile: String,
        /// Data chunks (k) and coding chunks (m) per object. `None` if the profile has none.
        chunks: Option<(u32, u32)>,
    },
}

impl Default for Redundancy {
    fn default() -> Self {
        Redundancy::Replicated {
            size: 0,
            min_size: 0,
        }
    }
}

impl std::fmt::Display for Redundancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Redundancy::Replicated { size, min_size } => {
                write!(f, "size {size} (at least {min_size})")
            }
            Redundancy::Erasure {
                chunks: Some((data, coding)),
                ..
            } => write!(f, "erasure code {data}+{coding}"),
            Redundancy::Erasure { profile, .. } => write!(f, "erasure code ({profile})"),
        }
    }
}

/// Activity of a cluster besides client I/O, sampled repeatedly during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephActivity {
    /// Number of samples.
    pub looks: u32,
    /// Number of samples in which recovery or backfill moved data.
    pub recovering: u32,
    /// Number of samples in which recovery or backfill was due, but moved no data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recovery_waiting: u32,
    /// Pools whose data recovery or backfill moved, if the cluster reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovering_pools: Vec<String>,
    /// Number of samples with scrubs of placement groups.
    pub scrubbing: u32,
    /// Highest recovery rate seen, in bytes per second.
    pub recovery_bytes_per_s: u64,
    /// Largest number of degraded objects seen, which lack a replica.
    pub degraded_objects: u64,
    /// Largest number of misplaced objects seen.
    pub misplaced_objects: u64,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Latencies of one OSD.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct OsdLatency {
    /// Number of the OSD.
    pub osd: u32,
    /// Operations of all clients during the run. 0 if the OSD could not be queried.
    pub ops: u64,
    /// Mean latency of these operations in nanoseconds, from arrival at the OSD to its reply.
    pub op_ns: f64,
    /// Latest commit latency in nanoseconds, as the OSD reports it to the manager.
    pub commit_ns: Option<u64>,
    /// Latest apply latency in nanoseconds.
    pub apply_ns: Option<u64>,
}

impl OsdCounts {
    /// Returns a sentence on OSDs that were down, with the messages of the health checks.
    pub(crate) fn outage_text(&self, checks: &[String]) -> String {
        let mut sentence = format!(
            "{} of the cluster's {} OSDs were down for at least a part of the run",
            self.total.saturating_sub(self.up),
            self.total
        );
        if !checks.is_empty() {
            sentence += &format!(" ({})", checks.join("; "));
        }
        sentence
    }
}

impl CephActivity {
    /// Returns a sentence on recovery or backfill.
    pub(crate) fn recovery_text(&self) -> String {
        let pools = match self.recovering_pools.as_slice() {
            [] => String::new(),
            [pool] => format!(" of pool {pool}"),
            pools => format!(" of pools {}", pools.join(", ")),
        };
        let mut sentence = format!(
            "the cluster was moving data{pools} (recovery or backfill) in {} of {} samples",
            self.recovering, self.looks
        );
        if self.recovery_bytes_per_s > 0 {
            let rate = words::bandwidth(self.recovery_bytes_per_s as f64);
            sentence += &format!(", at up to {rate}");
        }
        sentence + &self.missing_copies()
    }

    /// Returns a clause on recovery that was due and moved nothing. `None` if data were moved.
    pub fn waiting_text(&self) -> Option<String> {
        (self.recovering == 0 && self.recovery_waiting > 0).then(|| {
            format!(
                "due, but moved no data in {} of {} samples{}",
                self.recovery_waiting,
                self.looks,
                self.missing_copies()
            )
        })
    }

    fn missing_copies(&self) -> String {
        let objects = [
            (self.degraded_objects, "were missing"),
            (self.misplaced_objects, "were misplaced"),
        ];
        let found = objects.iter().filter(|(count, _)| *count > 0);
        let clauses =
            found.map(|(count, what)| format!(", and up to {count} copies of objects {what}"));
        clauses.collect()
    }

    /// Returns a sentence on scrubs of placement groups.
    pub(crate) fn scrub_text(&self) -> String {
        format!(
            "the cluster scrubbed placement groups, which reads from its disks, in {} of {} \
             samples",
            self.scrubbing, self.looks
        )
    }

    /// Adds a pool whose data recovery or backfill moved.
    pub fn take_recovering_pool(&mut self, pool: &str) {
        if !self.recovering_pools.iter().any(|known| known == pool) {
            self.recovering_pools.push(pool.to_owned());
        }
    }

    fn merge(&mut self, other: &CephActivity) {
        self.looks += other.looks;
        self.recovering += other.recovering;
        self.recovery_waiting += other.recovery_waiting;
        for pool in &other.recovering_pools {
            self.take_recovering_pool(pool);
        }
        self.scrubbing += other.scrubbing;
        let most = |mine: &mut u64, theirs: u64| *mine = theirs.max(*mine);
        most(&mut self.recovery_bytes_per_s, other.recovery_bytes_per_s);
        most(&mut self.degraded_objects, other.degraded_objects);
        most(&mut self.misplaced_objects, other.misplaced_objects);
    }
}

impl OsdLatency {
    /// Adds the operations of the same OSD during another run.
    fn merge(&mut self, other: &OsdLatency) {
        let all = self.ops + other.ops;
        if all > 0 {
            let sum = self.op_ns * self.ops as f64 + other.op_ns * other.ops as f64;
            self.op_ns = sum / all as f64;
        }
        self.ops = all;
        // The manager only reports the latest commit and apply latency.
        self.commit_ns = other.commit_ns.or(self.commit_ns);
        self.apply_ns = other.apply_ns.or(self.apply_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_ceph_runs_keep_the_worst_state() {
        let side = |health: &str, up: u32, osd: OsdLatency| CephSide {
            health: health.to_owned(),
            checks: vec![format!("OSD_DOWN: {} osds down", 3 - up).into()],
            osds: OsdCounts {
                total: 3,
                up,
                r#in: 3,
            },
            activity: CephActivity {
                looks: 4,
                recovering: u32::from(up < 3),
                degraded_objects: u64::from(3 - up) * 10,
                ..CephActivity::default()
            },
            osd_latency: vec![osd],
            ..CephSide::default()
        };
        let osd = |osd: u32, ops: u64, op_ns: f64| OsdLatency {
            osd,
            ops,
            op_ns,
            ..OsdLatency::default()
        };
        let mut all = side("HEALTH_OK", 3, osd(0, 10, 1e6));
        assert!(all.marks().is_empty());
        all.merge(&side("HEALTH_WARN", 2, osd(0, 30, 3e6)));
        all.merge(&side("HEALTH_OK", 3, osd(1, 10, 9e6)));
        // An unanswered status query, because the monitors were down, does not mean that the
        // cluster has no OSDs.
        let silent = CephSide {
            notes: vec!["the cluster did not report status".to_owned()],
            ..CephSide::default()
        };
        all.merge(&silent);
        assert_eq!(all.notes, silent.notes);
        let mut known_later = silent.clone();
        known_later.merge(&all);
        assert_eq!(known_later, all);
        assert_eq!((all.health.as_str(), all.osds.up), ("HEALTH_WARN", 2));
        let last = all.check_texts();
        assert_eq!(last, ["OSD_DOWN: 0 osds down"], "the last of a name");
        assert_eq!(all.osd_latency, [osd(1, 10, 9e6), osd(0, 40, 2.5e6)]);
        assert_eq!(
            all.marks(),
            [
                "the cluster was moving data (recovery or backfill) in 1 of 12 samples, and up to \
                 10 copies of objects were missing",
                "1 of the cluster's 3 OSDs were down for at least a part of the run (OSD_DOWN: 0 \
                 osds down)"
            ]
        );
    }

    #[test]
    fn merged_ceph_runs_add_tiers_and_keep_the_busiest_servers() {
        let tier = CacheTierActivity {
            hits: 2,
            ..CacheTierActivity::default()
        };
        let mut with_tier = CephSide {
            cache_tier: Some(tier),
            ..CephSide::default()
        };
        let server = |requests_per_s: u64| MetadataServer {
            name: "a".to_owned(),
            requests_per_s,
            ..MetadataServer::default()
        };
        with_tier.take_metadata_server(&server(3));
        with_tier.merge(&with_tier.clone());
        with_tier.take_metadata_server(&server(9));
        assert_eq!(with_tier.cache_tier.map(|tier| tier.hits), Some(4));
        assert_eq!(with_tier.metadata_servers, [server(9)]);
    }
}
