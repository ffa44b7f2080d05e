//! What a Ceph cluster was, and what it did during a run.

use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cluster's side of a run. Of a cluster that did not answer (`activity.looks` is 0) there are only notes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephSide {
    /// The cluster's identity.
    pub fsid: String,
    /// `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`: the worst that was seen; empty where it did not answer.
    pub health: String,
    /// What its health checks say, each in one sentence.
    pub checks: Vec<String>,
    /// Its storage daemons.
    pub osds: OsdCounts,
    /// Placement groups of all pools.
    pub pgs: u32,
    /// The pool that was measured.
    pub pool: Option<CephPool>,
    /// The others, where several were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_pools: Vec<CephPool>,
    /// What it did besides.
    pub activity: CephActivity,
    /// How long storage daemons took, the slowest first.
    pub osd_latency: Vec<OsdLatency>,
    /// What could not be learnt, and why.
    pub notes: Vec<String>,
}

impl CephSide {
    /// All pools that were measured.
    pub fn pools(&self) -> impl Iterator<Item = &CephPool> {
        self.pool.iter().chain(&self.more_pools)
    }

    /// Adds what was seen during another run on the same cluster.
    pub fn merge(&mut self, other: &CephSide) {
        // A cluster that did not say how it was has said nothing.
        match (self.activity.looks, other.activity.looks) {
            (_, 0) => {}
            (0, _) => self.take_state(other),
            _ => self.merge_state(other),
        }
        self.activity.merge(&other.activity);
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
    }

    fn take_state(&mut self, other: &CephSide) {
        self.fsid.clone_from(&other.fsid);
        self.health.clone_from(&other.health);
        self.checks.clone_from(&other.checks);
        (self.osds, self.pgs) = (other.osds, other.pgs);
    }

    fn merge_state(&mut self, other: &CephSide) {
        if severity(&other.health) > severity(&self.health) {
            self.health.clone_from(&other.health);
        }
        for check in &other.checks {
            self.take_check(check.clone());
        }
        // A cluster may grow and shrink: numbers of two times are no outage.
        let down = |osds: &OsdCounts| osds.total.saturating_sub(osds.up);
        if down(&other.osds) >= down(&self.osds) {
            self.osds = other.osds;
        }
        self.pgs = other.pgs;
    }

    /// Adds a health check. Their counts change from look to look; the last one of a name stands for all.
    pub fn take_check(&mut self, check: String) {
        let name = |check: &str| check.split(':').next().map(str::to_owned);
        self.checks.retain(|known| name(known) != name(&check));
        self.checks.push(check);
    }

    /// What a pool was last counts.
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

