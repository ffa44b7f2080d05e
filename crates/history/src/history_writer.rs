//! Stores runs as they end. A history that cannot be written gives a note, and the measurement
//! continues: its result matters more than its record.

use super::open_run::OpenRun;
use super::record::{RunRecord, StudyRecord, compared_parts, now_ms, program};
use super::run_writer::{RunWriter, WriterOutcome, WrittenRun};
use super::running::RunningStudy;
use super::{HistoryPath, Store, StoreError};
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_result::wire::INTERVALS_LOST;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// Whether, where and with which labels results are stored.
#[derive(Debug, Clone, Default)]
pub struct HistoryOptions {
    /// Labels of all results.
    pub labels: BTreeMap<String, String>,
    /// The file that the user named. `None`: the default one.
    pub file: Option<PathBuf>,
    /// Whether results are stored at all.
    pub is_wanted: bool,
}

/// Writes the runs of one study after the other to the history.
pub struct HistoryWriter {
    store: Option<Store>,
    labels: BTreeMap<String, String>,
    study: Option<CurrentStudy>,
    /// Whether the current measurement was stopped early.
    is_cut_off: bool,
    /// Problems to print, one note each.
    notes: Vec<String>,
    /// The thread that writes the last minutes of the run that has ended.
    last_minutes: Option<JoinHandle<WriterOutcome>>,
}

/// The current study.
struct CurrentStudy {
    /// `None` until the first run: a study without runs is not stored.
    id: Option<String>,
    /// The study with its runs, without their series, which the history has.
    kept: StudyRecord,
    /// The run whose intervals are in the history, but not its result.
    open_run: Option<OpenRun>,
    /// Whether a run without a result has left intervals in the history.
    has_cut_run: bool,
    /// Marks the study as running for other processes.
    running: Option<RunningStudy>,
}

impl HistoryWriter {
    /// Opens the history, if wanted. Only a file given on the command line causes an error.
    pub fn open(options: &HistoryOptions) -> Result<HistoryWriter, StoreError> {
        let mut writer = HistoryWriter {
            store: None,
            labels: options.labels.clone(),
            study: None,
            is_cut_off: false,
            notes: Vec::new(),
            last_minutes: None,
        };
        if !options.is_wanted {
            return Ok(writer);
        }
        let opened = HistoryPath::find(options.file.as_deref())
            .and_then(|place| Ok((Store::open_or_make(&place)?, place)));
        match opened {
            Ok((opened, place)) => {
                if let Some(aside) = opened.put_aside {
                    writer.notes.push(format!(
                        "the history {} was damaged and is now {}; a new history was started",
                        place.path.display(),
                        aside.display()
                    ));
                }
                writer.store = Some(opened.store);
            }
            Err(error) if options.file.is_some() => return Err(error),
            Err(error) => writer.stop_storing(&error),
        }
        Ok(writer)
    }

    /// Adds a label to all later studies and runs.
    pub fn label(&mut self, key: &str, value: &str) {
        self.labels.insert(key.to_owned(), value.to_owned());
    }

