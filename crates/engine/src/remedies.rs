//! Remedies and errors that several modules share.

use iosonde_result::error_text::describe_access_remedy;
use iosonde_result::run_error::{RunError, UnsupportedFeature};

/// Returns the remedy for a refused access (EACCES, EPERM).
pub(crate) fn remedy_for_forbidden() -> &'static str {
    describe_access_remedy(rustix::process::geteuid().is_root())
}

/// Returns the error of a thread that the kernel refused. `purpose` continues the text "no thread".
pub(crate) fn no_thread(purpose: &str, error: &std::io::Error) -> RunError {
    UnsupportedFeature::NoThread {
        purpose: purpose.to_owned(),
        failure: error.into(),
    }
    .into()
}
