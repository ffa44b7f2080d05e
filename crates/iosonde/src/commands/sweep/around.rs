//! What happens before and after every run of a sweep.

use super::export::FioFiles;
use super::quiet::Gate;
use crate::signals::Stop;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};

/// Waits until the device is quiet, runs, and writes fio's JSON.
pub(in crate::commands) struct Around<'a> {
    /// What runs.
    pub(in crate::commands) session: &'a mut dyn Session,
    /// What waits.
    pub(in crate::commands) gate: Gate,
    /// What writes, if it is wanted.
    pub(in crate::commands) files: Option<FioFiles>,
    /// A run that was cut short is not written.
    pub(in crate::commands) stop: Stop,
}

impl Session for Around<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        self.gate.wait();
        let result = self.session.run(plan, observer)?;
        if let Some(files) = self
            .files
            .as_mut()
            .filter(|_| !self.stop.interrupt.is_requested())
        {
            files.write(&result);
        }
        Ok(result)
    }

    /// The session belongs to somebody else, who closes it.
    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}
