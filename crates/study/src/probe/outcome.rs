//! What a probe found, as it is kept.

use super::class::Classification;
use super::figure::Figure;
use super::knee::Knee;
use super::phase::{Budget, Phase};
use super::target::{TargetKind, WorkingSet};
use crate::CutShort;
use crate::ceiling::{self, Ceiling};
use crate::limits::Held;
use iosonde_result::run::{IoFailure, RunResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`ProbeResult`] as JSON; counts up when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// How a probe is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeOptions {
    /// Time for each step.
    pub budget: Budget,
    /// Bytes of the working set; `None` chooses.
    pub size_bytes: Option<u64>,
    /// Whether to ask for O_DIRECT. Where it is refused, the probe goes on without it and says so.
    pub direct: bool,
    /// Seed of the offsets.
    pub seed: u64,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResult {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// The target as the user wrote it.
    pub target: String,
    /// The file or device that I/O went to.
    pub path: String,
    /// What the target is.
    pub kind: TargetKind,
    /// How it was to be done.
    pub options: ProbeOptions,
    /// What was used of the target.
    pub working_set: WorkingSet,
    /// Whether the user ended it before all phases had run.
    pub interrupted: bool,
    /// The error of a run without a result that ended it early: figures are those of the phases before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
    /// One for each phase that measured something.
    pub figures: Vec<Figure>,
    /// Where the random patterns saturate; empty where that was not searched.
    #[serde(default)]
    pub knees: Vec<Knee>,
    /// Rates that more I/Os in flight do not raise, and who holds them there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<Ceiling>,
    /// What the figures mean.
    pub classification: Classification,
    /// What else the user should know, each in one sentence.
    pub notes: Vec<String>,
    /// Promises that the figures were held against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Held>,
    /// The runs behind the figures, layout included.
    pub runs: Vec<PhaseRun>,
}

/// The JSON Schema (2020-12) of [`ProbeResult`]. `docs/schema/probe-result.json` is its copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ProbeResult).to_value()
}

impl ProbeResult {
    /// The figure of a phase.
    pub fn figure(&self, phase: Phase) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.phase == phase)
    }

    /// Holds the figures against promises, in the place of what they were held against.
    pub fn expect(&mut self, expected: Vec<Held>) {
        self.ceilings = ceiling::of_probe(&self.knees, &self.figures, &self.runs, &expected);
        self.expected = expected;
    }

    /// The first I/O error of any phase.
    pub fn failure(&self) -> Option<&IoFailure> {
        let workers = self.runs.iter().flat_map(|run| &run.result.workers);
        workers.into_iter().find_map(|worker| worker.error.as_ref())
    }
}

/// The run of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRun {
    /// Which phase.
    pub phase: Phase,
    /// What was measured.
    pub result: RunResult,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeDevice, FakeSession};
    use crate::probe::{ProbeTarget, probe};

    /// `UPDATE_SCHEMA=1 cargo test -p iosonde-study` writes the file anew.
    #[test]
    fn the_committed_schema_is_current() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/schema/probe-result.json"
        );
        let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &current).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == current,
            "docs/schema/probe-result.json is out of date: run UPDATE_SCHEMA=1 cargo test -p iosonde-study"
        );
    }

    #[test]
    fn results_follow_the_schema() {
        let target = ProbeTarget {
            name: "/data".into(),
            path: "/data/.iosonde-probe-1".into(),
            kind: TargetKind::Directory {
                free_bytes: 1 << 40,
            },
        };
        let options = ProbeOptions {
            budget: Budget::NORMAL,
            size_bytes: None,
            direct: true,
            seed: 1,
        };
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