    /// Begins a study.
    pub fn begin(&mut self, kind: &str, target: &str) {
        self.wait_for_last_minutes(true);
        self.study = Some(CurrentStudy {
            id: None,
            open_run: None,
            has_cut_run: false,
            running: None,
            kept: StudyRecord {
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

    /// Sets the target of the current study, or begins a study.
    pub fn name_target(&mut self, kind: &str, target: &str) {
        match &mut self.study {
            Some(begun) => target.clone_into(&mut begun.kept.target),
            None => self.begin(kind, target),
        }
    }

    /// Runs a plan and writes each minute as it ends. [`HistoryWriter::store_run`] adds the result.
    pub fn run(
        &mut self,
        session: &mut dyn Session,
        plan: &Plan,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        self.write_during(plan, observer, |observer| session.run(plan, observer))
    }

    /// Calls `run` with an observer that writes each minute as it ends.
    pub fn write_during(
        &mut self,
        plan: &Plan,
        observer: &mut dyn Observer,
        run: impl FnOnce(&mut dyn Observer) -> Result<RunResult, RunError>,
    ) -> Result<RunResult, RunError> {
        self.wait_for_last_minutes(true);
        let Some(writer) = self.writer(plan) else {
            return run(observer);
        };
        let mut written = WrittenRun::begin(observer, writer);
        let outcome = run(&mut written);
        self.end_written(&outcome, written);
        outcome
    }

    /// As `run`, for a run of another process, whose plan comes with its statistics.
    pub fn follow_existing_run(
        &mut self,
        observer: &mut dyn Observer,
        follow: impl FnOnce(&mut dyn Observer) -> Result<RunResult, RunError>,
    ) -> Result<RunResult, RunError> {
        let Some(writer) = self.writer(&Plan::default()) else {
            return follow(observer);
        };
        let mut written = WrittenRun::begin_elsewhere(observer, writer);
        let outcome = follow(&mut written);
        self.end_written(&outcome, written);
        outcome
    }

    fn end_written(&mut self, outcome: &Result<RunResult, RunError>, written: WrittenRun<'_>) {
        self.last_minutes = written.finish_run(outcome.is_ok());
        if outcome.is_err() {
            self.wait_for_last_minutes(false);
        }
    }

    /// Waits until the writer thread has written the run that has ended. A run with a result waits
    /// only before the result is stored, so that printing it is not delayed.
    fn wait_for_last_minutes(&mut self, has_result: bool) {
        let Some(thread) = self.last_minutes.take() else {
            return;
        };
        // The writer ends: its channel is closed, and SQLite's busy timeout bounds each write.
        // The thread has printed its panic. The run is stored as if nothing had been written.
        let written = thread.join().unwrap_or_default();
        self.take_written(written, has_result);
    }

    /// Returns the writer of a run of the current study.
    fn writer(&mut self, plan: &Plan) -> Option<RunWriter> {
        let begun = self.study.as_mut()?;
        let place = self.store.as_ref()?.place.clone();
        let runs = std::mem::take(&mut begun.kept.runs);
        let head = begun.kept.clone();
        begun.kept.runs = runs;
        Some(RunWriter {
            place,
            study: begun.id.clone(),
            opening: RunRecord::opening(plan, &self.labels),
            may_wait: plan.jobs.iter().any(|job| job.io.engine == Engine::Sim),
            head,
        })
    }

    fn take_written(&mut self, written: WriterOutcome, has_result: bool) {
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
            // A failed write may succeed with the result.
            true => begun.open_run = written.run,
            false => begun.has_cut_run |= written.run.is_some(),
        }
        // The store stays open: later runs may succeed.
        if let (false, Some(error)) = (has_result, written.error) {
            self.notes.push(format!(
                "the history lacks minutes of the failed run: {error}"
            ));
        }
    }

    /// Resumes a study that was cut off. If the history lacks it, `runs` join the current study.
    pub fn resume_study(&mut self, id: Option<&str>, runs: Vec<RunResult>) {
        // A finished study is not resumed: a new one takes the runs.
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
                begun.kept.runs = runs.into_iter().map(RunRecord::from_result).collect();
            }
            _ => {
                for mut run in runs {
                    self.label_run(&mut run);
                    self.store_run(&run);
                }
            }
        }
    }

    /// The whole id of the current study, once it has a run.
    pub fn id(&self) -> Option<&str> {
        self.study.as_ref()?.id.as_deref()
    }

    /// Returns the number of the next run of the study. `None`: no more is stored. A failed query
    /// also stops storing, because `remove_runs` then lacks the numbers of the runs.
    pub fn next_run(&mut self) -> Option<u32> {
        let store = self.store.as_ref()?;
        let next = match self.id() {
            Some(id) => store.next_run(id),
            None => Ok(1),
        };
        match next {
            Ok(next) => Some(next),
            Err(error) => {
                self.stop_storing(&error);
                None
            }
        }
    }

    /// Removes runs by their numbers before they are repeated. Returns whether there were any.
    pub fn remove_runs(&mut self, numbers: Range<u32>) -> bool {
        let (Some(store), Some(begun)) = (&mut self.store, &mut self.study) else {
            return false;
        };
        match begun.remove_runs(store, numbers) {
            Ok(count) => count > 0,
            Err(error) => {
                self.stop_storing(&error);
                false
            }
        }
    }

    /// Labels a run and checks that no interval is lost. Call it before printing or storing.
    pub fn label_run(&mut self, result: &mut RunResult) {
        result.labels.extend(self.labels.clone());
        if !result.intervals.is_whole() || !result.series.slices.is_whole() {
            self.notes.push(INTERVALS_LOST.to_owned());
        }
    }

    /// Stores a run as part of the study.
    pub fn store_run(&mut self, result: &RunResult) {
        self.wait_for_last_minutes(true);
        let (Some(store), Some(begun)) = (&mut self.store, &mut self.study) else {
            return;
        };
        let run = RunRecord::from_result(result.clone());
        if let Err(error) = begun.store_run(store, run) {
            self.stop_storing(&error);
        }
    }

    /// Leaves a run that was cut short as written so far, without its result.
    pub fn leave_cut_off(&mut self) {
        self.wait_for_last_minutes(false);
    }

    /// Sets whether the run was stopped early, for studies whose document does not say so.
    pub fn cut_off(&mut self, is_cut_off: bool) {
        self.is_cut_off = is_cut_off;
    }

    /// Ends a study that was stopped or failed, and removes it if it has only its layout.
    pub fn end_unfinished_study(&mut self) {
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

    /// Removes a study that ended without a result, unless a run that was cut off left intervals.
    pub fn discard(&mut self) {
        self.wait_for_last_minutes(true);
        // A study refused before its first run is not in the history.
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
            .push("nothing was measured, so nothing is stored in the history".to_owned());
        if let Err(error) = store.remove(&[id]) {
            self.stop_storing(&error);
        }
    }

    /// Begins to store the current study, whose document is its whole result: it has no runs.
    pub fn store_without_runs(&mut self) {
        let (Some(store), Some(begun)) = (&mut self.store, &mut self.study) else {
            return;
        };
        if begun.id.is_some() {
            return;
        }
        match store.begin(&begun.kept) {
            Ok(id) => begun.id = Some(id),
            Err(error) => self.stop_storing(&error),
        }
    }

    /// Ends the study and returns its short id. `document` is its result without the runs.
    pub fn finish(&mut self, document: Option<&Value>) -> Option<String> {
        self.wait_for_last_minutes(true);
        let mut begun = self.study.take()?;
        let store = self.store.as_mut()?;
        let id = begun.id?;
        if begun.kept.runs.is_empty() {
            // Without runs the digest is that of the document.
            begun.kept.document = document.cloned();
        }
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
                self.stop_storing(&error);
                None
            }
        }
    }

    /// Takes the notes for the user.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn stop_storing(&mut self, error: &StoreError) {
        self.store = None;
        self.notes
            .push(format!("this result is not stored in the history: {error}"));
    }
}

impl CurrentStudy {
    fn store_run(&mut self, store: &mut Store, mut run: RunRecord) -> Result<(), StoreError> {
        match self.open_run.take() {
            Some(open) => store.end_run(&open, &run)?,
            None => self.add(store, &run)?,
        }
        run.drop_series();
        self.kept.runs.push(run);
        Ok(())
    }

    fn add(&mut self, store: &mut Store, run: &RunRecord) -> Result<(), StoreError> {
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

    /// Removes the runs and returns their number.
    fn remove_runs(&mut self, store: &mut Store, numbers: Range<u32>) -> Result<usize, StoreError> {
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
