//! [`RunError`]: the reasons why a run has no result, as data. Its words are in `error_text`.

mod ceph_problem;
mod cluster_obstacle;
mod map_problem;
pub mod pod_failure;
mod shared_file_problem;
mod stored_run_error;
mod target_problem;
mod unsupported_feature;
mod unusable_nodes;
mod volume_problem;
mod write_refusal;

pub use ceph_problem::{CephAction, CephProblem};
pub use cluster_obstacle::{
    ApiFailure, ClaimBound, ClusterObstacle, ClusterRequest, ManifestLimit, QuotaShortage,
    SelectedPodsProblem,
};
pub use map_problem::{MapProblem, ProgramEnding};
pub use shared_file_problem::SharedFileProblem;
pub use target_problem::{AccessPurpose, FileHarm, PathAction, TargetProblem};
pub use unsupported_feature::{BufferMemory, NumberedUnit, RefusedEngine, UnsupportedFeature};
pub use unusable_nodes::UnusableNodes;
pub use volume_problem::{DeviceVolume, VolumeProblem};
pub use write_refusal::{IdentityChange, ImageContent, ImageUser, WriteObstacle, WriteRefusal};

use pod_failure::PodFailure;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use stored_run_error::StoredRunError;

/// Reason why a run has no result. Its JSON is `StoredRunError`: the text beside the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredRunError", into = "StoredRunError")]
#[non_exhaustive]
pub enum RunError {
    /// The target refuses O_DIRECT. Studies then use the page cache.
    DirectRefused {
        /// The path as given.
        path: String,
        /// errno of open(2).
        errno: i32,
    },
    /// An operation on a path failed with an error of the system.
    PathAccess {
        /// The path as given.
        path: String,
        /// The operation.
        action: PathAction,
        /// The error.
        failure: SystemFailure,
        /// Whether the program runs as root.
        is_root: bool,
    },
    /// A path cannot be used as a target.
    UnusableTarget {
        /// The path as given.
        path: String,
        /// The problem.
        cause: Box<TargetProblem>,
    },
    /// The plan requests a feature that this machine or program does not support.
    NoFeature {
        /// The unsupported feature.
        cause: Box<UnsupportedFeature>,
    },
    /// A path cannot be used as a target, for a reason without a variant of its own.
    Target {
        /// The path as given.
        path: String,
        /// Description of the problem, with the name of the errno if there is one.
        problem: String,
        /// Action to take.
        remedy: String,
    },
    /// The job needs more space than is available.
    NoSpace {
        /// The directory or file system.
        path: String,
        /// Bytes that the job would write.
        needed_bytes: u64,
        /// Bytes that are available.
        available_bytes: u64,
    },
    /// The target must not be written without consent.
    NoWriteConsent {
        /// The target.
        device: String,
        /// The reason.
        cause: Box<WriteRefusal>,
    },
    /// The device must not be written without consent, for a reason without a variant of its own.
    Refused {
        /// The block device.
        device: String,
        /// Data or use found on the device.
        found: String,
        /// How to give consent.
        remedy: String,
    },
    /// The plan requests a feature that this machine or program does not support, for a reason
    /// without a variant of its own.
    Unsupported {
        /// The unsupported feature, and where it was requested.
        problem: String,
        /// The nearest alternative.
        remedy: String,
    },
    /// A remote place, such as a pod, did not become ready to run plans.
    NotReady(Box<PodFailure>),
    /// A remote place was lost during a run, and the result with it.
    Lost(Box<PodFailure>),
    /// Objects created for a remote run are not removed yet.
    NotRemoved(Box<PodFailure>),
    /// The run time ended before the first I/O completed.
    NoCompletions,
    /// The user interrupted the run before anything was measured.
    Interrupted,
}

impl RunError {
    /// Creates the error of a path that cannot be used as a target.
    pub fn unusable_target(path: impl Into<String>, cause: TargetProblem) -> RunError {
        RunError::UnusableTarget {
            path: path.into(),
            cause: Box::new(cause),
        }
    }

    /// Returns the manifest of roles that have all rights which this user needs and lacks.
    #[must_use]
    pub fn role_to_apply(&self) -> Option<&str> {
        let RunError::NoFeature { cause } = self else {
            return None;
        };
        match &**cause {
            UnsupportedFeature::Cluster(
                ClusterObstacle::MissingRights { role, .. }
                | ClusterObstacle::NamespaceForbidden { role, .. }
                | ClusterObstacle::CleanUpForbidden { role, .. },
            ) if !role.is_empty() => Some(role),
            _ => None,
        }
    }

    /// Creates the error of a target that must not be written without consent.
    pub fn write_refused(device: impl Into<String>, cause: WriteRefusal) -> RunError {
        RunError::NoWriteConsent {
            device: device.into(),
            cause: Box::new(cause),
        }
    }

    /// Returns the errno of the failed call, if the error comes from a call that set one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            RunError::DirectRefused { errno, .. } => Some(*errno),
            RunError::PathAccess { failure, .. } => failure.errno(),
            RunError::UnusableTarget { cause, .. } => cause.errno(),
            RunError::NoFeature { cause } => cause.errno(),
            _ => None,
        }
    }

    /// Returns the path or device that the text of the error names, if there is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            RunError::DirectRefused { path, .. }
            | RunError::PathAccess { path, .. }
            | RunError::UnusableTarget { path, .. }
            | RunError::Target { path, .. }
            | RunError::NoSpace { path, .. }
            | RunError::NoWriteConsent { device: path, .. }
            | RunError::Refused { device: path, .. } => Some(path),
            RunError::NoFeature { .. }
            | RunError::Unsupported { .. }
            | RunError::NotReady(_)
            | RunError::Lost(_)
            | RunError::NotRemoved(_)
            | RunError::NoCompletions
            | RunError::Interrupted => None,
        }
    }

    /// Returns the reason why a study has no figures: it was interrupted, or no I/O completed.
    pub fn without_figures(interrupted: bool) -> RunError {
        match interrupted {
            true => RunError::Interrupted,
            false => RunError::NoCompletions,
        }
    }
}

impl From<UnsupportedFeature> for RunError {
    fn from(cause: UnsupportedFeature) -> RunError {
        RunError::NoFeature {
            cause: Box::new(cause),
        }
    }
}

impl From<ClusterObstacle> for RunError {
    fn from(cause: ClusterObstacle) -> RunError {
        UnsupportedFeature::Cluster(cause).into()
    }
}

// Functions return it by value.
const _: () = assert!(size_of::<RunError>() <= 80);

impl JsonSchema for RunError {
    fn schema_name() -> Cow<'static, str> {
        "RunError".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StoredRunError::json_schema(generator)
    }
}

/// Error that a call to the system returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemFailure {
    /// errno of the call.
    Errno(i32),
    /// Text of an error without an errno.
    Text(String),
}

impl SystemFailure {
    /// Returns the errno, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            SystemFailure::Errno(errno) => Some(*errno),
            SystemFailure::Text(_) => None,
        }
    }
}

impl From<&std::io::Error> for SystemFailure {
    fn from(error: &std::io::Error) -> SystemFailure {
        match error.raw_os_error() {
            Some(errno) => SystemFailure::Errno(errno),
            None => SystemFailure::Text(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
