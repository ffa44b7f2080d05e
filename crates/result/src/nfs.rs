//! What was asked of NFS servers during a run, as the kernel's client counts it (`/proc/self/mountstats`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One mount. The counters are those of all who use it, this run among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NfsSide {
    /// What is mounted: `server:/export`.
    pub source: String,
    /// Where.
    pub mount_point: String,
    /// Bytes that programs and the kernel moved.
    pub bytes: NfsBytes,
    /// What was asked of the server, by the name of the operation: `READ`, `WRITE`, `COMMIT`, `GETATTR`, ... Those that were not
    /// used are left out.
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

/// One kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NfsOp {
    /// How many.
    pub ops: u64,
    /// How often they were sent; what is above `ops` was sent again.
    pub transmissions: u64,
    /// How often the server did not answer in time.
    pub timeouts: u64,
    /// Bytes sent, with their headers.
    pub sent_bytes: u64,
    /// Bytes received, with their headers.
    pub received_bytes: u64,
    /// Milliseconds that all of them together waited to be sent.
    pub queue_ms: u64,
    /// Milliseconds from being sent to the answer, all together.
    pub rtt_ms: u64,
    /// Milliseconds from the beginning to the end, all together.
    pub execute_ms: u64,
    /// How many failed, where the kernel counts it.
    pub errors: Option<u64>,
}

impl NfsOp {
    /// How many were sent again.
    pub fn retransmissions(&self) -> u64 {
        self.transmissions.saturating_sub(self.ops)
    }

    /// Mean time from being sent to the answer, in nanoseconds.
    pub fn mean_rtt_ns(&self) -> f64 {
        self.rtt_ms as f64 * 1e6 / self.ops.max(1) as f64
    }

    /// Mean time from the beginning to the end, in nanoseconds.
    pub fn mean_execute_ns(&self) -> f64 {
        self.execute_ms as f64 * 1e6 / self.ops.max(1) as f64
    }
}

impl NfsSide {
    /// Operations that were sent again.
    pub fn retransmissions(&self) -> u64 {
        self.ops.values().map(NfsOp::retransmissions).sum()
    }

    /// The operations that time was spent on, the most first.
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
