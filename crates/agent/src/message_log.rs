//! [`MessageLog`]: keeps the messages of the current run for its clients.
//!
//! The run adds messages and never waits for a client, whose slow connection must not affect it.

use crate::kept_message::KeptMessage;
use iosonde_job::Plan;
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::observer::{Control, Observer, RunProgress, StartDecision};
use iosonde_result::run::RunEvent;
use iosonde_result::spill_list::SpillList;
use iosonde_result::wire::{AgentMessage, ProgressReport, end_run, json_line};
use iosonde_result::{run::RunResult, run_error::RunError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of messages per batch. A client that returns after days gets several batches.
const BATCH_MESSAGES_MAX: usize = 1000;
/// Size in bytes after which a batch gets no further message.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Messages and flags of the current run, shared by all connections.
#[derive(Debug, Default)]
pub(crate) struct MessageLog {
    state: Mutex<MessageLogState>,
    changed: Condvar,
    /// Length of the intervals, as the client of the run requested it.
    interval_ns: AtomicU64,
    /// A client has requested to stop the run early, with a result.
    stop_requested: AtomicBool,
    /// A client has requested an intermediate result.
    status_requested: AtomicBool,
    hold: Mutex<BarrierState>,
}

/// State of the start barrier, where prepared jobs wait for the start request of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum BarrierState {
    /// The jobs do not wait, or no longer.
    #[default]
    Free,
    /// The jobs will wait once they are prepared.
    Wanted,
    /// The jobs are waiting.
    Waiting,
    /// The jobs start at this time.
    Until(Instant),
}

#[derive(Debug, Default)]
struct MessageLogState {
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
pub(crate) struct LogPosition {
    pub(crate) run: u64,
    pub(crate) have: usize,
    progress_number: u64,
    status_number: u64,
}

impl LogPosition {
    pub(crate) fn new(run: u64, have: usize) -> LogPosition {
        LogPosition {
            run,
            have,
            progress_number: 0,
            status_number: 0,
        }
    }
}

impl MessageLog {
    fn state(&self) -> MutexGuard<'_, MessageLogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run. Returns `false` if another one is active.
    pub(crate) fn begin_run(&self, run: u64, interval_ns: u64, hold: bool) -> bool {
        let mut state = self.state();
        if state.is_running {
            return false;
        }
        *state = MessageLogState {
            run,
            is_running: true,
            messages: SpillList::spilling_to(Arc::new(SpillFile::default())),
            ..MessageLogState::default()
        };
        self.interval_ns.store(interval_ns, Relaxed);
        self.stop_requested.store(false, Relaxed);
        self.status_requested.store(false, Relaxed);
        *self.hold() = if hold {
            BarrierState::Wanted
        } else {
            BarrierState::Free
        };
        true
    }

    /// Whether this run is active, or was the last one.
    pub(crate) fn has_run(&self, run: u64) -> bool {
        self.state().run == run
    }

    fn hold(&self) -> MutexGuard<'_, BarrierState> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the start time of jobs that wait at the start barrier, or will.
    pub(crate) fn release(&self, run: u64, at: Instant) {
        if self.state().run == run {
            let mut hold = self.hold();
            if *hold != BarrierState::Free {
                *hold = BarrierState::Until(at);
            }
        }
    }

    /// Whether jobs wait at the start barrier.
    pub(crate) fn has_waiting_jobs(&self) -> bool {
        *self.hold() == BarrierState::Waiting
    }

    /// Adds the message that the agent was terminated.
    pub(crate) fn add_termination(&self) {
        self.add_message(&AgentMessage::Ending);
    }

