//! [`ClusterSession`]: a session that runs plans in one pod.

use crate::device_consent::DeviceTarget;
use crate::lifecycle::Objects;
use crate::manifest::DEVICE;
use crate::nodes::{Nodes, Wanted};
use crate::options::VolumeMode;
use crate::reconnect::{found_at, reconnected, resumed};
use crate::runner::{ClusterRunner, Made};
use crate::transport::{Connection, Heard, unreadable};
use iosonde_job::{Plan, place};
use iosonde_result::observer::{Control, Observer};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::{Message, Place, ReceivedSeries, Request, Stop};
use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Interval at which the interrupts of the user are polled.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// Timeout for an answer of the agent to any request but a run.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);
/// Timeout for the agents to remove their files.
const CLOSE: Duration = Duration::from_secs(30);

/// Event while a session is opened or closed.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// Text on what the session waits for. It replaces the previous one.
    Waiting(&'a str),
    /// Note for the user.
    Note(&'a str),
    /// The wait has ended.
    Over,
}

/// Callbacks to the user while a session is open.
pub struct Watch<'a> {
    /// Reports an event.
    pub tell: &'a mut dyn FnMut(Told<'_>),
    /// Returns the number of interrupts (Ctrl-C) so far.
    pub interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
}

/// A pod that runs plans on its volume. Both are kept between runs, and removed on close or drop.
pub struct ClusterSession<'w> {
    runtime: Runtime,
    objects: Objects,
    pod: String,
    scratch: Option<String>,
    labels: BTreeMap<String, String>,
    connection: Connection,
    nodes: Nodes,
    /// Description of the volume, if it outlives the run.
    lasting: Option<String>,
    /// The volume, if it is a block device that was inspected.
    device: Option<DeviceTarget>,
    watch: Watch<'w>,
    runs: u64,
    is_closed: bool,
}

