//! The common start of several pods: an instant on the clock of each.

use super::PodSession;
use super::ending::no_answer;
use crate::clock::{ClockExchange, Offset};
use crate::connection::{AgentEvent, unreadable};
use crate::setup_observer::{ANSWER_TIMEOUT, TICK};
use iosonde_result::observer::Observer;
use iosonde_result::run_error::RunError;
use iosonde_result::wire::AgentRequest;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Number of clock exchanges with each pod.
const EXCHANGES: usize = 10;
/// Lead of the common start, so that the request reaches all pods before it.
const START_LEAD: Duration = Duration::from_millis(200);

const _: () = assert!(EXCHANGES > 0);

impl PodSession<'_> {
    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Estimates the clock offset of each pod, and sends all pods their start time.
    pub(super) fn start(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        debug_assert!(self.waits_for_start());
        for index in 0..self.pods.len() {
            let mut exchanges = Vec::with_capacity(EXCHANGES);
            while exchanges.len() < EXCHANGES && self.pods[index].result.is_none() {
                exchanges.push(self.exchange(index, observer)?);
            }
            self.pods[index].offset = Offset::estimate(&exchanges);
        }
        let run = self.runs;
        let here_ns = self.now_ns() + START_LEAD.as_nanos() as u64;
        for pod in &mut self.pods {
            if let Some(offset) = pod.offset {
                let at_ns = offset.there_ns(here_ns);
                pod.start_ns = Some(at_ns);
                pod.connection.ask(&AgentRequest::Start { run, at_ns });
            }
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<ClockExchange, RunError> {
        let mut asked_ns = self.now_ns();
        self.pods[index].ask_clock();
        let (mut begun, mut is_second) = (Instant::now(), false);
        loop {
            let pod = &mut self.pods[index];
            match pod.connection.events.recv_timeout(TICK) {
                Ok(AgentEvent::Message(message)) => {
                    let received_ns = self.begun.elapsed().as_nanos() as u64;
                    pod.handle_message(message, observer)?;
                    if let Some(answer_ns) = pod.clock_ns {
                        return Ok(ClockExchange {
                            asked_ns,
                            answer_ns,
                            received_ns,
                        });
                    }
                }
                Ok(AgentEvent::Unreadable(problem)) => return Err(unreadable(problem)),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER_TIMEOUT => {}
                Err(RecvTimeoutError::Timeout) if is_second => return Err(no_answer(&pod.name)),
                broken => {
                    // A silent connection is retried once, a closed one without limit.
                    is_second = broken.is_err_and(|error| error == RecvTimeoutError::Timeout);
                    self.reconnect(index, observer)?;
                    (begun, asked_ns) = (Instant::now(), self.now_ns());
                    self.pods[index].ask_clock();
                }
            }
            if (self.watch.interrupts)() > 0 {
                return Err(RunError::Interrupted);
            }
        }
    }
}
