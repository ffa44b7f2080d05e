//! [`Session`]: the contract between implementations that run plans and code that asks for runs.

use crate::observer::Observer;
use crate::run::RunResult;
use crate::run_error::RunError;
use iosonde_job::plan::Plan;

/// Runs plans, as often as a study needs. Files laid out for one run are reused by the next.
pub trait Session {
    /// Runs a plan. Errors of single jobs are part of the result; `Err` means that there is none.
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError>;

    /// Removes the files and objects that the session created, except those it must keep.
    fn close(self: Box<Self>) -> Result<(), RunError>;
}