impl<'w> ClusterSession<'w> {
    /// Creates the session of the only pod of a run.
    pub(crate) fn new(made: Made, watch: Watch<'w>) -> ClusterSession<'w> {
        let Made {
            runtime,
            objects,
            mut labels,
            mut pods,
            is_block,
            origin: _,
            lasting,
            wanted: _,
        } = made;
        let first = pods.swap_remove(0);
        labels.extend(first.labels);
        ClusterSession {
            runtime,
            objects,
            pod: first.name,
            scratch: (!is_block).then_some(first.scratch),
            labels,
            connection: first.connection,
            nodes: Nodes::default(),
            lasting,
            device: None,
            watch,
            runs: 0,
            is_closed: false,
        }
    }

    /// Creates the session of a pod that another client created and that already has its plan.
    pub(crate) fn taken_up(made: Made, watch: Watch<'w>) -> ClusterSession<'w> {
        let mut session = ClusterSession::new(made, watch);
        session.runs = 1;
        session
    }

    /// Follows the run in the pod, running or finished, and returns its result.
    ///
    /// # Errors
    /// If the pod is lost, or has no run that can be followed.
    pub fn attend(&mut self, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let follow = Request::Follow {
            run: self.runs,
            have: 0,
        };
        self.connection.ask(&follow);
        // An agent that has this run answers at once, with its state or its result.
        let Ok(first) = self.connection.heard.recv_timeout(ANSWER) else {
            // The pod belongs to another client and may still run, so it is not removed.
            self.is_closed = true;
            return Err(not_to_be_taken_up(&self.objects));
        };
        let followed = self.follow(None, Some(first), observer);
        let mut result = followed.map_err(|error| self.with_what_is_left(error))?;
        result.labels.extend(self.labels.clone());
        Ok(result)
    }

    fn with_what_is_left(&self, error: RunError) -> RunError {
        match self.is_closed {
            true => error,
            false => may_be_left(error, self.lasting.as_deref(), &self.objects.id),
        }
    }

    /// Returns the path that plans use: a directory of the volume, or its device.
    pub fn path(&self) -> &str {
        self.scratch.as_deref().unwrap_or(DEVICE)
    }

    /// Returns the mode of the volume.
    pub fn volume_mode(&self) -> VolumeMode {
        match self.scratch {
            Some(_) => VolumeMode::Filesystem,
            None => VolumeMode::Block,
        }
    }

    /// Returns a short description of the pod and its nodes.
    pub fn whereabouts(&self) -> String {
        let node = self.labels.get("node").map_or("a node", String::as_str);
        let beside = self.nodes.in_words();
        format!("pod {} on {node}{beside}", self.pod)
    }

    /// Samples these nodes during all later runs.
    pub(crate) fn watch_nodes(
        &mut self,
        wanted: Vec<Wanted>,
        like: &ClusterRunner<'_>,
    ) -> Result<(), RunError> {
        let namespace = self.objects.cluster.namespace.clone();
        self.nodes = Nodes::open(wanted, like, &namespace, &mut self.watch)?;
        Ok(())
    }

    /// Moves all files of a plan into the volume. Returns notes for the user.
    pub fn adopt(&self, plan: &mut Plan) -> Vec<String> {
        place::into_volume(plan, self.scratch.as_deref())
    }

    /// Inspects [`path`](Self::path).
    ///
    /// # Errors
    /// If the volume cannot be used, or the agent does not answer.
    pub fn look(&mut self) -> Result<Place, RunError> {
        let path = self.path().to_owned();
        let there = found_at(
            (&self.runtime, &self.objects, &self.pod),
            &mut self.connection,
            path,
            self.watch.interrupts,
        );
        there.unwrap_or_else(|broken| Err(broken.unwrap_or_else(|| self.lost())))
    }

    /// Sets the consent that later runs give to the agent for its block device.
    pub(crate) fn agree_to(&mut self, device: DeviceTarget) {
        self.device = Some(device);
    }

    /// Returns the reason why the agent no longer answers.
    fn lost(&self) -> RunError {
        let known = self.runtime.block_on(self.objects.loss(&self.pod));
        known.ok().flatten().unwrap_or_else(|| RunError::Lost {
            what: "the connection to the pod".to_owned(),
            cause: "the agent does not answer".to_owned(),
            remedy: "see `kubectl logs` of the pod, and the network between here and the cluster"
                .to_owned(),
        })
    }

    /// Returns why the pod was terminated during a run, which this client never requests.
    fn cut_short(&self) -> RunError {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if let Ok(Some(lost)) = self.runtime.block_on(self.objects.loss(&self.pod)) {
                return lost;
            }
            std::thread::sleep(TICK);
        }
        RunError::Lost {
            what: "the pod".to_owned(),
            cause: "it was told to end".to_owned(),
            remedy: "run it again".to_owned(),
        }
    }

    fn interrupts(&self) -> u32 {
        (self.watch.interrupts)()
    }

    /// Follows the run to its end, reconnecting as needed. `begin` is the request of this client,
    /// if it started the run. `first` is a message that was already received.
    fn follow(
        &mut self,
        begin: Option<&Request>,
        mut first: Option<Heard>,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        let run = self.runs;
        let mut have = 0;
        let mut passed_on = 0;
        let mut is_enough = false;
        let mut is_cut_short = false;
        let mut is_known = false;
        let mut series = ReceivedSeries::default();
        loop {
            while passed_on < self.interrupts().min(2) {
                passed_on += 1;
                self.stop(Stop::Interrupt);
            }
            let heard = match first.take() {
                Some(first) => Ok(first),
                None => self.connection.heard.recv_timeout(TICK),
            };
            let control = match heard {
                Ok(Heard::Message(message)) => {
                    have += usize::from(message.is_kept());
                    is_known |= message.is_of_a_run();
                    if let Message::Progress(progress) = &message
                        && observer.wants_status(progress.at_ns)
                    {
                        self.connection.ask(&Request::Status { run });
                    }
                    if let Message::Interval(interval) = &message {
                        series.add_interval(interval);
                    }
                    match message {
                        Message::Ending => {
                            is_cut_short = true;
                            Control::Continue
                        }
                        Message::Done(_) if is_cut_short => return Err(self.cut_short()),
                        Message::Done(outcome) => {
                            let mut result = *outcome?;
                            series.complete(&mut result);
                            return Ok(result);
                        }
                        Message::Series(part) => {
                            series.add_part(*part);
                            Control::Continue
                        }
                        Message::Refused(problem) => return Err(refused(problem)),
                        other => pass_on(&other, observer),
                    }
                }
                Ok(Heard::Unreadable(problem)) => return Err(unreadable(problem)),
                Err(RecvTimeoutError::Timeout) => Control::Continue,
                Ok(Heard::Ended) | Err(_) => {
                    self.reconnect(observer)?;
                    self.connection.ask(&resumed(begin, is_known, run, have));
                    // The stop request may have been lost with the connection.
                    is_enough = false;
                    passed_on = 0;
                    Control::Continue
                }
            };
            if control == Control::Stop && !is_enough {
                is_enough = true;
                self.stop(Stop::Enough);
            }
        }
    }

    fn stop(&self, stop: Stop) {
        let run = self.runs;
        self.connection.ask(&Request::Stop { run, stop });
    }

    /// Reconnects, as long as the pod runs.
    fn reconnect(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        let interrupts = self.watch.interrupts;
        let again = reconnected(
            &self.runtime,
            &self.objects,
            &self.pod,
            interrupts,
            observer,
        );
        self.connection = again.map_err(|broken| {
            self.is_closed |= broken.may_go_on;
            broken.error
        })?;
        Ok(())
    }

    fn remove(&mut self) -> Result<(), RunError> {
        let agents = [&self.connection];
        let pods = match std::mem::replace(&mut self.is_closed, true) {
            true => None,
            false => Some((&self.runtime, &self.objects, &agents[..])),
        };
        remove(pods, &mut self.nodes, &mut self.watch)
    }
}

/// Returns the error for agents that had earlier runs, or wait for their first, as in a study.
pub(crate) fn not_to_be_taken_up(objects: &Objects) -> RunError {
    RunError::Unsupported {
        problem: format!("{} is not the run of a single job", objects.job),
        remedy: format!(
            "only `iosonde fio` can be taken up; if it is yours, remove it: {}",
            objects.removal()
        ),
    }
}

/// The runtime, the objects of a run, and connections to its agents.
type Pods<'a> = (&'a Runtime, &'a Objects, &'a [&'a Connection]);

/// Has the agents remove their files and the cluster all objects. `None` keeps the pods.
pub(crate) fn remove(
    pods: Option<Pods<'_>>,
    nodes: &mut Nodes,
    watch: &mut Watch<'_>,
) -> Result<(), RunError> {
    let before = (watch.interrupts)();
    nodes.ask_to_go();
    let removed = match pods {
        Some((runtime, objects, agents)) => {
            (watch.tell)(Told::Waiting(match agents {
                [_] => "pod and volume to be removed",
                _ => "pods and volumes to be removed",
            }));
            for agent in agents {
                agent.ask(&Request::Close);
            }
            let begun = Instant::now();
            for agent in agents {
                while begun.elapsed() < CLOSE && (watch.interrupts)() <= before.max(1) {
                    match agent.heard.recv_timeout(TICK) {
                        Ok(Heard::Ended | Heard::Unreadable(_))
                        | Err(RecvTimeoutError::Disconnected) => break,
                        _ => {}
                    }
                }
            }
            runtime.block_on(objects.delete_since(before, watch.interrupts))
        }
        None => Ok(()),
    };
    nodes.close(before, watch);
    (watch.tell)(Told::Over);
    removed
}

fn pass_on(message: &Message, observer: &mut dyn Observer) -> Control {
    match message {
        Message::Progress(progress) => observer.progress(&progress.view()),
        Message::Interval(interval) => observer.interval(interval),
        Message::Status(so_far) => {
            observer.status(so_far);
            Control::Continue
        }
        Message::Event(event) => {
            observer.event(event);
            Control::Continue
        }
        _ => Control::Continue,
    }
}

/// Adds to the remedy that a lost agent may have left files in a volume that outlives the run.
pub(crate) fn may_be_left(error: RunError, volume: Option<&str>, id: &str) -> RunError {
    match (error, volume) {
        (
            RunError::Lost {
                what,
                cause,
                remedy,
            },
            Some(volume),
        ) => RunError::Lost {
            what,
            cause,
            remedy: format!(
                "{remedy}; what it had written may be left in {volume}: if so, remove .iosonde-{id}* there"
            ),
        },
        (other, _) => other,
    }
}

/// Puts an agent's refusal into the terms of its client, which knows target and options.
pub(crate) fn explained(error: RunError, device: Option<&DeviceTarget>) -> RunError {
    match device {
        Some(device) => device.explain(error),
        None => error,
    }
}

pub(crate) fn refused(problem: String) -> RunError {
    RunError::Unsupported {
        problem: format!("the agent refuses: {problem}"),
        remedy: "wait for the other run to end".to_owned(),
    }
}

impl Session for ClusterSession<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut nodes = std::mem::take(&mut self.nodes);
        let outcome = nodes.beside(observer, |observer| self.run_alone(plan, observer));
        self.nodes = nodes;
        outcome.map_err(|error| self.with_what_is_left(explained(error, self.device.as_ref())))
    }

