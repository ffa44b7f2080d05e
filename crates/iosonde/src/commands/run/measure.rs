//! Runs the steps of a suite on its targets, stores results, and judges them.

use super::attempts::{StepKey, SuiteJournalLine, begun};
use super::command_run::CommandSession;
use super::study::{Within, study};
use super::suite_target::pods_of_suite;
use super::target_run::{TargetRun, close_targets, conclude_target, open_targets, resume_targets};
use crate::args::RunArgs;
use crate::commands::ceph::remote_storage;
use crate::commands::consent;
use crate::commands::outside::Outside;
use crate::commands::target_session::setup_reporters;
use crate::failure::CommandError;
use crate::journal::journal_file::{Beginning, JournalFile, directory};
use crate::journal::journal_key::SuiteJournalKey;
use crate::journal::sweep_journal::SweepJournal;
use crate::live::suite_live::SuiteLive;
use crate::signals::StopSignal;
use iosonde_engine::runner::{LocalRunner, LocalSession};
use iosonde_history::StoredRuns;
use iosonde_job::plan::Plan;
use iosonde_job::target_scheme::is_path_name;
use iosonde_machine::consent::Consent;
use iosonde_report::suite::planned_runs_text;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::{RunPurpose, TimeRange, run_with_hooks};
use iosonde_suite::{
    Baselines, CommandStep, StepKind, StepOutcome, StepResult, Suite, SuiteExpectation,
    SuiteResult, SuiteStep, SuiteTarget,
};

/// The outcome of a suite.
pub(super) struct SuiteOutcome {
    /// One for each target.
    pub(super) results: Vec<SuiteResult>,
    /// Ids of the results in the history.
    pub(super) kept: Vec<Option<String>>,
    /// The first error, if no result has figures.
    pub(super) failed: Option<CommandError>,
}

/// Runs the suite, passes the results to `print`, then removes its resources. A failed step keeps
/// the others; the first error is reported if no figure remains. Returns the removal's result.
pub(super) fn measure(
    args: &RunArgs,
    (suite, targets, outside): (&Suite, &[SuiteTarget], &Outside),
    (expected, baselines): (&[Vec<SuiteExpectation>], &Baselines),
    stop: &StopSignal,
    print: impl FnOnce(SuiteOutcome),
) -> Result<Result<(), RunError>, CommandError> {
    let mut live = SuiteLive::new(stop.clone());
    let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
    let consent = args.written.consent.noted();
    let (lines, known) = open_journal(args, suite, &names, &consent, &live)?;
    eprint!("{}", planned_runs_text(suite, targets));
    let (mut reporters, interrupts) = (setup_reporters(&names), || stop.interrupt.count());
    consent::to_root(&names, &args.cluster, &interrupts)?;
    let mut target_runs = open_targets(args, (suite, targets), &interrupts, &mut reporters, &live)?;
    resume_targets(&mut target_runs, &known, suite);
    let prepared = || target_runs.iter().map(|run| &run.prepared);
    let only_read = prepared().filter_map(|target| target.only_read());
    let mut session = LocalRunner {
        consent,
        remote: remote_storage(args.ceph.access()),
        interrupt: stop.interrupt.clone(),
        only_read: only_read.collect(),
        permissions: Some(outside.permissions(None)),
        dump_directory: outside.logs(),
        cold: args.cold.layers(),
        ..LocalRunner::default()
    }
    .open();
    let held = session.held_paths();
    prepared().for_each(|target| target.note_in(&held));
    let mut runner = Runner {
        args,
        suite,
        outside,
        stop,
        session: &mut session,
        lines,
        live: &mut live,
        is_alone: false,
        first_failure: None,
    };
    runner.run_steps(&mut target_runs, &known);
    let Runner {
        lines,
        first_failure,
        ..
    } = runner;
    live.finish();
    let interrupted = stop.interrupt.is_requested();
    let (mut results, mut kept, mut opened) = (Vec::new(), Vec::new(), Vec::new());
    for (target_run, expected) in target_runs.into_iter().zip(expected) {
        let judged_by = (&expected[..], baselines);
        let (result, id, prepared) =
            conclude_target(target_run, args, suite, judged_by, interrupted);
        results.push(result);
        kept.push(id);
        opened.push(prepared);
    }
    keep_or_remove_journal(lines, &results, interrupted);
    let nothing = results.iter().all(|result| !has_figures(result));
    let failed = first_failure.filter(|_| nothing);
    print(SuiteOutcome {
        results,
        kept,
        failed,
    });
    let closed = Box::new(session).close();
    Ok(close_targets(opened, &names, closed))
}

