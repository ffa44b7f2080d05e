//! The stored result of a probe.

use super::class::Classification;
use super::evidence::is_noisy;
use crate::CutShort;
use crate::ceiling::{self, Ceiling};
use crate::figures::pattern_knee::Knee;
use crate::figures::phase_figure::PhaseFigure;
use crate::figures::phase_run::PhaseRun;
use crate::probe_budget::ProbeBudget;
use crate::probe_phase::ProbePhase;
use crate::promise_check::PromiseCheck;
use crate::study_target::StudyTargetKind;
use crate::working_set::StudyWorkingSet;
use iosonde_result::run::IoFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`ProbeResult`] as JSON; increases when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// The options of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeOptions {
    /// Time limits of each phase.
    pub budget: ProbeBudget,
    /// Bytes of the working set; `None` for a size that fits the target.
    pub size_bytes: Option<u64>,
    /// Whether to ask for O_DIRECT; if that is refused, the probe continues without it.
    pub direct: bool,
    /// Seed of the offsets.
    pub seed: u64,
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResult {
    /// The [`FORMAT`] that it was written in.
    pub format: u32,
    /// The target as the user wrote it.
    pub target: String,
    /// The file or device that I/O went to.
    pub path: String,
    /// The kind of target.
    pub kind: StudyTargetKind,
    /// The options of the probe.
    pub options: ProbeOptions,
    /// The bytes that were used of the target.
    pub working_set: StudyWorkingSet,
    /// Whether the user stopped the probe before all phases had run.
    pub interrupted: bool,
    /// The error that ended the probe early; the figures are those of earlier phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
    /// The figure of each phase that measured something.
    pub figures: Vec<PhaseFigure>,
    /// The knees of the phases' patterns; empty if none was searched.
    #[serde(default)]
    pub knees: Vec<Knee>,
    /// Rates that a deeper queue does not raise, each with the cause of the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<Ceiling>,
    /// The kind of target, and its suitability.
    pub classification: Classification,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
    /// Promises that the figures were compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<PromiseCheck>,
    /// The runs behind the figures, with layout.
    pub runs: Vec<PhaseRun>,
}

/// The JSON Schema (2020-12) of [`ProbeResult`]. `docs/schema/probe-result.json` is its copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ProbeResult).to_value()
}

impl ProbeResult {
    /// The figure of a phase.
    pub fn figure(&self, phase: ProbePhase) -> Option<&PhaseFigure> {
        self.figures.iter().find(|figure| figure.phase == phase)
    }

    /// Compares the figures with promises, which replace earlier ones.
    pub fn expect(&mut self, expected: Vec<PromiseCheck>) {
        self.ceilings = ceiling::probe_ceilings(&self.knees, &self.figures, &self.runs, &expected);
        self.expected = expected;
    }

    /// Whether noise or other work dominates the figures that the classification quotes.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        is_noisy(&self.figures, &self.runs)
    }

    /// The first I/O error of any phase.
    pub fn failure(&self) -> Option<&IoFailure> {
        let workers = self.runs.iter().flat_map(|run| &run.result.workers);
        workers.into_iter().find_map(|worker| worker.error.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_session::{FakeDevice, FakeSession};
    use crate::probe::probe;
    use crate::test_targets::{directory_target, probe_options};

    #[test]
    fn probe_result_validates_against_schema() {
        let target = directory_target("/data");
        let options = probe_options(ProbeBudget::NORMAL, None);
        let mut session = FakeSession::new(FakeDevice::nvme());
        let result = probe(&mut session, &target, &options, &mut ()).unwrap();
        let mut document = serde_json::to_value(result).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        document["knees"][0]["saturation"]["jobs"] = "many".into();
        assert!(!validator.is_valid(&document), "the schema allows anything");
    }
}
