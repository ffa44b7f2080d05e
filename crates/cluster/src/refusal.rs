//! Errors for requests of the user that are refused before anything is created.

use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError, VolumeProblem};

/// Refuses a request.
pub(crate) fn refuse<T>(obstacle: ClusterObstacle) -> Result<T, RunError> {
    Err(obstacle.into())
}

/// Refuses to use a target.
pub(crate) fn refuse_target<T>(target: &TargetUri, problem: VolumeProblem) -> Result<T, RunError> {
    Err(RunError::unusable_target(
        target.to_string(),
        problem.into(),
    ))
}
