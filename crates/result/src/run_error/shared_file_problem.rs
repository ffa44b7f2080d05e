//! Reasons why pods cannot share a file, as data.

use super::SystemFailure;
use crate::shared_file_fault::{FileConsistency, SharedFileAction, WrongByte};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why pods cannot share a file of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedFileProblem {
    /// A pod read other bytes than another one wrote.
    WrongByte {
        /// Name of the pod that wrote the byte.
        writer: String,
        /// Name of the pod that read it.
        reader: String,
        /// The byte.
        wrong: WrongByte,
        /// The promise that was broken.
        consistency: FileConsistency,
    },
    /// A call on the file failed.
    StepFailed {
        /// Name of the pod.
        pod: String,
        /// The operation.
        action: SharedFileAction,
        /// Its error.
        failure: SystemFailure,
    },
    /// Only one pod runs, or more than can take part.
    PodCount {
        /// Number of pods.
        pods: u64,
    },
    /// Volumes of the driver are mounted for writing by one node only.
    OneNodeDriver {
        /// Name of the driver.
        driver: String,
        /// Drivers of all classes of the cluster.
        drivers: Vec<String>,
    },
}

impl SharedFileProblem {
    /// Returns the errno of the failed call, if a call failed.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            SharedFileProblem::StepFailed { failure, .. } => failure.errno(),
            _ => None,
        }
    }
}
