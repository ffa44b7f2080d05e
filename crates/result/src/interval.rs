//! Time series of a run's I/Os, one [`Interval`] per slice of time.

use crate::histogram::{Histogram, read_leb128, write_leb128};
use crate::spill_list::{BlockItem, SpillList};
use iosonde_job::plan::{Direction, PerDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One slice of the run, summed over all workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Interval {
    /// Start of the slice, relative to the start of the run.
    pub start_ns: u64,
    /// Length of the slice.
    pub length_ns: u64,
    /// I/Os and bytes by direction.
    pub directions: PerDirection<IntervalCounts>,
    /// Total latencies, or else completion latencies, of the I/Os completed in the slice.
    pub latency: Histogram,
    /// Latencies of fsync, fdatasync and sync_file_range. `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_latency: Option<Histogram>,
    /// Whether any worker was in its ramp. Sums exclude such intervals.
    pub ramp: bool,
    /// Time in which the process was stopped, if `length_ns` does not include it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_ns: u64,
    /// I/Os in flight at the end of the slice, for live displays; not stored. `None` if the backend
    /// is not observed.
    #[serde(skip)]
    pub in_flight: Option<u64>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Interval {
    /// Returns the interval with compact histograms, see `Histogram::compact`.
    pub fn compacted(mut self) -> Interval {
        self.latency.compact();
        if let Some(latency) = &mut self.sync_latency {
            latency.compact();
        }
        self
    }

    /// Adds the counts and latencies of `other`. The times stay unchanged.
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

/// All intervals of a run, in order of time.
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
            // `Histogram::default` would allocate all buckets.
            latency: Histogram::decode(&mut &[0][..])?,
            sync_latency: None,
            in_flight: None,
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

/// I/Os and bytes of one direction during one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IntervalCounts {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
}
