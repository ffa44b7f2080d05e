//! [`PhaseRun`]: the run of one phase of a probe.

use crate::probe_phase::ProbePhase;
use iosonde_result::run::RunResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The run of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRun {
    /// The phase.
    pub phase: ProbePhase,
    /// The result of its run.
    pub result: RunResult,
}
