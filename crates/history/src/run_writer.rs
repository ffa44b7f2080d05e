//! Writes a run to the history minute by minute, while it is running.
//!
//! A thread of its own writes, so that a slow file system does not delay the sampling.

use super::interval_blocks::is_whole_block;
use super::open_run::{OpenRun, RunUpdate};
use super::record::{RunRecord, StudyRecord};
use super::running::RunningStudy;
use super::{HistoryPath, Store, StoreError};
use iosonde_job::plan::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress, StartDecision};
use iosonde_result::run::{RunEvent, RunResult};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Messages that may wait for the writer.
const WAITING_MAX: usize = 8;
/// Consecutive failed writes after which the writer stops, where the run waits for it.
const AWAITED_FAILURES_MAX: u32 = 2;
/// Intervals kept for a late writer. Beyond, the run is stored only at its end.
const HELD_BACK_MAX: usize = 36_000;

/// Input of the writer thread.
pub(super) struct RunWriter {
    /// The history.
    pub(super) place: HistoryPath,
    /// The id of the study, if the history has it.
    pub(super) study: Option<String>,
    /// The study without its runs.
    pub(super) head: StudyRecord,
    /// The run as known before it begins.
    pub(super) opening: RunRecord,
    /// Whether the observer may wait for the writer: in simulated time, or when attached to a run.
    pub(super) may_wait: bool,
}

/// Outcome of the writer thread.
#[derive(Default)]
pub(super) struct WriterOutcome {
    /// The run, if it lasted long enough to be written.
    pub(super) run: Option<OpenRun>,
    /// Lock of a study that the writer began.
    pub(super) running: Option<RunningStudy>,
    /// The error of the last write.
    pub(super) error: Option<StoreError>,
}

enum WriterMessage {
    Block(Vec<Interval>),
    Status(Box<RunResult>),
}

impl RunWriter {
    /// Writes messages until the channel closes or the writer gives up.
    fn write(self, messages: &Receiver<WriterMessage>) -> WriterOutcome {
        let mut written = WriterOutcome::default();
        written.error = self.write_all(messages, &mut written).err();
        written
    }

    fn write_all(
        &self,
        messages: &Receiver<WriterMessage>,
        written: &mut WriterOutcome,
    ) -> Result<(), StoreError> {
        // The measuring thread keeps its connection, so this thread opens its own.
        let mut store = Store::open_beside(&self.place)?;
        let mut waiting = RunUpdate::default();
        let mut outcome = Ok(());
        let mut failures = 0;
        // The wait ends with the run, which drops the sender.
        while let Ok(first) = messages.recv() {
            for message in std::iter::once(first).chain(messages.try_iter()) {
                match message {
                    WriterMessage::Block(block) => waiting.blocks.push(block),
                    WriterMessage::Status(result) => waiting.so_far = Some(result),
                }
            }
            outcome = self.write_update(&mut store, &waiting, written);
            let held_back: usize = waiting.blocks.iter().map(Vec::len).sum();
            failures = match outcome {
                Ok(()) => 0,
                Err(_) => failures + 1,
            };
            let is_given_up =
                held_back >= HELD_BACK_MAX || self.may_wait && failures >= AWAITED_FAILURES_MAX;
            match &outcome {
                Ok(()) => waiting = RunUpdate::default(),
                Err(_) if is_given_up => break,
                // A locked or full history is retried with the next minute.
                Err(_) => {}
            }
        }
        outcome
    }

    fn write_update(
        &self,
        store: &mut Store,
        update: &RunUpdate,
        written: &mut WriterOutcome,
    ) -> Result<(), StoreError> {
        if let Some(run) = &mut written.run {
            return store.add_to_run(run, update);
        }
        let study = (self.study.as_deref(), &self.head);
        let begun = store.begin_run(study, &self.opening, update)?;
        if self.study.is_none() {
            written.running = store.mark_running(&begun.study);
        }
        written.run = Some(begun);
        Ok(())
    }
}

/// The running writer thread.
struct WriterThread {
    messages: SyncSender<WriterMessage>,
    thread: JoinHandle<WriterOutcome>,
}

impl WriterThread {
    /// Starts the thread. `None`: the system cannot start one.
    fn begin(writer: RunWriter) -> Option<WriterThread> {
        let (messages, received) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("history".to_owned());
        let thread = thread.spawn(move || writer.write(&received)).ok()?;
        Some(WriterThread { messages, thread })
    }
}

