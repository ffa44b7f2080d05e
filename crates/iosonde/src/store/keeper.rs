//! Keeping runs while they are made. What was measured counts more than that it is kept: a history that cannot be written
//! is told, and the measuring goes on.

use super::open_run::OpenRun;
use super::record::{KeptRun, KeptStudy, compared_parts, program};
use super::run_writer::{RunWriter, Written, WrittenRun};
use super::running::RunningStudy;
use super::{Place, Store, StoreError};
use crate::args::KeepArgs;
use crate::failure::Failure;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::INTERVALS_LOST;
use iosonde_study::probe::is_search;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Keeps the runs of one study after the other.
pub(crate) struct Keeper {
    store: Option<Store>,
    labels: BTreeMap<String, String>,
    study: Option<Begun>,
    /// Whether what is being measured was stopped before its end.
    is_cut_off: bool,
    /// What went wrong, to be told by whoever prints.
    notes: Vec<String>,
    /// Writes the last minutes of the run that has ended.
    last_minutes: Option<JoinHandle<Written>>,
}

/// The study that goes on.
struct Begun {
    /// `None` until its first run: what measured nothing is not kept.
    id: Option<String>,
    /// Its runs have no series: those are in the history.
    kept: KeptStudy,
    /// The run that is in the history before it has been kept.
    open_run: Option<OpenRun>,
    /// Whether a run came to no end of which the history has intervals.
    has_cut_run: bool,
    /// Says to others that it goes on.
    running: Option<RunningStudy>,
}

impl Keeper {
    /// Opens the history, unless nothing is to be kept. Fails only for a file that the command line names.
    pub(crate) fn open(args: &KeepArgs) -> Result<Keeper, Failure> {
        let mut keeper = Keeper {
            store: None,
            labels: args.labels.iter().cloned().collect(),
            study: None,
            is_cut_off: false,
            notes: Vec::new(),
            last_minutes: None,
        };
        if !args.is_wanted() {
            return Ok(keeper);
        }
        let opened = Place::find(args.store.as_deref())
            .and_then(|place| Ok((Store::open_or_make(&place)?, place)));
        match opened {
            Ok((opened, place)) => {
                if let Some(aside) = opened.put_aside {
                    keeper.notes.push(format!(
                        "{} was damaged; it is now {}, and a new history begins",
                        place.path.display(),
                        aside.display()
                    ));
                }
                keeper.store = Some(opened.store);
            }
            Err(error) if args.store.is_some() => return Err(error.into()),
            Err(error) => keeper.lose(&error),
        }
        Ok(keeper)
    }

    /// Labels all that is measured from now on.
    pub(crate) fn label(&mut self, key: &str, value: &str) {
        self.labels.insert(key.to_owned(), value.to_owned());
    }

    /// Begins a study.
    pub(crate) fn begin(&mut self, kind: &str, target: &str) {
        self.wait_for_last_minutes(true);
        self.study = Some(Begun {
            id: None,
            open_run: None,
            has_cut_run: false,
            running: None,
            kept: KeptStudy {
                kind: kind.to_owned(),
                target: target.to_owned(),
                machine: None,
                program: program(),
                started_at_ms: now_ms(),
                labels: self.labels.clone(),
                document: None,
                runs: Vec::new(),
            },
        });
    }

    /// Names the target of the study that goes on; begins one where there is none.
    pub(crate) fn name_target(&mut self, kind: &str, target: &str) {
        match &mut self.study {
            Some(begun) => target.clone_into(&mut begun.kept.target),
            None => self.begin(kind, target),
        }
    }

    /// Runs a plan. Of a run that is longer than a minute the history has each minute soon after its end; [`Keeper::keep`] makes it whole.
    pub(crate) fn run(
        &mut self,
        session: &mut dyn Session,
        plan: &Plan,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        self.wait_for_last_minutes(true);
        let Some(writer) = self.writer(plan) else {
            return session.run(plan, observer);
        };
        let mut written = WrittenRun::begin(observer, writer);
        let outcome = session.run(plan, &mut written);
        self.end_written(&outcome, written);
        outcome
    }

    /// The same of a run that goes on elsewhere, whose plan comes with its statistics.
    pub(crate) fn attend(
        &mut self,
        observer: &mut dyn Observer,
        attend: impl FnOnce(&mut dyn Observer) -> Result<RunResult, RunError>,
    ) -> Result<RunResult, RunError> {
        let Some(writer) = self.writer(&Plan::default()) else {
            return attend(observer);
        };
        let mut written = WrittenRun::of_run_elsewhere(observer, writer);
        let outcome = attend(&mut written);
        self.end_written(&outcome, written);
        outcome
    }

