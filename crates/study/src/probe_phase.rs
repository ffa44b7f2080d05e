//! [`ProbePhase`]: one step of a probe, and the pattern that it measures.

use iosonde_job::plan::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum ProbePhase {
    /// Sequential writes of the whole working set.
    Layout,
    /// Random reads of 4 KiB at depth 1.
    ReadLatency,
    /// Random reads of 4 KiB at a high depth.
    RandomRead,
    /// Sequential reads of 1 MiB.
    SequentialRead,
    /// Random writes of 4 KiB at depth 1.
    WriteLatency,
    /// Buffered sequential writes of 4 KiB, each with fdatasync(2), like a database's log.
    SyncedWrite,
    /// Random writes of 4 KiB at a high depth.
    RandomWrite,
    /// Sequential writes of 1 MiB.
    SequentialWrite,
}

impl ProbePhase {
    /// The measured phases in the order they run: those that can disturb other users run last.
    pub const MEASURED: [ProbePhase; 7] = [
        ProbePhase::ReadLatency,
        ProbePhase::RandomRead,
        ProbePhase::SequentialRead,
        ProbePhase::WriteLatency,
        ProbePhase::SyncedWrite,
        ProbePhase::RandomWrite,
        ProbePhase::SequentialWrite,
    ];

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            ProbePhase::Layout => "layout, sequential write",
            ProbePhase::ReadLatency => "random read, depth 1",
            ProbePhase::RandomRead => "random read",
            ProbePhase::SequentialRead => "sequential read",
            ProbePhase::WriteLatency => "random write, depth 1",
            ProbePhase::SyncedWrite => "fdatasync",
            ProbePhase::RandomWrite => "random write",
            ProbePhase::SequentialWrite => "sequential write",
        }
    }

    /// The title without a depth or a pattern, for lists whose entries a comma separates.
    #[must_use]
    pub fn plain_title(self) -> &'static str {
        match self {
            ProbePhase::Layout => "layout",
            ProbePhase::ReadLatency => ProbePhase::RandomRead.title(),
            ProbePhase::WriteLatency => ProbePhase::RandomWrite.title(),
            phase => phase.title(),
        }
    }

    /// The name in files, job names and JSON.
    pub fn key(self) -> &'static str {
        match self {
            ProbePhase::Layout => "layout",
            ProbePhase::ReadLatency => "read_latency",
            ProbePhase::RandomRead => "random_read",
            ProbePhase::SequentialRead => "sequential_read",
            ProbePhase::WriteLatency => "write_latency",
            ProbePhase::SyncedWrite => "synced_write",
            ProbePhase::RandomWrite => "random_write",
            ProbePhase::SequentialWrite => "sequential_write",
        }
    }

    /// The phase with this [`ProbePhase::key`].
    pub fn from_key(key: &str) -> Option<ProbePhase> {
        let mut all = [ProbePhase::Layout].into_iter().chain(ProbePhase::MEASURED);
        all.find(|phase| phase.key() == key)
    }

    /// The direction of the measured I/O.
    pub fn direction(self) -> Direction {
        match self {
            ProbePhase::ReadLatency | ProbePhase::RandomRead | ProbePhase::SequentialRead => {
                Direction::Read
            }
            _ => Direction::Write,
        }
    }

    /// Whether offsets are random.
    pub fn is_random(self) -> bool {
        matches!(
            self,
            ProbePhase::ReadLatency
                | ProbePhase::RandomRead
                | ProbePhase::WriteLatency
                | ProbePhase::RandomWrite
        )
    }

    /// Bytes of each I/O.
    pub fn block_bytes(self) -> u64 {
        match self {
            ProbePhase::Layout | ProbePhase::SequentialRead | ProbePhase::SequentialWrite => {
                1 << 20
            }
            _ => 4 << 10,
        }
    }

    /// I/Os in flight.
    pub fn iodepth(self) -> u32 {
        match self {
            ProbePhase::Layout | ProbePhase::SequentialRead | ProbePhase::SequentialWrite => 8,
            ProbePhase::RandomRead | ProbePhase::RandomWrite => 64,
            ProbePhase::ReadLatency | ProbePhase::WriteLatency | ProbePhase::SyncedWrite => 1,
        }
    }

    /// Whether a knee search follows: after phases that keep many I/Os in flight.
    pub(crate) fn has_knee(self) -> bool {
        self != ProbePhase::Layout && self.iodepth() > 1
    }

    /// Whether the phase may use O_DIRECT: the log of a database goes through the page cache.
    pub(crate) fn may_be_direct(self) -> bool {
        self != ProbePhase::SyncedWrite
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    fn all_phases() -> Vec<ProbePhase> {
        let mut phases = vec![ProbePhase::Layout];
        phases.extend(ProbePhase::MEASURED);
        phases
    }

    #[test]
    fn phase_keys_equal_json_names() {
        for phase in all_phases() {
            let json = serde_json::to_string(&phase).unwrap();
            assert_eq!(json, format!("\"{}\"", phase.key()));
        }
    }

    #[test]
    fn plain_titles_have_no_depth() {
        for phase in all_phases() {
            let (start, _) = phase.title().split_once(',').unwrap_or((phase.title(), ""));
            assert_eq!(phase.plain_title(), start);
        }
    }

    #[test]
    fn measured_phases_are_all_but_the_layout() {
        assert_eq!(all_phases(), ProbePhase::VARIANTS);
    }
}
