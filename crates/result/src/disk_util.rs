//! Activity of block devices during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Activity of one block device during the run, as in fio's `disk_util`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DiskUtil {
    /// Kernel name, e.g. `nvme0n1`.
    pub name: String,
    /// Completed requests: reads, writes.
    pub ios: [u64; 2],
    /// Merged requests: reads, writes.
    pub merges: [u64; 2],
    /// Time of all requests in milliseconds: reads, writes.
    pub ticks_ms: [u64; 2],
    /// Time of all requests in milliseconds, weighted by the number in flight.
    pub in_queue_ms: u64,
    /// Sectors of 512 bytes moved: reads, writes.
    pub sectors: [u64; 2],
    /// Share of the run in which I/O was in flight, in per cent.
    pub util_percent: f64,
    /// Sums of the underlying devices, if the device is composed of others.
    pub below: Vec<DiskUtil>,
}
