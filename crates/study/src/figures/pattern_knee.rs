//! [`Knee`]: the curve of a phase's pattern over depth, and its knee.

use super::cell::CurveCell;
use super::saturation_result::Saturation;
use crate::probe_phase::ProbePhase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The knee of one phase's pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The phase whose pattern was measured at other depths.
    pub phase: ProbePhase,
    /// The curve and its knee.
    pub saturation: Saturation,
    /// The rate with another block size, if the curve has a plateau.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_size: Option<SecondBlockSize>,
}

impl Knee {
    /// Time that the search took, with the second block size, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.saturation.spent_ns + self.second_size.as_ref().map_or(0, |size| size.spent_ns)
    }
}

/// The cell measured with another block size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondBlockSize {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// The measured cell.
    pub cell: CurveCell,
    /// Time that the cell took, with ramp and draining, in nanoseconds.
    pub spent_ns: u64,
}
