//! A session on simulated devices that measures the simulated time of a study.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_result::run::{RunEvent, RunResult};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use std::cell::Cell;
use std::rc::Rc;

/// Simulated time since the study began: all runs so far with layout, fill and draining.
#[derive(Clone, Default)]
pub(crate) struct StudyClock(Rc<Cell<u64>>);

impl StudyClock {
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Runs all plans on one simulated device, even those for a directory.
pub(crate) struct MeteredSession {
    session: Box<dyn Session>,
    device: String,
    pub(crate) clock: StudyClock,
}

impl MeteredSession {
    pub(crate) fn new(device: &str) -> MeteredSession {
        MeteredSession {
            session: Box::new(LocalRunner::default().open()),
            device: device.to_owned(),
            clock: StudyClock::default(),
        }
    }
}

impl Session for MeteredSession {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut plan = plan.clone();
        for job in &mut plan.jobs {
            job.io.engine = Engine::Sim;
            job.io.sim = Some(self.device.clone());
        }
        let began_ns = self.clock.now_ns();
        let mut timed = Timed {
            observer,
            began_ns,
            clock: self.clock.clone(),
        };
        let result = self.session.run(&plan, &mut timed)?;
        self.clock.0.set(began_ns + result.elapsed_ns);
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// Sets the clock before it forwards progress to the observer.
struct Timed<'a> {
    observer: &'a mut dyn Observer,
    began_ns: u64,
    clock: StudyClock,
}

impl Observer for Timed<'_> {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        self.clock.0.set(self.began_ns + progress.at_ns);
        self.observer.progress(progress)
    }

    fn interval_ns(&self, plan: &Plan) -> u64 {
        self.observer.interval_ns(plan)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.observer.interval(interval)
    }

    fn event(&mut self, event: &RunEvent) {
        self.observer.event(event);
    }
}
