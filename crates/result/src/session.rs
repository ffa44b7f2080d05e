//! The contract between whatever runs plans and everything that asks for runs.

use crate::observer::Observer;
use crate::run::RunResult;
use iosonde_job::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place where plans can be run, as often as a study needs. Files laid out for one run are kept for the next.
pub trait Session {
    /// Runs a plan to its end. Errors of single jobs are in the result; an `Err` means that there is no result.
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError>;

    /// Removes what the session made and was not asked to keep.
    fn close(self: Box<Self>) -> Result<(), RunError>;
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunError {
    /// A path cannot be used as a target.
    #[error("{path}: {problem}")]
    Target {
        /// The path as given.
        path: String,
        /// What is wrong, with the errno's name where there is one.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// The job needs more space than there is.
    #[error(
        "{path}: the job needs {needed_bytes} bytes, but only {available_bytes} bytes are available"
    )]
    NoSpace {
        /// The directory or file system.
        path: String,
        /// Bytes that would be written.
        needed_bytes: u64,
        /// Bytes that may be.
        available_bytes: u64,
    },
    /// A device that must not be written without consent.
    #[error("refusing to write to {device}: {found}")]
    Refused {
        /// The block device.
        device: String,
        /// What was found on it.
        found: String,
        /// How consent is given.
        remedy: String,
    },
    /// The plan asks for what this machine or program cannot do.
    #[error("{problem}")]
    Unsupported {
        /// What cannot be done, and where.
        problem: String,
        /// The nearest way.
        remedy: String,
    },
    /// A place elsewhere, such as a pod, did not become ready to run plans.
    #[error("{what} did not become ready: {cause}")]
    Unready {
        /// What was waited for.
        what: String,
        /// What is known about why.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// A place elsewhere was lost while a plan ran, and its result with it.
    #[error("{what} was lost: {cause}")]
    Lost {
        /// What was lost.
        what: String,
        /// What is known about why.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// What was made for a run elsewhere is still there.
    #[error("{what} is not removed yet: {cause}")]
    Left {
        /// What is left.
        what: String,
        /// What is known about why.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// The time was over before the target had answered once.
    #[error("no I/O was completed in the time that there was")]
    NothingDone,
    /// Stopped by the user before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl RunError {
    /// What to do about it, in one sentence.
    pub fn remedy(&self) -> String {
        match self {
            RunError::Target { remedy, .. }
            | RunError::Refused { remedy, .. }
            | RunError::Unsupported { remedy, .. }
            | RunError::Unready { remedy, .. }
            | RunError::Left { remedy, .. }
            | RunError::Lost { remedy, .. } => remedy.clone(),
            RunError::NoSpace { .. } => {
                "use a smaller size= or fewer jobs, or a target with more room".to_owned()
            }
            RunError::NothingDone => {
                "measure for longer; if that does not help, the target does not answer: the kernel's log (dmesg) may say why"
                    .to_owned()
            }
            RunError::Interrupted => "run it again".to_owned(),
        }
    }

    /// Why a study that may have been interrupted has not a single figure.
    pub fn without_figures(interrupted: bool) -> RunError {
        match interrupted {
            true => RunError::Interrupted,
            false => RunError::NothingDone,
        }
    }
}