    fn close(mut self: Box<Self>) -> Result<(), RunError> {
        self.remove()
    }
}

impl ClusterSession<'_> {
    fn run_alone(
        &mut self,
        plan: &Plan,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        self.runs += 1;
        let begin = Request::Run {
            run: self.runs,
            plan: Box::new(plan.clone()),
            interval_ns: observer.interval_ns(plan),
            hold: false,
            consent: self.device.as_ref().and_then(|device| device.consent),
        };
        self.connection.ask(&begin);
        let mut result = self.follow(Some(&begin), None, observer)?;
        result.labels.extend(self.labels.clone());
        Ok(result)
    }
}

/// Removes pod and volume, also after an error.
impl Drop for ClusterSession<'_> {
    fn drop(&mut self) {
        if let Err(left) = self.remove() {
            (self.watch.tell)(Told::Note(&format!("{left}; {}", left.remedy())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Cluster;
    use crate::runner::MadePod;
    use crate::volume_origin::VolumeOrigin;
    use iosonde_result::session::RunError;

    struct Nobody;

    impl Observer for Nobody {}

    /// Returns an attached session, the requests it sends, and a sender of its agent's messages.
    fn taken_up(
        watch: Watch<'_>,
    ) -> (
        ClusterSession<'_>,
        tokio::sync::mpsc::UnboundedReceiver<String>,
        std::sync::mpsc::SyncSender<Heard>,
    ) {
        let runtime = crate::runner::runtime().unwrap();
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = {
            let _inside = runtime.enter();
            kube::Client::try_from(nowhere).unwrap()
        };
        let objects = Objects {
            made_namespace: false,
            cluster: Cluster {
                client,
                namespace: "bench".to_owned(),
                context: None,
            },
            id: "0a1b2c3d".to_owned(),
            job: "iosonde-0a1b2c3d".to_owned(),
            agent: String::new(),
        };
        let (connection, ears, mouth) = Connection::fake();
        let pod = MadePod {
            name: "pod".to_owned(),
            labels: BTreeMap::new(),
            scratch: String::new(),
            connection,
        };
        let made = Made {
            runtime,
            objects,
            labels: BTreeMap::new(),
            pods: vec![pod],
            is_block: false,
            origin: VolumeOrigin::Unknown,
            lasting: None,
            wanted: Vec::new(),
        };
        (ClusterSession::taken_up(made, watch), ears, mouth)
    }

    fn asked(ears: &mut tokio::sync::mpsc::UnboundedReceiver<String>) -> Vec<Request> {
        std::iter::from_fn(|| ears.try_recv().ok())
            .map(|text| serde_json::from_str(&text).unwrap())
            .collect()
    }

    #[test]
    fn a_run_that_is_taken_up_is_asked_for_once_and_its_first_word_counts() {
        let watch = Watch {
            tell: &mut |_: Told<'_>| {},
            interrupts: &|| 0,
        };
        let (mut session, mut ears, mouth) = taken_up(watch);
        let over = RunError::Interrupted;
        let done = Message::Done(Err(over.clone()));
        mouth.send(Heard::Message(done)).unwrap();
        let error = session.attend(&mut Nobody).unwrap_err();
        assert_eq!(error, over);
        assert_eq!(asked(&mut ears), [Request::Follow { run: 1, have: 0 }]);
        session.is_closed = true;
    }

    #[test]
    fn files_of_a_lost_agent_are_told_of_where_the_volume_stays() {
        let lost = RunError::Lost {
            what: "the pod".to_owned(),
            cause: "its node died".to_owned(),
            remedy: "run it again".to_owned(),
        };
        let told = may_be_left(lost.clone(), Some("the claim data"), "1a2b");
        let words = "run it again; what it had written may be left in the claim data: if so, remove .iosonde-1a2b* there";
        assert_eq!(told.remedy(), words);
        assert_eq!(may_be_left(lost.clone(), None, "1a2b"), lost);
        let other = RunError::Interrupted;
        assert_eq!(may_be_left(other.clone(), Some("x"), "1a2b"), other);
    }

    #[test]
    fn a_run_that_cannot_be_taken_up_is_left_alone() {
        let watch = Watch {
            tell: &mut |_: Told<'_>| {},
            interrupts: &|| 0,
        };
        let (mut session, mut ears, mouth) = taken_up(watch);
        drop(mouth);
        let error = session.attend(&mut Nobody).unwrap_err();
        assert!(error.to_string().contains("not the run of a single job"));
        Box::new(session).close().unwrap();
        assert_eq!(asked(&mut ears), [Request::Follow { run: 1, have: 0 }]);
    }
}
