//! Life cycle of volumes of a Kubernetes cluster: the stages of a volume, and their outcomes.
//!
//! All times come from the monotonic clock of the client. A stage begins and ends when the client
//! sends a request, or when an event of a watch arrives. The pod measures the first write itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stage in the life of a volume, in their order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum LifecycleStage {
    /// From the request of the claim, or from the choice of a node, until the volume exists.
    Provision,
    /// Until the claim is bound to the volume.
    Bind,
    /// From the scheduling of the pod until the volume is attached to its node.
    Attach,
    /// Until the volumes of the pod are mounted and its sandbox is ready.
    Mount,
    /// One block of 4 KiB with fsync, by the clock of the pod.
    FirstWrite,
    /// From the request of a larger size until the claim has that capacity.
    Expand,
    /// From the request to delete the pod until the volume is detached from the node.
    Detach,
    /// From the request to delete the claim until the volume is gone.
    Delete,
}

const _: () = assert!(LifecycleStage::ALL.len() == LifecycleStage::Delete as usize + 1);

impl LifecycleStage {
    /// All stages, in their order.
    pub const ALL: [LifecycleStage; 8] = [
        LifecycleStage::Provision,
        LifecycleStage::Bind,
        LifecycleStage::Attach,
        LifecycleStage::Mount,
        LifecycleStage::FirstWrite,
        LifecycleStage::Expand,
        LifecycleStage::Detach,
        LifecycleStage::Delete,
    ];

    /// Returns the name of the stage for people.
    pub fn title(self) -> &'static str {
        match self {
            LifecycleStage::Provision => "provision",
            LifecycleStage::Bind => "bind",
            LifecycleStage::Attach => "attach",
            LifecycleStage::Mount => "mount",
            LifecycleStage::FirstWrite => "first write",
            LifecycleStage::Expand => "expand",
            LifecycleStage::Detach => "detach",
            LifecycleStage::Delete => "delete",
        }
    }
}

/// Outcome of a stage of one volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageOutcome {
    /// The stage has begun and ended.
    Measured {
        /// Begin of the stage, in nanoseconds since the begin of its round.
        begun_ns: u64,
        /// Duration of the stage in nanoseconds.
        took_ns: u64,
    },
    /// The class or its driver has no such stage, or this user cannot see it.
    Absent(StageAbsence),
    /// The stage has failed, or has not ended before the timeout.
    Failed {
        /// Cause, as the cluster reports it.
        cause: String,
    },
    /// An earlier stage has failed, or the run was stopped.
    NotReached,
}

/// Reason why a stage has no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageAbsence {
    /// The class does not allow expansion.
    NoExpansion,
    /// This user may not read classes, so that it is not known whether this one allows expansion.
    ClassNotReadable,
    /// The driver has no attachments.
    NoAttachments,
    /// This user may not watch persistentvolumes.
    VolumesNotReadable,
    /// This user may not watch volumeattachments.
    AttachmentsNotReadable,
}

impl StageAbsence {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            StageAbsence::NoExpansion => "not offered by the class",
            StageAbsence::ClassNotReadable => "needs `list` of storageclasses",
            StageAbsence::NoAttachments => "not used by the driver",
            StageAbsence::VolumesNotReadable => "needs `list`, `watch` of persistentvolumes",
            StageAbsence::AttachmentsNotReadable => "needs `list`, `watch` of volumeattachments",
        }
    }
}

/// Outcome of a stage, with the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRecord {
    /// The stage.
    pub stage: LifecycleStage,
    /// Its outcome.
    pub outcome: StageOutcome,
}

/// One volume of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeRecord {
    /// The class as the user named it, e.g. `sc://fast`.
    pub class: String,
    /// Number of volumes that the round has made at the same time.
    pub at_once: u32,
    /// Number of the round among those of the same class and `at_once`, from 1.
    pub round: u32,
    /// Stages in their order.
    pub stages: Vec<StageRecord>,
}

impl VolumeRecord {
    /// Returns the outcome of a stage.
    pub fn outcome(&self, stage: LifecycleStage) -> Option<&StageOutcome> {
        let mut stages = self.stages.iter();
        let found = stages.find(|record| record.stage == stage);
        found.map(|record| &record.outcome)
    }

    /// Returns the first stage that has failed, with its cause.
    pub fn failure(&self) -> Option<(LifecycleStage, &str)> {
        self.stages.iter().find_map(|record| match &record.outcome {
            StageOutcome::Failed { cause } => Some((record.stage, cause.as_str())),
            _ => None,
        })
    }
}

/// A storage class whose volumes are measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LifecycleClass {
    /// The class as the user named it, e.g. `sc://fast`.
    pub name: String,
    /// Provisioner. `None`: this user may not read classes.
    pub provisioner: Option<String>,
    /// Whether volumes are made once a pod needs them (`WaitForFirstConsumer`), or this user may
    /// not read classes.
    pub binds_late: bool,
    /// Whether the class allows expansion. `None`: this user may not read classes.
    pub expands: Option<bool>,
}

/// A round: volumes of one class that are made, used and removed at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleRound {
    /// Index of the class.
    pub class: usize,
    /// Number of volumes.
    pub at_once: u32,
    /// Number of the round among those of the same class and `at_once`, from 1.
    pub number: u32,
}

/// Volumes of a round with their outcomes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LifecycleRoundResult {
    /// The volumes.
    pub volumes: Vec<VolumeRecord>,
    /// Notes for the user, each in one sentence.
    pub notes: Vec<String>,
    /// Whether the user has stopped the round.
    pub is_interrupted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn lifecycle_stages_are_all_listed_in_order() {
        assert_eq!(LifecycleStage::ALL, LifecycleStage::VARIANTS);
    }
}
