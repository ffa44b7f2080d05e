//! [`PodSession`]: a session that runs plans in the pods of one run: a single pod, or several that
//! prepare, start at the same instant, and yield one result.

mod cold_start;
mod common_start;
mod display;
mod ending;
mod node_inspection;
mod pod_logs;
mod shared_file;

pub use cold_start::OsdCacheDrop;
pub use node_inspection::inspection_rights;

use crate::connection::{AgentEvent, unreadable};
use crate::device_consent::DeviceTarget;
use crate::free_room::{ShareFacts, judge_free_room};
use crate::node_watch::Nodes;
use crate::options::ClusterOptions;
use crate::pod_client::PodClient;
use crate::pod_set::{ClusterRunner, PodSet};
use crate::preflight::rights_of_run;
use crate::progress_sum::ProgressSum;
use crate::reconnect::{inspect_path_in_pod, reconnected};
use crate::rights_role::CommandRights;
use crate::run_objects::RunObjects;
use crate::setup_observer::{ANSWER_TIMEOUT, SetupEvent, SetupObserver, TICK};
use cold_start::ColdStart;
use ending::{explain_refusal, no_answer, not_followable, with_leftovers};
use iosonde_job::{Plan, relocate};
use iosonde_result::observer::{Control, Observer};
use iosonde_result::pods::combined;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_result::shared_file::SharedFileResult;
use iosonde_result::wire::{AgentRequest, PathInfo, StopMode};
use std::collections::BTreeMap;
use std::sync::mpsc::TryRecvError;
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};

/// Most interrupts of the user that are passed on to the agents.
const INTERRUPTS_MAX: u32 = 2;

/// Pods that run plans, each on its volume. They are kept between runs, and removed on close or
/// drop.
pub struct PodSession<'w> {
    runtime: Runtime,
    objects: RunObjects,
    /// Labels of the result that all pods share.
    labels: BTreeMap<String, String>,
    pods: Vec<PodClient>,
    /// Whether the pods wait for a common start and their results are combined. A single pod starts
    /// at once, and its result is that of the session.
    has_common_start: bool,
    nodes: Nodes,
    /// Caches that are dropped before the jobs start.
    cold: ColdStart,
    /// Description of the volume, if it outlives the run.
    persistent_volume: Option<String>,
    /// The share that holds the volumes, if the class has one.
    share: ShareFacts,
    /// The volume, if it is a block device that was inspected.
    device: Option<DeviceTarget>,
    /// Result of the check of a file that the pods share, if there was one.
    shared_file: Option<SharedFileResult>,
    /// Whether the observer waits for an intermediate result.
    is_status_due: bool,
    watch: SetupObserver<'w>,
    /// Origin of the client's clock.
    begun: Instant,
    runs: u64,
    /// Stop requests sent to all pods for this run.
    stops: Vec<StopMode>,
    is_closed: bool,
}

impl ClusterRunner<'_> {
    /// Creates the pods and their volumes, and waits until plans can run. Removes both on failure.
    ///
    /// # Errors
    /// Before anything is created: the unmet prerequisite. Later: the explained cause.
    pub fn open<'w>(&self, watch: SetupObserver<'w>) -> Result<PodSession<'w>, RunError> {
        self.open_for(&rights_of_run(&self.options), watch)
    }

    /// As [`open`](Self::open), for a command that needs these rights: all of a run, and its own.
    pub(crate) fn open_for<'w>(
        &self,
        command: &CommandRights,
        mut watch: SetupObserver<'w>,
    ) -> Result<PodSession<'w>, RunError> {
        let mut made = match self.make_for(command, &mut watch) {
            Ok(made) => made,
            Err(error) => return Err(self.name_existing_directories(error, &mut watch)),
        };
        let wanted = std::mem::take(&mut made.wanted);
        let origin = made.origin;
        // Pods of the user have a common start if there are several.
        let is_selected = made.objects.selected.is_some();
        let has_common_start = match is_selected {
            true => made.pods.len() > 1,
            false => self.options.pods.is_some(),
        };
        let mut session = PodSession::new(made, has_common_start, watch);
        if self.options.is_block() {
            let found = session.inspect_all_paths()?;
            session.device = Some(DeviceTarget::judge(&self.options, origin, &found)?);
        } else if self.options.needed.is_some() {
            session.judge_free_room(&self.options)?;
        }
        if self.options.checks_shared_file() {
            session.shared_file = Some(session.check_shared_file(&self.options)?);
        }
        session.open_cold_nodes(&wanted, self)?;
        let namespace = session.objects.cluster.namespace.clone();
        session.nodes = Nodes::open(wanted, self, Some(&namespace), &mut session.watch)?;
        Ok(session)
    }
}

