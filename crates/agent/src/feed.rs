//! [`Feed`]: keeps the messages of the current run for its clients.
//!
//! The run adds messages and never waits for a client, whose slow connection must not affect it.

use crate::kept_message::KeptMessage;
use iosonde_job::Plan;
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::observer::{Control, Observer, Progress, Start};
use iosonde_result::run::Event;
use iosonde_result::spill_list::SpillList;
use iosonde_result::wire::{Message, ProgressReport, end_run, line};
use iosonde_result::{run::RunResult, session::RunError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of messages per batch. A client that returns after days gets several batches.
const NEWS_MAX: usize = 1000;
/// Size in bytes after which a batch gets no further message.
const NEWS_BYTES_MAX: usize = 4 << 20;

/// Messages and flags of the current run, shared by all connections.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
    /// Length of the intervals, as the client of the run requested it.
    interval_ns: AtomicU64,
    /// A client has requested to stop the run early, with a result.
    enough: AtomicBool,
    /// A client has requested an intermediate result.
    status: AtomicBool,
    hold: Mutex<Hold>,
}

/// State of the start barrier, where prepared jobs wait for the start request of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Hold {
    /// The jobs do not wait, or no longer.
    #[default]
    Free,
    /// The jobs will wait once they are prepared.
    Wanted,
    /// The jobs are waiting.
    Standing,
    /// The jobs start at this time.
    Until(Instant),
}

#[derive(Debug, Default)]
struct State {
    run: u64,
    is_running: bool,
    /// All messages, for clients that reconnect. A long run spills most of them to a file.
    messages: SpillList<KeptMessage>,
    progress: Option<Arc<str>>,
    /// Number of progress reports so far, so that a client knows whether it has the latest.
    progress_number: u64,
    /// The latest intermediate result, and the number of such results so far.
    status: Option<Arc<str>>,
    status_number: u64,
}

/// Position of a client in the messages of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    pub(crate) run: u64,
    pub(crate) have: usize,
    progress_number: u64,
    status_number: u64,
}

impl Position {
    pub(crate) fn new(run: u64, have: usize) -> Position {
        Position {
            run,
            have,
            progress_number: 0,
            status_number: 0,
        }
    }
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run. Returns `false` if another one is active.
    pub(crate) fn begin(&self, run: u64, interval_ns: u64, hold: bool) -> bool {
        let mut state = self.state();
        if state.is_running {
            return false;
        }
        *state = State {
            run,
            is_running: true,
            messages: SpillList::spilling_to(Arc::new(SpillFile::default())),
            ..State::default()
        };
        self.interval_ns.store(interval_ns, Relaxed);
        self.enough.store(false, Relaxed);
        self.status.store(false, Relaxed);
        *self.hold() = if hold { Hold::Wanted } else { Hold::Free };
        true
    }

