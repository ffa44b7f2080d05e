//! A session on simulated devices whose watchers know what time it is.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, Progress};
use iosonde_result::run::{Event, RunResult};
use iosonde_result::session::{RunError, Session};
use std::cell::Cell;
use std::rc::Rc;

/// Simulated time since the study began: all runs so far, layout and fill included, each until its last I/O has ended.
#[derive(Clone, Default)]
pub(crate) struct Clock(Rc<Cell<u64>>);

impl Clock {
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Runs everything on one simulated device, also what is planned for a directory.
pub(crate) struct Metered {
    session: Box<dyn Session>,
    device: String,
    pub(crate) clock: Clock,
}

impl Metered {
    pub(crate) fn new(device: &str) -> Metered {
        Metered {
            session: Box::new(LocalRunner::default().open()),
            device: device.to_owned(),
            clock: Clock::default(),
        }
    }
}

impl Session for Metered {
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

/// Sets the clock before anybody else sees how far a run is.
struct Timed<'a> {
    observer: &'a mut dyn Observer,
    began_ns: u64,
    clock: Clock,
}

impl Observer for Timed<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.clock.0.set(self.began_ns + progress.at_ns);
        self.observer.progress(progress)
    }

    fn interval_ns(&self, plan: &Plan) -> u64 {
        self.observer.interval_ns(plan)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.observer.interval(interval)
    }

    fn event(&mut self, event: &Event) {
        self.observer.event(event);
    }
}
