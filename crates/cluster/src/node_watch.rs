//! Samples nodes without a measuring pod: servers of the volume, and nodes named by the user.
//!
//! A node watcher is an unprivileged pod without a volume that tolerates every taint and only reads
//! counters. Those that the user requests run in the network namespace of the node, if the cluster
//! allows it. Its failure during a run does not fail the run.

mod cold_nodes;

pub(crate) use cold_nodes::{ColdNodes, not_dropped};

use crate::connection::{AgentEvent, Connection};
use crate::node_network::make_in_host_network;
use crate::options::{ClusterOptions, KeepOption, PodOptions, VolumeMode, toleration};
use crate::pod_set::{ClusterRunner, PodSet};
use crate::run_objects::RunObjects;
use crate::serving_nodes::WatchedNode;
use crate::setup_observer::{SetupEvent, SetupObserver, TICK};
use iosonde_job::Plan;
use iosonde_job::TargetUri;
use iosonde_result::cache_state::ColdLayers;
use iosonde_result::interval::Interval;
use iosonde_result::machine::{MachineSeries, MachineSlice};
use iosonde_result::nodes::{NodeResult, judge};
use iosonde_result::observer::{Control, Observer, RunProgress, StartDecision};
use iosonde_result::run::{RunEvent, RunResult};
use iosonde_result::run_error::RunError;
use iosonde_result::wire::{AgentMessage, AgentRequest};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Bytes of the emptyDir of a watcher, which writes nothing.
const NO_ROOM: u64 = 1 << 20;
/// Timeout for the start of a watcher that the user did not request.
const UNASKED: Duration = Duration::from_secs(30);
/// Timeout for the answer of a watcher during a run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before reconnecting to a lost watcher.
const RETRY_DELAY: Duration = Duration::from_secs(10);

const _: () = assert!(ANSWER_TIMEOUT.as_secs() < RETRY_DELAY.as_secs());

/// A sampled node.
struct NodeWatcher {
    wanted: WatchedNode,
    runtime: Runtime,
    objects: RunObjects,
    pod: String,
    connection: Connection,
    /// Time when the pod was lost, or of the last attempt to reconnect.
    lost: Option<Instant>,
    /// Whether the watcher sees the network interfaces of the node, not those of its pod.
    sees_network: bool,
    /// Samples of this run.
    samples: NodeSamples,
}

/// Samples of a node during a run.
#[derive(Debug, Default)]
struct NodeSamples {
    /// Whether sampling has reached the measured time.
    is_measured: bool,
    series: MachineSeries,
}

/// Activity of a node since the previous sample.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSample {
    /// Name of the node.
    pub node: String,
    /// Activity. `None` if the node did not answer.
    pub slice: Option<MachineSlice>,
    /// Message for the user: the node stopped answering, or answers again.
    pub message: Option<String>,
}

/// All sampled nodes of a session.
#[derive(Default)]
pub(crate) struct Nodes {
    all: Vec<NodeWatcher>,
}

impl Nodes {
    /// Starts a watcher on each of these nodes.
    ///
    /// # Errors
    /// On an interrupt, or if a watcher that the user requested does not start. Otherwise a note
    /// reports the failure.
    pub(crate) fn open(
        wanted: Vec<WatchedNode>,
        like: &ClusterRunner<'_>,
        namespace: Option<&str>,
        watch: &mut SetupObserver<'_>,
    ) -> Result<Nodes, RunError> {
        let mut nodes = Nodes::default();
        for wanted in wanted {
            match nodes.add(wanted, like, namespace, watch) {
                Ok(()) => {}
                Err(error) => {
                    nodes.close((watch.interrupts)(), watch);
                    return Err(error);
                }
            }
        }
        Ok(nodes)
    }

