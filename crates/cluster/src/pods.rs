//! [`PodsSession`]: pods that prepare, start at the same instant, and yield one result.

mod link;

use crate::clock::{Exchange, Offset};
use crate::device_consent::DeviceTarget;
use crate::lifecycle::Objects;
use crate::nodes::{Nodes, Wanted};
use crate::reconnect::{found_at, reconnected};
use crate::runner::{ClusterRunner, Made};
use crate::session::{
    ANSWER, TICK, Told, Watch, explained, may_be_left, not_to_be_taken_up, remove,
};
use crate::together::Together;
use crate::transport::{Connection, Heard, unreadable};
use iosonde_job::{Plan, place};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, PodProgress, Progress};
use iosonde_result::pods::combined;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::{Place, Request, Stop};
use link::Link;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Interval at which messages of the pods are polled.
const LISTEN: Duration = Duration::from_millis(5);
/// Number of clock exchanges with each pod.
const EXCHANGES: usize = 10;
/// Lead of the common start, so that the request reaches all pods before it.
const AHEAD: Duration = Duration::from_millis(200);

/// Pods that run a plan at the same time, each on its volume. They are kept between runs, and
/// removed on close or drop.
pub struct PodsSession<'w> {
    runtime: Runtime,
    objects: Objects,
    labels: BTreeMap<String, String>,
    links: Vec<Link>,
    nodes: Nodes,
    /// Description of the volume, if it outlives the run.
    lasting: Option<String>,
    /// The volume, if it is a block device that was inspected.
    device: Option<DeviceTarget>,
    /// Whether the observer waits for an intermediate result.
    is_status_due: bool,
    watch: Watch<'w>,
    /// Origin of the client's clock.
    begun: Instant,
    runs: u64,
    /// Stop requests sent to all pods for this run.
    stops: Vec<Stop>,
    is_closed: bool,
}

