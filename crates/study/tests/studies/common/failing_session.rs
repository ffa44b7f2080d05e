//! A session of simulated devices whose I/Os fail from some run on.

use iosonde_job::plan::{Job, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// Fails all I/Os on devices whose text contains `device`: in the given run on them, counted from
/// 1, and in all later runs.
pub(crate) struct FailingSession<S> {
    pub(crate) session: S,
    pub(crate) device: &'static str,
    pub(crate) fails_in_run: u32,
}

impl<S: Session> Session for FailingSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut plan = plan.clone();
        let device = self.device;
        let is_failing = plan
            .jobs
            .iter()
            .any(|job| device_text(job).contains(device));
        self.fails_in_run = self.fails_in_run.saturating_sub(u32::from(is_failing));
        if self.fails_in_run == 0 {
            for job in &mut plan.jobs {
                let text = device_text(job);
                if text.contains(device) {
                    job.io.sim = Some(format!("{text},read_error=1,write_error=1"));
                }
            }
        }
        self.session.run(&plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

fn device_text(job: &Job) -> String {
    job.io.sim.clone().unwrap_or_default()
}
