//! Errors of files, with remedies.

use iosonde_result::run_error::{PathAction, RunError, TargetProblem};
use std::path::Path;

/// Error of a failed operation on a path.
pub(crate) fn target_error(path: &Path, action: PathAction, error: &std::io::Error) -> RunError {
    RunError::PathAccess {
        path: path.display().to_string(),
        action,
        failure: error.into(),
        is_root: rustix::process::geteuid().is_root(),
    }
}

/// Error of a target that cannot be used.
pub(crate) fn unusable_target(path: &Path, cause: TargetProblem) -> RunError {
    RunError::unusable_target(path.display().to_string(), cause)
}

/// Error: the file does not exist, and `allow_file_create=0`.
pub(super) fn must_not_create(path: &Path) -> RunError {
    unusable_target(path, TargetProblem::CreationForbidden)
}

/// Ignores errors of file systems without a page cache.
pub(super) fn ignore_unsupported(error: std::io::Error) -> std::io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ESPIPE | libc::EOPNOTSUPP) => Ok(()),
        _ => Err(error),
    }
}
