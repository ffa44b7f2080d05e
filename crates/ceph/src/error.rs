//! Errors of a Ceph cluster and their texts.

pub use iosonde_result::run_error::CephAction;
use iosonde_result::run_error::{CephProblem, RunError, TargetProblem, UnsupportedFeature};
use std::fmt;

/// Reason why an operation on a cluster failed. Its words are those of the [`RunError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CephError {
    /// A library is missing or has another version.
    Library {
        /// File name of the library.
        library: &'static str,
        /// Debian package of the library.
        package: &'static str,
        /// Message of the loader.
        reason: String,
    },
    /// This program was built without the feature `librados`.
    NotBuilt,
    /// A call failed.
    Call {
        /// Operation that failed.
        action: CephAction,
        /// errno.
        errno: i32,
        /// Message of the cluster, or empty.
        said: String,
    },
    /// A name that contains a zero byte.
    Text(String),
    /// The user requested a stop while the client connected.
    Interrupted,
}

impl std::error::Error for CephError {}

impl fmt::Display for CephError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of the error, only the cause is written: the target is unknown here.
        match self.on("") {
            RunError::UnusableTarget { cause, .. } => write!(formatter, "{cause}"),
            other => write!(formatter, "{other}"),
        }
    }
}

impl CephError {
    /// errno of a failed call. `None` for other errors.
    pub fn errno(&self) -> Option<i32> {
        match self {
            CephError::Call { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Action for the user.
    pub fn remedy(&self) -> String {
        self.on("").remedy()
    }

    /// Converts to the error of a run on this target, e.g. `rados://pool`.
    pub fn on(&self, target: &str) -> RunError {
        match self {
            CephError::Library {
                library,
                package,
                reason,
            } => UnsupportedFeature::CephLibrary {
                library: (*library).to_owned(),
                package: (*package).to_owned(),
                reason: reason.clone(),
            }
            .into(),
            CephError::NotBuilt => UnsupportedFeature::BuiltWithoutCeph.into(),
            CephError::Call {
                action,
                errno,
                said,
            } => RunError::unusable_target(
                target,
                TargetProblem::CephCall {
                    action: action.clone(),
                    errno: *errno,
                    said: said.clone(),
                },
            ),
            CephError::Interrupted => RunError::Interrupted,
            CephError::Text(name) => {
                let cause = CephProblem::ZeroByteInName { name: name.clone() };
                RunError::unusable_target(target, cause.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_error_keeps_action_errno_and_answer() {
        let call = CephError::Call {
            action: CephAction::Connect,
            errno: libc::ETIMEDOUT,
            said: "no monitor".to_owned(),
        };
        let cause = TargetProblem::CephCall {
            action: CephAction::Connect,
            errno: libc::ETIMEDOUT,
            said: "no monitor".to_owned(),
        };
        let error = call.on("rados://x");
        assert_eq!(error, RunError::unusable_target("rados://x", cause));
        assert_eq!(call.errno(), Some(libc::ETIMEDOUT));
        // The text of the call has no target.
        assert_eq!(error.to_string(), format!("rados://x: {call}"));
        assert_eq!(error.remedy(), call.remedy());
    }

    #[test]
    fn missing_library_names_its_package() {
        let missing = crate::sys::rados::missing_library();
        let CephError::Library {
            library, package, ..
        } = &missing
        else {
            panic!("{missing:?}");
        };
        assert_eq!((*library, *package), ("libiosonde-none.so.9", "librados2"));
        let error = missing.on("rados://x");
        assert!(matches!(error, RunError::NoFeature { .. }));
        assert_eq!(error.to_string(), missing.to_string());
        assert_eq!(error.remedy(), missing.remedy());
    }
}
