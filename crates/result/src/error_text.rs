//! Words of a [`RunError`]: the text of each problem, and the action to take.

mod cache_drop_text;
mod ceph_problem_text;
mod cluster_obstacle_text;
mod manifest_limit_text;
mod map_problem_text;
mod quota_text;
mod rights_text;
mod selected_pods_text;
mod shared_file_text;
mod target_problem_text;
mod unsupported_feature_text;
mod unusable_nodes_text;
mod volume_problem_text;
mod write_refusal_text;

use crate::run_error::{PathAction, RunError, SystemFailure};
use iosonde_job::errno::{self, describe_errno, errno_name};
use std::fmt;

/// Remedy for a file system whose server process has ended, e.g. one of FUSE.
pub const FILE_SERVER_ENDED_REMEDY: &str = concat!(
    "the program that serves this file system has ended; start it again, ",
    "or unmount the file system (`findmnt` shows it)"
);

/// Remedy for a target that does not accept O_DIRECT.
const NO_DIRECT_REMEDY: &str = "use direct=0: this target does not accept O_DIRECT";

/// Returns the remedy for a refused access (EACCES, EPERM).
pub fn describe_access_remedy(is_root: bool) -> &'static str {
    match is_root {
        false => "check its permissions, or run as a user with access",
        true => {
            "the kernel refuses access even to root: the file or device is locked, immutable \
             (lsattr) or read-only (blockdev --getro), kernel lockdown is active \
             (/sys/kernel/security/lockdown), writes to mounted devices are disabled \
             (CONFIG_BLK_DEV_WRITE_MOUNTED), or the container has no access to the device"
        }
    }
}

impl std::error::Error for RunError {}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem();
        match self {
            RunError::DirectRefused { path, .. }
            | RunError::PathAccess { path, .. }
            | RunError::UnusableTarget { path, .. }
            | RunError::Target { path, .. }
            | RunError::NoSpace { path, .. } => write!(formatter, "{path}: {problem}"),
            RunError::NoWriteConsent { device, .. } | RunError::Refused { device, .. } => {
                write!(formatter, "refusing to write to {device}: {problem}")
            }
            _ => formatter.write_str(&problem),
        }
    }
}

impl RunError {
    /// Returns the problem in words, without the path or device that has it.
    pub(crate) fn problem(&self) -> String {
        match self {
            RunError::DirectRefused { errno, .. } => {
                format!("it cannot be opened with O_DIRECT ({})", errno_name(*errno))
            }
            RunError::PathAccess {
                action, failure, ..
            } => format!("cannot {action}: {failure}"),
            RunError::UnusableTarget { cause, .. } => cause.to_string(),
            RunError::NoFeature { cause } => cause.to_string(),
            RunError::Target { problem, .. } | RunError::Unsupported { problem, .. } => {
                problem.clone()
            }
            RunError::NoSpace {
                needed_bytes,
                available_bytes,
                ..
            } => format!(
                "the job needs {needed_bytes} bytes, but only {available_bytes} bytes are available"
            ),
            RunError::NoWriteConsent { cause, .. } => cause.to_string(),
            RunError::Refused { found, .. } => found.clone(),
            RunError::NotReady(failure) => {
                format!(
                    "{} did not become ready: {}",
                    failure.what(),
                    failure.cause()
                )
            }
            RunError::Lost(failure) => {
                format!("{} was lost: {}", failure.what(), failure.cause())
            }
            RunError::NotRemoved(failure) => {
                format!("{} is not removed yet: {}", failure.what(), failure.cause())
            }
            RunError::NoCompletions => "no I/O completed before the run time ended".to_owned(),
            RunError::Interrupted => "interrupted before anything was measured".to_owned(),
        }
    }

