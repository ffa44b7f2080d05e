//! [`StoredRunError`]: [`RunError`] as JSON. It holds the text of an error beside its data.

use super::pod_failure::PodFailure;
use super::{PathAction, RunError, SystemFailure, TargetProblem, UnsupportedFeature, WriteRefusal};
use crate::known_cause::read_known_cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredRunError {
    /// A path cannot be used as a target.
    Target {
        /// The path as given.
        path: String,
        /// Description of the problem, with the name of the errno if there is one.
        problem: String,
        /// Action to take.
        remedy: String,
        /// The problem as data.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "read_known_cause"
        )]
        cause: Option<StoredTargetCause>,
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
    /// The device must not be written without consent.
    Refused {
        /// The block device.
        device: String,
        /// Data or use found on the device.
        found: String,
        /// How to give consent.
        remedy: String,
        /// The reason as data.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "read_known_cause"
        )]
        cause: Option<Box<WriteRefusal>>,
    },
    /// The plan requests a feature that this machine or program does not support.
    Unsupported {
        /// The unsupported feature, and where it was requested.
        problem: String,
        /// The nearest alternative.
        remedy: String,
        /// The unsupported feature as data.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "read_known_cause"
        )]
        cause: Option<Box<UnsupportedFeature>>,
    },
    /// A remote place, such as a pod, did not become ready to run plans.
    #[serde(rename = "unready")]
    NotReady(Box<PodFailure>),
    /// A remote place was lost during a run, and the result with it.
    Lost(Box<PodFailure>),
    /// Objects created for a remote run are not removed yet.
    #[serde(rename = "left")]
    NotRemoved(Box<PodFailure>),
    /// The run time ended before the first I/O completed.
    #[serde(rename = "nothing_done")]
    NoCompletions,
    /// The user interrupted the run before anything was measured.
    Interrupted,
}

/// Problem of a target as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredTargetCause {
    /// The target refuses O_DIRECT.
    DirectRefused {
        /// errno of open(2).
        errno: i32,
    },
    /// An operation on the path failed.
    PathAccess {
        /// The operation.
        action: PathAction,
        /// The error of the system.
        failure: SystemFailure,
        /// Whether the program runs as root.
        is_root: bool,
    },
    /// Another problem.
    Problem(Box<TargetProblem>),
}

impl From<RunError> for StoredRunError {
    fn from(error: RunError) -> StoredRunError {
        let stored = StoredRunError::with_text(error.clone());
        debug_assert_eq!(
            RunError::from(stored.clone()),
            error,
            "an error is read as it was written"
        );
        stored
    }
}

impl StoredRunError {
    /// Converts an error, and adds its text.
    fn with_text(error: RunError) -> StoredRunError {
        let (problem, remedy) = (error.problem(), error.remedy());
        let target = |path, cause| StoredRunError::Target {
            path,
            problem: problem.clone(),
            remedy: remedy.clone(),
            cause,
        };
        match error {
            RunError::DirectRefused { path, errno } => {
                target(path, Some(StoredTargetCause::DirectRefused { errno }))
            }
            RunError::PathAccess {
                path,
                action,
                failure,
                is_root,
            } => {
                let cause = StoredTargetCause::PathAccess {
                    action,
                    failure,
                    is_root,
                };
                target(path, Some(cause))
            }
            RunError::UnusableTarget { path, cause } => {
                target(path, Some(StoredTargetCause::Problem(cause)))
            }
            RunError::Target { path, .. } => target(path, None),
            RunError::NoSpace {
                path,
                needed_bytes,
                available_bytes,
            } => StoredRunError::NoSpace {
                path,
                needed_bytes,
                available_bytes,
            },
            RunError::NoWriteConsent { device, cause } => StoredRunError::Refused {
                device,
                found: problem,
                remedy,
                cause: Some(cause),
            },
            RunError::Refused { device, .. } => StoredRunError::Refused {
                device,
                found: problem,
                remedy,
                cause: None,
            },
            RunError::NoFeature { cause } => StoredRunError::Unsupported {
                problem,
                remedy,
                cause: Some(cause),
            },
            RunError::Unsupported { .. } => StoredRunError::Unsupported {
                problem,
                remedy,
                cause: None,
            },
            RunError::NotReady(failure) => StoredRunError::NotReady(failure),
            RunError::Lost(failure) => StoredRunError::Lost(failure),
            RunError::NotRemoved(failure) => StoredRunError::NotRemoved(failure),
            RunError::NoCompletions => StoredRunError::NoCompletions,
            RunError::Interrupted => StoredRunError::Interrupted,
        }
    }
}

impl From<StoredRunError> for RunError {
    fn from(stored: StoredRunError) -> RunError {
        match stored {
            StoredRunError::Target {
                path,
                problem,
                remedy,
                cause,
            } => match cause {
                Some(StoredTargetCause::DirectRefused { errno }) => {
                    RunError::DirectRefused { path, errno }
                }
                Some(StoredTargetCause::PathAccess {
                    action,
                    failure,
                    is_root,
                }) => RunError::PathAccess {
                    path,
                    action,
                    failure,
                    is_root,
                },
                Some(StoredTargetCause::Problem(cause)) => RunError::UnusableTarget { path, cause },
                None => RunError::Target {
                    path,
                    problem,
                    remedy,
                },
            },
            StoredRunError::NoSpace {
                path,
                needed_bytes,
                available_bytes,
            } => RunError::NoSpace {
                path,
                needed_bytes,
                available_bytes,
            },
            StoredRunError::Refused {
                device,
                found,
                remedy,
                cause,
            } => match cause {
                Some(cause) => RunError::NoWriteConsent { device, cause },
                None => RunError::Refused {
                    device,
                    found,
                    remedy,
                },
            },
            StoredRunError::Unsupported {
                problem,
                remedy,
                cause,
            } => match cause {
                Some(cause) => RunError::NoFeature { cause },
                None => RunError::Unsupported { problem, remedy },
            },
            StoredRunError::NotReady(failure) => RunError::NotReady(failure),
            StoredRunError::Lost(failure) => RunError::Lost(failure),
            StoredRunError::NotRemoved(failure) => RunError::NotRemoved(failure),
            StoredRunError::NoCompletions => RunError::NoCompletions,
            StoredRunError::Interrupted => RunError::Interrupted,
        }
    }
}