/// Opens the journal of the suite on these targets. Returns it with its lines.
fn open_journal(
    args: &RunArgs,
    suite: &Suite,
    names: &[String],
    consent: &Consent,
    live: &SuiteLive,
) -> Result<(JournalFile, Vec<SuiteJournalLine>), CommandError> {
    JournalFile::open::<SuiteJournalLine>(
        directory(args.keep.store.as_deref(), "suites").as_deref(),
        "suite",
        &SuiteJournalKey::new(suite, names, pods_of_suite(args, suite)).cold(args.cold.layers()),
        (Beginning::of_flag(args.resume), &consent.targets),
        &mut |note| live.line(note),
    )
}

/// Removes the journal, unless `--resume` can continue the suite.
fn keep_or_remove_journal(lines: JournalFile, results: &[SuiteResult], interrupted: bool) {
    let steps = || results.iter().flat_map(|result| &result.steps);
    let some_failed = steps().any(|step| step.failure.is_some());
    let some_ended = steps().any(|step| step.failure.is_none() || !step.found.is_empty());
    if interrupted || some_failed && some_ended {
        if lines.is_kept() {
            let stored = match steps().any(|step| step.is_whole()) {
                true => "finished steps are stored; ",
                false => "",
            };
            eprintln!("{stored}to continue, run the same command with --resume");
        }
    } else {
        lines.remove();
    }
}

fn has_figures(result: &SuiteResult) -> bool {
    let mut steps = result.steps.iter();
    steps.any(|step| !step.parts.is_empty() || !step.found.is_empty())
}

struct Runner<'a> {
    args: &'a RunArgs,
    suite: &'a Suite,
    outside: &'a Outside,
    stop: &'a StopSignal,
    session: &'a mut LocalSession,
    lines: JournalFile,
    live: &'a mut SuiteLive,
    /// Whether there is only one step, once, on one target.
    is_alone: bool,
    /// The error of the first failed step.
    first_failure: Option<CommandError>,
}

