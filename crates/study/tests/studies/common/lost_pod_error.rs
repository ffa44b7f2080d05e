//! The error of a run that lost its pod.

use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::PodFailure;

/// The error of a lost run.
pub(crate) fn lost_pod_error() -> RunError {
    RunError::Lost(Box::new(PodFailure::from_texts(
        "the pod",
        "its node died",
        "measure again",
    )))
}