impl<'w> PodsSession<'w> {
    pub(crate) fn new(made: Made, watch: Watch<'w>) -> PodsSession<'w> {
        let is_block = made.is_block;
        PodsSession {
            runtime: made.runtime,
            objects: made.objects,
            labels: made.labels,
            links: made
                .pods
                .into_iter()
                .map(|pod| Link::new(pod, is_block))
                .collect(),
            nodes: Nodes::default(),
            lasting: made.lasting,
            device: None,
            is_status_due: false,
            watch,
            begun: Instant::now(),
            runs: 0,
            stops: Vec::new(),
            is_closed: false,
        }
    }

    /// Creates the session of pods that another client created.
    pub(crate) fn taken_up(made: Made, watch: Watch<'w>) -> PodsSession<'w> {
        let mut session = PodsSession::new(made, watch);
        session.runs = 1;
        session
    }

    /// Follows the run in all pods, running or finished, and returns its result.
    ///
    /// # Errors
    /// If a pod is lost, or has no run that can be followed.
    pub fn attend(&mut self, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let run = self.runs;
        for link in &self.links {
            link.connection.ask(&Request::Follow { run, have: 0 });
        }
        // An agent that has this run answers at once.
        for link in &mut self.links {
            match link.connection.heard.recv_timeout(ANSWER) {
                Ok(Heard::Message(message)) => link.hear(message, observer)?,
                _ => {
                    // The pods belong to another client and may still run, so they are not removed.
                    self.is_closed = true;
                    return Err(not_to_be_taken_up(&self.objects));
                }
            }
        }
        let followed = self.follow(observer);
        followed.map_err(|error| self.with_what_is_left(error))?;
        self.gather().ok_or(RunError::Interrupted)
    }

    fn with_what_is_left(&self, error: RunError) -> RunError {
        match self.is_closed {
            true => error,
            false => may_be_left(error, self.lasting.as_deref(), &self.objects.id),
        }
    }

    /// Returns the path that plans use in the first pod. Each pod replaces it by its own path.
    pub fn path(&self) -> &str {
        let first = self.links.first();
        first
            .and_then(|link| link.scratch.as_deref())
            .unwrap_or(place::DEVICE)
    }

    /// Inspects [`path`](Self::path) in the first pod.
    ///
    /// # Errors
    /// If the volume cannot be used, or the agent does not answer.
    pub fn look(&mut self) -> Result<Place, RunError> {
        self.look_in(0)
    }

    /// Inspects the path of each pod, one by one: concurrent opens with `O_EXCL` would conflict.
    pub(crate) fn look_in_all(&mut self) -> Result<Vec<Place>, RunError> {
        (0..self.links.len())
            .map(|index| self.look_in(index))
            .collect()
    }

    fn look_in(&mut self, index: usize) -> Result<Place, RunError> {
        let link = self.links.get_mut(index).ok_or_else(|| mute("none"))?;
        let path = link.scratch.as_deref().unwrap_or(place::DEVICE).to_owned();
        let there = found_at(
            (&self.runtime, &self.objects, &link.name),
            &mut link.connection,
            path,
            self.watch.interrupts,
        );
        there.unwrap_or_else(|broken| Err(broken.unwrap_or_else(|| mute(&link.name))))
    }

    /// Sets the consent that later runs give to the agents for their block devices.
    pub(crate) fn agree_to(&mut self, device: DeviceTarget) {
        self.device = Some(device);
    }

    /// Returns a short description of the pods' nodes.
    pub fn whereabouts(&self) -> String {
        let mut nodes: Vec<String> = self.links.iter().map(Link::node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let beside = self.nodes.in_words();
        format!("{} pods on {}{beside}", self.links.len(), nodes.join(", "))
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

    /// Returns the number of pods.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Returns notes for the user on a plan whose files are moved into the volumes.
    pub fn notes(&self, plan: &Plan) -> Vec<String> {
        let scratch = self.links.first().and_then(|link| link.scratch.as_deref());
        place::into_volume(&mut plan.clone(), scratch)
    }

    /// Sends the plan to all pods, with the files of each pod's volume.
    fn ask_all(&mut self, plan: &Plan, interval_ns: u64) {
        let consent = self.device.as_ref().and_then(|device| device.consent);
        for (index, link) in (0..).zip(&mut self.links) {
            let mut plan = plan.clone();
            place::into_volume(&mut plan, link.scratch.as_deref());
            place::vary(&mut plan, index);
            link.begin(Request::Run {
                run: self.runs,
                plan: Box::new(plan),
                interval_ns,
                hold: true,
                consent,
            });
        }
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Handles the messages received from all pods so far. Reconnects broken connections.
    fn listen(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        for index in 0..self.links.len() {
            loop {
                let link = &mut self.links[index];
                match link.connection.heard.try_recv() {
                    Ok(Heard::Message(message)) => link
                        .hear(message, observer)
                        .map_err(|error| self.better(index, error))?,
                    Ok(Heard::Unreadable(problem)) => return Err(unreadable(problem)),
                    Err(TryRecvError::Empty) => break,
                    Ok(Heard::Ended) | Err(TryRecvError::Disconnected) if link.result.is_some() => {
                        break;
                    }
                    Ok(Heard::Ended) | Err(TryRecvError::Disconnected) => {
                        self.take_up(index, observer)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Replaces a lost connection by the cause that the cluster knows, with the pod's name.
    fn better(&self, index: usize, error: RunError) -> RunError {
        let name = &self.links[index].name;
        let RunError::Lost { .. } = error else {
            return error;
        };
        let known = self.runtime.block_on(self.objects.loss(name));
        named(known.ok().flatten().unwrap_or(error), name)
    }

    fn take_up(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), RunError> {
        let run = self.runs;
        let link = &mut self.links[index];
        let interrupts = self.watch.interrupts;
        let again = reconnected(
            &self.runtime,
            &self.objects,
            &link.name,
            interrupts,
            observer,
        );
        let connection = again.map_err(|broken| {
            self.is_closed |= broken.may_go_on;
            named(broken.error, &link.name)
        })?;
        link.take_up(connection, run, &self.stops);
        Ok(())
    }

    /// Estimates the clock offset of each pod, and sends all pods their start time.
    fn start(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        for index in 0..self.links.len() {
            let mut exchanges = Vec::with_capacity(EXCHANGES);
            while exchanges.len() < EXCHANGES && self.links[index].result.is_none() {
                exchanges.push(self.exchange(index, observer)?);
            }
            self.links[index].offset = Offset::estimate(&exchanges);
        }
        let run = self.runs;
        let here_ns = self.now_ns() + AHEAD.as_nanos() as u64;
        for link in &mut self.links {
            if let Some(offset) = link.offset {
                let at_ns = offset.there_ns(here_ns);
                link.start_ns = Some(at_ns);
                link.connection.ask(&Request::Start { run, at_ns });
            }
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<Exchange, RunError> {
        let mut asked_ns = self.now_ns();
        self.links[index].ask_clock();
        let (mut begun, mut is_second) = (Instant::now(), false);
        loop {
            let link = &mut self.links[index];
            match link.connection.heard.recv_timeout(TICK) {
                Ok(Heard::Message(message)) => {
                    let heard_ns = self.begun.elapsed().as_nanos() as u64;
                    link.hear(message, observer)?;
                    if let Some(answer_ns) = link.clock_ns {
                        return Ok(Exchange {
                            asked_ns,
                            answer_ns,
                            heard_ns,
                        });
                    }
                }
                Ok(Heard::Unreadable(problem)) => return Err(unreadable(problem)),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER => {}
                Err(RecvTimeoutError::Timeout) if is_second => return Err(mute(&link.name)),
                broken => {
                    // A silent connection is retried once, a closed one without limit.
                    is_second = broken.is_err_and(|error| error == RecvTimeoutError::Timeout);
                    self.take_up(index, observer)?;
                    (begun, asked_ns) = (Instant::now(), self.now_ns());
                    self.links[index].ask_clock();
                }
            }
            if (self.watch.interrupts)() > 0 {
                return Err(RunError::Interrupted);
            }
        }
    }

    fn stop_all(&mut self, stop: Stop) {
        self.stops.push(stop);
        let run = self.runs;
        for link in &self.links {
            link.connection.ask(&Request::Stop { run, stop });
        }
    }

    /// Follows all pods to the end of the run.
    fn follow(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        let mut together = Together::default();
        self.stops.clear();
        self.is_status_due = false;
        let (mut passed_on, mut is_started, mut is_enough) = (0, false, false);
        loop {
            while passed_on < (self.watch.interrupts)().min(2) {
                passed_on += 1;
                self.stop_all(Stop::Interrupt);
            }
            self.listen(observer)?;
            if !is_started
                && self
                    .links
                    .iter()
                    .all(|link| link.is_ready || link.result.is_some())
            {
                is_started = true;
                if passed_on == 0 {
                    self.start(observer)?;
                }
            }
            let control = self.show(&mut together, observer);
            if control == Control::Stop && !is_enough {
                is_enough = true;
                self.stop_all(Stop::Enough);
            }
            if self.links.iter().all(|link| link.result.is_some()) {
                return Ok(());
            }
            std::thread::sleep(LISTEN);
        }
    }

    /// Reports the summed progress, results and intervals of all pods to the observer.
    fn show(&mut self, together: &mut Together, observer: &mut dyn Observer) -> Control {
        let mut control = Control::Continue;
        let reports = self.links.iter().map(|link| link.progress.as_ref());
        if let Some(progress) = together.progress(reports) {
            let links = self.links.iter().enumerate();
            let pods: Vec<PodProgress> = links.map(|(index, link)| link.stands(index)).collect();
            control = observer.progress(&Progress {
                pods: &pods,
                ..progress.view()
            });
            if observer.wants_status(progress.at_ns) {
                self.is_status_due = true;
                let run = self.runs;
                self.links.iter_mut().for_each(|link| link.ask_status(run));
            }
        }
        let has_answered = |link: &Link| link.status.is_some() || link.result.is_some();
        let is_over = self.links.iter().all(|link| link.result.is_some());
        if self.is_status_due && !is_over && self.links.iter().all(has_answered) {
            self.is_status_due = false;
            if let Some(so_far) = self.so_far() {
                observer.status(&so_far);
            }
        }
        loop {
            // A pod that has ended sends no more intervals, so the others do not wait for it.
            let is_due = |link: &Link| !link.intervals.is_empty() || link.result.is_some();
            let slices: Vec<Interval> = match self.links.iter().all(is_due) {
                true => self
                    .links
                    .iter_mut()
                    .filter_map(|link| link.intervals.pop_front())
                    .collect(),
                false => return control,
            };
            if slices.is_empty() {
                return control;
            }
            let sum = iosonde_result::pods::interval(slices.iter());
            if observer.interval(&sum) == Control::Stop {
                control = Control::Stop;
            }
        }
    }

    /// Combines the results of all pods.
    fn gather(&mut self) -> Option<RunResult> {
        let labels = &self.labels;
        let run = |link: &mut Link| {
            let result = link.result.take()?;
            Some(link.run_of(result, labels))
        };
        combined(self.links.iter_mut().filter_map(run).collect())
    }

    /// Combines the intermediate results of all pods, once each has sent its own.
    fn so_far(&self) -> Option<RunResult> {
        let answers = self.links.iter().map(|link| {
            let result = link.status.as_ref().or(link.result.as_ref())?;
            Some(link.run_of(result.clone(), &self.labels))
        });
        combined(answers.collect::<Option<_>>()?)
    }

    fn remove(&mut self) -> Result<(), RunError> {
        let agents: Vec<&Connection> = self.links.iter().map(|link| &link.connection).collect();
        let pods = match std::mem::replace(&mut self.is_closed, true) {
            true => None,
            false => Some((&self.runtime, &self.objects, &agents[..])),
        };
        remove(pods, &mut self.nodes, &mut self.watch)
    }
}

/// Returns the error for an agent that does not answer on an open connection.
fn mute(pod: &str) -> RunError {
    RunError::Lost {
        what: format!("the connection to the pod {pod}"),
        cause: "the agent does not answer".to_owned(),
        remedy: "see `kubectl logs` of the pod".to_owned(),
    }
}

/// Adds the name of the pod to the error for a lost pod.
fn named(error: RunError, pod: &str) -> RunError {
    match error {
        RunError::Lost { cause, remedy, .. } => RunError::Lost {
            what: format!("the pod {pod}"),
            cause,
            remedy,
        },
        other => other,
    }
}

impl Session for PodsSession<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut nodes = std::mem::take(&mut self.nodes);
        let outcome = nodes.beside(observer, |observer| {
            self.runs += 1;
            self.ask_all(plan, observer.interval_ns(plan));
            self.follow(observer)?;
            self.gather().ok_or(RunError::Interrupted)
        });
        self.nodes = nodes;
        outcome.map_err(|error| self.with_what_is_left(explained(error, self.device.as_ref())))
    }

    fn close(mut self: Box<Self>) -> Result<(), RunError> {
        self.remove()
    }
}

/// Removes pods and volumes, also after an error.
impl Drop for PodsSession<'_> {
    fn drop(&mut self) {
        if let Err(left) = self.remove() {
            (self.watch.tell)(Told::Note(&format!("{left}; {}", left.remedy())));
        }
    }
}