    fn add(
        &mut self,
        wanted: WatchedNode,
        like: &ClusterRunner<'_>,
        namespace: Option<&str>,
        watch: &mut SetupObserver<'_>,
    ) -> Result<(), RunError> {
        let node = wanted.node.clone();
        let is_asked_for = like.options.watch_nodes.is_some();
        (watch.tell)(SetupEvent::Waiting(&match is_asked_for {
            true => format!("a pod in the network of the node {node} that watches it"),
            false => format!("a pod that watches the node {node}"),
        }));
        let mut options = watcher(&like.options, &node, namespace);
        if !is_asked_for {
            options.timeout = options.timeout.min(UNASKED);
        }
        let tell = &mut *watch.tell;
        let interrupts = watch.interrupts;
        let mut make = |options: ClusterOptions| {
            let runner = ClusterRunner {
                options,
                agents: like.agents,
            };
            // The waiting text above already names the node.
            let mut notes = |event: SetupEvent<'_>| {
                if let SetupEvent::Note(_) = event {
                    tell(event);
                }
            };
            runner.make(&mut SetupObserver {
                tell: &mut notes,
                interrupts,
            })
        };
        // A watcher that the user did not request gets no rights beyond its own pod.
        let made = match is_asked_for {
            true => make_in_host_network(options, &mut make),
            false => make(options).map(|made| (made, false)),
        };
        (watch.tell)(SetupEvent::Over);
        match made {
            Ok((made, sees_network)) => {
                if is_asked_for && !sees_network {
                    (watch.tell)(SetupEvent::Note(&format!(
                        "the network of the node {node} is not watched: the cluster refuses pods \
                         with hostNetwork"
                    )));
                }
                let node = NodeWatcher::new(wanted, made, sees_network);
                self.all.push(node);
            }
            Err(RunError::Interrupted) => return Err(RunError::Interrupted),
            Err(error) if is_asked_for => return Err(error),
            Err(error) => (watch.tell)(SetupEvent::Note(&format!(
                "the node {node} {}, but cannot be watched: {error}",
                wanted.why
            ))),
        }
        Ok(())
    }

    /// Returns the nodes with their reasons, to append to the description of the pods.
    pub(crate) fn in_words(&self) -> String {
        let name = |node: &NodeWatcher| format!("{} ({})", node.wanted.node, node.wanted.why);
        let names: Vec<String> = self.all.iter().map(name).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(", watching {}", names.join(", ")),
        }
    }

    /// Runs `run` while sampling these nodes.
    pub(crate) fn run_with_sampling(
        &mut self,
        observer: &mut dyn Observer,
        run: impl FnOnce(&mut dyn Observer) -> Result<RunResult, RunError>,
    ) -> Result<RunResult, RunError> {
        if self.all.is_empty() {
            return run(observer);
        }
        let mut sampling = NodeSamplingObserver {
            observer,
            nodes: self,
        };
        sampling.begin();
        let mut result = run(&mut sampling)?;
        result.nodes = self
            .all
            .iter_mut()
            .filter_map(NodeWatcher::result)
            .collect();
        judge(&mut result);
        Ok(result)
    }

    /// Returns the activity of each node since the last call. The first call only starts sampling.
    pub(crate) fn sample_all(&mut self) -> Vec<NodeSample> {
        let sample = |node: &mut NodeWatcher| {
            let (slice, message) = node.sample();
            NodeSample {
                node: node.wanted.node.clone(),
                slice,
                message,
            }
        };
        self.all.iter_mut().map(sample).collect()
    }

    /// Requests the removal of the watchers without waiting for it.
    pub(crate) fn request_removal(&self) {
        for node in &self.all {
            // On failure, `close` requests it again.
            let asked = async { timeout(ANSWER_TIMEOUT, node.objects.ask_to_delete()).await };
            let _ = node.runtime.block_on(asked);
        }
    }

    /// Removes the watchers, noting leftovers. One more interrupt than `before` ends the wait.
    pub(crate) fn close(&mut self, before: u32, watch: &mut SetupObserver<'_>) {
        for node in self.all.drain(..) {
            let deleted = node.objects.delete_since(before, watch.interrupts);
            if let Err(left) = node.runtime.block_on(deleted) {
                (watch.tell)(SetupEvent::Note(&format!("{left}; {}", left.remedy())));
            }
        }
    }
}

impl NodeWatcher {
    fn new(wanted: WatchedNode, made: PodSet, sees_network: bool) -> NodeWatcher {
        let PodSet {
            runtime,
            objects,
            mut pods,
            ..
        } = made;
        let first = pods.swap_remove(0);
        NodeWatcher {
            wanted,
            runtime,
            objects,
            pod: first.name,
            connection: first.connection,
            lost: None,
            sees_network,
            samples: NodeSamples::default(),
        }
    }

    /// Returns the samples of the run, if there are any.
    fn result(&mut self) -> Option<NodeResult> {
        let series = std::mem::take(&mut self.samples).series;
        (!series.slices.is_empty()).then(|| NodeResult {
            node: self.wanted.node.clone(),
            why: self.wanted.why.clone(),
            serves: self.wanted.serves,
            series,
        })
    }

    /// Returns the activity of the node since the last sample, and a message for the user. A
    /// watcher that does not answer is skipped, and reconnected after [`RETRY_DELAY`].
    fn sample(&mut self) -> (Option<MachineSlice>, Option<String>) {
        let is_back = match self.lost {
            Some(since) if since.elapsed() < RETRY_DELAY => return (None, None),
            Some(_) => true,
            None => false,
        };
        if is_back {
            let (objects, pod) = (&self.objects, &self.pod);
            let opened = async { timeout(ANSWER_TIMEOUT, Connection::open(objects, pod)).await };
            match self.runtime.block_on(opened) {
                Ok(Ok(connection)) => self.connection = connection,
                _ => {
                    self.lost = Some(Instant::now());
                    return (None, None);
                }
            }
        }
        let node = &self.wanted.node;
        match sample_activity(&self.connection) {
            Some(mut slice) => {
                self.lost = None;
                slice.network = slice.network.filter(|_| self.sees_network);
                (
                    Some(slice),
                    is_back.then(|| format!("the node {node} is watched again")),
                )
            }
            None => {
                self.lost = Some(Instant::now());
                let message =
                    format!("the node {node} is not watched for now: its pod does not answer");
                (None, (!is_back).then_some(message))
            }
        }
    }
}

