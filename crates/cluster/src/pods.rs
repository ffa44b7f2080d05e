//! Several pods as one place where plans are run: all prepare, start at one instant, and are one result.

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

/// How often the pods are listened to.
const LISTEN: Duration = Duration::from_millis(5);
/// Questions for the clock of each pod.
const EXCHANGES: usize = 10;
/// From the agreement to the start: the word must have reached all pods by then.
const AHEAD: Duration = Duration::from_millis(200);

/// Pods that run a plan at the same time, each on its volume. They are kept between runs, and removed when this is closed or
/// dropped.
pub struct PodsSession<'w> {
    runtime: Runtime,
    objects: Objects,
    labels: BTreeMap<String, String>,
    links: Vec<Link>,
    nodes: Nodes,
    /// The volume, in words, if it is there before and after.
    lasting: Option<String>,
    /// The volume, where it is a block device that was looked at.
    device: Option<DeviceTarget>,
    /// Whether the observer waits for what has been measured by now.
    is_status_due: bool,
    watch: Watch<'w>,
    /// The client's clock counts from here.
    begun: Instant,
    runs: u64,
    /// What all pods were told of ending the run.
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

    /// The session of pods that somebody else has made.
    pub(crate) fn taken_up(made: Made, watch: Watch<'w>) -> PodsSession<'w> {
        let mut session = PodsSession::new(made, watch);
        session.runs = 1;
        session
    }

    /// Follows the run that goes on in all pods, or has ended, to its result.
    ///
    /// # Errors
    /// When a pod is lost, or has no run that can be taken up.
    pub fn attend(&mut self, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let run = self.runs;
        for link in &self.links {
            link.connection.ask(&Request::Follow { run, have: 0 });
        }
        // An agent that has this run says something of it at once.
        for link in &mut self.links {
            match link.connection.heard.recv_timeout(ANSWER) {
                Ok(Heard::Message(message)) => link.hear(message, observer)?,
                _ => {
                    // It is somebody else's, and may go on.
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

    /// The path that plans use, in the first pod: each pod has its own in its place.
    pub fn path(&self) -> &str {
        let first = self.links.first();
        first
            .and_then(|link| link.scratch.as_deref())
            .unwrap_or(place::DEVICE)
    }

    /// What is at [`path`](Self::path).
    ///
    /// # Errors
    /// When the volume cannot be used, or the agent does not answer.
    pub fn look(&mut self) -> Result<Place, RunError> {
        self.look_in(0)
    }

    /// What each pod finds at its path, one after the other: two that open a device with `O_EXCL` would see each other.
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

    /// From now on the agents may do with their block devices what was agreed.
    pub(crate) fn agree_to(&mut self, device: DeviceTarget) {
        self.device = Some(device);
    }

    /// Where the pods are, in a few words.
    pub fn whereabouts(&self) -> String {
        let mut nodes: Vec<String> = self.links.iter().map(Link::node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let beside = self.nodes.in_words();
        format!("{} pods on {}{beside}", self.links.len(), nodes.join(", "))
    }

    /// Watches these nodes from now on, while plans run.
    pub(crate) fn watch_nodes(
        &mut self,
        wanted: Vec<Wanted>,
        like: &ClusterRunner<'_>,
    ) -> Result<(), RunError> {
        let namespace = self.objects.cluster.namespace.clone();
        self.nodes = Nodes::open(wanted, like, &namespace, &mut self.watch)?;
        Ok(())
    }

    /// How many pods.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// What the user should know about a plan whose files are moved into volumes.
    pub fn notes(&self, plan: &Plan) -> Vec<String> {
        let scratch = self.links.first().and_then(|link| link.scratch.as_deref());
        place::into_volume(&mut plan.clone(), scratch)
    }

    /// All pods get their plan, with the files of their volume.
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

    /// Hears what all pods have said so far. A connection that broke is taken up again.
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

    /// A pod that was told to end is known to the cluster, which says why.
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

    /// Learns how all clocks stand, and tells all pods when to start.
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
                    // A connection without another end gets one more chance, one that ends as many as it takes.
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

    /// Tells the observer of all pods together.
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
            // Those that have ended have no more slices than they have told.
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

    /// What all have brought home.
    fn gather(&mut self) -> Option<RunResult> {
        let labels = &self.labels;
        let run = |link: &mut Link| {
            let result = link.result.take()?;
            Some(link.run_of(result, labels))
        };
        combined(self.links.iter_mut().filter_map(run).collect())
    }

    /// What all have measured by now, once all have answered.
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

/// The agent of a pod whose connection holds.
fn mute(pod: &str) -> RunError {
    RunError::Lost {
        what: format!("the connection to the pod {pod}"),
        cause: "the agent does not answer".to_owned(),
        remedy: "see `kubectl logs` of the pod".to_owned(),
    }
}

/// Which of the pods was lost.
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

/// Whatever went wrong, nothing is left.
impl Drop for PodsSession<'_> {
    fn drop(&mut self) {
        if let Err(left) = self.remove() {
            (self.watch.tell)(Told::Note(&format!("{left}; {}", left.remedy())));
        }
    }
}
