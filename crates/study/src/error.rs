//! [`StudyError`]: why a study has no result.

use crate::relocation_error::RelocationError;
use crate::working_set::WorkingSetError;
use iosonde_result::run::IoFailure;
use iosonde_result::run_error::RunError;

/// Why a study has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The user did not consent to overwrite targets that exist.
    #[error("{}: {}", targets.join(", "), writer.problem())]
    WriteRefused {
        /// The targets as the user wrote them.
        targets: Vec<String>,
        /// The study that would write to them.
        writer: WritingStudy,
    },
    /// The working set does not fit.
    #[error("{target}: {source}")]
    WorkingSet {
        /// The target as the user wrote it.
        target: String,
        /// Cause of the error.
        source: WorkingSetError,
    },
    /// A job cannot be placed on its target.
    #[error(transparent)]
    Relocation(RelocationError),
    /// A run returned no result, and there was no earlier result.
    #[error(transparent)]
    Run(#[from] RunError),
    /// I/O error of the layout of a probe.
    #[error("{target}: the working file could not be written: {}", failure.message)]
    Layout {
        /// The target as the user wrote it.
        target: String,
        /// The I/O error.
        failure: Box<IoFailure>,
    },
    /// I/O error before anything was measured.
    #[error("{}{}", prefix(target.as_deref()), failure.message)]
    Io {
        /// The target as the user wrote it, if the study has only one.
        target: Option<String>,
        /// The I/O error.
        failure: Box<IoFailure>,
    },
}

/// Returns the name of a target before an error.
fn prefix(target: Option<&str>) -> String {
    target.map_or(String::new(), |target| format!("{target}: "))
}

/// A study that writes to its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WritingStudy {
    /// A load study with writes.
    Load,
    /// A sweep.
    Sweep {
        /// Pattern that writes.
        rw: String,
    },
    /// A SNIA test, which overwrites the whole target.
    Pts,
    /// A neighbour (`--beside`).
    Neighbour {
        /// Pattern that writes.
        rw: String,
    },
}

impl WritingStudy {
    /// Describes the data loss, after the names of the targets.
    fn problem(&self) -> String {
        match self {
            WritingStudy::Load => {
                "the target exists, and writes would overwrite its data".to_owned()
            }
            WritingStudy::Sweep { rw } => {
                format!("{rw} would overwrite existing data")
            }
            WritingStudy::Pts => "the test overwrites the whole target, which exists".to_owned(),
            WritingStudy::Neighbour { rw } => {
                format!("{rw} of the neighbour would overwrite existing data")
            }
        }
    }

    /// Returns what the user can do instead of giving consent.
    pub fn alternative(&self) -> &'static str {
        match self {
            WritingStudy::Load => "name a directory, measure only reads",
            WritingStudy::Sweep { .. } => "name a directory, sweep only reads",
            WritingStudy::Pts => "name a directory",
            WritingStudy::Neighbour { .. } => "name a directory, let the neighbour only read",
        }
    }
}
