//! The targets of a suite while it runs: their sessions, histories and results.

use super::attempts::{StepKey, SuiteJournalLine};
use super::suite_step_hook::SuiteStepHook;
use super::suite_target::PreparedSuiteTarget;
use crate::args::RunArgs;
use crate::commands::target_session::SetupReporter;
use crate::failure::CommandError;
use crate::journal::journal_file::JournalFile;
use crate::live::suite_live::SuiteLive;
use crate::signals::StopSignal;
use iosonde_engine::runner::LocalSession;
use iosonde_history::{HistoryWriter, StoredRuns, TOGETHER, random_id};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_suite::{
    Baselines, FORMAT, StepResult, Suite, SuiteExpectation, SuiteResult, SuiteTarget,
    beside_figures, judge,
};

/// A target while the suite runs.
pub(super) struct TargetRun<'a> {
    pub(super) target: &'a SuiteTarget,
    pub(super) prepared: PreparedSuiteTarget<'a>,
    pub(super) history_writer: HistoryWriter,
    /// Id of its study, as in the journal.
    pub(super) study: Option<String>,
    /// Lowest number of a run that is stored from now on. `None` if none is.
    pub(super) next_run: Option<u32>,
    pub(super) results: Vec<(usize, StepResult)>,
}

impl TargetRun<'_> {
    /// The session of a step's plans, and the hook that stores their results.
    pub(super) fn session_and_hook<'s>(
        &'s mut self,
        here: &'s mut LocalSession,
        stop: &'s StopSignal,
        (step_key, stored): (StepKey, StoredRuns),
        lines: &'s mut JournalFile,
    ) -> (&'s mut dyn Session, SuiteStepHook<'s>) {
        let hook = SuiteStepHook {
            stored,
            history_writer: &mut self.history_writer,
            stop,
            step_key,
            study: &mut self.study,
            lines,
            is_begun: false,
            is_cut: false,
        };
        (self.prepared.session(here), hook)
    }
}

/// Prepares all targets, each with a study of its own in the history.
pub(super) fn open_targets<'a>(
    args: &RunArgs,
    (suite, targets): (&Suite, &'a [SuiteTarget]),
    interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
    reporters: &'a mut [SetupReporter],
    live: &SuiteLive,
) -> Result<Vec<TargetRun<'a>>, CommandError> {
    let together = random_id().map_err(anyhow::Error::from)?;
    let mut target_runs = Vec::new();
    for (target, reporter) in targets.iter().zip(reporters) {
        let prepared = PreparedSuiteTarget::open(
            &target.name,
            (args, suite),
            interrupts,
            reporter,
            &mut |note| live.line(note),
        )?;
        let mut history_writer = HistoryWriter::open(&args.keep.options())?;
        label(&mut history_writer, args, suite, target);
        if targets.len() > 1 {
            history_writer.label(TOGETHER, &together);
        }
        history_writer.begin("suite", &target.name);
        target_runs.push(TargetRun {
            target,
            prepared,
            history_writer,
            study: None,
            next_run: None,
            results: Vec::new(),
        });
    }
    Ok(target_runs)
}

/// Labels of the command line precede those of the target, and these precede the suite's.
fn label(history_writer: &mut HistoryWriter, args: &RunArgs, suite: &Suite, target: &SuiteTarget) {
    let given = |key: &str| args.keep.labels.iter().any(|(label, _)| label == key);
    if !given("suite") {
        history_writer.label("suite", &suite.name);
    }
    for (key, value) in suite.labels.iter().chain(&target.labels) {
        if !given(key) {
            history_writer.label(key, value);
        }
    }
}

/// Restores results from the journal and continues the studies of the history.
pub(super) fn resume_targets(
    target_runs: &mut [TargetRun<'_>],
    known: &[SuiteJournalLine],
    suite: &Suite,
) {
    for (index, target_run) in target_runs.iter_mut().enumerate() {
        let of_it = || known.iter().filter(|line| line.target == index);
        let ended = || of_it().filter_map(|line| Some((line, line.outcome.as_ref()?)));
        let study = of_it().filter_map(|line| line.study.as_deref()).next_back();
        let runs = ended().flat_map(|(_, outcome)| outcome.runs().into_iter().cloned());
        target_run
            .history_writer
            .resume_study(study, runs.collect());
        target_run.study = study.map(str::to_owned);
        target_run.next_run = target_run.history_writer.next_run();
        for (line, outcome) in ended() {
            if let Some(step) = suite.steps.get(line.step) {
                let result = outcome.result_of(suite, step, line.repetition);
                target_run.results.push((line.step, result));
            }
        }
    }
}

/// The result of one target, its id in the history, and the open target.
pub(super) fn conclude_target<'a>(
    mut target_run: TargetRun<'a>,
    args: &RunArgs,
    suite: &Suite,
    (expected, baselines): (&[SuiteExpectation], &Baselines),
    interrupted: bool,
) -> (SuiteResult, Option<String>, PreparedSuiteTarget<'a>) {
    target_run
        .results
        .sort_by_key(|(step, result)| (*step, result.repetition));
    let steps: Vec<StepResult> = target_run
        .results
        .into_iter()
        .map(|(_, result)| result)
        .collect();
    let result = SuiteResult {
        format: FORMAT,
        suite: suite.name.clone(),
        about: suite.about.clone(),
        target: target_run.target.name.clone(),
        // The last value of a key counts, as in the history.
        labels: (suite.labels.iter())
            .chain(&target_run.target.labels)
            .map(|(key, value)| (key.clone(), value.clone()))
            .chain(args.keep.labels.iter().cloned())
            .collect(),
        judged: judge(suite, expected, &steps, baselines),
        beside: beside_figures(&steps),
        steps,
        interrupted,
    };
    // The document of an interrupted suite keeps the study open, so that it can be resumed.
    let document = serde_json::to_value(&result).ok();
    let id = target_run.history_writer.finish(document.as_ref());
    if let Some(id) = &id {
        eprintln!("{}: stored in the history as {id}", result.target);
    }
    crate::commands::print_notes(&mut target_run.history_writer);
    (result, id, target_run.prepared)
}

/// Removes the resources of the targets. Returns the first error and prints the others; `closed`
/// is the result of closing the local session.
pub(super) fn close_targets(
    opened: Vec<PreparedSuiteTarget<'_>>,
    names: &[String],
    mut closed: Result<(), RunError>,
) -> Result<(), RunError> {
    for (prepared, name) in opened.into_iter().zip(names) {
        match (prepared.close(), &closed) {
            (Err(left), Err(_)) => eprintln!("warning: {name}: {left}; {}", left.remedy()),
            (left, Ok(())) => closed = left,
            (Ok(()), Err(_)) => {}
        }
    }
    closed
}
