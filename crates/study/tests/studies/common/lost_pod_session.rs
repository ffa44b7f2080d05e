//! A session that loses its pod.

use crate::common::lost_pod_error::lost_pod_error;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// Loses its pod in the given run, counted from 1, and in all later runs.
pub(crate) struct LostPodSession<S>(pub(crate) S, pub(crate) usize);

impl<S: Session> Session for LostPodSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        self.1 = self.1.saturating_sub(1);
        match self.1 {
            0 => Err(lost_pod_error()),
            _ => self.0.run(plan, observer),
        }
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}
