//! Result of a life cycle study.

use super::serial_stages::{SerialStage, find_serial_stage};
use super::stage_summary::StageSummary;
use crate::CutShort;
use iosonde_result::volume_lifecycle::{LifecycleClass, LifecycleStage, VolumeRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`LifecycleResult`] and [`LifecycleDocument`] as JSON, raised if a field changes its
/// meaning.
pub const FORMAT: u32 = 1;

/// A life cycle study as a JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifecycleDocument {
    /// Version of the document. It increases when a member changes its meaning.
    pub format: u32,
    /// Always `lifecycle`.
    pub kind: String,
    /// Program and version.
    pub program: String,
    /// Result of the study.
    pub lifecycle: LifecycleResult,
}

impl LifecycleDocument {
    /// Returns the document of a result.
    pub fn from_result(lifecycle: LifecycleResult, program: &str) -> LifecycleDocument {
        LifecycleDocument {
            format: FORMAT,
            kind: "lifecycle".to_owned(),
            program: program.to_owned(),
            lifecycle,
        }
    }
}

/// Returns the JSON Schema (2020-12) of [`LifecycleDocument`]. `docs/schema/lifecycle.json` is its
/// copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(LifecycleDocument).to_value()
}

/// Result of a life cycle study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifecycleResult {
    /// Version of the format.
    pub format: u32,
    /// The classes in the order of the user.
    pub classes: Vec<LifecycleClass>,
    /// Size of each claim in bytes.
    pub claim_bytes: u64,
    /// Volumes of each class and number at once.
    pub groups: Vec<LifecycleGroup>,
    /// All volumes with the times of their stages.
    pub volumes: Vec<VolumeRecord>,
    /// Notes for the user, each in one sentence.
    pub notes: Vec<String>,
    /// Whether the user stopped the study early.
    pub interrupted: bool,
    /// Error that ended the study early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
}

impl LifecycleResult {
    /// Returns the names of the classes, as the target of the study.
    pub fn target(&self) -> String {
        let names = self.classes.iter().map(|class| class.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the number of volumes that have failed.
    pub fn failed_volumes(&self) -> usize {
        self.groups.iter().map(|group| group.failed_volumes).sum()
    }

    /// Describes the failures, if a volume has failed.
    pub fn failure(&self) -> Option<String> {
        let failed = self.failed_volumes();
        let first = self
            .groups
            .iter()
            .find_map(|group| group.failures.first())?;
        Some(format!(
            "{failed} of {} volumes failed, the first at {}: {}",
            self.volumes.len(),
            first.stage.title(),
            first.cause
        ))
    }
}

/// Volumes of one class that were made in rounds of equal size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifecycleGroup {
    /// The class as the user named it.
    pub class: String,
    /// Number of volumes at the same time.
    pub at_once: u32,
    /// Number of volumes.
    pub volumes: usize,
    /// Number of volumes with a stage that has failed.
    pub failed_volumes: usize,
    /// Stages in their order.
    pub stages: Vec<StageSummary>,
    /// Stages that the cluster works on for few volumes at the same time.
    pub serial: Vec<SerialStage>,
    /// Failures by stage and cause.
    pub failures: Vec<FailureCount>,
}

impl LifecycleGroup {
    /// Returns the summary of a stage.
    pub fn stage(&self, stage: LifecycleStage) -> Option<&StageSummary> {
        self.stages.iter().find(|summary| summary.stage == stage)
    }
}

/// Number of volumes with the same failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureCount {
    /// The stage that has failed.
    pub stage: LifecycleStage,
    /// Cause, as the cluster reports it.
    pub cause: String,
    /// Number of volumes.
    pub volumes: usize,
}

/// Groups volumes by class and number at once, in the order of their first rounds.
pub(super) fn group_volumes(volumes: &[VolumeRecord]) -> Vec<LifecycleGroup> {
    let mut keys: Vec<(&str, u32)> = Vec::new();
    for volume in volumes {
        let key = (volume.class.as_str(), volume.at_once);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let members = |(class, at_once): (&str, u32)| -> Vec<&VolumeRecord> {
        let is_member = |volume: &&VolumeRecord| volume.class == class && volume.at_once == at_once;
        volumes.iter().filter(is_member).collect()
    };
    let mut groups: Vec<LifecycleGroup> = Vec::new();
    for (class, at_once) in keys {
        let members = members((class, at_once));
        let summary = |stage| StageSummary::from_volumes(stage, &members);
        let fewest = groups.iter().filter(|group| group.class == class);
        let fewest = fewest.min_by_key(|group| group.at_once);
        let fewest = fewest.filter(|group| group.at_once < at_once);
        let serial = |stage| {
            let alone = fewest?.stage(stage)?.p50?;
            find_serial_stage(stage, &members, alone.value_ns)
        };
        let serial = LifecycleStage::ALL.into_iter().filter_map(serial).collect();
        let failed = members.iter().filter(|volume| volume.failure().is_some());
        groups.push(LifecycleGroup {
            class: class.to_owned(),
            at_once,
            volumes: members.len(),
            failed_volumes: failed.count(),
            stages: LifecycleStage::ALL.into_iter().map(summary).collect(),
            serial,
            failures: count_failures(&members),
        });
    }
    groups
}

/// Counts failures by stage and cause.
fn count_failures(volumes: &[&VolumeRecord]) -> Vec<FailureCount> {
    let mut counts: Vec<FailureCount> = Vec::new();
    for (stage, cause) in volumes.iter().filter_map(|volume| volume.failure()) {
        let mut known = counts.iter_mut();
        match known.find(|count| count.stage == stage && count.cause == cause) {
            Some(count) => count.volumes += 1,
            None => counts.push(FailureCount {
                stage,
                cause: cause.to_owned(),
                volumes: 1,
            }),
        }
    }
    counts
}
