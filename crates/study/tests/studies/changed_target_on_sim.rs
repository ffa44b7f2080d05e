//! Sweeps whose cells are measured several times: on a target that changes, and with time left.

use crate::common::sweep_fixture::{grid, options, run, target};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::sweep::sweep;
use iosonde_study::{StudyEvent, StudyFinding, StudyObserver};
use std::collections::BTreeSet;

/// So noisy that the best cells are measured several times.
const SLOW: &str = "seed=1,read_us=4000,read_dist=exp,parallel=8";
const FAST: &str = "seed=1,read_us=400,read_dist=exp,parallel=8";
const AXES: [(&str, &str); 1] = [("iodepth", "1..16")];
/// Part of the note on a change.
const CHANGED: &str = "; the target changed during the sweep, ";

/// A device that is slow in the first run of each depth, and fast in all later ones.
struct ChangingSession<S> {
    session: S,
    measured: BTreeSet<u32>,
}

impl<S: Session> Session for ChangingSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut plan = plan.clone();
        for job in &mut plan.jobs {
            if !self.measured.insert(job.io.iodepth) {
                job.io.sim = Some(FAST.to_owned());
            }
        }
        self.session.run(&plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn sweep_of_a_target_that_changes_has_a_note_with_its_rates() {
    let targets = [target(SLOW)];
    let mut session = ChangingSession {
        session: LocalRunner::default().open(),
        measured: BTreeSet::new(),
    };
    let grid = grid(&targets, &AXES);
    let changed = sweep(
        &mut session,
        &targets,
        &grid,
        &options(40),
        Vec::new(),
        &mut (),
    )
    .unwrap();
    let notes = changed.notes.iter().filter(|note| note.contains(CHANGED));
    let notes: Vec<&String> = notes.collect();
    let is_named =
        |note: &&String| note.starts_with("depth ") && note.contains(" runs of this cell had ");
    assert!(
        notes.len() == 1 && notes.iter().all(is_named),
        "{:?}",
        changed.notes
    );
    let steady = run(SLOW, &AXES, &options(40));
    let notes = &steady.notes;
    assert!(
        !notes.iter().any(|note| note.contains(CHANGED)),
        "{notes:?}"
    );
}

/// Records for each finding about a curve whether it is named as a later one, and whether the curve
/// had one before.
#[derive(Default)]
struct CurveFindings {
    curves: BTreeSet<Vec<String>>,
    found: Vec<(bool, bool)>,
}

impl StudyObserver for CurveFindings {
    fn event(&mut self, event: &StudyEvent<'_>) {
        if let StudyEvent::Found(StudyFinding::Curve { plan, is_again, .. }) = event {
            let is_known = !self.curves.insert(plan.values.clone());
            self.found.push((*is_again, is_known));
        }
    }
}

#[test]
fn curve_measured_in_the_time_left_is_named_as_found_again() {
    // The steady device leaves time to the noisy one.
    let noisy = "seed=1,read_us=20000,read_dist=exp,parallel=8";
    let steady = "seed=2,read_us=4000,read_dist=fixed,parallel=4";
    let targets = [target(noisy), target(steady)];
    let mut session = LocalRunner::default().open();
    let mut findings = CurveFindings::default();
    sweep(
        &mut session,
        &targets,
        &grid(&targets, &AXES),
        &options(20),
        Vec::new(),
        &mut findings,
    )
    .unwrap();
    let found = &findings.found;
    let is_right = |(is_again, is_known): &(bool, bool)| is_again == is_known;
    assert!(found.len() > 2 && found.iter().all(is_right), "{found:?}");
}
