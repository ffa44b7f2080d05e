//! [`StudyDriver`]: runs the plans of a study, and owns what all studies share.
//!
//! A study asks the driver for runs and reads their results. The driver passes events to the
//! observer, repeats runs during which the process was stopped, falls back from O_DIRECT to the
//! page cache, and collects notes and the first I/O error.

use crate::StudyError;
use crate::announcement::Announcement;
use crate::event::{StudyEvent, StudyObserver};
use crate::layout_time::LayoutTime;
use crate::run_hook::{RunHook, RunPurpose, run_with_hooks};
use crate::stop_rule::StopRule;
use crate::stopped::{self, MOST_REPEATS, stopped_ns};
use crate::study_neighbour::{StudyNeighbour, StudyNeighbours};
use iosonde_job::errno::EINVAL;
use iosonde_job::plan::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// A question that several runs answer.
pub trait Study {
    /// The result of the study.
    type Outcome;

    /// Returns the extent of the study, which is reported before its first run.
    fn announcement(&self) -> Announcement<'_>;

    /// Runs all measurements. After an error, the earlier ones count.
    ///
    /// # Errors
    /// The error that ended the study early.
    fn measure(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError>;

    /// Draws conclusions from what was measured.
    ///
    /// # Errors
    /// If nothing was measured.
    fn conclude(self, ending: StudyEnding) -> Result<Self::Outcome, StudyError>;
}

/// Runs a study to its end.
///
/// # Errors
/// If the study has no result.
pub(crate) fn run_study<S: Study>(
    mut study: S,
    driver: &mut StudyDriver<'_>,
) -> Result<S::Outcome, StudyError> {
    driver.emit(&StudyEvent::Announced(study.announcement()));
    let measured = study.measure(driver);
    study.conclude(driver.ending(measured)?)
}

/// How a study ended.
#[derive(Debug)]
pub struct StudyEnding {
    /// Whether the user stopped the study early.
    pub(crate) is_interrupted: bool,
    /// Error of a run without a result that ended the study early.
    pub(crate) error: Option<RunError>,
    /// I/O error that ended the study early.
    pub(crate) failure: Option<IoFailure>,
    /// Notes for the user, each in one sentence.
    pub(crate) notes: Vec<String>,
    /// Whether each target was used with O_DIRECT to the end.
    direct: Vec<DirectIo>,
}

impl StudyEnding {
    /// Returns the error of a study that measured nothing on its only target.
    pub(crate) fn into_error(self, target: &str) -> StudyError {
        match (self.failure, self.error) {
            (Some(failure), _) => StudyError::Io {
                target: Some(target.to_owned()),
                failure: failure.into(),
            },
            (None, Some(error)) => error.into(),
            (None, None) => RunError::without_figures(self.is_interrupted).into(),
        }
    }

    /// Returns whether the only target was used with O_DIRECT.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct.first().is_some_and(|direct| direct.is_used)
    }
}

/// Note on a target that refuses O_DIRECT.
pub(crate) const MAY_BE_CACHED: &str = "the target refuses O_DIRECT, so all I/O goes \
     through the page cache: reads may come from memory";

/// Use of O_DIRECT on one target.
#[derive(Debug, Clone)]
pub(crate) struct DirectIo {
    /// Whether runs ask for O_DIRECT.
    pub(crate) is_used: bool,
    /// Note for the user once the target refuses it.
    pub(crate) note_if_refused: String,
}

/// A run that is repeated if the process was stopped meanwhile.
pub(crate) struct RepeatableRun<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) purpose: RunPurpose,
    /// Name of the run in notes about stops. `None`: no note.
    pub(crate) name: Option<String>,
}

/// Runs plans on a session, and reports events to an observer.
pub struct StudyDriver<'a> {
    session: &'a mut dyn Session,
    observer: &'a mut dyn StudyObserver,
    /// Code around each run, the outermost first.
    hooks: Vec<&'a mut dyn RunHook>,
    /// Load beside each measurement.
    neighbours: StudyNeighbours,
    /// Use of O_DIRECT on each target.
    direct: Vec<DirectIo>,
    /// First I/O error that ends the study.
    failure: Option<IoFailure>,
    notes: Vec<String>,
    /// Whether a note is reported only once.
    notes_once: bool,
}

