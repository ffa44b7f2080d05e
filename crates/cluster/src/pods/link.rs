//! [`Link`]: the connection to one of several pods, and the state of its run.

use crate::clock::Offset;
use crate::reconnect::resumed;
use crate::runner::MadePod;
use crate::session::refused;
use crate::transport::Connection;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Observer, PodProgress, WorkerState};
use iosonde_result::pods::PodRun;
use iosonde_result::run::RunResult;
use iosonde_result::session::RunError;
use iosonde_result::wire::{Message, ProgressReport, ReceivedSeries, Request, Stop};
use std::collections::{BTreeMap, VecDeque};

/// One pod, and the messages received from it in the current run.
pub(super) struct Link {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) scratch: Option<String>,
    pub(super) connection: Connection,
    pub(super) offset: Option<Offset>,
    /// Start time sent to the pod, on its own clock.
    pub(super) start_ns: Option<u64>,
    pub(super) have: usize,
    /// Request that started the run, if this client did.
    asked: Option<Request>,
    /// Whether the agent has sent any message of the run.
    is_known: bool,
    pub(super) is_ready: bool,
    pub(super) is_cut_short: bool,
    pub(super) progress: Option<ProgressReport>,
    /// Intervals not yet added to those of the other pods.
    pub(super) intervals: VecDeque<Interval>,
    series: ReceivedSeries,
    /// p50 and p99 of the latest interval with I/O.
    latency_ns: Option<(u64, u64)>,
    /// Reading of the pod's clock in answer to the last request.
    pub(super) clock_ns: Option<u64>,
    /// Clock requests that the pod has not answered.
    clocks_due: u32,
    /// Intermediate result, in answer to the last request.
    pub(super) status: Option<RunResult>,
    pub(super) result: Option<RunResult>,
}

