//! Writes a run to the history while it goes on, minute by minute.
//!
//! A thread of its own writes: a history on a slow or busy file system must not hold up the thread that looks at the workers.

use super::open_run::{News, OpenRun, is_whole_block};
use super::record::{KeptRun, KeptStudy};
use super::running::RunningStudy;
use super::{Place, Store, StoreError};
use iosonde_job::plan::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, Progress, Start};
use iosonde_result::run::{Event, RunResult};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Minutes that may wait for the writer.
const WAITING_MAX: usize = 8;
/// Attempts to write that may fail one after the other where the run waits for them.
const AWAITED_FAILURES_MAX: u32 = 2;
/// Intervals that are held back while the writer is behind. With more, the run is kept at its end alone.
const HELD_BACK_MAX: usize = 36_000;

/// What the thread writes, and to where.
pub(super) struct RunWriter {
    /// The history.
    pub(super) place: Place,
    /// The study, if it is in the history.
    pub(super) study: Option<String>,
    /// The study without its runs.
    pub(super) head: KeptStudy,
    /// The run as it is known before it begins.
    pub(super) opening: KeptRun,
    /// Whether the observer may wait for the writer: simulated time can, and so can a run that this program only follows.
    pub(super) may_wait: bool,
}

/// What is left when all is written.
#[derive(Default)]
pub(super) struct Written {
    /// The run, if it lasted long enough.
    pub(super) run: Option<OpenRun>,
    /// Says to others that the study goes on, where it was begun here.
    pub(super) running: Option<RunningStudy>,
    /// Why not all of it was written.
    pub(super) error: Option<StoreError>,
}

enum Message {
    Block(Vec<Interval>),
    SoFar(Box<RunResult>),
}

impl RunWriter {
    /// Writes what comes until nothing comes any more, or nothing can be written.
    fn write(self, messages: &Receiver<Message>) -> Written {
        let mut written = Written::default();
        written.error = self.write_all(messages, &mut written).err();
        written
    }

    fn write_all(
        &self,
        messages: &Receiver<Message>,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        // The connection of the thread that measures stays with that thread.
        let mut store = Store::open_beside(&self.place)?;
        let mut waiting = News::default();
        let mut outcome = Ok(());
        let mut failures = 0;
        while let Ok(first) = messages.recv() {
            for message in std::iter::once(first).chain(messages.try_iter()) {
                match message {
                    Message::Block(block) => waiting.blocks.push(block),
                    Message::SoFar(result) => waiting.so_far = Some(result),
                }
            }
            outcome = self.write_news(&mut store, &waiting, written);
            let held_back: usize = waiting.blocks.iter().map(Vec::len).sum();
            failures = match outcome {
                Ok(()) => 0,
                Err(_) => failures + 1,
            };
            let is_given_up =
                held_back >= HELD_BACK_MAX || self.may_wait && failures >= AWAITED_FAILURES_MAX;
            match &outcome {
                Ok(()) => waiting = News::default(),
                Err(_) if is_given_up => break,
                // A history that is locked, or has no room, is tried again with the next minute.
                Err(_) => {}
            }
        }
        outcome
    }

    fn write_news(
        &self,
        store: &mut Store,
        news: &News,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        if let Some(run) = &mut written.run {
            return store.add_to_run(run, news);
        }
        let study = (self.study.as_deref(), &self.head);
        let begun = store.begin_run(study, &self.opening, news)?;
        if self.study.is_none() {
            written.running = store.mark_running(&begun.study);
        }
        written.run = Some(begun);
        Ok(())
    }
}

/// The thread that writes.
struct WriterThread {
    messages: SyncSender<Message>,
    thread: JoinHandle<Written>,
}

impl WriterThread {
    /// `None` where the system has no thread for it.
    fn begin(writer: RunWriter) -> Option<WriterThread> {
        let (messages, received) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("history".to_owned());
        let thread = thread.spawn(move || writer.write(&received)).ok()?;
        Some(WriterThread { messages, thread })
    }
}

/// Passes on what an observer sees, and has it written.
pub(super) struct WrittenRun<'a> {
    observer: &'a mut dyn Observer,
    /// What the first minute begins: runs shorter than that take no thread.
    writer: Option<RunWriter>,
    thread: Option<WriterThread>,
    labels: BTreeMap<String, String>,
    /// What the writer does not have.
    open: Vec<Interval>,
    /// Whether no more is written before the run has ended.
    is_given_up: bool,
    /// As in [`RunWriter`].
    may_wait: bool,
    so_far: SoFar,
    /// Whether the observer has asked for the statistics so far.
    is_asked: bool,
}

/// Where the statistics so far are that are written with each minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SoFar {
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
            so_far: SoFar::NotWanted,
            is_asked: false,
        }
    }

    /// Writes a run that this program only follows. The observer may wait: the run itself does not wait for it.
    pub(super) fn of_run_elsewhere(
        observer: &'a mut dyn Observer,
        writer: RunWriter,
    ) -> WrittenRun<'a> {
        let writer = RunWriter {
            may_wait: true,
            ..writer
        };
        WrittenRun::begin(observer, writer)
    }

    /// Called when the run has ended: without a result the incomplete last minute is written as well. The thread that still writes.
    pub(super) fn end(mut self, has_result: bool) -> Option<JoinHandle<Written>> {
        let WriterThread { messages, thread } = self.thread.take()?;
        if !has_result && !self.open.is_empty() {
            // A writer that has ended says why.
            let _ = messages.send(Message::Block(self.open));
        }
        Some(thread)
    }

    /// Hands it to the writer, unless that is behind: then it comes back.
    fn send(&mut self, message: Message) -> Result<(), Message> {
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
        match self.send(Message::Block(block)) {
            // An answer that has not come within a minute is asked for again.
            Ok(()) => self.so_far = SoFar::Wanted,
            Err(Message::Block(block)) if block.len() < HELD_BACK_MAX => self.open = block,
            Err(_) => self.is_given_up = true,
        }
    }
}

impl Observer for WrittenRun<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.observer.progress(progress)
    }

    fn wants_status(&mut self, at_ns: u64) -> bool {
        let is_asked = self.observer.wants_status(at_ns);
        self.is_asked |= is_asked;
        let is_due = self.so_far == SoFar::Wanted;
        if is_due {
            self.so_far = SoFar::Asked;
        }
        is_asked || is_due
    }

    fn status(&mut self, so_far: &RunResult) {
        if std::mem::take(&mut self.is_asked) {
            self.observer.status(so_far);
        }
        if self.so_far != SoFar::Asked {
            return;
        }
        self.so_far = SoFar::NotWanted;
        if !self.is_given_up {
            let mut so_far = Box::new(so_far.clone());
            so_far.labels.extend(self.labels.clone());
            // The next minute has newer ones.
            let _ = self.send(Message::SoFar(so_far));
        }
    }

    fn interval_ns(&self, plan: &Plan) -> u64 {
        self.observer.interval_ns(plan)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.take(interval.clone().compacted());
        self.observer.interval(interval)
    }

    fn start(&mut self) -> Start {
        self.observer.start()
    }

    fn event(&mut self, event: &Event) {
        self.observer.event(event);
    }
}

#[cfg(test)]
mod tests;