    /// Ends the run with its outcome.
    pub(crate) fn finish_run(&self, outcome: Result<RunResult, RunError>) {
        let sent = match &outcome {
            Ok(result) => self.sent_intervals(&result.intervals),
            Err(_) => 0,
        };
        end_run(outcome, sent, &mut |message| {
            let text = json_line(&message);
            let mut state = self.state();
            state.messages.push(KeptMessage::Line(text.into()));
            state.is_running &= !matches!(message, AgentMessage::Done(_));
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
    pub(crate) fn request_stop(&self, run: u64) {
        if self.state().run == run {
            self.stop_requested.store(true, Relaxed);
        }
    }

    /// Requests an intermediate result of this run.
    pub(crate) fn request_status(&self, run: u64) {
        if self.state().run == run {
            self.status_requested.store(true, Relaxed);
        }
    }

    /// Whether a run is active.
    pub(crate) fn is_running(&self) -> bool {
        self.state().is_running
    }

    /// Returns the new messages after a position, waiting up to `wait`, and advances the position.
    pub(crate) fn wait_for_messages(
        &self,
        position: &mut LogPosition,
        wait: Duration,
    ) -> Vec<Arc<str>> {
        let state = self.state();
        let is_old = |state: &mut MessageLogState| {
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
        let mut batch = Vec::new();
        if let Some(messages) = messages {
            let mut bytes = 0;
            // Messages that cannot be read from the file are skipped.
            let mut end = messages.len().min(position.have + BATCH_MESSAGES_MAX);
            for (index, message) in messages.indexed_from(position.have) {
                if index >= end {
                    break;
                }
                batch.push(message.line());
                bytes += batch.last().map_or(0, |line| line.len());
                if bytes >= BATCH_BYTES_MAX {
                    end = index + 1;
                }
            }
            position.have = end;
        }
        batch.extend(last);
        batch
    }

    fn add_message(&self, message: &AgentMessage) {
        self.append(KeptMessage::Line(json_line(message).into()));
    }

    fn append(&self, message: KeptMessage) {
        self.state().messages.push(message);
        self.changed.notify_all();
    }

    fn control(&self) -> Control {
        if self.stop_requested.load(Relaxed) {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

/// Adds the messages of a run.
impl Observer for &MessageLog {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        let text = json_line(&AgentMessage::Progress(ProgressReport::from(progress)));
        let mut state = self.state();
        state.progress = Some(text.into());
        state.progress_number += 1;
        drop(state);
        self.changed.notify_all();
        self.control()
    }

    fn wants_status(&mut self, _at_ns: u64) -> bool {
        self.status_requested.swap(false, Relaxed)
    }

    fn status(&mut self, so_far: &RunResult) {
        let text = json_line(&AgentMessage::Status(Box::new(so_far.clone())));
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
        self.append(KeptMessage::Interval(Arc::new(
            interval.clone().compacted(),
        )));
        self.control()
    }

    fn start(&mut self) -> StartDecision {
        let mut hold = self.hold();
        match *hold {
            BarrierState::Free => StartDecision::Now,
            BarrierState::Until(at) => StartDecision::At(at),
            BarrierState::Waiting => StartDecision::Wait,
            BarrierState::Wanted => {
                *hold = BarrierState::Waiting;
                drop(hold);
                self.add_message(&AgentMessage::Ready);
                StartDecision::Wait
            }
        }
    }

    fn event(&mut self, event: &RunEvent) {
        self.add_message(&AgentMessage::Event(event.clone()));
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

    fn event(message: &str) -> RunEvent {
        RunEvent {
            at_ns: 0,
            message: message.into(),
        }
    }

    #[test]
    fn reconnected_listener_gets_only_missed_messages() {
        let log = MessageLog::default();
        assert!(
            log.begin_run(1, SECOND, false) && !log.begin_run(2, SECOND, false),
            "one run at a time"
        );
        assert!(log.has_run(1) && !log.has_run(2));
        (&log).event(&event("a"));
        let mut position = LogPosition::new(1, 0);
        assert_eq!(log.wait_for_messages(&mut position, NOW).len(), 1);
        assert_eq!(log.wait_for_messages(&mut position, NOW).len(), 0);
        (&log).event(&event("b"));
        log.finish_run(Err(RunError::Interrupted));
        let again = log.wait_for_messages(&mut LogPosition::new(1, 1), NOW);
        assert_eq!(again.len(), 2);
        assert!(again[0].contains("\"b\"") && again[1].contains("done"));
        assert!(
            log.wait_for_messages(&mut LogPosition::new(7, 0), NOW)
                .is_empty(),
            "of another run"
        );
    }

    #[test]
    fn listener_gets_a_long_run_complete_and_in_order() {
        const COUNT: u64 = 3500;
        let log = MessageLog::default();
        log.begin_run(1, SECOND, false);
        let interval = |number: u64| {
            let mut interval = Interval {
                start_ns: number,
                ..Interval::default()
            };
            interval.latency.record(number);
            interval
        };
        for number in 0..COUNT {
            (&log).interval(&interval(number));
            if number % 700 == 0 {
                (&log).event(&event("between"));
            }
        }
        for have in [0, 2345] {
            let mut position = LogPosition::new(1, have);
            let mut found = Vec::new();
            loop {
                let batch = log.wait_for_messages(&mut position, NOW);
                if batch.is_empty() {
                    break;
                }
                assert!(batch.len() <= BATCH_MESSAGES_MAX);
                found.extend(batch);
            }
            let all = (0..COUNT).flat_map(|number| {
                let event = (number % 700 == 0).then(|| AgentMessage::Event(event("between")));
                [AgentMessage::Interval(Box::new(interval(number)))]
                    .into_iter()
                    .chain(event)
            });
            let expected: Vec<_> = all.skip(have).map(|message| json_line(&message)).collect();
            assert!(
                found.iter().map(|line| &**line).eq(expected.iter()),
                "{have}"
            );
        }
    }

    #[test]
    fn interim_status_is_sent_once_per_request() {
        let words = ["--name=a", "--ioengine=null", "--rw=read", "--size=64k"].map(Into::into);
        let plan = iosonde_job::parse(&words, &FakeEnv::new()).unwrap().plan;
        let so_far = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
        let log = MessageLog::default();
        log.begin_run(2, SECOND, false);
        log.request_status(1);
        assert!(!(&log).wants_status(0), "of another run");
        log.request_status(2);
        assert!((&log).wants_status(0) && !(&log).wants_status(0), "once");
        (&log).status(&so_far);
        let mut position = LogPosition::new(2, 0);
        let batch = log.wait_for_messages(&mut position, NOW);
        assert!(
            batch.len() == 1 && batch[0].contains("\"status\""),
            "{batch:?}"
        );
        assert_eq!(
            position.have, 0,
            "a client that reconnects does not need it"
        );
        assert!(log.wait_for_messages(&mut position, NOW).is_empty());
        // The request does not apply to a new run.
        log.request_status(2);
        log.finish_run(Err(RunError::Interrupted));
        log.begin_run(3, SECOND, false);
        assert!(!(&log).wants_status(0));
    }

    #[test]
    fn stop_request_ends_only_the_named_run() {
        let log = MessageLog::default();
        log.begin_run(1, SECOND, false);
        log.request_stop(2);
        assert_eq!(log.control(), Control::Continue);
        log.request_stop(1);
        assert_eq!(log.control(), Control::Stop);
        log.finish_run(Err(RunError::Interrupted));
        log.begin_run(2, SECOND, false);
        assert_eq!(log.control(), Control::Continue, "a new run begins afresh");
    }

    #[test]
    fn held_jobs_wait_for_the_start_of_their_run() {
        let log = MessageLog::default();
        log.begin_run(1, SECOND, true);
        assert!(!log.has_waiting_jobs(), "not prepared yet");
        assert_eq!((&log).start(), StartDecision::Wait);
        assert!(log.has_waiting_jobs());
        let batch = log.wait_for_messages(&mut LogPosition::new(1, 0), NOW);
        assert!(batch[0].contains("ready") && batch.len() == 1, "{batch:?}");
        let at = Instant::now();
        log.release(2, at);
        assert_eq!((&log).start(), StartDecision::Wait, "of another run");
        log.release(1, at);
        assert_eq!((&log).start(), StartDecision::At(at));
        log.finish_run(Err(RunError::Interrupted));
        log.begin_run(2, SECOND, false);
        log.release(2, at);
        assert_eq!((&log).start(), StartDecision::Now);
    }
}
