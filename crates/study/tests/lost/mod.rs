//! A session whose pod is lost.

use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};

/// Loses its pod in a run: the first is 1. All runs after it are lost, too.
pub(crate) struct Lost<S>(pub(crate) S, pub(crate) usize);

impl<S: Session> Session for Lost<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        self.1 = self.1.saturating_sub(1);
        match self.1 {
            0 => Err(lost()),
            _ => self.0.run(plan, observer),
        }
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// What such a run says.
pub(crate) fn lost() -> RunError {
    RunError::Lost {
        what: "the pod".to_owned(),
        cause: "its node died".to_owned(),
        remedy: "measure again".to_owned(),
    }
}
