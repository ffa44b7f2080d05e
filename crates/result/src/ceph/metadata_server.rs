//! Load and cache of the metadata servers behind a mounted file system.

use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Load and cache of an active metadata server (MDS) during a run, sampled repeatedly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MetadataServer {
    /// Name of the daemon.
    pub name: String,
    /// Rank of the daemon in its file system.
    pub rank: u32,
    /// Highest rate of requests seen, in requests per second.
    pub requests_per_s: u64,
    /// Largest number of cached inodes seen.
    pub cached_inodes: u64,
    /// Largest number of capabilities of clients seen.
    pub caps: u64,
}

impl MetadataServer {
    /// Adds another sample of the same server: the larger value of each.
    pub fn merge(&mut self, other: &MetadataServer) {
        self.requests_per_s = self.requests_per_s.max(other.requests_per_s);
        self.cached_inodes = self.cached_inodes.max(other.cached_inodes);
        self.caps = self.caps.max(other.caps);
    }
}

impl std::fmt::Display for MetadataServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{} (rank {}), up to {} requests/s, {} inodes in its cache, {} caps",
            self.name,
            self.rank,
            words::iops_text(self.requests_per_s as f64),
            words::iops_text(self.cached_inodes as f64),
            words::iops_text(self.caps as f64)
        )
    }
}