    fn end_written(&mut self, outcome: &Result<RunResult, RunError>, written: WrittenRun<'_>) {
        self.last_minutes = written.end(outcome.is_ok());
        if outcome.is_err() {
            self.wait_for_last_minutes(false);
        }
    }

    /// Waits until the minutes of the run that has ended are written. With a result that is done only when it is kept: it is
    /// printed before.
    fn wait_for_last_minutes(&mut self, has_result: bool) {
        let Some(thread) = self.last_minutes.take() else {
            return;
        };
        // A panic has been printed by its thread; the run is kept as if nothing of it had been written.
        let written = thread.join().unwrap_or_default();
        self.take_written(written, has_result);
    }

    /// What writes a run of the study that goes on.
    fn writer(&mut self, plan: &Plan) -> Option<RunWriter> {
        let begun = self.study.as_mut()?;
        let place = self.store.as_ref()?.place.clone();
        let runs = std::mem::take(&mut begun.kept.runs);
        let head = begun.kept.clone();
        begun.kept.runs = runs;
        Some(RunWriter {
            place,
            study: begun.id.clone(),
            opening: KeptRun::opening(plan, &self.labels),
            may_wait: plan.jobs.iter().any(|job| job.io.engine == Engine::Sim),
            head,
        })
    }

    fn take_written(&mut self, written: Written, has_result: bool) {
        let Some(begun) = &mut self.study else {
            return;
        };
        if let Some(run) = &written.run {
            begun.id.get_or_insert_with(|| run.study.clone());
        }
        if written.running.is_some() {
            begun.running = written.running;
        }
        match has_result {
            // What could not be written meanwhile may be written now.
            true => begun.open_run = written.run,
            false => begun.has_cut_run |= written.run.is_some(),
        }
        // What is measured next may be kept.
        if let (false, Some(error)) = (has_result, written.error) {
            self.notes.push(format!(
                "not all minutes of the run that failed are kept in the history: {error}"
            ));
        }
    }

    /// Goes on with a study that was cut off, if the history has it; else these runs of it are kept in the one that has begun.
    pub(crate) fn take_up(&mut self, id: Option<&str>, runs: Vec<RunResult>) {
        // One that has come to its end has runs of its own that failed: what counts begins another.
        let known = match (&self.store, id) {
            (Some(store), Some(id)) => store.find(id).ok().filter(|id| {
                let loaded = store.load(id);
                loaded.is_ok_and(|loaded| loaded.summary.finished_at_ms.is_none())
            }),
            _ => None,
        };
        match (known, &mut self.study) {
            (Some(id), Some(begun)) => {
                begun.running = self
                    .store
                    .as_ref()
                    .and_then(|store| store.mark_running(&id));
                begun.id = Some(id);
                begun.kept.runs = runs.into_iter().map(KeptRun::of).collect();
            }
            _ => {
                for mut run in runs {
                    self.label_run(&mut run);
                    self.keep(&run);
                }
            }
        }
    }

    /// The whole id of the study that goes on, once it has a run.
    pub(crate) fn id(&self) -> Option<&str> {
        self.study.as_ref()?.id.as_deref()
    }

    /// The number that the next run of the study will have; `None` where no more of it is kept. A history that cannot tell
    /// keeps no more: nobody would know which of its runs to take back.
    pub(crate) fn next_run(&mut self) -> Option<u32> {
        let store = self.store.as_ref()?;
        let next = match self.id() {
            Some(id) => store.next_run(id),
            None => Ok(1),
        };
        match next {
            Ok(next) => Some(next),
            Err(error) => {
                self.lose(&error);
                None
            }
        }
    }

    /// Removes runs of the study that goes on, by their numbers: what they are of is measured again. Whether there were any.
    pub(crate) fn take_back(&mut self, numbers: Range<u32>) -> bool {
        let (Some(store), Some(begun)) = (&mut self.store, &mut self.study) else {
            return false;
        };
        match begun.take_back(store, numbers) {
            Ok(count) => count > 0,
            Err(error) => {
                self.lose(&error);
                false
            }
        }
    }

    /// Labels a run, and checks that it is whole. Called before it is printed or kept.
    pub(crate) fn label_run(&mut self, result: &mut RunResult) {
        result.labels.extend(self.labels.clone());
        if !result.intervals.is_whole() || !result.series.slices.is_whole() {
            self.notes.push(INTERVALS_LOST.to_owned());
        }
    }

    /// Keeps a run as part of the study.
    pub(crate) fn keep(&mut self, result: &RunResult) {
        self.wait_for_last_minutes(true);
        let (Some(store), Some(begun)) = (&mut self.store, &mut self.study) else {
            return;
        };
        let run = KeptRun::of(result.clone());
        if let Err(error) = begun.keep(store, run) {
            self.lose(&error);
        }
    }

