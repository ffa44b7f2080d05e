//! Requests of a block device in a span of time, by kind, as `iosonde watch` records them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests of one kind. Flushes move no sectors and are not merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RequestTotals {
    /// Completed requests.
    pub ios: u64,
    /// Requests merged into others before submission.
    #[serde(default)]
    pub merges: u64,
    /// Sectors of 512 bytes moved.
    #[serde(default)]
    pub sectors: u64,
    /// Sum of the times of all requests, in milliseconds.
    pub ticks_ms: u64,
}

/// Requests of a device. A kind is `None` if the kernel does not count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceRequests {
    /// Reads.
    pub reads: RequestTotals,
    /// Writes.
    pub writes: RequestTotals,
    /// Discards (since Linux 4.18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discards: Option<RequestTotals>,
    /// Flushes (since Linux 5.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<RequestTotals>,
    /// Time with requests in flight, in milliseconds.
    pub busy_ms: u64,
    /// Time weighted by the number of requests in flight, in milliseconds.
    pub in_queue_ms: u64,
}

impl RequestTotals {
    /// Adds the requests of another span or device.
    fn add(&mut self, other: &RequestTotals) {
        self.ios = self.ios.saturating_add(other.ios);
        self.merges = self.merges.saturating_add(other.merges);
        self.sectors = self.sectors.saturating_add(other.sectors);
        self.ticks_ms = self.ticks_ms.saturating_add(other.ticks_ms);
    }
}

impl DeviceRequests {
    /// Adds the requests of another span or device.
    pub fn add(&mut self, other: &DeviceRequests) {
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        if let Some(discards) = &other.discards {
            self.discards.get_or_insert_default().add(discards);
        }
        if let Some(flushes) = &other.flushes {
            self.flushes.get_or_insert_default().add(flushes);
        }
        self.busy_ms = self.busy_ms.saturating_add(other.busy_ms);
        self.in_queue_ms = self.in_queue_ms.saturating_add(other.in_queue_ms);
    }

    /// Returns the sum of reads, writes and discards, which `sar -d` counts as transfers.
    pub fn transfers(&self) -> RequestTotals {
        let mut sum = self.reads;
        sum.add(&self.writes);
        sum.add(&self.discards.unwrap_or_default());
        sum
    }

    /// Whether requests were completed or in flight.
    pub fn is_busy(&self) -> bool {
        let flushes = self.flushes.map_or(0, |flushes| flushes.ios);
        self.transfers().ios > 0 || flushes > 0 || self.busy_ms > 0 || self.in_queue_ms > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_kinds_of_requests_stay_missing_in_sums() {
        let of = |ios| RequestTotals {
            ios,
            sectors: ios * 8,
            ..RequestTotals::default()
        };
        let old = DeviceRequests {
            reads: of(3),
            ..DeviceRequests::default()
        };
        let mut sum = old;
        sum.add(&old);
        assert_eq!((sum.reads.ios, sum.discards, sum.flushes), (6, None, None));
        let new = DeviceRequests {
            discards: Some(of(2)),
            ..old
        };
        sum.add(&new);
        assert_eq!(sum.discards, Some(of(2)));
        assert_eq!((sum.transfers().ios, sum.transfers().sectors), (11, 88));
        assert!(sum.is_busy() && !DeviceRequests::default().is_busy());
        let text = serde_json::to_string(&old).unwrap();
        assert!(!text.contains("discards"), "{text}");
        assert_eq!(serde_json::from_str::<DeviceRequests>(&text).unwrap(), old);
    }
}