impl NodeSamples {
    /// Appends the sample of an interval. Skips layout and other time before the measurement.
    fn keep(&mut self, slice: MachineSlice, interval: &Interval) {
        if interval.ramp {
            return;
        }
        let is_whole = slice.length_ns <= interval.length_ns + interval.length_ns / 2;
        self.is_measured |= is_whole;
        if self.is_measured && slice.length_ns > 0 {
            let end_ns = interval.start_ns + interval.length_ns;
            self.series.slices.push(MachineSlice {
                start_ns: end_ns.saturating_sub(slice.length_ns),
                requests: BTreeMap::new(),
                ..slice
            });
        }
    }
}

/// Returns the activity since the last request on this connection. The first one is empty.
fn sample_activity(connection: &Connection) -> Option<MachineSlice> {
    connection.ask(&AgentRequest::Sample);
    let begun = Instant::now();
    loop {
        match connection.events.recv_timeout(TICK) {
            Ok(AgentEvent::Message(AgentMessage::Sample(slice))) => return Some(*slice),
            Ok(AgentEvent::Message(_)) => {}
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER_TIMEOUT => {}
            _ => return None,
        }
    }
}

/// Returns the options of a watcher pod. Without a namespace it is that of the context.
fn watcher(options: &ClusterOptions, node: &str, namespace: Option<&str>) -> ClusterOptions {
    // Quotas may demand requests and limits for both.
    let little = |resources: &BTreeMap<String, Quantity>| -> BTreeMap<String, Quantity> {
        let known = [("cpu", "100m"), ("memory", "64Mi")];
        let asked_for = known
            .into_iter()
            .filter(|(name, _)| resources.contains_key(*name));
        asked_for
            .map(|(name, little)| (name.to_owned(), Quantity(little.to_owned())))
            .collect()
    };
    ClusterOptions {
        namespace: namespace.map(str::to_owned),
        target: TargetUri::EmptyDir,
        claim_bytes: NO_ROOM,
        volume_mode: VolumeMode::Filesystem,
        in_memory: false,
        node_selector: BTreeMap::new(),
        tolerations: toleration("*").into_iter().collect(),
        pod: PodOptions {
            node: Some(node.to_owned()),
            node_affinity: Vec::new(),
            requests: little(&options.pod.requests),
            limits: little(&options.pod.limits),
            ..options.pod.clone()
        },
        pod_patch: None,
        // The namespace exists already.
        create_namespace: false,
        run_as: options.run_as.filter(|user| *user != 0),
        pods: None,
        keep_failed: KeepOption::Unavailable,
        needed: None,
        cold: ColdLayers::default(),
        watch_nodes: Some(Vec::new()),
        ..options.clone()
    }
}

/// Forwards all calls to the observer, and samples the nodes at the end of each interval.
struct NodeSamplingObserver<'a, 'n> {
    observer: &'a mut dyn Observer,
    nodes: &'n mut Nodes,
}

impl NodeSamplingObserver<'_, '_> {
    /// Starts sampling: discards earlier activity.
    fn begin(&mut self) {
        for node in &mut self.nodes.all {
            node.samples = NodeSamples::default();
            if let (_, Some(message)) = node.sample() {
                self.observer.event(&RunEvent { at_ns: 0, message });
            }
        }
    }

    fn sample(&mut self, interval: &Interval) {
        for node in &mut self.nodes.all {
            let (slice, message) = node.sample();
            if let Some(slice) = slice {
                node.samples.keep(slice, interval);
            }
            if let Some(message) = message {
                node.samples.series.missing.push(message.clone());
                let at_ns = interval.start_ns + interval.length_ns;
                self.observer.event(&RunEvent { at_ns, message });
            }
        }
    }
}

impl Observer for NodeSamplingObserver<'_, '_> {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        self.observer.progress(progress)
    }

    fn wants_status(&mut self, at_ns: u64) -> bool {
        self.observer.wants_status(at_ns)
    }

    fn status(&mut self, so_far: &RunResult) {
        self.observer.status(so_far);
    }

    fn interval_ns(&self, plan: &Plan) -> u64 {
        self.observer.interval_ns(plan)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.sample(interval);
        self.observer.interval(interval)
    }

    fn start(&mut self) -> StartDecision {
        self.observer.start()
    }

    fn event(&mut self, event: &RunEvent) {
        self.observer.event(event);
    }
}

#[cfg(test)]
mod tests;