impl<'w> PodSession<'w> {
    pub(crate) fn new(
        made: PodSet,
        has_common_start: bool,
        watch: SetupObserver<'w>,
    ) -> PodSession<'w> {
        let is_block = made.is_block;
        // A pod that is being replaced may still be listed beside a single one.
        let pods_max = if has_common_start { usize::MAX } else { 1 };
        let pods = made.pods.into_iter().take(pods_max);
        let pods: Vec<_> = pods.map(|pod| PodClient::new(pod, is_block)).collect();
        assert!(!pods.is_empty(), "a run has at least one pod");
        PodSession {
            runtime: made.runtime,
            objects: made.objects,
            labels: made.labels,
            pods,
            has_common_start,
            nodes: Nodes::default(),
            cold: ColdStart::default(),
            persistent_volume: made.persistent_volume,
            share: made.share,
            device: None,
            shared_file: None,
            is_status_due: false,
            watch,
            begun: Instant::now(),
            runs: 0,
            stops: Vec::new(),
            is_closed: false,
        }
    }

    /// Creates the session of pods that another client created and that already have their plan.
    pub(crate) fn of_existing_run(made: PodSet, watch: SetupObserver<'w>) -> PodSession<'w> {
        let has_common_start = made.pods.len() > 1;
        let mut session = PodSession::new(made, has_common_start, watch);
        session.runs = 1;
        session
    }

    /// Follows the run in all pods, running or finished, and returns its result.
    ///
    /// # Errors
    /// If a pod is lost, or has no run that can be followed.
    pub fn follow_existing_run(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        debug_assert_eq!(self.runs, 1, "the pods have one run, of another client");
        let run = self.runs;
        for pod in &self.pods {
            pod.connection.ask(&AgentRequest::Follow { run, have: 0 });
        }
        // An agent that has this run answers at once, with its state or its result.
        for index in 0..self.pods.len() {
            match self.pods[index]
                .connection
                .events
                .recv_timeout(ANSWER_TIMEOUT)
            {
                Ok(event) => self.handle(index, event, observer)?,
                Err(_) => {
                    // The pods belong to another client and may still run, so they are not removed.
                    self.is_closed = true;
                    return Err(not_followable(&self.objects));
                }
            }
        }
        let followed = self.follow(observer);
        followed.map_err(|error| self.with_leftovers(error))?;
        self.result().ok_or(RunError::Interrupted)
    }

    fn with_leftovers(&self, error: RunError) -> RunError {
        match self.is_closed {
            true => error,
            false => with_leftovers(error, self.persistent_volume.as_deref(), &self.objects.id),
        }
    }

    /// Returns the path that plans use: a directory of the volume, or its device. Each of several
    /// pods replaces it by its own path.
    pub fn path(&self) -> &str {
        self.pods[0].path()
    }

    /// Inspects [`path`](Self::path) in the first pod.
    ///
    /// # Errors
    /// If the volume cannot be used, or the agent does not answer.
    pub fn inspect_path(&mut self) -> Result<PathInfo, RunError> {
        self.inspect_path_of(0)
    }

    /// Holds the free room of the volume against what the jobs write, and reports that of a share.
    fn judge_free_room(&mut self, options: &ClusterOptions) -> Result<(), RunError> {
        let PathInfo::Directory { free_bytes } = self.inspect_path()? else {
            return Ok(());
        };
        let note = judge_free_room(options, self.share.is_share, self.pods.len(), free_bytes)?;
        if let Some(note) = note {
            (self.watch.tell)(SetupEvent::Note(&note));
        }
        Ok(())
    }

    /// Inspects the path of each pod, one by one: concurrent opens with `O_EXCL` would conflict.
    fn inspect_all_paths(&mut self) -> Result<Vec<PathInfo>, RunError> {
        let each = 0..self.pods.len();
        each.map(|index| self.inspect_path_of(index)).collect()
    }

    fn inspect_path_of(&mut self, index: usize) -> Result<PathInfo, RunError> {
        let pod = &mut self.pods[index];
        let path = pod.path().to_owned();
        let there = inspect_path_in_pod(
            (&self.runtime, &self.objects, &pod.name),
            &mut pod.connection,
            path,
            self.watch.interrupts,
        );
        there.unwrap_or_else(|known| {
            let silent = || self.explain_loss(index, no_answer(&self.pods[index].name));
            Err(known.unwrap_or_else(silent))
        })
    }

    /// Returns a short description of the pods and their nodes.
    pub fn location(&self) -> String {
        let (nodes, beside) = (self.node_names().join(", "), self.nodes.in_words());
        match &self.pods[..] {
            [pod] if !self.has_common_start => {
                let node = if nodes.is_empty() { "a node" } else { &nodes };
                format!("pod {} on {node}{beside}", pod.name)
            }
            pods => format!("{} pods on {nodes}{beside}", pods.len()),
        }
    }

    /// Returns the nodes of the pods, each once, in alphabetical order.
    fn node_names(&self) -> Vec<String> {
        let mut nodes: Vec<String> = self.pods.iter().map(PodClient::node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns the id of the run, which is part of the names of its objects.
    pub fn run_id(&self) -> &str {
        &self.objects.id
    }

    /// Returns the objects of the run.
    pub(crate) fn run_objects(&self) -> &RunObjects {
        &self.objects
    }

    /// Returns the runtime of the connections.
    pub(crate) fn runtime_handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Returns the source of the user's interrupts.
    pub(crate) fn interrupts(&self) -> &'w (dyn Fn() -> u32 + Send + Sync) {
        self.watch.interrupts
    }

    /// Shows what the session waits for.
    pub(crate) fn show_waiting(&mut self, what: &str) {
        (self.watch.tell)(SetupEvent::Waiting(what));
    }

    /// Returns the number of pods.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// Whether several pods of the user mount the same claim.
    pub fn is_claim_shared(&self) -> bool {
        let selected = self.objects.selected.as_ref();
        selected.is_some_and(|selected| selected.has_one_claim())
    }

    /// Moves all files of a plan into the volume of a single pod. The files of several pods are
    /// moved when the plan is sent. Returns notes for the user.
    pub fn relocate_plan(&self, plan: &mut Plan) -> Vec<String> {
        let scratch = self.pods[0].scratch.as_deref();
        match self.has_common_start {
            true => relocate::relocate_to_volume(&mut plan.clone(), scratch),
            false => relocate::relocate_to_volume(plan, scratch),
        }
    }

    /// Sends the plan to all pods. A single pod gets it as it is, since its files were moved by
    /// [`relocate_plan`](Self::relocate_plan).
    fn send_plan(&mut self, plan: &Plan, interval_ns: u64) {
        let consent = self.device.as_ref().and_then(|device| device.consent);
        for (index, pod) in (0..).zip(&mut self.pods) {
            let mut plan = plan.clone();
            if self.has_common_start {
                relocate::relocate_to_volume(&mut plan, pod.scratch.as_deref());
                relocate::vary_seeds(&mut plan, index);
            }
            pod.begin(AgentRequest::Run {
                run: self.runs,
                plan: Box::new(plan),
                interval_ns,
                hold: self.has_common_start || self.cold.is_before_start(),
                consent,
                cold: self.cold.drops_client(),
            });
        }
    }

    /// Handles the events received from all pods so far. Reconnects broken connections.
    fn handle_events(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        for index in 0..self.pods.len() {
            loop {
                let event = match self.pods[index].connection.events.try_recv() {
                    Ok(event) => event,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => AgentEvent::Ended,
                };
                if matches!(event, AgentEvent::Ended) && self.pods[index].result.is_some() {
                    break;
                }
                self.handle(index, event, observer)?;
            }
        }
        Ok(())
    }

    fn handle(
        &mut self,
        index: usize,
        event: AgentEvent,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        match event {
            AgentEvent::Message(message) => {
                let handled = self.pods[index].handle_message(message, observer);
                handled.map_err(|error| self.explain_loss(index, error))
            }
            AgentEvent::Unreadable(problem) => Err(unreadable(problem)),
            AgentEvent::Ended => self.reconnect(index, observer),
        }
    }

    /// Replaces the connection to a pod, as long as the pod runs.
    fn reconnect(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), RunError> {
        let name = &self.pods[index].name;
        let interrupts = self.watch.interrupts;
        let again = reconnected(&self.runtime, &self.objects, name, interrupts, observer);
        let connection = again.map_err(|broken| {
            self.is_closed |= broken.may_go_on;
            self.name_pod(index, broken.error)
        })?;
        self.pods[index].resume_run(connection, self.runs, &self.stops);
        Ok(())
    }

    fn stop_all(&mut self, stop: StopMode) {
        self.stops.push(stop);
        // The interrupts of the user, and that the observer has seen enough.
        debug_assert!(self.stops.len() <= INTERRUPTS_MAX as usize + 1);
        let run = self.runs;
        for pod in &self.pods {
            pod.connection.ask(&AgentRequest::Stop { run, stop });
        }
    }

    /// Follows all pods to the end of the run. There is no deadline, as a run may take weeks: a
    /// connection that is silent ends, and the Job has its own deadline.
    fn follow(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        let mut progress_sum = ProgressSum::default();
        self.stops.clear();
        self.is_status_due = false;
        let (mut passed_on, mut is_started, mut is_enough) = (0, !self.waits_for_start(), false);
        loop {
            while passed_on < (self.watch.interrupts)().min(INTERRUPTS_MAX) {
                passed_on += 1;
                self.stop_all(StopMode::Interrupt);
            }
            self.handle_events(observer)?;
            let is_prepared = |pod: &PodClient| pod.is_ready || pod.result.is_some();
            if !is_started && self.pods.iter().all(is_prepared) {
                is_started = true;
                if passed_on == 0 {
                    self.drop_caches()?;
                    self.start(observer)?;
                }
            }
            let control = self.show(&mut progress_sum, observer);
            if control == Control::Stop && !is_enough {
                is_enough = true;
                self.stop_all(StopMode::Enough);
            }
            if self.pods.iter().all(|pod| pod.result.is_some()) {
                return Ok(());
            }
            self.objects.event_signal.wait(TICK);
        }
    }

    /// Returns the result of the run, combined from those of several pods.
    fn result(&mut self) -> Option<RunResult> {
        debug_assert!(self.pods.iter().all(|pod| pod.result.is_some()));
        let labels = &self.labels;
        let run = |pod: &mut PodClient| {
            let result = pod.result.take()?;
            Some(pod.pod_run(result, labels))
        };
        let mut runs: Vec<_> = self.pods.iter_mut().filter_map(run).collect();
        match self.has_common_start {
            true => combined(runs),
            false => runs.pop().map(|run| run.result),
        }
    }
}

impl Session for PodSession<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut nodes = std::mem::take(&mut self.nodes);
        let outcome = nodes.run_with_sampling(observer, |observer| {
            self.runs += 1;
            self.cold.begin_run();
            self.send_plan(plan, observer.interval_ns(plan));
            self.follow(observer)?;
            let mut result = self.result().ok_or(RunError::Interrupted)?;
            self.cold.add_states(plan, &mut result);
            result.shared_file.clone_from(&self.shared_file);
            Ok(result)
        });
        self.nodes = nodes;
        outcome.map_err(|error| {
            let error = explain_refusal(error, self.device.as_ref());
            self.keep_if_lost(self.with_leftovers(error))
        })
    }

    fn close(mut self: Box<Self>) -> Result<(), RunError> {
        self.remove()
    }
}

/// Removes pods and volumes, also after an error.
impl Drop for PodSession<'_> {
    fn drop(&mut self) {
        if let Err(left) = self.remove() {
            (self.watch.tell)(SetupEvent::Note(&format!("{left}; {}", left.remedy())));
        }
    }
}

#[cfg(test)]
mod tests;
