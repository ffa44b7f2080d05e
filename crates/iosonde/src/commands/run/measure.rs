//! Runs the steps of a suite on its targets, keeps what ends, and judges it.

use super::attempts::{About, Line, begun};
use super::keeping::KeepingWhole;
use super::site::Site;
use super::study::{Within, study};
use crate::args::RunArgs;
use crate::commands::consent;
use crate::commands::journal::{Beginning, Lines, directory};
use crate::commands::outside::Outside;
use crate::commands::places::tells;
use crate::commands::sweep::journal::Journal;
use crate::failure::Failure;
use crate::live::suite::SuiteLive;
use crate::report::suite::plan;
use crate::signals::Stop;
use crate::store::{Keeper, random_id};
use iosonde_engine::runner::{LocalRunner, LocalSession};
use iosonde_result::session::{RunError, Session};
use iosonde_study::suite::{
    Baselines, Expected, FORMAT, StepOutcome, StepResult, Suite, SuiteResult, SuiteStep,
    SuiteTarget, What, judge,
};

/// A target while the suite runs on it.
struct Measured<'a> {
    target: &'a SuiteTarget,
    site: Site<'a>,
    keeper: Keeper,
    /// Its study, as it has been written down.
    study: Option<String>,
    /// The lowest number of a run that is kept from now on; `None` where none is.
    next_run: Option<u32>,
    results: Vec<(usize, StepResult)>,
}

impl Measured<'_> {
    /// The session that its plans run in, and the history that keeps their results.
    fn keeping<'s>(
        &'s mut self,
        here: &'s mut LocalSession,
        stop: &'s Stop,
        about: About,
        lines: &'s mut Lines,
    ) -> KeepingWhole<'s> {
        KeepingWhole {
            session: self.site.session(here),
            keeper: &mut self.keeper,
            stop,
            about,
            study: &mut self.study,
            lines,
            is_begun: false,
            is_cut: false,
        }
    }
}

/// What came of a suite.
pub(super) struct Ran {
    /// One for each target.
    pub(super) results: Vec<SuiteResult>,
    /// Under which names the history keeps them.
    pub(super) kept: Vec<Option<String>>,
    /// Why there is nothing in them.
    pub(super) failed: Option<Failure>,
}