    /// Leaves the run that has just ended as it was written meanwhile: it was cut short, and its result is not kept.
    pub(crate) fn leave_cut_off(&mut self) {
        self.wait_for_last_minutes(false);
    }

    /// Says whether the run that goes on was stopped, where no document of a study tells.
    pub(crate) fn cut_off(&mut self, is_cut_off: bool) {
        self.is_cut_off = is_cut_off;
    }

    /// Gives up the study, which was stopped or failed. What was measured stays; layout alone is nothing to keep.
    pub(crate) fn give_up(&mut self) {
        self.wait_for_last_minutes(true);
        let begun = self.study.as_ref();
        let runs = begun.map_or(&[][..], |begun| &begun.kept.runs);
        let parts = runs.iter().flat_map(|run| &run.parts);
        let kind = begun.map_or("", |begun| &begun.kept.kind);
        let results = compared_parts(kind, parts);
        if begun.is_some_and(|begun| begun.has_cut_run)
            || results.iter().any(|part| !part.figures.is_empty())
        {
            self.study = None;
            return;
        }
        self.discard();
    }

    /// Removes the study, which has ended without a result: a run that was cut off is none.
    pub(crate) fn discard(&mut self) {
        self.wait_for_last_minutes(true);
        // A study that was refused before anything ran is not in the history.
        let Some(begun) = self.study.take() else {
            return;
        };
        let Some(id) = begun.id.filter(|_| !begun.has_cut_run) else {
            return;
        };
        let Some(store) = &mut self.store else {
            return;
        };
        self.notes
            .push("nothing had been measured yet, so nothing is kept in the history".to_owned());
        if let Err(error) = store.remove(&[id]) {
            self.lose(&error);
        }
    }

    /// Ends the study: the id it is kept under. `document` is what it found beyond its runs.
    pub(crate) fn finish(&mut self, document: Option<&Value>) -> Option<String> {
        self.wait_for_last_minutes(true);
        let begun = self.study.take()?;
        let store = self.store.as_mut()?;
        let id = begun.id?;
        let digest = begun.kept.digest();
        let is_cut_off = self.is_cut_off || document.is_some_and(is_cut_off);
        let finished_at_ms = (!is_cut_off).then(now_ms);
        match store.finish(
            (&id, &begun.kept.target),
            Some(&digest),
            document,
            finished_at_ms,
        ) {
            Ok(()) => Some(id[..6.min(id.len())].to_owned()),
            Err(error) => {
                self.lose(&error);
                None
            }
        }
    }

    /// What the user should know, each once.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Tells them, on standard error.
    pub(crate) fn tell_notes(&mut self) {
        for note in self.notes() {
            eprintln!("note: {note}");
        }
    }

    fn lose(&mut self, error: &StoreError) {
        self.store = None;
        self.notes
            .push(format!("this result is not kept in the history: {error}"));
    }
}

impl Begun {
    fn keep(&mut self, store: &mut Store, mut run: KeptRun) -> Result<(), StoreError> {
        match self.open_run.take() {
            Some(open) => store.end_run(&open, &run)?,
            None => self.add(store, &run)?,
        }
        run.drop_series();
        self.kept.runs.push(run);
        Ok(())
    }

    fn add(&mut self, store: &mut Store, run: &KeptRun) -> Result<(), StoreError> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => {
                let id = store.begin(&self.kept)?;
                self.running = store.mark_running(&id);
                self.id.insert(id).clone()
            }
        };
        store.add_run(&id, run)
    }

    /// How many there were.
    fn take_back(&mut self, store: &mut Store, numbers: Range<u32>) -> Result<usize, StoreError> {
        let Some(id) = &self.id else {
            return Ok(0);
        };
        let count = store.remove_runs(id, numbers)?;
        if count > 0 {
            self.kept.runs = store.load(id)?.study.runs;
        }
        Ok(count)
    }
}

/// Whether the user or an error ended a study early.
fn is_cut_off(document: &Value) -> bool {
    let is_there = |error: &Value| !error.is_null();
    document.get("interrupted") == Some(&Value::Bool(true))
        || document.get("error").is_some_and(is_there)
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A session whose runs are kept as they end.
pub(crate) struct KeepingSession<'a> {
    /// What runs.
    pub(crate) session: &'a mut dyn Session,
    /// What keeps.
    pub(crate) keeper: &'a mut Keeper,
}

impl Session for KeepingSession<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        // The short runs of a search are cells of the knee that it finds.
        if is_search(plan) {
            return self.session.run(plan, observer);
        }
        let mut result = self.keeper.run(self.session, plan, observer)?;
        self.keeper.label_run(&mut result);
        self.keeper.keep(&result);
        Ok(result)
    }

    /// The session belongs to somebody else, who closes it.
    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}