impl<'a> StudyDriver<'a> {
    /// Creates a driver for one study.
    pub fn new(
        session: &'a mut dyn Session,
        observer: &'a mut dyn StudyObserver,
    ) -> StudyDriver<'a> {
        StudyDriver {
            session,
            observer,
            hooks: Vec::new(),
            neighbours: StudyNeighbours::default(),
            direct: Vec::new(),
            failure: None,
            notes: Vec::new(),
            notes_once: false,
        }
    }

    /// Adds a hook to each run, inside of the hooks that were added before.
    #[must_use]
    pub fn with_hook(mut self, hook: &'a mut dyn RunHook) -> StudyDriver<'a> {
        self.hooks.push(hook);
        self
    }

    /// Runs a neighbour beside each measurement on its target. Layouts run alone.
    #[must_use]
    pub fn with_neighbours(
        mut self,
        neighbours: impl IntoIterator<Item = StudyNeighbour>,
    ) -> StudyDriver<'a> {
        for neighbour in neighbours {
            self.neighbours.add(neighbour);
        }
        self
    }

    /// Reports an event.
    pub(crate) fn emit(&mut self, event: &StudyEvent<'_>) {
        self.observer.event(event);
    }

    /// Returns whether the user wants to stop the study.
    pub fn is_interrupted(&self) -> bool {
        self.observer.is_interrupted()
    }

    /// Returns whether the study must not measure any more: after an interrupt or an I/O error.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || self.is_interrupted()
    }

    /// Records an I/O error that ends the study.
    pub(crate) fn fail(&mut self, failure: IoFailure) {
        self.failure.get_or_insert(failure);
    }

    /// Reports each note only once from now on.
    pub(crate) fn note_each_once(&mut self) {
        self.notes_once = true;
    }

    /// Reports a note, and keeps it for the result.
    pub(crate) fn note(&mut self, note: String) {
        if self.notes_once && self.notes.contains(&note) {
            return;
        }
        self.emit(&StudyEvent::Note(&note));
        self.notes.push(note);
    }

    fn ending(&mut self, measured: Result<(), StudyError>) -> Result<StudyEnding, StudyError> {
        for sentence in self.neighbours.sentences() {
            self.note(sentence);
        }
        let mut ending = StudyEnding {
            is_interrupted: self.is_interrupted(),
            error: None,
            failure: self.failure.take(),
            notes: std::mem::take(&mut self.notes),
            direct: std::mem::take(&mut self.direct),
        };
        match measured {
            Ok(()) => {}
            Err(StudyError::Run(RunError::Interrupted)) => ending.is_interrupted = true,
            Err(StudyError::Run(error)) => ending.error = Some(error),
            Err(StudyError::Io { failure, .. }) => {
                ending.failure.get_or_insert(*failure);
            }
            Err(refused) => return Err(refused),
        }
        Ok(ending)
    }

    // --- runs ---

    /// Runs a plan until its end, or until `stop` or the user ends it.
    ///
    /// # Errors
    /// If the run has no result.
    pub fn run(
        &mut self,
        plan: &Plan,
        purpose: RunPurpose,
        stop: &mut dyn StopRule,
    ) -> Result<RunResult, RunError> {
        self.observe(plan, purpose, RunObserver::new(stop))
    }

    /// Runs a layout, and reports the time left of the study once `time` can estimate it.
    ///
    /// # Errors
    /// If the run has no result.
    pub(crate) fn run_layout(
        &mut self,
        plan: &Plan,
        time: LayoutTime,
        stop: &mut dyn StopRule,
    ) -> Result<RunResult, RunError> {
        let observer = RunObserver {
            layout_time: Some(time),
            ..RunObserver::new(stop)
        };
        self.observe(plan, RunPurpose::Layout, observer)
    }

    /// Runs a plan, and again if the process was stopped meanwhile: at most [`MOST_REPEATS`] times.
    /// `begin` reports the begin of each run, and returns its stop rule. `end` receives the
    /// results.
    ///
    /// # Errors
    /// If a run has no result.
    pub(crate) fn run_repeatable<R: StopRule>(
        &mut self,
        run: &RepeatableRun<'_>,
        mut begin: impl FnMut(&mut StudyDriver<'a>) -> R,
        mut end: impl FnMut(&RunResult),
    ) -> Result<(RunResult, R), RunError> {
        debug_assert!(!run.purpose.is_preparation());
        let mut repeats = MOST_REPEATS;
        loop {
            let mut rule = begin(self);
            let observer = RunObserver {
                ends_at_stop: repeats > 0,
                ..RunObserver::new(&mut rule)
            };
            let result = self.observe(run.plan, run.purpose, observer)?;
            end(&result);
            if !self.note_stop(&result, run.name.as_deref(), repeats > 0) {
                return Ok((result, rule));
            }
            repeats -= 1;
        }
    }

    /// Notes a stop of the process during a run. Returns whether to repeat the run.
    pub(crate) fn note_stop(
        &mut self,
        result: &RunResult,
        name: Option<&str>,
        may_repeat: bool,
    ) -> bool {
        let stopped_ns = stopped_ns(result);
        let is_again = stopped_ns > 0 && may_repeat && !self.is_interrupted();
        if let Some(name) = name.filter(|_| stopped_ns > 0) {
            self.note(stopped::stop_note(name, stopped_ns, is_again));
        }
        is_again
    }

    fn observe(
        &mut self,
        plan: &Plan,
        purpose: RunPurpose,
        run: RunObserver<'_>,
    ) -> Result<RunResult, RunError> {
        let beside = self.neighbours.plan_beside(plan, purpose);
        let plan = beside.as_ref().unwrap_or(plan);
        let no_observer = &mut ();
        let observer: &mut dyn StudyObserver = match purpose {
            RunPurpose::Trial => no_observer,
            _ => self.observer,
        };
        let mut observed = StudyRunObserver { observer, run };
        let run = (plan, purpose);
        let result = run_with_hooks(&mut self.hooks, self.session, run, &mut observed)?;
        if beside.is_some()
            && let Some(failure) = self.neighbours.record_run(plan, &result)
        {
            self.fail(failure);
        }
        Ok(result)
    }

    // --- O_DIRECT ---

    /// Sets the use of O_DIRECT on each target.
    pub(crate) fn set_direct(&mut self, direct: Vec<DirectIo>) {
        self.direct = direct;
    }

    /// Returns whether runs on a target ask for O_DIRECT.
    pub(crate) fn is_direct(&self, target: usize) -> bool {
        self.direct[target].is_used
    }

    /// Calls `attempt`, which gets whether to use O_DIRECT. If the target refuses O_DIRECT, notes
    /// that and calls `attempt` again without it, as do all later runs on the target.
    pub(crate) fn attempt_direct<T>(
        &mut self,
        target: usize,
        mut attempt: impl FnMut(&mut StudyDriver<'a>, bool) -> T,
        is_refused: impl FnOnce(&T) -> bool,
    ) -> T {
        let is_direct = self.is_direct(target);
        let outcome = attempt(self, is_direct);
        if !is_direct || !is_refused(&outcome) {
            return outcome;
        }
        self.direct[target].is_used = false;
        self.note(self.direct[target].note_if_refused.clone());
        attempt(self, false)
    }
}

/// Returns the first I/O error of a run.
pub(crate) fn first_failure(result: &RunResult) -> Option<IoFailure> {
    let mut workers = result.workers.iter();
    workers.find_map(|worker| worker.error.clone())
}

/// Whether a run failed because its target cannot be opened or used with O_DIRECT.
pub(crate) fn is_direct_refused(outcome: &Result<RunResult, RunError>) -> bool {
    match outcome {
        Err(error) => is_direct_refused_by(error),
        Ok(result) => result.workers.iter().any(|worker| {
            let moved: u64 = worker.directions.iter().map(|(_, d)| d.io_bytes).sum();
            moved == 0 && worker.error.as_ref().is_some_and(is_einval)
        }),
    }
}

/// Whether a run has no result because its target cannot be opened with O_DIRECT.
pub(crate) fn is_direct_refused_by(error: &RunError) -> bool {
    matches!(error, RunError::DirectRefused { .. })
}

/// Whether an I/O failed with EINVAL, as with O_DIRECT on a file system without support for it.
pub(crate) fn is_einval(failure: &IoFailure) -> bool {
    failure.errno == EINVAL
}

/// State of the observation of one run.
struct RunObserver<'r> {
    stop: &'r mut dyn StopRule,
    /// Estimates the time left during a layout.
    layout_time: Option<LayoutTime>,
    /// Whether a stop of the process ends the run, because the run is then repeated.
    ends_at_stop: bool,
    /// Whether the run is ending: no new I/Os start.
    is_ending: bool,
}