/// Forwards to an observer, and passes intervals and statistics to the writer.
pub(super) struct WrittenRun<'a> {
    observer: &'a mut dyn Observer,
    /// Starts with the first whole minute: shorter runs need no thread.
    writer: Option<RunWriter>,
    thread: Option<WriterThread>,
    labels: BTreeMap<String, String>,
    /// Intervals that the writer does not have yet.
    open: Vec<Interval>,
    /// Whether nothing more is written before the run ends.
    is_given_up: bool,
    /// As in [`RunWriter`].
    may_wait: bool,
    statistics: StatisticsState,
    /// Whether the observer asked for the statistics so far.
    is_asked: bool,
}

/// State of the statistics that are written with each minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatisticsState {
    NotWanted,
    Wanted,
    Asked,
}

impl<'a> WrittenRun<'a> {
    pub(super) fn begin(observer: &'a mut dyn Observer, writer: RunWriter) -> WrittenRun<'a> {
        WrittenRun {
            observer,
            may_wait: writer.may_wait,
            labels: writer.head.labels.clone(),
            writer: Some(writer),
            thread: None,
            open: Vec::new(),
            is_given_up: false,
            statistics: StatisticsState::NotWanted,
            is_asked: false,
        }
    }

    /// Writes a run of another process. The observer may wait, since the run does not wait for it.
    pub(super) fn begin_elsewhere(
        observer: &'a mut dyn Observer,
        writer: RunWriter,
    ) -> WrittenRun<'a> {
        let writer = RunWriter {
            may_wait: true,
            ..writer
        };
        WrittenRun::begin(observer, writer)
    }

    /// Returns the thread after the run. Without a result it writes the partial minute too.
    pub(super) fn finish_run(mut self, has_result: bool) -> Option<JoinHandle<WriterOutcome>> {
        let WriterThread { messages, thread } = self.thread.take()?;
        if !has_result && !self.open.is_empty() {
            // If the writer has ended, its outcome holds the error.
            let _ = messages.send(WriterMessage::Block(self.open));
        }
        Some(thread)
    }

    /// Sends a message to the writer, or returns it if the queue is full.
    fn send(&mut self, message: WriterMessage) -> Result<(), WriterMessage> {
        if let Some(writer) = self.writer.take() {
            self.thread = WriterThread::begin(writer);
        }
        let Some(thread) = &self.thread else {
            self.is_given_up = true;
            return Ok(());
        };
        let sent = match self.may_wait {
            true => thread.messages.send(message).map_err(|_| None),
            false => thread
                .messages
                .try_send(message)
                .map_err(|error| match error {
                    TrySendError::Full(message) => Some(message),
                    TrySendError::Disconnected(_) => None,
                }),
        };
        match sent {
            Err(Some(message)) => Err(message),
            Err(None) => {
                self.is_given_up = true;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn take(&mut self, interval: Interval) {
        if self.is_given_up {
            return;
        }
        self.open.push(interval);
        if !is_whole_block(&self.open) {
            return;
        }
        let block = std::mem::take(&mut self.open);
        match self.send(WriterMessage::Block(block)) {
            // Requests the statistics again, also if the last request had no answer.
            Ok(()) => self.statistics = StatisticsState::Wanted,
            Err(WriterMessage::Block(block)) if block.len() < HELD_BACK_MAX => self.open = block,
            Err(_) => self.is_given_up = true,
        }
    }
}

impl Observer for WrittenRun<'_> {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        self.observer.progress(progress)
    }

    fn wants_status(&mut self, at_ns: u64) -> bool {
        let is_asked = self.observer.wants_status(at_ns);
        self.is_asked |= is_asked;
        let is_due = self.statistics == StatisticsState::Wanted;
        if is_due {
            self.statistics = StatisticsState::Asked;
        }
        is_asked || is_due
    }

    fn status(&mut self, so_far: &RunResult) {
        if std::mem::take(&mut self.is_asked) {
            self.observer.status(so_far);
        }
        if self.statistics != StatisticsState::Asked {
            return;
        }
        self.statistics = StatisticsState::NotWanted;
        if !self.is_given_up {
            let mut so_far = Box::new(so_far.clone());
            so_far.labels.extend(self.labels.clone());
            // On failure the next minute sends newer statistics.
            let _ = self.send(WriterMessage::Status(so_far));
        }
    }

    fn interval_ns(&self, plan: &Plan) -> u64 {
        self.observer.interval_ns(plan)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.take(interval.clone().compacted());
        self.observer.interval(interval)
    }

    fn start(&mut self) -> StartDecision {
        self.observer.start()
    }

    fn event(&mut self, event: &RunEvent) {
        self.observer.event(event);
    }
}

#[cfg(test)]
mod tests;
