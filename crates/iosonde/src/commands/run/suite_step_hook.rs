//! [`SuiteStepHook`]: stores the runs of a suite's step in the history and the journal.

use super::attempts::{StepKey, SuiteJournalLine};
use crate::journal::journal_file::JournalFile;
use crate::signals::StopSignal;
use iosonde_history::{HistoryWriter, StoredRuns};
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_study::{InnerRun, RunHook, RunPurpose};

/// Stores the runs of a step. An interrupted run is measured again when the suite is resumed.
/// Until then the history has its completed minutes.
pub(super) struct SuiteStepHook<'a> {
    pub(super) stored: StoredRuns,
    pub(super) history_writer: &'a mut HistoryWriter,
    pub(super) stop: &'a StopSignal,
    /// The step and repetition in progress.
    pub(super) step_key: StepKey,
    /// The study of the target, as in the journal.
    pub(super) study: &'a mut Option<String>,
    pub(super) lines: &'a mut JournalFile,
    /// Whether the journal has the step's first run.
    pub(super) is_begun: bool,
    /// Whether the last run may be incomplete. Read once, so that history and step agree.
    pub(super) is_cut: bool,
}

impl SuiteStepHook<'_> {
    /// Records the step's first run in the journal, so that a repeated step can remove its runs.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let (target, step, repetition) = self.step_key;
        let line = SuiteJournalLine {
            target,
            step,
            repetition,
            study: self.history_writer.id().map(str::to_owned),
            // Without a history there is no number.
            first_run: self.history_writer.next_run(),
            outcome: None,
        };
        self.lines.write(&line, &mut |note| eprintln!("{note}"));
    }

    /// Writes the id of the study to the journal before any step has ended.
    fn name_study(&mut self) {
        let id = self.history_writer.id().map(str::to_owned);
        if id.is_none() || id == *self.study {
            return;
        }
        let line = SuiteJournalLine {
            target: self.step_key.0,
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

impl RunHook for SuiteStepHook<'_> {
    fn around_run(
        &mut self,
        plan: &Plan,
        purpose: RunPurpose,
        observer: &mut dyn Observer,
        run: &mut InnerRun<'_>,
    ) -> Result<RunResult, RunError> {
        if !self.stored.is_stored(purpose) {
            let result = run(observer)?;
            self.is_cut = self.stop.interrupt.is_requested();
            return Ok(result);
        }
        // The history stores each minute of a long run before the run ends.
        self.begin();
        let outcome = self.history_writer.write_during(plan, observer, run);
        self.is_cut = self.stop.interrupt.is_requested();
        let kept = outcome.map(|mut result| {
            match self.is_cut {
                true => self.history_writer.leave_cut_off(),
                false => {
                    self.history_writer.label_run(&mut result);
                    self.history_writer.store_run(&result);
                }
            }
            result
        });
        self.name_study();
        kept
    }
}