    /// Returns the action to take, in one sentence.
    pub fn remedy(&self) -> String {
        match self {
            RunError::DirectRefused { .. } => NO_DIRECT_REMEDY.to_owned(),
            RunError::PathAccess {
                failure, is_root, ..
            } => describe_path_remedy(failure.errno(), *is_root).to_owned(),
            RunError::UnusableTarget { cause, .. } => cause.remedy(),
            RunError::NoFeature { cause } => cause.remedy(),
            RunError::NoWriteConsent { cause, .. } => cause.remedy(),
            RunError::Target { remedy, .. }
            | RunError::Refused { remedy, .. }
            | RunError::Unsupported { remedy, .. } => remedy.clone(),
            RunError::NotReady(failure)
            | RunError::NotRemoved(failure)
            | RunError::Lost(failure) => failure.remedy().to_owned(),
            RunError::NoSpace { .. } => {
                "use a smaller size=, fewer jobs, or a target with more free space".to_owned()
            }
            RunError::NoCompletions => {
                "use a longer runtime; if the target still completes no I/O, see the kernel log \
                 (dmesg)"
                    .to_owned()
            }
            RunError::Interrupted => "run it again".to_owned(),
        }
    }
}

impl fmt::Display for SystemFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemFailure::Errno(errno) => formatter.write_str(&describe_errno(*errno)),
            SystemFailure::Text(text) => formatter.write_str(text),
        }
    }
}

impl SystemFailure {
    /// Returns the name of the errno, or the text of an error without one.
    fn name(&self) -> String {
        match self {
            SystemFailure::Errno(errno) => errno_name(*errno),
            SystemFailure::Text(text) => text.clone(),
        }
    }
}

/// Describes bytes in the largest binary unit of Kubernetes that is exact.
fn describe_quantity(bytes: u64) -> String {
    let units = [
        (1 << 40, "Ti"),
        (1 << 30, "Gi"),
        (1 << 20, "Mi"),
        (1 << 10, "Ki"),
    ];
    let is_exact = |unit: u64| bytes > 0 && bytes.is_multiple_of(unit);
    match units.into_iter().find(|(unit, _)| is_exact(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Phrased to follow "cannot".
impl fmt::Display for PathAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            PathAction::Open => "open it",
            PathAction::Create => "make it",
            PathAction::Read => "read it",
            PathAction::Write => "write it",
            PathAction::Inspect => "look at it",
            PathAction::Use => "use it",
            PathAction::Measure => "measure it",
            PathAction::MeasureFileSystem => "measure the file system of it",
            PathAction::DropCache => "drop the cache of it",
            PathAction::Flush => "flush it",
            PathAction::PreRead => "read it ahead of the job",
            PathAction::SetWriteHint => "set write_hint of it",
            PathAction::AllocateFillBuffers => "find memory to fill it",
            PathAction::Reserve => "reserve space for it",
            PathAction::Resize => "size it",
            PathAction::Remove => "remove it",
        })
    }
}

fn describe_path_remedy(errno: Option<i32>, is_root: bool) -> &'static str {
    match errno {
        Some(errno::ENOENT) => "check the path: iosonde creates no directories",
        Some(errno::EACCES | errno::EPERM) => describe_access_remedy(is_root),
        Some(errno::EROFS) => "the file system is mounted read-only; use another target",
        Some(errno::EINVAL) => NO_DIRECT_REMEDY,
        Some(errno::EBUSY) => "another program or device uses it; see `lsblk` and `findmnt`",
        Some(errno::ENOSPC) => "the target is full; free some space or use a smaller size=",
        Some(errno::ENOTCONN | errno::ECONNABORTED | errno::ECONNRESET | errno::EPIPE) => {
            FILE_SERVER_ENDED_REMEDY
        }
        Some(errno::EMFILE | errno::ENFILE) => {
            "raise the limit on open files (ulimit -n), or use openfiles="
        }
        _ => "see errno(3)",
    }
}

#[cfg(test)]
mod ceph_error_tests;
#[cfg(test)]
mod cluster_error_tests;
#[cfg(test)]
mod connection_error_tests;
#[cfg(test)]
mod error_checks;
#[cfg(test)]
mod map_error_tests;
#[cfg(test)]
mod rights_error_tests;
#[cfg(test)]
mod snapshot_error_tests;
#[cfg(test)]
mod storage_size_error_tests;
#[cfg(test)]
mod study_error_tests;
#[cfg(test)]
mod tests;
