//! What a Ceph cluster was, and what it did during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cluster's side of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephSide {
    /// The cluster's identity.
    pub fsid: String,
    /// `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`: the worst that was seen.
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
