//! A simulated device whose noise differs in each run.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// Gives each run on a simulated device its own seed, so that its noise differs. The text of the
/// device must begin with its seed.
pub(crate) struct ReseededSession<S> {
    session: S,
    /// Runs so far. Another initial value gives other noise.
    pub(crate) runs: u64,
    /// Time of all runs.
    pub(crate) spent_ns: u64,
}

impl<S: Session> Session for ReseededSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut plan = plan.clone();
        self.runs += 1;
        for job in &mut plan.jobs {
            job.workload.randseed = Some(self.runs);
            let device = job.io.sim.take().unwrap_or_default();
            let (seed, rest) = device.split_once(',').unwrap_or_default();
            job.io.sim = Some(format!("{seed}{:04},{rest}", self.runs));
        }
        let result = self.session.run(&plan, observer)?;
        let elapsed = result.workers.iter().map(|worker| worker.elapsed_ns).max();
        self.spent_ns += elapsed.unwrap_or(0);
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// A session of simulated devices on this machine.
pub(crate) fn open_reseeded_session() -> ReseededSession<impl Session> {
    ReseededSession {
        session: LocalRunner::default().open(),
        runs: 0,
        spent_ns: 0,
    }
}
