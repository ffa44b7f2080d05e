//! The run second by second.

use crate::histogram::{Histogram, read_leb128, write_leb128};
use crate::spill_list::{BlockItem, SpillList};
use iosonde_job::plan::{Direction, PerDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One slice of the measured time, all workers together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Interval {
    /// Start, since the start of the run.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// What was moved in it.
    pub directions: PerDirection<IntervalCounts>,
    /// Total (or else completion) latencies of the I/Os completed in it, all directions.
    pub latency: Histogram,
    /// Latencies of fsync and its kin that ended in it; `None` where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_latency: Option<Histogram>,
    /// Whether a ramp was still on: such intervals are shown, not summed.
    pub ramp: bool,
    /// How long the process was stopped in it, where that is no part of its length.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_ns: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Interval {
    /// With the buckets in use of its histograms alone: see [`Histogram::compact`].
    pub fn compacted(mut self) -> Interval {
        self.latency.compact();
        if let Some(latency) = &mut self.sync_latency {
            latency.compact();
        }
        self
    }

    /// Adds what was counted in another one. Times stay as they are.
    pub fn add(&mut self, other: &Interval) {
        self.latency.merge(&other.latency);
        if let Some(theirs) = &other.sync_latency {
            let mine = self.sync_latency.get_or_insert_default();
            mine.merge(theirs);
        }
        for direction in Direction::ALL {
            self.directions[direction].ios += other.directions[direction].ios;
            self.directions[direction].bytes += other.directions[direction].bytes;
        }
    }
}

/// All intervals of a run, in the order of time.
pub type Intervals = SpillList<Interval>;

impl BlockItem for Interval {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let flags = u64::from(self.ramp) | u64::from(self.sync_latency.is_some()) << 1;
        for number in [flags, self.start_ns, self.length_ns, self.stopped_ns] {
            write_leb128(bytes, number);
        }
        for direction in Direction::ALL {
            let counts = self.directions[direction];
            write_leb128(bytes, counts.ios);
            write_leb128(bytes, counts.bytes);
        }
        self.latency.encode(bytes);
        if let Some(latency) = &self.sync_latency {
            latency.encode(bytes);
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Interval> {
        let flags = read_leb128(bytes)?;
        let mut interval = Interval {
            start_ns: read_leb128(bytes)?,
            length_ns: read_leb128(bytes)?,
            stopped_ns: read_leb128(bytes)?,
            ramp: flags & 1 != 0,
            directions: PerDirection::default(),
            // Not the default, which has all buckets.
            latency: Histogram::decode(&mut &[0][..])?,
            sync_latency: None,
        };
        for direction in Direction::ALL {
            let counts = &mut interval.directions[direction];
            counts.ios = read_leb128(bytes)?;
            counts.bytes = read_leb128(bytes)?;
        }
        interval.latency = Histogram::decode(bytes)?;
        if flags & 2 != 0 {
            interval.sync_latency = Some(Histogram::decode(bytes)?);
        }
        Some(interval)
    }

    fn compacted(self) -> Interval {
        Interval::compacted(self)
    }
}

/// What was moved in one direction during one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IntervalCounts {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
}
