//! Traces: recorded I/O that is replayed instead of a pattern.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `read_iolog` and its kin: the I/Os of a trace instead of those of `rw`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// `read_iolog`: files with traces; clones take them in turn.
    pub traces: Vec<String>,
    /// `replay_no_stall`: without the pauses of the trace.
    pub no_stall: bool,
    /// `replay_redirect`: all I/O goes to this file or device.
    pub redirect: Option<String>,
    /// `replay_scale`: offsets are divided by this; 1 leaves them.
    pub scale: u32,
    /// `replay_align`: offsets are rounded down to multiples of this power of 2, in bytes; 0 leaves them.
    pub align_bytes: u64,
    /// `replay_time_scale`: speed in per cent, at least 1.
    pub speed_percent: u32,
    /// `replay_skip`: what is left out of the trace.
    pub skip: ReplaySkip,
}

/// `replay_skip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySkip {
    /// Reads are left out.
    pub read: bool,
    /// Writes are left out.
    pub write: bool,
    /// Trims are left out.
    pub trim: bool,
    /// Syncs are left out.
    pub sync: bool,
}