/// Runs all of it and has it printed; only then is what was made for it removed. Steps that were measured count, also where another
/// fails; why the first did is told where none is left. Whether targets are as they were.
pub(super) fn measure(
    args: &RunArgs,
    (suite, targets, outside): (&Suite, &[SuiteTarget], &Outside),
    (expected, baselines): (&[Vec<Expected>], &Baselines),
    stop: &Stop,
    print: impl FnOnce(Ran),
) -> Result<Result<(), RunError>, Failure> {
    let mut live = SuiteLive::new(stop.clone());
    let steps: Vec<_> = suite
        .steps
        .iter()
        .map(|step| (&step.name, format!("{:?}", step.what)))
        .collect();
    let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
    let consent = args.written.consent.noted();
    let (lines, known) = Lines::open::<Line>(
        directory(args.keep.store.as_deref(), "suites").as_deref(),
        "suite",
        &(&suite.name, &names, steps),
        (Beginning::of_flag(args.resume), &consent.targets),
        &mut |note| live.line(note),
    )?;
    eprint!("{}", plan(suite, targets));
    let together = random_id().map_err(anyhow::Error::from)?;
    let (mut tells, interrupts) = (tells(&names), || stop.interrupt.count());
    consent::to_root(&names, &args.cluster, &interrupts)?;
    let mut sites = Vec::new();
    for (target, tell) in targets.iter().zip(&mut tells) {
        let site = Site::open(&target.name, args, &interrupts, tell, &mut |note| {
            live.line(note)
        })?;
        let mut keeper = Keeper::open(&args.keep)?;
        label(&mut keeper, args, suite, target);
        if targets.len() > 1 {
            keeper.label("together", &together);
        }
        keeper.begin("suite", &target.name);
        sites.push(Measured {
            target,
            site,
            keeper,
            study: None,
            next_run: None,
            results: Vec::new(),
        });
    }
    take_up(&mut sites, &known, suite);
    let only_read = sites.iter().filter_map(|site| site.site.only_read());
    let mut session = LocalRunner {
        consent,
        ceph: args.ceph.access(),
        interrupt: stop.interrupt.clone(),
        only_read: only_read.collect(),
        permissions: Some(outside.permissions(None)),
        dump_directory: outside.logs(),
        ..LocalRunner::default()
    }
    .open();
    let held = session.held_paths();
    sites.iter().for_each(|site| site.site.note_in(&held));
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
    runner.all(&mut sites, &known);
    let Runner {
        lines,
        first_failure,
        ..
    } = runner;
    live.end();
    let interrupted = stop.interrupt.is_requested();
    let (mut results, mut kept, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for (site, expected) in sites.into_iter().zip(expected) {
        let held = (&expected[..], baselines);
        let (result, id, site) = conclude(site, args, suite, held, interrupted);
        results.push(result);
        kept.push(id);
        open.push(site);
    }
    let steps = || results.iter().flat_map(|result| &result.steps);
    let some_failed = steps().any(|step| step.failure.is_some());
    let some_ended = steps().any(|step| step.failure.is_none() || !step.found.is_empty());
    if interrupted || some_failed && some_ended {
        if lines.is_kept() {
            eprintln!("what has ended is kept: the same command with --resume goes on there");
        }
    } else {
        lines.remove();
    }
    let nothing = results.iter().all(|result| !has_figures(result));
    let failed = first_failure.filter(|_| nothing);
    print(Ran {
        results,
        kept,
        failed,
    });
    let mut closed = Box::new(session).close();
    for (site, name) in open.into_iter().zip(names) {
        match (site.close(), &closed) {
            (Err(left), Err(_)) => eprintln!("warning: {name}: {left}; {}", left.remedy()),
            (left, Ok(())) => closed = left,
            (Ok(()), Err(_)) => {}
        }
    }
    Ok(closed)
}

fn has_figures(result: &SuiteResult) -> bool {
    let mut steps = result.steps.iter();
    steps.any(|step| !step.parts.is_empty() || !step.found.is_empty())
}

/// Labels of the command line count more than those of the target, and those more than the suite's.
fn label(keeper: &mut Keeper, args: &RunArgs, suite: &Suite, target: &SuiteTarget) {
    let given = |key: &str| args.keep.labels.iter().any(|(label, _)| label == key);
    if !given("suite") {
        keeper.label("suite", &suite.name);
    }
    for (key, value) in suite.labels.iter().chain(&target.labels) {
        if !given(key) {
            keeper.label(key, value);
        }
    }
}

/// What was measured before goes into the results, and its study goes on.
fn take_up(sites: &mut [Measured<'_>], known: &[Line], suite: &Suite) {
    for (index, site) in sites.iter_mut().enumerate() {
        let of_it = || known.iter().filter(|line| line.target == index);
        let ended = || of_it().filter_map(|line| Some((line, line.outcome.as_ref()?)));
        let study = of_it().filter_map(|line| line.study.as_deref()).next_back();
        let runs = ended().flat_map(|(_, outcome)| outcome.runs().into_iter().cloned());
        site.keeper.take_up(study, runs.collect());
        site.study = study.map(str::to_owned);
        site.next_run = site.keeper.next_run();
        for (line, outcome) in ended() {
            if let Some(step) = suite.steps.get(line.step) {
                let result = outcome.result(&step.workload, &step.name, line.repetition);
                site.results.push((line.step, result));
            }
        }
    }
}

/// The result of one target, the name by which it is kept, and what is still to be closed.
fn conclude<'a>(
    mut site: Measured<'a>,
    args: &RunArgs,
    suite: &Suite,
    (expected, baselines): (&[Expected], &Baselines),
    interrupted: bool,
) -> (SuiteResult, Option<String>, Site<'a>) {
    site.results
        .sort_by_key(|(step, result)| (*step, result.repetition));
    let steps: Vec<StepResult> = site.results.into_iter().map(|(_, result)| result).collect();
    let result = SuiteResult {
        format: FORMAT,
        suite: suite.name.clone(),
        about: suite.about.clone(),
        target: site.target.name.clone(),
        // The last of a name counts, as in the history.
        labels: (suite.labels.iter())
            .chain(&site.target.labels)
            .map(|(key, value)| (key.clone(), value.clone()))
            .chain(args.keep.labels.iter().cloned())
            .collect(),
        judged: judge(suite, expected, &steps, baselines),
        steps,
        interrupted,
    };
    // The document of one that was interrupted leaves it open, to be gone on with.
    let document = serde_json::to_value(&result).ok();
    let id = site.keeper.finish(document.as_ref());
    if let Some(id) = &id {
        eprintln!("{}: kept in the history as {id}", result.target);
    }
    site.keeper.tell_notes();
    (result, id, site.site)
}

struct Runner<'a> {
    args: &'a RunArgs,
    suite: &'a Suite,
    outside: &'a Outside,
    stop: &'a Stop,
    session: &'a mut LocalSession,
    lines: Lines,
    live: &'a mut SuiteLive,
    /// Whether there is one step to run, once, on one target.
    is_alone: bool,
    /// Why the first step that failed did.
    first_failure: Option<Failure>,
}