    /// What the cluster did besides, each in one sentence without its end.
    pub fn marks(&self) -> Vec<String> {
        [self.recovery(), self.scrub(), self.outage()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// That data were moved, if they were.
    pub fn recovery(&self) -> Option<String> {
        let activity = &self.activity;
        if activity.recovering == 0 {
            return None;
        }
        let mut told = format!(
            "the cluster was moving data (recovery or backfill) in {} of {} looks at it",
            activity.recovering, activity.looks
        );
        if activity.recovery_bytes_per_s > 0 {
            let rate = words::bandwidth(activity.recovery_bytes_per_s as f64);
            told += &format!(", at up to {rate}");
        }
        let objects = [
            (activity.degraded_objects, "were missing"),
            (activity.misplaced_objects, "lay where they do not belong"),
        ];
        for (count, what) in objects {
            if count > 0 {
                told += &format!(", and up to {count} copies of objects {what}");
            }
        }
        Some(told)
    }

    /// That storage daemons were not there, for a part of the time at least, if they were not.
    pub fn outage(&self) -> Option<String> {
        let osds = &self.osds;
        if osds.up >= osds.total {
            return None;
        }
        let mut told = format!(
            "{} of the cluster's {} OSDs did not run, for a part of the time at least",
            osds.total - osds.up,
            osds.total
        );
        if !self.checks.is_empty() {
            told += &format!(" ({})", self.checks.join("; "));
        }
        Some(told)
    }

    /// That placement groups were scrubbed, if they were.
    pub fn scrub(&self) -> Option<String> {
        let activity = &self.activity;
        (activity.scrubbing > 0).then(|| {
            format!(
                "the cluster scrubbed placement groups in {} of {} looks at it, which reads its disks",
                activity.scrubbing, activity.looks
            )
        })
    }
}

/// Adds what was seen during a run to what is known of those before it.
pub fn add(known: &mut Option<CephSide>, side: &CephSide) {
    match known {
        Some(known) => known.merge(side),
        None => *known = Some(side.clone()),
    }
}

/// How bad the health is that a cluster tells; 0 where it told none.
pub fn severity(health: &str) -> u8 {
    match health {
        "HEALTH_OK" => 1,
        "HEALTH_WARN" => 2,
        "HEALTH_ERR" => 3,
        _ => 0,
    }
}

/// Storage daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct OsdCounts {
    /// All that the cluster knows.
    pub total: u32,
    /// That run.
    pub up: u32,
    /// That hold data.
    pub r#in: u32,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephPool {
    /// Its name.
    pub name: String,
    /// How it keeps data safe.
    pub redundancy: Redundancy,
    /// Its placement groups.
    pub pgs: u32,
    /// The cache tier before it, and its mode (`writeback`, `readproxy`, ...).
    pub cache_tier: Option<String>,
}

/// How a pool keeps data safe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Redundancy {
    /// Copies.
    Replicated {
        /// Copies of each object.
        size: u32,
        /// Copies that must be there for I/O.
        min_size: u32,
    },
    /// An erasure code.
    Erasure {
        /// Name of its profile.
        profile: String,
        /// Chunks that each object is cut into, and chunks that are computed from them; `None` where the profile does not say.
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

/// What a cluster did besides serving clients, as it was seen by looking again and again during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephActivity {
    /// How often it was looked at.
    pub looks: u32,
    /// How often data were being moved: recovery or backfill.
    pub recovering: u32,
    /// How often placement groups were being scrubbed.
    pub scrubbing: u32,
    /// Fastest recovery seen, in bytes per second.
    pub recovery_bytes_per_s: u64,
    /// Most objects that lacked a copy.
    pub degraded_objects: u64,
    /// Most objects that were not where they belong.
    pub misplaced_objects: u64,
}

/// How long a storage daemon took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct OsdLatency {
    /// Its number.
    pub osd: u32,
    /// Operations of all clients during the run; 0 where it could not be asked.
    pub ops: u64,
    /// Mean time of these operations in nanoseconds, from their arrival at the daemon to its answer.
    pub op_ns: f64,
    /// Latest time to make a write safe on its disk, in nanoseconds, as it tells the manager.
    pub commit_ns: Option<u64>,
    /// Latest time to make a write visible, in nanoseconds.
    pub apply_ns: Option<u64>,
}

impl CephActivity {
    fn merge(&mut self, other: &CephActivity) {
        self.looks += other.looks;
        self.recovering += other.recovering;
        self.scrubbing += other.scrubbing;
        let most = |mine: &mut u64, theirs: u64| *mine = theirs.max(*mine);
        most(&mut self.recovery_bytes_per_s, other.recovery_bytes_per_s);
        most(&mut self.degraded_objects, other.degraded_objects);
        most(&mut self.misplaced_objects, other.misplaced_objects);
    }
}

impl OsdLatency {
    /// Of the same daemon.
    fn merge(&mut self, other: &OsdLatency) {
        let all = self.ops + other.ops;
        if all > 0 {
            let sum = self.op_ns * self.ops as f64 + other.op_ns * other.ops as f64;
            self.op_ns = sum / all as f64;
        }
        self.ops = all;
        // The manager tells what they took last.
        self.commit_ns = other.commit_ns.or(self.commit_ns);
        self.apply_ns = other.apply_ns.or(self.apply_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_are_one_with_the_worst_that_was_seen() {
        let side = |health: &str, up: u32, osd: OsdLatency| CephSide {
            health: health.to_owned(),
            checks: vec![format!("OSD_DOWN: {} osds down", 3 - up)],
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
        // One that did not say how it was, as its monitors did not answer, is not a cluster without storage daemons.
        let silent = CephSide {
            notes: vec!["status could not be asked for".to_owned()],
            ..CephSide::default()
        };
        all.merge(&silent);
        assert_eq!(all.notes, silent.notes);
        let mut known_later = silent.clone();
        known_later.merge(&all);
        assert_eq!(known_later, all);
        assert_eq!((all.health.as_str(), all.osds.up), ("HEALTH_WARN", 2));
        assert_eq!(all.checks, ["OSD_DOWN: 0 osds down"], "the last of a name");
        assert_eq!(all.osd_latency, [osd(1, 10, 9e6), osd(0, 40, 2.5e6)]);
        assert_eq!(
            all.marks(),
            [
                "the cluster was moving data (recovery or backfill) in 1 of 12 looks at it, and up to 10 copies of objects were missing",
                "1 of the cluster's 3 OSDs did not run, for a part of the time at least (OSD_DOWN: 0 osds down)"
            ]
        );
    }
}