impl Runner<'_> {
    /// Runs each step of each repetition on all targets in turn, so that drift favours none.
    fn run_steps(&mut self, target_runs: &mut [TargetRun<'_>], known: &[SuiteJournalLine]) {
        let steps = &self.suite.steps;
        let most = steps.iter().map(|step| step.repetitions).max().unwrap_or(0);
        let count: usize = steps.iter().map(|step| step.repetitions as usize).sum();
        let target_count = target_runs.len();
        self.is_alone = count * target_count == 1;
        let planned = steps.iter().map(|step| {
            let time = step.planned_time().unwrap_or_default();
            time.times(u64::from(step.repetitions) * target_count as u64)
        });
        let mut later = planned.fold(TimeRange::default(), |sum, each| sum + each);
        let mut number = 0;
        for repetition in 1..=most {
            for (index, step) in steps.iter().enumerate() {
                if repetition > step.repetitions {
                    continue;
                }
                for (target, target_run) in target_runs.iter_mut().enumerate() {
                    number += 1;
                    let own = step.planned_time().unwrap_or_default();
                    later = TimeRange {
                        least_ns: later.least_ns.saturating_sub(own.least_ns),
                        most_ns: later.most_ns.saturating_sub(own.most_ns),
                    };
                    let step_key = (target, index, repetition);
                    let is_it = |line: &SuiteJournalLine| {
                        line.outcome.is_some() && line.step_key() == step_key
                    };
                    if known.iter().any(is_it) {
                        continue;
                    }
                    if self.live.is_over() {
                        return;
                    }
                    let title = format!(
                        "{}: [{number}/{}] {}",
                        target_run.target.name,
                        count * target_count,
                        step.name
                    );
                    self.take_back(target_run, step_key, step, known);
                    self.run_step(target_run, step_key, step, (title.as_str(), later));
                }
            }
        }
    }

    /// Removes runs of interrupted attempts from the history, as the step repeats. A sweep resumes.
    fn take_back(
        &self,
        target_run: &mut TargetRun<'_>,
        step_key: StepKey,
        step: &SuiteStep,
        known: &[SuiteJournalLine],
    ) {
        if matches!(step.what, StepKind::Sweep(_)) {
            return;
        }
        let mut is_known = false;
        for numbers in begun(
            known,
            step_key,
            target_run.history_writer.id(),
            target_run.next_run,
        ) {
            is_known |= target_run.history_writer.remove_runs(numbers);
        }
        if is_known {
            // Their numbers are reused by later runs.
            target_run.next_run = target_run
                .next_run
                .min(target_run.history_writer.next_run());
            let note = format!(
                "{} was interrupted: it is measured again, and its earlier runs are removed from \
                 the history",
                step.name
            );
            self.live.line(&note);
        }
    }

    fn run_step(
        &mut self,
        target_run: &mut TargetRun<'_>,
        step_key: StepKey,
        step: &SuiteStep,
        (title, later): (&str, TimeRange),
    ) {
        let (target, index, repetition) = step_key;
        self.live.begin(title, step.planned_time(), later);
        let outcome = self.outcome(target_run, step_key, step);
        self.live.finish();
        let result = match outcome {
            Err(_) if self.live.is_over() => return,
            Ok((outcome, journal)) => {
                if let Some(error) = outcome.error() {
                    let failure = || CommandError::from(error.clone()).in_step(self.suite, step);
                    self.first_failure.get_or_insert_with(failure);
                }
                let result = outcome.result_of(self.suite, step, repetition);
                let line = SuiteJournalLine {
                    target,
                    step: index,
                    repetition,
                    study: target_run.history_writer.id().map(str::to_owned),
                    first_run: None,
                    outcome: Some(outcome),
                };
                // An incomplete step is not recorded, so that it is resumed.
                if result.is_whole() {
                    let live = &self.live;
                    self.lines.write(&line, &mut |note| live.line(note));
                    // Only now, so that a crash in between does not lose the sweep.
                    if let Some(journal) = journal {
                        journal.remove();
                    }
                }
                result
            }
            Err(failure) => {
                let failure = failure.in_step(self.suite, step);
                let (text, problem) = (failure.stored_text(), failure.stored_problem());
                // The first failure's help is printed at the end; all of it if only one step runs.
                if !self.is_alone {
                    self.live.line(&format!("{}: {problem}", step.name));
                }
                self.first_failure.get_or_insert(failure);
                StepResult {
                    problem: (problem != text).then_some(problem),
                    failure: Some(text),
                    beside: (step.beside.as_ref()).map(|neighbour| neighbour.options.clone()),
                    ..StepResult::without_figures(&step.workload, &step.name, repetition)
                }
            }
        };
        target_run.results.push((index, result));
    }

    /// Runs a step. Returns its outcome, and the journal of a sweep.
    fn outcome(
        &mut self,
        on: &mut TargetRun<'_>,
        step_key: StepKey,
        step: &SuiteStep,
    ) -> Result<(StepOutcome, Option<SweepJournal>), CommandError> {
        if let StepKind::Jobs(plan) = &step.what {
            let mut plan = plan.as_ref().clone();
            for note in on.prepared.put(&mut plan)? {
                self.live.line(&format!("note: {note}"));
            }
            plan.jobs
                .iter_mut()
                .for_each(|job| self.outside.relocate(job));
            self.session.permit_targets(on.prepared.permitted());
            let stored = (step_key, StoredRuns::All);
            let (session, mut hook) =
                on.session_and_hook(self.session, self.stop, stored, &mut self.lines);
            let planned = (&plan, RunPurpose::SuiteJob);
            let run = run_with_hooks(&mut [&mut hook], session, planned, self.live)?;
            if hook.is_cut {
                return Err(CommandError::Run(RunError::Interrupted));
            }
            return Ok((StepOutcome::Run(Box::new(run)), None));
        }
        if let StepKind::Command(command) = &step.what {
            return Ok((self.command_outcome(on, step_key, command)?, None));
        }
        // A study has a working file of its own.
        self.live.finish();
        let live = &self.live;
        let note = &mut |note: &str| live.line(note);
        let (sized, opened) = on
            .prepared
            .prepare_for_study(&on.target.name, self.args, note)?;
        if let Some(opened) = &opened {
            opened.note_in(&self.session.held_paths());
        }
        self.session.permit_targets(sized.target.permitted());
        let within = Within {
            args: self.args,
            outside: self.outside,
            suite: &self.suite.name,
            target: &on.target.name,
            step,
            repetition: step_key.2,
            parties: on.prepared.pod_count(),
            notes: on.prepared.note_of_pods(),
        };
        let stored = match step.what {
            StepKind::Probe(_) => StoredRuns::NoCells,
            _ => StoredRuns::All,
        };
        let stored = (step_key, stored);
        let (session, mut hook) =
            on.session_and_hook(self.session, self.stop, stored, &mut self.lines);
        study(session, &mut hook, &sized, &within, self.stop)
    }

    /// Runs a command. Its run without I/O, with the devices' series, is stored like any other.
    fn command_outcome(
        &mut self,
        on: &mut TargetRun<'_>,
        step_key: StepKey,
        command: &CommandStep,
    ) -> Result<StepOutcome, CommandError> {
        let mut paths = on.prepared.permitted().into_iter();
        let path = paths.find(|path| is_path_name(path));
        let target = path.unwrap_or_else(|| on.target.name.clone());
        let mut session = CommandSession::new(command, target, self.stop);
        let stored = (step_key, StoredRuns::All);
        let (_, mut hook) = on.session_and_hook(self.session, self.stop, stored, &mut self.lines);
        let (plan, purpose) = (Plan::default(), RunPurpose::SuiteJob);
        let run = run_with_hooks(&mut [&mut hook], &mut session, (&plan, purpose), self.live);
        if hook.is_cut {
            return Err(CommandError::Run(RunError::Interrupted));
        }
        match session.ended {
            Some(Ok(result)) => Ok(StepOutcome::Command(Box::new(result), Box::new(run?))),
            Some(Err(failure)) => Err(CommandError::Command(failure)),
            None => Err(CommandError::Run(RunError::Interrupted)),
        }
    }
}