impl<'r> RunObserver<'r> {
    fn new(stop: &'r mut dyn StopRule) -> RunObserver<'r> {
        RunObserver {
            stop,
            layout_time: None,
            ends_at_stop: false,
            is_ending: false,
        }
    }
}

/// Passes the reports of a run to the study's observer, and ends the run.
struct StudyRunObserver<'o, 'r> {
    observer: &'o mut dyn StudyObserver,
    run: RunObserver<'r>,
}

impl StudyRunObserver<'_, '_> {
    /// Passes an interval to the stop rule, and reports the confidence of the rate so far.
    fn ask_stop_rule(&mut self, interval: &Interval) -> Control {
        let control = self.run.stop.interval(interval);
        let error = self.run.stop.relative_error();
        if let Some(relative_error) = error.filter(|_| !interval.ramp) {
            let event = StudyEvent::Confidence { relative_error };
            self.observer.event(&event);
        }
        control
    }

    fn control(&self) -> Control {
        match self.run.is_ending {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}

impl Observer for StudyRunObserver<'_, '_> {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        self.observer.event(&StudyEvent::Progress(progress));
        let time = self.run.layout_time.as_mut();
        if let Some(left) = time.and_then(|time| time.left(progress)) {
            self.observer.event(&StudyEvent::TimeLeft(left));
        }
        if !self.run.is_ending {
            let is_enough = self.run.stop.progress(progress) == Control::Stop;
            self.run.is_ending = is_enough || self.observer.is_interrupted();
        }
        self.control()
    }

    fn interval_ns(&self, plan: &Plan) -> u64 {
        self.run.stop.interval_ns(plan)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.observer.event(&StudyEvent::Interval(interval));
        if !self.run.is_ending {
            let is_stopped = self.run.ends_at_stop && interval.stopped_ns > 0;
            let is_over = is_stopped || self.ask_stop_rule(interval) == Control::Stop;
            self.run.is_ending = is_over || self.observer.is_interrupted();
        }
        self.control()
    }
}
