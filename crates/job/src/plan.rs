//! The plan of a run: the typed, resolved form of a job file.
//!
//! A [`Plan`] holds no option as text except for the record of the given options. Every number has
//! its unit in its name. Every unset option has its default. The engine relies on the rules written
//! at each field.

mod ceph;
mod files;
mod measure;
mod method;
mod replay;
mod schedule;
mod verify;
mod workload;

pub use ceph::*;
pub use files::*;
pub use measure::*;
pub use method::*;
pub use replay::*;
pub use schedule::*;
pub use verify::*;
pub use workload::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The three directions of data. Also the index into [`PerDirection`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Device to memory.
    Read = 0,
    /// Memory to device.
    Write = 1,
    /// Discard.
    Trim = 2,
}

impl Direction {
    /// All directions, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// fio's name of the direction: `read`, `write`, `trim`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// One value for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PerDirectionOf{T}")]
pub struct PerDirection<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> PerDirection<T> {
    /// Builds the value of each direction.
    pub fn from_fn(mut make: impl FnMut(Direction) -> T) -> Self {
        PerDirection {
            read: make(Direction::Read),
            write: make(Direction::Write),
            trim: make(Direction::Trim),
        }
    }

    /// The three values with their directions, in fio's order.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::ALL
            .into_iter()
            .map(|direction| (direction, &self[direction]))
    }
}

impl<T: Clone> PerDirection<T> {
    /// The same value for all directions.
    pub fn from_value(value: T) -> Self {
        PerDirection {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}

impl<T> std::ops::Index<Direction> for PerDirection<T> {
    type Output = T;
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }
}

impl<T> std::ops::IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}

/// All jobs of one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Jobs in the order of the job file. `numjobs` is not expanded here.
    pub jobs: Vec<Job>,
    /// Options of `[global]` sections or before the first `--name`, as fio's JSON reports them.
    pub global_options: Vec<GivenOption>,
}

impl Plan {
    /// Counts the time in which the process is stopped, as fio does, see
    /// [`MeasureOptions::counts_stops`].
    pub fn count_stops(&mut self) {
        for job in &mut self.jobs {
            job.measure.counts_stops = true;
        }
    }

    /// The longest `runtime` of the jobs, in nanoseconds. `None` if the amount of I/O ends any job.
    pub fn longest_runtime_ns(&self) -> Option<u64> {
        let measured = self.jobs.iter().filter(|job| !job.schedule.neighbour);
        let runtimes = measured.map(|job| job.schedule.runtime_ns);
        let all: Option<Vec<u64>> = runtimes.map(|ns| (ns > 0).then_some(ns)).collect();
        all?.into_iter().max()
    }

    /// Returns the neighbour, if the plan has one.
    pub fn neighbour(&self) -> Option<&Job> {
        self.jobs.iter().find(|job| job.schedule.neighbour)
    }

    /// Whether time in which the process is stopped counts.
    pub fn counts_stops(&self) -> bool {
        self.jobs.iter().any(|job| job.measure.counts_stops)
    }
}

/// An option as given: its canonical name and the text of its value ("" for an option without one).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenOption {
    /// Canonical option name, e.g. `rw` for `readwrite`.
    pub name: String,
    /// Value text after expansion.
    pub value: String,
}

/// One section of a job file, or one `--name` group of a command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Section name. Not unique.
    pub name: String,
    /// `description`.
    pub description: Option<String>,
    /// Number of clones, at least 1.
    pub numjobs: u32,
    /// Reporting group: `stonewall` and `new_group` begin the next one, as in fio.
    pub groupid: u32,
    /// Options of this section, as fio's JSON reports them under "job options".
    pub given: Vec<GivenOption>,
    /// Files, directories and devices of the data.
    pub files: JobFiles,
    /// Directions, block sizes, order and contents of the I/O.
    pub workload: Workload,
    /// Engine, depth, memory and priorities of the I/O.
    pub io: IoMethod,
    /// Start, end and rate limits of the job.
    pub schedule: Schedule,
    /// Statistics, logs and the way they are reported.
    pub measure: MeasureOptions,
    /// Errors after which the job continues.
    pub errors: ErrorPolicy,
    /// Verification of contents; `None` without one.
    pub verify: Option<Verify>,
    /// A trace to replay instead of the workload's own pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn directions_are_listed_in_their_order() {
        assert_eq!(Direction::ALL, Direction::VARIANTS);
        let indices = Direction::ALL.map(|direction| direction as usize);
        assert_eq!(indices, [0, 1, 2], "indices of arrays by direction");
    }
}
