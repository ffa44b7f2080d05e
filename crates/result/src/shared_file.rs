//! Check of one file that several pods write and read: whether a reader sees what its neighbours
//! wrote, and the latency of file locks.
//!
//! A client drives the check in rounds: some pods write, all have answered, others read. The agents
//! perform the steps. Every 8 bytes name the pod that wrote them, its write and their place, so a
//! wrong byte tells where it comes from.

mod file_content;
mod file_rounds;
mod shared_file_check;

pub use crate::shared_file_fault::{FileConsistency, SharedFileAction, WrongByte, WrongByteOrigin};
pub use file_content::RangeContent;
pub use file_rounds::{MEMBERS_MAX, MemberStep};
pub use shared_file_check::{SharedFileFailure, check_shared_file};

use crate::histogram::Histogram;
use crate::run_error::SystemFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ranges of the file that the pods write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum RangeAssignment {
    /// Each pod writes a range of its own: with O_DIRECT all at the same time.
    Disjoint,
    /// The pods write all ranges, in turn.
    Contended,
}

/// Kind of file lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum FileLock {
    /// flock(2).
    Flock,
    /// F_SETLKW of fcntl(2), on the whole file.
    Fcntl,
}

/// One step of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedFileStep {
    /// Creates the file, which must not exist.
    Create,
    /// Writes a range.
    Write {
        /// Range and contents.
        content: RangeContent,
        /// Whether the file is opened and closed for it.
        consistency: FileConsistency,
    },
    /// Reads ranges and compares them.
    Verify {
        /// Ranges and expected contents.
        contents: Vec<RangeContent>,
        /// Whether the file is opened and closed for it.
        consistency: FileConsistency,
    },
    /// Takes and releases an exclusive lock again and again.
    Lock {
        /// Kind of lock.
        lock: FileLock,
        /// Minimum duration of the step. A lock that is waited for extends it.
        duration_ms: u64,
    },
    /// Closes the file.
    Close,
    /// Removes the file.
    Remove,
}

/// Answer to a [`SharedFileStep`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedFileReply {
    /// The step is done. All bytes that were read are as expected.
    Done,
    /// A byte is wrong: the first one in order of the ranges.
    Wrong(WrongByte),
    /// The file system refuses O_DIRECT.
    DirectRefused(SystemFailure),
    /// Durations of the locks.
    Locked(Box<LockSample>),
    /// A call failed.
    Failed {
        /// The call.
        action: SharedFileAction,
        /// Its error.
        failure: SystemFailure,
    },
}

/// Durations of the lock and unlock calls of one pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockSample {
    /// Time to take the lock, in nanoseconds.
    pub lock_ns: Histogram,
    /// Time to release it, in nanoseconds.
    pub unlock_ns: Histogram,
    /// Duration of the step.
    pub elapsed_ns: u64,
}

/// Result of the check of a shared file. A wrong byte has no result: it ends the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedFileResult {
    /// Number of pods.
    pub pods: u16,
    /// Size of the file.
    pub file_bytes: u64,
    /// Performed checks, without immediate consistency if O_DIRECT was refused.
    pub checks: Vec<ConsistencyCheck>,
    /// Why immediate consistency was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_refused: Option<SystemFailure>,
    /// Figures of locks, alone and contended.
    pub locks: Vec<LockFigures>,
    /// Kinds of locks that the file system refuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_locks: Vec<RefusedLock>,
}

/// Writes and reads of one promise and assignment. All bytes were as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsistencyCheck {
    /// The promise.
    pub consistency: FileConsistency,
    /// The assignment.
    pub assignment: RangeAssignment,
    /// Number of writes.
    pub writes: u64,
    /// Bytes that other pods read and compared.
    pub verified_bytes: u64,
}

/// Figures of a kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockFigures {
    /// Kind of lock.
    pub lock: FileLock,
    /// Number of pods that took the lock at the same time.
    pub pods: u16,
    /// Locks per second, of all pods together.
    pub locks_per_second: f64,
    /// Time to take the lock.
    pub lock_latency: LockLatency,
    /// Time to release it.
    pub unlock_latency: LockLatency,
}

/// Percentiles of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockLatency {
    /// Median in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds.
    pub p99_ns: u64,
}

/// A kind of lock that the file system refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedLock {
    /// Kind of lock.
    pub lock: FileLock,
    /// Error of the call.
    pub failure: SystemFailure,
}

impl FileConsistency {
    /// Returns the name of the promise for people.
    pub fn title(self) -> &'static str {
        match self {
            FileConsistency::CloseToOpen => "close-to-open",
            FileConsistency::Immediate => "immediate",
        }
    }
}

impl RangeAssignment {
    /// Both assignments, in their order.
    pub const ALL: [RangeAssignment; 2] = [RangeAssignment::Disjoint, RangeAssignment::Contended];
}

impl FileLock {
    /// Both kinds, in their order.
    pub const ALL: [FileLock; 2] = [FileLock::Flock, FileLock::Fcntl];

    /// Returns the name of the call.
    pub fn title(self) -> &'static str {
        match self {
            FileLock::Flock => "flock",
            FileLock::Fcntl => "fcntl",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn assignments_and_locks_are_all_listed_in_order() {
        assert_eq!(RangeAssignment::ALL, RangeAssignment::VARIANTS);
        assert_eq!(FileLock::ALL, FileLock::VARIANTS);
    }
}
