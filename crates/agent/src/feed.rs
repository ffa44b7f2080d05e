//! The messages of the current run, kept for whoever listens.
//!
//! The run writes here and never waits for a client: a connection that is slow or gone must not change what is measured.

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

/// Messages that a listener gets at once: one that comes back after days gets them in turns.
const NEWS_MAX: usize = 1000;
/// Bytes after which it gets no further message at once.
const NEWS_BYTES_MAX: usize = 4 << 20;

/// What the listeners of a run share.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
    /// How long intervals are to be, as the run's client wants it.
    interval_ns: AtomicU64,
    /// A client has seen enough.
    enough: AtomicBool,
    /// A client wants to know what has been measured by now.
    status: AtomicBool,
    hold: Mutex<Hold>,
}

/// Whether the jobs of a run wait for a word, once they are prepared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Hold {
    /// They do not, or no longer.
    #[default]
    Free,
    /// They will.
    Wanted,
    /// They do.
    Standing,
    /// They start then.
    Until(Instant),
}

#[derive(Debug, Default)]
struct State {
    run: u64,
    is_running: bool,
    /// A client that comes back may need all of them: of a long run most are in a file.
    messages: SpillList<KeptMessage>,
    progress: Option<Arc<str>>,
    /// Counts the progress reports, so that a listener knows whether it has seen the latest.
    progress_number: u64,
    /// What had been measured when a client last wanted to know, and how often that was.
    status: Option<Arc<str>>,
    status_number: u64,
}

/// How far a listener has read.
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

    /// Begins a run, unless one goes on.
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

    /// Whether this run goes on, or was the last.
    pub(crate) fn has(&self, run: u64) -> bool {
        self.state().run == run
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jobs that wait, or will, start then.
    pub(crate) fn release(&self, run: u64, at: Instant) {
        if self.state().run == run {
            let mut hold = self.hold();
            if *hold != Hold::Free {
                *hold = Hold::Until(at);
            }
        }
    }

    /// Whether jobs wait for a word.
    pub(crate) fn is_held(&self) -> bool {
        *self.hold() == Hold::Standing
    }

    /// The agent was told to end.
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

    /// How many of a result's intervals clients have, or get, as they are.
    fn sent_intervals(&self, intervals: &Intervals) -> usize {
        let messages = self.state().messages.clone();
        let sent = messages.iter().filter_map(|message| match &*message {
            KeptMessage::Interval(interval) => Some(interval.clone()),
            KeptMessage::Line(_) => None,
        });
        let pairs = intervals.iter().zip(sent);
        pairs.take_while(|(one, other)| **one == **other).count()
    }

    /// A client has seen enough of this run.
    pub(crate) fn stop(&self, run: u64) {
        if self.state().run == run {
            self.enough.store(true, Relaxed);
        }
    }

    /// A client wants to know what this run has measured by now.
    pub(crate) fn want_status(&self, run: u64) {
        if self.state().run == run {
            self.status.store(true, Relaxed);
        }
    }

    /// Whether a run goes on.
    pub(crate) fn is_running(&self) -> bool {
        self.state().is_running
    }

    /// What is new behind a position, waiting a moment for it; moves the position on.
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
        // Copies share what they hold. They become lines when the run can go on.
        let messages = (state.messages.len() > position.have).then(|| state.messages.clone());
        let mut last = Vec::new();
        if state.progress_number != position.progress_number {
            position.progress_number = state.progress_number;
            // Progress of a run that has ended would come behind its result.
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
            // What a file does not give back is passed over.
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

/// Watches a run on behalf of the listeners.
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
        // A new run knows nothing of it.
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
