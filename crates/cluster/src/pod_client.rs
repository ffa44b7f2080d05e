//! [`PodClient`]: the connection to a pod, and the state of its run.

use crate::clock::Offset;
use crate::connection::Connection;
use crate::pod_set::StartedPod;
use crate::reconnect::first_request;
use iosonde_job::relocate::DEVICE;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Observer, PodProgress, WorkerState};
use iosonde_result::pods::PodRun;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterObstacle, RunError};
use iosonde_result::wire::{AgentMessage, AgentRequest, ProgressReport, ReceivedSeries, StopMode};
use std::collections::{BTreeMap, VecDeque};

/// One pod, and the messages received from it in the current run.
pub(crate) struct PodClient {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) scratch: Option<String>,
    pub(crate) connection: Connection,
    pub(crate) offset: Option<Offset>,
    /// Start time sent to the pod, on its own clock.
    pub(crate) start_ns: Option<u64>,
    pub(crate) have: usize,
    /// Request that started the run, if this client did.
    asked: Option<AgentRequest>,
    /// Whether the agent has sent any message of the run.
    is_known: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_cut_short: bool,
    pub(crate) progress: Option<ProgressReport>,
    /// Intervals not yet added to those of the other pods.
    pub(crate) intervals: VecDeque<Interval>,
    series: ReceivedSeries,
    /// p50 and p99 of the latest interval with I/O.
    latency_ns: Option<(u64, u64)>,
    /// Reading of the pod's clock in answer to the last request.
    pub(crate) clock_ns: Option<u64>,
    /// Clock requests that the pod has not answered.
    clocks_due: u32,
    /// Intermediate result, in answer to the last request.
    pub(crate) status: Option<RunResult>,
    pub(crate) result: Option<RunResult>,
}

impl PodClient {
    pub(crate) fn new(pod: StartedPod, is_block: bool) -> PodClient {
        PodClient {
            name: pod.name,
            labels: pod.labels,
            scratch: (!is_block).then_some(pod.scratch),
            connection: pod.connection,
            offset: None,
            start_ns: None,
            asked: None,
            is_known: false,
            have: 0,
            is_ready: false,
            is_cut_short: false,
            progress: None,
            intervals: VecDeque::new(),
            series: ReceivedSeries::default(),
            latency_ns: None,
            clock_ns: None,
            clocks_due: 0,
            status: None,
            result: None,
        }
    }

    /// Returns the path that plans use: a directory of the volume, or its device.
    pub(crate) fn path(&self) -> &str {
        self.scratch.as_deref().unwrap_or(DEVICE)
    }

    /// Requests a run and resets the state of the previous one.
    pub(crate) fn begin(&mut self, request: AgentRequest) {
        self.start_ns = None;
        self.have = 0;
        (self.is_ready, self.is_cut_short) = (false, false);
        self.progress = None;
        self.intervals.clear();
        self.series = ReceivedSeries::default();
        self.latency_ns = None;
        self.status = None;
        self.result = None;
        self.is_known = false;
        self.connection.ask(&request);
        self.asked = Some(request);
    }

    /// Requests the pod's clock. [`PodClient::clock_ns`] is set once all requests are answered.
    pub(crate) fn ask_clock(&mut self) {
        self.clock_ns = None;
        self.clocks_due += 1;
        self.connection.ask(&AgentRequest::Clock);
    }

    /// Resumes the run over a new connection. `stops` are the stop requests sent so far.
    pub(crate) fn resume_run(&mut self, connection: Connection, run: u64, stops: &[StopMode]) {
        self.connection = connection;
        self.clocks_due = 0;
        let request = first_request(self.asked.as_ref(), self.is_known, run, self.have);
        self.connection.ask(&request);
        // The start and stop requests may have been lost with the old connection.
        if let Some(at_ns) = self.start_ns {
            self.connection.ask(&AgentRequest::Start { run, at_ns });
        }
        for stop in stops {
            let stop = *stop;
            self.connection.ask(&AgentRequest::Stop { run, stop });
        }
    }

