//! Traces: recorded I/Os, to replay instead of a pattern.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `read_iolog` and the `replay_` options: the I/Os of a trace replace those of `rw`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// `read_iolog`: files with traces; clones take them in turn.
    pub traces: Vec<String>,
    /// `replay_no_stall`: skip the pauses of the trace.
    pub no_stall: bool,
    /// `replay_redirect`: all I/O goes to this file or device.
    pub redirect: Option<String>,
    /// `replay_scale`: divisor of the offsets; 1 leaves them unchanged.
    pub scale: u32,
    /// `replay_align`: offsets are rounded down to multiples of this power of 2, in bytes; 0 leaves
    /// them unchanged.
    pub align_bytes: u64,
    /// `replay_time_scale`: speed in per cent, at least 1.
    pub speed_percent: u32,
    /// `replay_skip`: the kinds of I/O to leave out.
    pub skip: ReplaySkip,
}

/// `replay_skip`: the kinds of I/O to leave out.
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
