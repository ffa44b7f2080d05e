//! Result of a test: its rounds, and whether a steady state was reached.

use super::pts_options::PtsOptions;
use crate::CutShort;
use crate::figures::preset::PtsTest;
use crate::figures::pts_series::SeriesResult;
use crate::study_target::StudyTargetKind;
use iosonde_result::run::IoFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A test as a JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsDocument {
    /// Version of the document. It increases when a member changes its meaning.
    pub format: u32,
    /// Always `pts`.
    pub kind: String,
    /// Program and version.
    pub program: String,
    /// Result of the test.
    pub pts: PtsResult,
}

impl PtsDocument {
    /// Returns the document of a result.
    pub fn from_result(pts: PtsResult, program: &str) -> PtsDocument {
        PtsDocument {
            format: FORMAT,
            kind: "pts".to_owned(),
            program: program.to_owned(),
            pts,
        }
    }
}

/// Returns the JSON Schema (2020-12) of [`PtsDocument`]. `docs/schema/pts.json` is its copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(PtsDocument).to_value()
}

/// Version of [`PtsResult`] and [`PtsDocument`] as JSON, raised if a field changes its meaning.
pub const FORMAT: u32 = 1;

/// Result of a test on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsResult {
    /// Version of the format.
    pub format: u32,
    /// The target as the user wrote it.
    pub target: String,
    /// Kind of the target.
    pub kind: StudyTargetKind,
    /// Options of the test.
    pub options: PtsOptions,
    /// Active range: bytes used, from the start of the target.
    pub bytes: u64,
    /// Whether the I/O used O_DIRECT.
    pub direct: bool,
    /// Series of the test, each after a purge and a fill of its own.
    pub series: Vec<SeriesResult>,
    /// Deviations from the specification, each in one sentence.
    pub deviations: Vec<String>,
    /// Whether the user stopped the test early.
    pub interrupted: bool,
    /// I/O error that ended the test early.
    pub failure: Option<IoFailure>,
    /// Error of a run without a result that ended the test early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
    /// Notes for the user, each in one sentence.
    pub notes: Vec<String>,
}

impl PtsResult {
    pub(super) fn test(&self) -> PtsTest {
        self.options.test
    }

    /// Returns whether every series reached a steady state. Always true for write saturation.
    pub fn is_steady(&self) -> bool {
        self.test() == PtsTest::WriteSaturation
            || self.series.iter().all(|one| one.steady.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::preset::PtsPreset;
    use crate::figures::pts_series::{PtsCell, PtsRound};

    #[test]
    fn documents_follow_the_schema() {
        let mut series = SeriesResult::new(&PtsTest::WriteSaturation.series(PtsPreset::Client)[0]);
        let cell = PtsCell {
            iops: 100.0,
            bytes_per_s: 409_600.0,
            mean_ns: 1e7,
            p99_ns: None,
            p99_9_ns: None,
            max_ns: 1e9,
        };
        series.rounds = vec![PtsRound {
            cells: vec![Some(cell)],
            written_bytes: 0.0,
        }];
        let result = PtsResult {
            format: FORMAT,
            target: "/dev/x".to_owned(),
            kind: StudyTargetKind::Simulated {
                options: String::new(),
            },
            options: PtsOptions {
                test: PtsTest::WriteSaturation,
                preset: PtsPreset::Client,
                time_scale: 1.0,
                most_rounds: 25,
                iodepth: 16,
                numjobs: 2,
                purge: crate::pts::Purge::None,
                size_bytes: None,
                seed: 1,
            },
            bytes: 1 << 30,
            direct: true,
            series: vec![series],
            deviations: Vec::new(),
            interrupted: false,
            failure: None,
            error: None,
            notes: Vec::new(),
        };
        let document = PtsDocument::from_result(result.clone(), "iosonde 0");
        let mut value = serde_json::to_value(&document).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(validator.is_valid(&value), "{value}");
        // Results without a preset were written before presets existed.
        let options = value["pts"]["options"].as_object_mut().unwrap();
        options.remove("preset");
        let earlier: PtsDocument = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(earlier.pts.options.preset, PtsPreset::Enterprise);
        value["pts"]["series"] = serde_json::json!("many");
        assert!(!validator.is_valid(&value), "the schema allows anything");
    }
}
