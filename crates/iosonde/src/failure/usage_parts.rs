//! The parts of a usage error, for tests.

use super::CommandError;

impl CommandError {
    /// Returns the problem and the help of a usage error.
    ///
    /// # Panics
    /// If it is another error.
    #[track_caller]
    pub(crate) fn usage_parts(&self) -> (&str, &str) {
        match self {
            CommandError::Usage { problem, help } => (problem.as_str(), help.as_str()),
            other => panic!("no usage error: {other:?}"),
        }
    }
}
