//! Requests to NFS servers, as counted by the kernel's client (`/proc/self/mountstats`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters of one NFS mount. They include all users of the mount, not only the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NfsSide {
    /// Source of the mount: `server:/export`.
    pub source: String,
    /// Directory where it is mounted.
    pub mount_point: String,
    /// Bytes that programs and the kernel moved.
    pub bytes: NfsBytes,
    /// Operations by name: `READ`, `WRITE`, `COMMIT`, ... Unused operations are left out.
    pub ops: BTreeMap<String, NfsOp>,
}

/// Bytes through a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NfsBytes {
    /// Read by programs through the page cache.
    pub read: u64,
    /// Written by programs through the page cache.
    pub written: u64,
    /// Read by programs with O_DIRECT.
    pub direct_read: u64,
    /// Written by programs with O_DIRECT.
    pub direct_written: u64,
    /// Read from the server.
    pub server_read: u64,
    /// Written to the server.
    pub server_written: u64,
}

/// Counters of one kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NfsOp {
    /// Number of operations.
    pub ops: u64,
    /// Number of transmissions. The excess over `ops` are retransmissions.
    pub transmissions: u64,
    /// Number of operations that the server did not answer in time.
    pub timeouts: u64,
    /// Bytes sent, headers included.
    pub sent_bytes: u64,
    /// Bytes received, headers included.
    pub received_bytes: u64,
    /// Sum of the times before transmission, in milliseconds.
    pub queue_ms: u64,
    /// Sum of the round-trip times, from transmission to answer, in milliseconds.
    pub rtt_ms: u64,
    /// Sum of the execution times, from request to completion, in milliseconds.
    pub execute_ms: u64,
    /// Number of failed operations, if the kernel counts them.
    pub errors: Option<u64>,
}

impl NfsOp {
    /// Returns the number of retransmissions.
    pub fn retransmissions(&self) -> u64 {
        self.transmissions.saturating_sub(self.ops)
    }

    /// Returns the mean round-trip time in nanoseconds.
    pub fn mean_rtt_ns(&self) -> f64 {
        self.rtt_ms as f64 * 1e6 / self.ops.max(1) as f64
    }

    /// Returns the mean execution time in nanoseconds.
    pub fn mean_execute_ns(&self) -> f64 {
        self.execute_ms as f64 * 1e6 / self.ops.max(1) as f64
    }
}

impl NfsSide {
    /// Returns the number of retransmissions of all operations.
    pub fn retransmissions(&self) -> u64 {
        self.ops.values().map(NfsOp::retransmissions).sum()
    }

    /// Returns the operations that took time, in descending order of total time.
    pub fn busiest(&self) -> Vec<(&str, NfsOp)> {
        let mut ops: Vec<(&str, NfsOp)> = self
            .ops
            .iter()
            .map(|(name, op)| (name.as_str(), *op))
            .collect();
        ops.sort_by_key(|(_, op)| std::cmp::Reverse((op.execute_ms, op.ops)));
        ops
    }
}