    pub(crate) fn handle_message(
        &mut self,
        message: AgentMessage,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        self.is_known |= message.is_of_a_run();
        self.have += usize::from(message.is_kept());
        match message {
            AgentMessage::Ready => self.is_ready = true,
            AgentMessage::Clock { now_ns } => {
                self.clocks_due = self.clocks_due.saturating_sub(1);
                self.clock_ns = (self.clocks_due == 0).then_some(now_ns);
            }
            AgentMessage::Progress(progress) => self.progress = Some(progress),
            AgentMessage::Interval(interval) => {
                let percentile = |percent| interval.latency.percentile(percent);
                let latest = percentile(50.0).zip(percentile(99.0));
                self.latency_ns = latest.or(self.latency_ns);
                self.series.add_interval(&interval);
                self.intervals.push_back(*interval);
            }
            AgentMessage::Status(so_far) => self.status = Some(*so_far),
            AgentMessage::Event(event) => observer.event(&event),
            AgentMessage::Ending => self.is_cut_short = true,
            // Also if the pod was terminated during layout, which its agent reports as interrupted.
            AgentMessage::Done(_) if self.is_cut_short => {
                return Err(RunError::lost(
                    FailedObject::only_pod(),
                    FailureCondition::Terminated,
                ));
            }
            AgentMessage::Series(part) => self.series.add_part(*part),
            AgentMessage::Done(Ok(mut result)) => {
                self.series.complete(&mut result);
                self.result = Some(*result);
            }
            AgentMessage::Done(Err(error)) => return Err(error),
            AgentMessage::Refused(problem) => {
                return Err(ClusterObstacle::AgentBusy { problem }.into());
            }
            AgentMessage::Hello { .. }
            | AgentMessage::Alive
            | AgentMessage::Place(_)
            | AgentMessage::Node(_)
            | AgentMessage::CachesDropped(_)
            | AgentMessage::SharedFile(_)
            | AgentMessage::LogPart(_)
            | AgentMessage::LogsEnd(_)
            | AgentMessage::Sample(_) => {}
        }
        Ok(())
    }

    /// Requests an intermediate result, stored in [`PodClient::status`].
    pub(crate) fn ask_status(&mut self, run: u64) {
        self.status = None;
        self.connection.ask(&AgentRequest::Status { run });
    }

    /// Wraps a result of the pod for combining it with those of the others.
    pub(crate) fn pod_run(
        &self,
        mut result: RunResult,
        labels: &BTreeMap<String, String>,
    ) -> PodRun {
        result.labels.extend(labels.clone());
        result.labels.extend(self.labels.clone());
        let delay_ns = result.workers.first().map(|worker| worker.start_delay_ns);
        PodRun {
            name: self.name.clone(),
            node: self.node(),
            started_ns: delay_ns.unwrap_or(0),
            clock_error_ns: self.offset.map_or(0, |offset| offset.error_ns),
            result,
        }
    }

    /// Returns the progress of the pod for displays.
    pub(crate) fn pod_progress(&self, number: usize) -> PodProgress {
        let workers = self.progress.iter().flat_map(|progress| &progress.workers);
        // The running worker in the earliest state, else a waiting one, else one that has ended.
        let behind = workers.min_by_key(|worker| {
            let waits = worker.state == WorkerState::NotStarted;
            (worker.state.is_over(), waits, worker.state as u8)
        });
        let progress = self.progress.as_ref().filter(|_| self.result.is_none());
        let state = match self.result {
            Some(_) => Some(WorkerState::Finished),
            None => behind.map(|worker| worker.state),
        };
        PodProgress {
            number,
            node: self.node(),
            state,
            job: behind.map_or(0, |worker| worker.job),
            rate: progress.map(|progress| progress.rate).unwrap_or_default(),
            latency_ns: self.latency_ns.filter(|_| self.result.is_none()),
            left_ns: progress.and_then(|progress| progress.left_ns),
        }
    }