impl Runner<'_> {
    /// Repetition by repetition and step by step, each on all targets: a drift of the machine favours none.
    fn all(&mut self, sites: &mut [Measured<'_>], known: &[Line]) {
        let steps = &self.suite.steps;
        let most = steps.iter().map(|step| step.repetitions).max().unwrap_or(0);
        let count: usize = steps.iter().map(|step| step.repetitions as usize).sum();
        let sites_count = sites.len();
        self.is_alone = count * sites_count == 1;
        let mut number = 0;
        for repetition in 1..=most {
            for (index, step) in steps.iter().enumerate() {
                if repetition > step.repetitions {
                    continue;
                }
                for (target, site) in sites.iter_mut().enumerate() {
                    number += 1;
                    let about = (target, index, repetition);
                    let is_it = |line: &Line| line.outcome.is_some() && line.about() == about;
                    if known.iter().any(is_it) {
                        continue;
                    }
                    if self.live.is_over() {
                        return;
                    }
                    let title = format!(
                        "[{number}/{}] {} on {}",
                        count * sites_count,
                        step.name,
                        site.target.name
                    );
                    self.take_back(site, about, step, known);
                    self.one(site, about, step, &title);
                }
            }
        }
    }

    /// What the history has of a step that was interrupted would be there twice when it is measured again. A sweep goes on.
    fn take_back(&self, site: &mut Measured<'_>, about: About, step: &SuiteStep, known: &[Line]) {
        if matches!(step.what, What::Sweep(_)) {
            return;
        }
        let mut is_known = false;
        for numbers in begun(known, about, site.keeper.id(), site.next_run) {
            is_known |= site.keeper.take_back(numbers);
        }
        if is_known {
            // Their numbers are given again, to what is measured from now on.
            site.next_run = site.next_run.min(site.keeper.next_run());
            let told = format!(
                "{} was interrupted: it is measured again, and its runs until then leave the history",
                step.name
            );
            self.live.line(&told);
        }
    }

    fn one(&mut self, site: &mut Measured<'_>, about: About, step: &SuiteStep, title: &str) {
        let (target, index, repetition) = about;
        let planned = step.planned_time();
        self.live.begin(title, planned.map(|time| time.most_ns));
        let outcome = self.outcome(site, about, step);
        self.live.end();
        let result = match outcome {
            Err(_) if self.live.is_over() => return,
            Ok((outcome, journal)) => {
                if let Some(error) = outcome.error() {
                    self.first_failure
                        .get_or_insert_with(|| error.clone().into());
                }
                let result = outcome.result(&step.workload, &step.name, repetition);
                let line = Line {
                    target,
                    step: index,
                    repetition,
                    study: site.keeper.id().map(str::to_owned),
                    first_run: None,
                    outcome: Some(outcome),
                };
                // What has not come to its end is gone on with.
                if result.is_whole() {
                    let live = &self.live;
                    self.lines.write(&line, &mut |note| live.line(note));
                    // Not before: whatever ends the program in between takes no sweep with it.
                    if let Some(journal) = journal {
                        journal.remove();
                    }
                }
                result
            }
            Err(failure) => {
                let text = failure.text(false);
                let text = text.trim_start_matches("error: ").to_owned();
                // What to do about it stands below the first one, at the end; where nothing else is run, so does all of it.
                if !self.is_alone {
                    let problem = text.lines().next().unwrap_or_default();
                    self.live.line(&format!("{}: {problem}", step.name));
                }
                self.first_failure.get_or_insert(failure);
                StepResult {
                    workload: step.workload.clone(),
                    name: step.name.clone(),
                    repetition,
                    parts: Vec::new(),
                    elapsed_ns: 0,
                    found: Vec::new(),
                    findings: Vec::new(),
                    failure: Some(text),
                    interrupted: false,
                    sweep: None,
                }
            }
        };
        site.results.push((index, result));
    }

    /// What a step found, and where a sweep has written it down.
    fn outcome(
        &mut self,
        on: &mut Measured<'_>,
        about: About,
        step: &SuiteStep,
    ) -> Result<(StepOutcome, Option<Journal>), Failure> {
        if let What::Jobs(plan) = &step.what {
            let mut plan = plan.as_ref().clone();
            for note in on.site.put(&mut plan)? {
                self.live.line(&format!("note: {note}"));
            }
            plan.jobs
                .iter_mut()
                .for_each(|job| self.outside.relocate(job));
            self.session.permit_targets(on.site.permitted());
            let mut keeping = on.keeping(self.session, self.stop, about, &mut self.lines);
            let run = keeping.run(&plan, self.live)?;
            if keeping.is_cut {
                return Err(Failure::Run(RunError::Interrupted));
            }
            return Ok((StepOutcome::Run(Box::new(run)), None));
        }
        // A study has a working file of its own.
        self.live.end();
        let live = &self.live;
        let note = &mut |note: &str| live.line(note);
        let studied = on.site.studied(&on.target.name, self.args, note)?;
        studied.note_in(&self.session.held_paths());
        self.session.permit_targets(studied.target.permitted());
        let within = Within {
            args: self.args,
            outside: self.outside,
            suite: &self.suite.name,
            target: &on.target.name,
            step,
            repetition: about.2,
        };
        let mut keeping = on.keeping(self.session, self.stop, about, &mut self.lines);
        study(&mut keeping, &studied, &within, self.stop)
    }
}
