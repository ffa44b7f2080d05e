//! [`Session`]: the contract between implementations that run plans and code that asks for runs.

use crate::observer::Observer;
use crate::run::RunResult;
use iosonde_job::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs plans, as often as a study needs. Files laid out for one run are reused by the next.
pub trait Session {
    /// Runs a plan. Errors of single jobs are part of the result; `Err` means that there is none.
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError>;

    /// Removes the files and objects that the session created, except those it must keep.
    fn close(self: Box<Self>) -> Result<(), RunError>;
}

/// Reason why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunError {
    /// A path cannot be used as a target.
    #[error("{path}: {problem}")]
    Target {
        /// The path as given.
        path: String,
        /// Description of the problem, with the name of the errno if there is one.
        problem: String,
        /// Action to take.
        remedy: String,
    },
    /// The job needs more space than is available.
    #[error(
        "{path}: the job needs {needed_bytes} bytes, but only {available_bytes} bytes are available"
    )]
    NoSpace {
        /// The directory or file system.
        path: String,
        /// Bytes that the job would write.
        needed_bytes: u64,
        /// Bytes that are available.
        available_bytes: u64,
    },
    /// The device must not be written without consent.
    #[error("refusing to write to {device}: {found}")]
    Refused {
        /// The block device.
        device: String,
        /// Data or use found on the device.
        found: String,
        /// How to give consent.
        remedy: String,
    },
    /// The plan requests a feature that this machine or program does not support.
    #[error("{problem}")]
    Unsupported {
        /// The unsupported feature, and where it was requested.
        problem: String,
        /// The nearest alternative.
        remedy: String,
    },
    /// A remote place, such as a pod, did not become ready to run plans.
    #[error("{what} did not become ready: {cause}")]
    Unready {
        /// The object that did not become ready.
        what: String,
        /// The known cause.
        cause: String,
        /// Action to take.
        remedy: String,
    },
    /// A remote place was lost during a run, and the result with it.
    #[error("{what} was lost: {cause}")]
    Lost {
        /// The object that was lost.
        what: String,
        /// The known cause.
        cause: String,
        /// Action to take.
        remedy: String,
    },
    /// Objects created for a remote run are not removed yet.
    #[error("{what} is not removed yet: {cause}")]
    Left {
        /// The remaining objects.
        what: String,
        /// The known cause.
        cause: String,
        /// Action to take.
        remedy: String,
    },
    /// The run time ended before the first I/O completed.
    #[error("no I/O was completed in the time that there was")]
    NothingDone,
    /// The user interrupted the run before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl RunError {
    /// Returns the action to take, in one sentence.
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

    /// Returns the reason why a study has no figures: it was interrupted, or no I/O completed.
    pub fn without_figures(interrupted: bool) -> RunError {
        match interrupted {
            true => RunError::Interrupted,
            false => RunError::NothingDone,
        }
    }
}