    pub(crate) fn node(&self) -> String {
        self.labels.get("node").cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::take_requests;
    use iosonde_job::plan::PerDirection;
    use iosonde_machine::system_env::SystemEnv;
    use iosonde_result::interval::IntervalCounts;
    use iosonde_result::observer::WorkerProgress;
    use tokio::sync::mpsc::UnboundedReceiver;

    /// Returns a pod after its run was requested, the requests it receives, and the run's request.
    fn begun() -> (PodClient, UnboundedReceiver<String>, AgentRequest) {
        let words = ["--name=t", "--rw=read", "--size=1m"].map(Into::into);
        let plan = iosonde_job::parse(&words, &SystemEnv::default()).unwrap();
        let request = AgentRequest::Run {
            run: 1,
            plan: Box::new(plan.plan),
            interval_ns: 0,
            hold: true,
            consent: None,
            cold: false,
        };
        let (connection, mut agent, _) = Connection::fake();
        let pod = StartedPod {
            name: "pod".to_owned(),
            labels: BTreeMap::new(),
            scratch: String::new(),
            connection,
        };
        let mut client = PodClient::new(pod, false);
        client.begin(request.clone());
        assert_eq!(take_requests(&mut agent), std::slice::from_ref(&request));
        (client, agent, request)
    }

    /// The API server may vanish while pods prepare or wait at the start barrier without messages.
    #[test]
    fn unstarted_pod_is_followed_again_after_reconnect() {
        let (mut client, _agent, request) = begun();
        // Only the agent knows whether the plan has arrived.
        let (connection, mut agent, _) = Connection::fake();
        client.resume_run(connection, 1, &[]);
        assert_eq!(take_requests(&mut agent), [request]);
        client.handle_message(AgentMessage::Ready, &mut ()).unwrap();
        client.start_ns = Some(7);
        let (connection, mut agent, _) = Connection::fake();
        client.resume_run(connection, 1, &[StopMode::Interrupt]);
        let stop = StopMode::Interrupt;
        let expected = [
            AgentRequest::Follow { run: 1, have: 1 },
            AgentRequest::Start { run: 1, at_ns: 7 },
            AgentRequest::Stop { run: 1, stop },
        ];
        assert_eq!(take_requests(&mut agent), expected);
    }

    #[test]
    fn slowest_worker_describes_the_state_of_its_pod() {
        let (mut client, _agent, _) = begun();
        assert_eq!(
            (client.pod_progress(3).number, client.pod_progress(3).state),
            (3, None)
        );
        let worker = |state, job| WorkerProgress {
            state,
            job,
            open_files: 0,
            counts: PerDirection::default(),
        };
        let mut rate: PerDirection<IntervalCounts> = PerDirection::default();
        rate.read.ios = 7;
        let report = ProgressReport {
            at_ns: 1,
            workers: vec![
                worker(WorkerState::Finished, 0),
                worker(WorkerState::Running, 2),
                worker(WorkerState::Layout, 1),
                worker(WorkerState::NotStarted, 3),
            ],
            rate,
            left_ns: Some(5),
            done: None,
        };
        client
            .handle_message(AgentMessage::Progress(report), &mut ())
            .unwrap();
        let mut interval = Interval::default();
        interval.latency.record(1000);
        client
            .handle_message(AgentMessage::Interval(Box::new(interval)), &mut ())
            .unwrap();
        let progress_row = client.pod_progress(0);
        assert_eq!(
            (progress_row.state, progress_row.job),
            (Some(WorkerState::Layout), 1)
        );
        assert_eq!(
            (progress_row.rate.read.ios, progress_row.left_ns),
            (7, Some(5))
        );
        assert!(
            progress_row
                .latency_ns
                .is_some_and(|(p50, p99)| p50 == p99 && p50 >= 1000)
        );
    }

    #[test]
    fn clock_answer_to_an_earlier_request_is_ignored() {
        let (mut client, _agent, _) = begun();
        client.ask_clock();
        client.ask_clock();
        client
            .handle_message(AgentMessage::Clock { now_ns: 1 }, &mut ())
            .unwrap();
        assert_eq!(client.clock_ns, None);
        client
            .handle_message(AgentMessage::Clock { now_ns: 2 }, &mut ())
            .unwrap();
        assert_eq!(client.clock_ns, Some(2));
    }
}