    /// Whether this run is active, or was the last one.
    pub(crate) fn has(&self, run: u64) -> bool {
        self.state().run == run
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the start time of jobs that wait at the start barrier, or will.
    pub(crate) fn release(&self, run: u64, at: Instant) {
        if self.state().run == run {
            let mut hold = self.hold();
            if *hold != Hold::Free {
                *hold = Hold::Until(at);
            }
        }
    }

    /// Whether jobs wait at the start barrier.
    pub(crate) fn is_held(&self) -> bool {
        *self.hold() == Hold::Standing
    }

    /// Adds the message that the agent was terminated.
    pub(crate) fn ending(&self) {
        self.tell(&Message::Ending);
    }

    /// Ends the run with its outcome.
    pub(crate) fn end(&self, outcome: Result<RunResult, RunError>) {
        let sent = match &outcome {
            Ok(result) => self.sent_intervals(&result.intervals),
            Err(_) => 0,
        };
        end_run(outcome, sent, &mut |message| {
            let text = line(&message);
            let mut state = self.state();
            state.messages.push(KeptMessage::Line(text.into()));
            state.is_running &= !matches!(message, Message::Done(_));
            drop(state);
            self.changed.notify_all();
        });
    }

    /// Returns how many of the result's first intervals are unchanged among the messages.
    fn sent_intervals(&self, intervals: &Intervals) -> usize {
        let messages = self.state().messages.clone();
        let sent = messages.iter().filter_map(|message| match &*message {
            KeptMessage::Interval(interval) => Some(interval.clone()),
            KeptMessage::Line(_) => None,
        });
        let pairs = intervals.iter().zip(sent);
        pairs.take_while(|(one, other)| **one == **other).count()
    }

    /// Requests to stop this run early, with a result.
    pub(crate) fn stop(&self, run: u64) {
        if self.state().run == run {
            self.enough.store(true, Relaxed);
        }
    }

    /// Requests an intermediate result of this run.
    pub(crate) fn want_status(&self, run: u64) {
        if self.state().run == run {
            self.status.store(true, Relaxed);
        }
    }

    /// Whether a run is active.
    pub(crate) fn is_running(&self) -> bool {
        self.state().is_running
    }

    /// Returns the new messages after a position, waiting up to `wait`, and advances the position.
    pub(crate) fn news(&self, position: &mut Position, wait: Duration) -> Vec<Arc<str>> {
        let state = self.state();
        let is_old = |state: &mut State| {
            state.run != position.run
                || state.messages.len() <= position.have
                    && state.progress_number == position.progress_number
                    && state.status_number == position.status_number
        };
        let waited = self.changed.wait_timeout_while(state, wait, is_old);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.run != position.run {
            return Vec::new();
        }
        // A copy of the list is cheap. Encoding it after the unlock does not delay the run.
        let messages = (state.messages.len() > position.have).then(|| state.messages.clone());
        let mut last = Vec::new();
        if state.progress_number != position.progress_number {
            position.progress_number = state.progress_number;
            // Progress after the end of the run would follow its result.
            if state.is_running {
                last.extend(state.progress.clone());
            }
        }
        if state.status_number != position.status_number {
            position.status_number = state.status_number;
            if state.is_running {
                last.extend(state.status.clone());
            }
        }
        drop(state);
        let mut news = Vec::new();
        if let Some(messages) = messages {
            let mut bytes = 0;
            // Messages that cannot be read from the file are skipped.
            let mut end = messages.len().min(position.have + NEWS_MAX);
            for (index, message) in messages.indexed_from(position.have) {
                if index >= end {
                    break;
                }
                news.push(message.line());
                bytes += news.last().map_or(0, |line| line.len());
                if bytes >= NEWS_BYTES_MAX {
                    end = index + 1;
                }
            }
            position.have = end;
        }
        news.extend(last);
        news
    }

    fn tell(&self, message: &Message) {
        self.keep(KeptMessage::Line(line(message).into()));
    }

    fn keep(&self, message: KeptMessage) {
        self.state().messages.push(message);
        self.changed.notify_all();
    }

    fn control(&self) -> Control {
        if self.enough.load(Relaxed) {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

/// Adds the messages of a run.
impl Observer for &Feed {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        let text = line(&Message::Progress(ProgressReport::from(progress)));
        let mut state = self.state();
        state.progress = Some(text.into());
        state.progress_number += 1;
        drop(state);
        self.changed.notify_all();
        self.control()
    }

    fn wants_status(&mut self, _at_ns: u64) -> bool {
        self.status.swap(false, Relaxed)
    }

    fn status(&mut self, so_far: &RunResult) {
        let text = line(&Message::Status(Box::new(so_far.clone())));
        let mut state = self.state();
        state.status = Some(text.into());
        state.status_number += 1;
        drop(state);
        self.changed.notify_all();
    }

    fn interval_ns(&self, _plan: &Plan) -> u64 {
        self.interval_ns.load(Relaxed)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.keep(KeptMessage::Interval(Arc::new(
            interval.clone().compacted(),
        )));
        self.control()
    }

    fn start(&mut self) -> Start {
        let mut hold = self.hold();
        match *hold {
            Hold::Free => Start::Now,
            Hold::Until(at) => Start::At(at),
            Hold::Standing => Start::Wait,
            Hold::Wanted => {
                *hold = Hold::Standing;
                drop(hold);
                self.tell(&Message::Ready);
                Start::Wait
            }
        }
    }

    fn event(&mut self, event: &Event) {
        self.tell(&Message::Event(event.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_job::env::FakeEnv;
    use iosonde_result::session::Session;

    const NOW: Duration = Duration::ZERO;
    const SECOND: u64 = 1_000_000_000;

    fn event(message: &str) -> Event {
        Event {
            at_ns: 0,
            message: message.into(),
        }
    }

    #[test]
    fn a_listener_that_comes_back_gets_what_it_missed_and_no_more() {
        let feed = Feed::default();
        assert!(
            feed.begin(1, SECOND, false) && !feed.begin(2, SECOND, false),
            "one run at a time"
        );
        assert!(feed.has(1) && !feed.has(2));
        (&feed).event(&event("a"));
        let mut position = Position::new(1, 0);
        assert_eq!(feed.news(&mut position, NOW).len(), 1);
        assert_eq!(feed.news(&mut position, NOW).len(), 0);
        (&feed).event(&event("b"));
        feed.end(Err(RunError::Interrupted));
        let again = feed.news(&mut Position::new(1, 1), NOW);
        assert_eq!(again.len(), 2);
        assert!(again[0].contains("\"b\"") && again[1].contains("done"));
        assert!(
            feed.news(&mut Position::new(7, 0), NOW).is_empty(),
            "of another run"
        );
    }

    #[test]
    fn listener_gets_a_long_run_in_turns_whole_and_in_order() {
        const COUNT: u64 = 3500;
        let feed = Feed::default();
        feed.begin(1, SECOND, false);
        let interval = |number: u64| {
            let mut interval = Interval {
                start_ns: number,
                ..Interval::default()
            };
            interval.latency.record(number);
            interval
        };
        for number in 0..COUNT {
            (&feed).interval(&interval(number));
            if number % 700 == 0 {
                (&feed).event(&event("between"));
            }
        }
        for have in [0, 2345] {
            let mut position = Position::new(1, have);
            let mut found = Vec::new();
            loop {
                let news = feed.news(&mut position, NOW);
                if news.is_empty() {
                    break;
                }
                assert!(news.len() <= NEWS_MAX);
                found.extend(news);
            }
            let all = (0..COUNT).flat_map(|number| {
                let event = (number % 700 == 0).then(|| Message::Event(event("between")));
                [Message::Interval(Box::new(interval(number)))]
                    .into_iter()
                    .chain(event)
            });
            let expected: Vec<_> = all.skip(have).map(|message| line(&message)).collect();
            assert!(
                found.iter().map(|line| &**line).eq(expected.iter()),
                "{have}"
            );
        }
    }

    #[test]
    fn what_was_measured_by_now_is_told_once_to_who_asked() {
        let words = ["--name=a", "--ioengine=null", "--rw=read", "--size=64k"].map(Into::into);
        let plan = iosonde_job::parse(&words, &FakeEnv::new()).unwrap().plan;
        let so_far = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
        let feed = Feed::default();
        feed.begin(2, SECOND, false);
        feed.want_status(1);
        assert!(!(&feed).wants_status(0), "of another run");
        feed.want_status(2);
        assert!((&feed).wants_status(0) && !(&feed).wants_status(0), "once");
        (&feed).status(&so_far);
        let mut position = Position::new(2, 0);
        let news = feed.news(&mut position, NOW);
        assert!(
            news.len() == 1 && news[0].contains("\"status\""),
            "{news:?}"
        );
        assert_eq!(position.have, 0, "nobody who comes back needs it");
        assert!(feed.news(&mut position, NOW).is_empty());
        // The request does not apply to a new run.
        feed.want_status(2);
        feed.end(Err(RunError::Interrupted));
        feed.begin(3, SECOND, false);
        assert!(!(&feed).wants_status(0));
    }

    #[test]
    fn enough_ends_the_run_it_is_said_of() {
        let feed = Feed::default();
        feed.begin(1, SECOND, false);
        feed.stop(2);
        assert_eq!(feed.control(), Control::Continue);
        feed.stop(1);
        assert_eq!(feed.control(), Control::Stop);
        feed.end(Err(RunError::Interrupted));
        feed.begin(2, SECOND, false);
        assert_eq!(feed.control(), Control::Continue, "a new run begins afresh");
    }

    #[test]
    fn jobs_that_are_held_wait_for_the_word_of_their_run() {
        let feed = Feed::default();
        feed.begin(1, SECOND, true);
        assert!(!feed.is_held(), "not prepared yet");
        assert_eq!((&feed).start(), Start::Wait);
        assert!(feed.is_held());
        let news = feed.news(&mut Position::new(1, 0), NOW);
        assert!(news[0].contains("ready") && news.len() == 1, "{news:?}");
        let at = Instant::now();
        feed.release(2, at);
        assert_eq!((&feed).start(), Start::Wait, "of another run");
        feed.release(1, at);
        assert_eq!((&feed).start(), Start::At(at));
        feed.end(Err(RunError::Interrupted));
        feed.begin(2, SECOND, false);
        feed.release(2, at);
        assert_eq!((&feed).start(), Start::Now);
    }
}
