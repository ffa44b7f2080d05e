//! The session that the steps of a suite run in, and the history that keeps their results.

use super::attempts::{About, Line};
use crate::commands::journal::Lines;
use crate::signals::Stop;
use crate::store::Keeper;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_study::probe::is_search;

/// A session whose runs are kept. One that is cut short is measured again when the suite goes on: of it the history has the minutes
/// that were written while it ran, until then.
pub(super) struct KeepingWhole<'a> {
    pub(super) session: &'a mut dyn Session,
    pub(super) keeper: &'a mut Keeper,
    pub(super) stop: &'a Stop,
    /// What is measured.
    pub(super) about: About,
    /// The study of its target, as it has been written down.
    pub(super) study: &'a mut Option<String>,
    pub(super) lines: &'a mut Lines,
    /// Whether it has been written down which run is the first.
    pub(super) is_begun: bool,
    /// Whether the last run may have been cut short. Asked once: what goes into the history counts for the step as well.
    pub(super) is_cut: bool,
}

impl KeepingWhole<'_> {
    /// Writes down from which run on the history has something of the step: it is removed when the step is measured again.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let (target, step, repetition) = self.about;
        let line = Line {
            target,
            step,
            repetition,
            study: self.keeper.id().map(str::to_owned),
            // Without a history there is none to remove.
            first_run: self.keeper.next_run(),
            outcome: None,
        };
        self.lines.write(&line, &mut |note| eprintln!("{note}"));
    }

    /// Writes down which study is gone on with, before any step has ended.
    fn name_study(&mut self) {
        let id = self.keeper.id().map(str::to_owned);
        if id.is_none() || id == *self.study {
            return;
        }
        let line = Line {
            target: self.about.0,
            step: 0,
            repetition: 0,
            study: id.clone(),
            first_run: None,
            outcome: None,
        };
        self.lines.write(&line, &mut |note| eprintln!("{note}"));
        *self.study = id;
    }
}

impl Session for KeepingWhole<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        // The short runs of a search are cells of the knee that it finds.
        if is_search(plan) {
            let result = self.session.run(plan, observer)?;
            self.is_cut = self.stop.interrupt.is_requested();
            return Ok(result);
        }
        // Of a long run the history has each minute before the run ends.
        self.begin();
        let outcome = self.keeper.run(self.session, plan, observer);
        self.is_cut = self.stop.interrupt.is_requested();
        let kept = outcome.map(|mut result| {
            match self.is_cut {
                true => self.keeper.leave_cut_off(),
                false => {
                    self.keeper.label_run(&mut result);
                    self.keeper.keep(&result);
                }
            }
            result
        });
        self.name_study();
        kept
    }

    /// The session belongs to somebody else, who closes it.
    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}