impl Link {
    pub(super) fn new(pod: MadePod, is_block: bool) -> Link {
        Link {
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

    /// Requests a run and resets the state of the previous one.
    pub(super) fn begin(&mut self, request: Request) {
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

    /// Requests the pod's clock. [`Link::clock_ns`] is set once all such requests are answered.
    pub(super) fn ask_clock(&mut self) {
        self.clock_ns = None;
        self.clocks_due += 1;
        self.connection.ask(&Request::Clock);
    }

    /// Resumes the run over a new connection. `stops` are the stop requests sent so far.
    pub(super) fn take_up(&mut self, connection: Connection, run: u64, stops: &[Stop]) {
        self.connection = connection;
        self.clocks_due = 0;
        let request = resumed(self.asked.as_ref(), self.is_known, run, self.have);
        self.connection.ask(&request);
        // The start and stop requests may have been lost with the old connection.
        if let Some(at_ns) = self.start_ns {
            self.connection.ask(&Request::Start { run, at_ns });
        }
        for stop in stops {
            let stop = *stop;
            self.connection.ask(&Request::Stop { run, stop });
        }
    }

    pub(super) fn hear(
        &mut self,
        message: Message,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        self.is_known |= message.is_of_a_run();
        self.have += usize::from(message.is_kept());
        match message {
            Message::Ready => self.is_ready = true,
            Message::Clock { now_ns } => {
                self.clocks_due = self.clocks_due.saturating_sub(1);
                self.clock_ns = (self.clocks_due == 0).then_some(now_ns);
            }
            Message::Progress(progress) => self.progress = Some(progress),
            Message::Interval(interval) => {
                let percentile = |percent| interval.latency.percentile(percent);
                let latest = percentile(50.0).zip(percentile(99.0));
                self.latency_ns = latest.or(self.latency_ns);
                self.series.add_interval(&interval);
                self.intervals.push_back(*interval);
            }
            Message::Status(so_far) => self.status = Some(*so_far),
            Message::Event(event) => observer.event(&event),
            Message::Ending => self.is_cut_short = true,
            // Also if the pod was terminated during layout, which its agent reports as interrupted.
            Message::Done(_) if self.is_cut_short => {
                return Err(RunError::Lost {
                    what: format!("the pod {}", self.name),
                    cause: "it was told to end".to_owned(),
                    remedy: "see `kubectl describe pod`, and run it again".to_owned(),
                });
            }
            Message::Series(part) => self.series.add_part(*part),
            Message::Done(Ok(mut result)) => {
                self.series.complete(&mut result);
                self.result = Some(*result);
            }
            Message::Done(Err(error)) => return Err(error),
            Message::Refused(problem) => return Err(refused(problem)),
            Message::Hello { .. } | Message::Alive | Message::Place(_) | Message::Sample(_) => {}
        }
        Ok(())
    }

    /// Requests an intermediate result, stored in [`Link::status`].
    pub(super) fn ask_status(&mut self, run: u64) {
        self.status = None;
        self.connection.ask(&Request::Status { run });
    }

    /// Wraps a result of the pod for combining it with those of the others.
    pub(super) fn run_of(
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
    pub(super) fn stands(&self, number: usize) -> PodProgress {
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

    pub(super) fn node(&self) -> String {
        self.labels.get("node").cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::PerDirection;
    use iosonde_machine::system_env::SystemEnv;
    use iosonde_result::interval::IntervalCounts;
    use iosonde_result::observer::WorkerProgress;
    use tokio::sync::mpsc::UnboundedReceiver;

    struct Nobody;

    impl Observer for Nobody {}

    fn asked(from: &mut UnboundedReceiver<String>) -> Vec<Request> {
        let mut all = Vec::new();
        while let Ok(text) = from.try_recv() {
            all.push(serde_json::from_str(&text).unwrap());
        }
        all
    }

    /// Returns a pod after its run was requested, the requests it receives, and the run's request.
    fn begun() -> (Link, UnboundedReceiver<String>, Request) {
        let words = ["--name=t", "--rw=read", "--size=1m"].map(Into::into);
        let plan = iosonde_job::parse(&words, &SystemEnv::default()).unwrap();
        let request = Request::Run {
            run: 1,
            plan: Box::new(plan.plan),
            interval_ns: 0,
            hold: true,
            consent: None,
        };
        let (connection, mut agent, _) = Connection::fake();
        let pod = MadePod {
            name: "pod".to_owned(),
            labels: BTreeMap::new(),
            scratch: String::new(),
            connection,
        };
        let mut link = Link::new(pod, false);
        link.begin(request.clone());
        assert_eq!(asked(&mut agent), std::slice::from_ref(&request));
        (link, agent, request)
    }

    /// The API server may vanish while pods prepare or wait at the start barrier without messages.
    #[test]
    fn a_pod_that_has_not_begun_to_measure_is_taken_up_too() {
        let (mut link, _agent, request) = begun();
        // Only the agent knows whether the plan has arrived.
        let (connection, mut agent, _) = Connection::fake();
        link.take_up(connection, 1, &[]);
        assert_eq!(asked(&mut agent), [request]);
        link.hear(Message::Ready, &mut Nobody).unwrap();
        link.start_ns = Some(7);
        let (connection, mut agent, _) = Connection::fake();
        link.take_up(connection, 1, &[Stop::Interrupt]);
        let stop = Stop::Interrupt;
        let expected = [
            Request::Follow { run: 1, have: 1 },
            Request::Start { run: 1, at_ns: 7 },
            Request::Stop { run: 1, stop },
        ];
        assert_eq!(asked(&mut agent), expected);
    }

    #[test]
    fn of_a_pods_workers_the_one_that_is_the_farthest_behind_says_what_it_does() {
        let (mut link, _agent, _) = begun();
        assert_eq!((link.stands(3).number, link.stands(3).state), (3, None));
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
        link.hear(Message::Progress(report), &mut Nobody).unwrap();
        let mut interval = Interval::default();
        interval.latency.record(1000);
        link.hear(Message::Interval(Box::new(interval)), &mut Nobody)
            .unwrap();
        let stands = link.stands(0);
        assert_eq!((stands.state, stands.job), (Some(WorkerState::Layout), 1));
        assert_eq!((stands.rate.read.ios, stands.left_ns), (7, Some(5)));
        assert!(
            stands
                .latency_ns
                .is_some_and(|(p50, p99)| p50 == p99 && p50 >= 1000)
        );
    }

    #[test]
    fn the_answer_to_an_earlier_question_is_not_the_clock_of_now() {
        let (mut link, _agent, _) = begun();
        link.ask_clock();
        link.ask_clock();
        link.hear(Message::Clock { now_ns: 1 }, &mut Nobody)
            .unwrap();
        assert_eq!(link.clock_ns, None);
        link.hear(Message::Clock { now_ns: 2 }, &mut Nobody)
            .unwrap();
        assert_eq!(link.clock_ns, Some(2));
    }
}
