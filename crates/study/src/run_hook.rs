//! [`RunHook`]: code before, around and after each run, which knows the purpose of the run.

use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// Why a run happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunPurpose {
    /// Finds out how fast a target is. Its events are not reported.
    Trial,
    /// Writes files before they are read.
    Layout,
    /// Discards all blocks.
    Purge,
    /// Measures a phase of a probe, or a step of a load study.
    Phase,
    /// Measures a cell of a knee search.
    SearchCell,
    /// Measures a cell for a fixed time.
    GridCell,
    /// Runs the jobs of a suite.
    SuiteJob,
}

impl RunPurpose {
    /// Whether the run works through a fixed amount of data: it is not repeated.
    pub(crate) fn is_preparation(self) -> bool {
        matches!(self, RunPurpose::Layout | RunPurpose::Purge)
    }

    /// Whether the run measures a cell: one depth and number of jobs.
    pub fn is_cell(self) -> bool {
        matches!(self, RunPurpose::SearchCell | RunPurpose::GridCell)
    }
}

/// A run that the hooks inside of a hook surround.
pub type InnerRun<'a> = dyn FnMut(&mut dyn Observer) -> Result<RunResult, RunError> + 'a;

/// Code around each run.
pub trait RunHook {
    /// Is called before a run.
    fn before_run(&mut self, _plan: &Plan, _purpose: RunPurpose) {}

    /// Calls `run` once. A hook overrides this method to observe the run or to see its error.
    ///
    /// # Errors
    /// The error of the run.
    fn around_run(
        &mut self,
        _plan: &Plan,
        _purpose: RunPurpose,
        observer: &mut dyn Observer,
        run: &mut InnerRun<'_>,
    ) -> Result<RunResult, RunError> {
        run(observer)
    }

    /// Is called after a run with a result.
    fn after_run(&mut self, _purpose: RunPurpose, _result: &mut RunResult) {}
}

/// Runs a plan with hooks around it, the outermost first.
///
/// # Errors
/// If the run has no result.
pub fn run_with_hooks(
    hooks: &mut [&mut dyn RunHook],
    session: &mut dyn Session,
    (plan, purpose): (&Plan, RunPurpose),
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    let Some((hook, inner)) = hooks.split_first_mut() else {
        return session.run(plan, observer);
    };
    hook.before_run(plan, purpose);
    let mut result = hook.around_run(plan, purpose, observer, &mut |observer| {
        run_with_hooks(inner, session, (plan, purpose), observer)
    })?;
    hook.after_run(purpose, &mut result);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::StudyDriver;
    use crate::fake_session::{FakeDevice, FakeSession};
    use crate::probe::run_probe;
    use crate::probe_budget::ProbeBudget;
    use crate::test_targets::{directory_target, probe_options};
    use std::cell::RefCell;

    /// Records its calls in a list that all hooks share.
    struct RecordingHook<'a> {
        name: &'static str,
        calls: &'a RefCell<Vec<(&'static str, &'static str)>>,
        purposes: Vec<(String, RunPurpose)>,
    }

    impl RunHook for RecordingHook<'_> {
        fn before_run(&mut self, plan: &Plan, purpose: RunPurpose) {
            self.calls.borrow_mut().push((self.name, "before"));
            self.purposes.push((plan.jobs[0].name.clone(), purpose));
        }

        fn after_run(&mut self, _purpose: RunPurpose, _result: &mut RunResult) {
            self.calls.borrow_mut().push((self.name, "after"));
        }
    }

    #[test]
    fn hooks_surround_each_run_and_know_its_purpose() {
        let calls = RefCell::new(Vec::new());
        let hook = |name| RecordingHook {
            name,
            calls: &calls,
            purposes: Vec::new(),
        };
        let (mut outer, mut inner) = (hook("outer"), hook("inner"));
        let mut session = FakeSession::new(FakeDevice::nvme());
        let options = probe_options(ProbeBudget::NORMAL, None);
        let observer = &mut ();
        let mut driver = StudyDriver::new(&mut session, observer)
            .with_hook(&mut outer)
            .with_hook(&mut inner);
        run_probe(&mut driver, &directory_target("/data"), &options).unwrap();
        drop(driver);
        // The fake session keeps the plans of all runs but trials.
        let is_trial = |run: &&(String, RunPurpose)| run.1 == RunPurpose::Trial;
        let trial_count = outer.purposes.iter().filter(is_trial).count();
        assert_eq!(outer.purposes.len() - trial_count, session.plans.len());
        assert_eq!(outer.purposes, inner.purposes);
        let expected = [
            ("outer", "before"),
            ("inner", "before"),
            ("inner", "after"),
            ("outer", "after"),
        ];
        let calls = calls.borrow();
        assert!(calls.chunks(4).all(|run| run == expected), "{calls:?}");
        for (name, purpose) in &outer.purposes {
            let is_cell = name.ends_with("_knee");
            assert_eq!(purpose.is_cell(), is_cell, "{name}: {purpose:?}");
            let is_trial = name == "trial";
            assert_eq!(*purpose == RunPurpose::Trial, is_trial, "{name}");
        }
        let mut purposes = outer.purposes.iter().map(|(_, purpose)| *purpose);
        assert!(purposes.any(RunPurpose::is_cell));
    }
}
