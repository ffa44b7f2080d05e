//! Samples nodes without a measuring pod: servers of the volume, and nodes named by the user.
//!
//! A node watcher is an unprivileged pod without a volume that tolerates every taint and only reads
//! counters. Its failure during a run does not fail the run.

mod serving;

use crate::lifecycle::Objects;
use crate::options::{ClusterOptions, PodOptions, VolumeMode, toleration};
use crate::runner::{ClusterRunner, Made};
use crate::session::{TICK, Told, Watch};
use crate::transport::{Connection, Heard};
use iosonde_job::Plan;
use iosonde_job::Target;
use iosonde_result::interval::Interval;
use iosonde_result::machine::{MachineSeries, MachineSlice};
use iosonde_result::nodes::{NodeResult, judge};
use iosonde_result::observer::{Control, Observer, Progress, Start};
use iosonde_result::run::{Event, RunResult};
use iosonde_result::session::RunError;
use iosonde_result::wire::{Message, Request};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
pub(crate) use serving::serving_nodes;
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
const ANSWER: Duration = Duration::from_secs(2);
/// Delay before reconnecting to a lost watcher.
const AGAIN: Duration = Duration::from_secs(10);

/// A node to sample, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) node: String,
    pub(crate) why: String,
    /// Whether the node is known to serve the volume.
    pub(crate) serves: bool,
}

/// A sampled node.
struct Watcher {
    wanted: Wanted,
    runtime: Runtime,
    objects: Objects,
    pod: String,
    connection: Connection,
    /// Time when the pod was lost, or of the last attempt to reconnect.
    lost: Option<Instant>,
    /// Samples of this run.
    seen: Seen,
}

/// Samples of a node during a run.
#[derive(Debug, Default)]
struct Seen {
    /// Whether sampling has reached the measured time.
    is_measured: bool,
    series: MachineSeries,
}

/// All sampled nodes of a session.
#[derive(Default)]
pub(crate) struct Nodes {
    all: Vec<Watcher>,
}

/// Returns the nodes to sample: those named by the user, or the servers of the volumes.
pub(crate) async fn wanted(options: &ClusterOptions, objects: &Objects) -> Vec<Wanted> {
    let Some(named) = &options.watch_nodes else {
        return serving_nodes(objects).await;
    };
    let mut named = named.clone();
    named.sort_unstable();
    named.dedup();
    let asked_for = |node: String| Wanted {
        node,
        why: "asked for".to_owned(),
        serves: false,
    };
    named.into_iter().map(asked_for).collect()
}

impl Nodes {
    /// Starts a watcher on each of these nodes.
    ///
    /// # Errors
    /// On an interrupt, or if a watcher that the user requested does not start. Otherwise a note
    /// reports the failure.
    pub(crate) fn open(
        wanted: Vec<Wanted>,
        like: &ClusterRunner<'_>,
        namespace: &str,
        watch: &mut Watch<'_>,
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
        wanted: Wanted,
        like: &ClusterRunner<'_>,
        namespace: &str,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        let node = wanted.node.clone();
        (watch.tell)(Told::Waiting(&format!(
            "a pod that watches the node {node}"
        )));
        let mut options = watcher(&like.options, &node, namespace);
        let is_asked_for = like.options.watch_nodes.is_some();
        if !is_asked_for {
            options.timeout = options.timeout.min(UNASKED);
        }
        let runner = ClusterRunner {
            options,
            agent: like.agent,
        };
        let tell = &mut *watch.tell;
        // The waiting text above already names the node.
        let mut notes = |told: Told<'_>| {
            if let Told::Note(_) = told {
                tell(told);
            }
        };
        let made = runner.make(&mut Watch {
            tell: &mut notes,
            interrupts: watch.interrupts,
        });
        (watch.tell)(Told::Over);
        match made {
            Ok(made) => self.all.push(Watcher::new(wanted, made)),
            Err(RunError::Interrupted) => return Err(RunError::Interrupted),
            Err(error) if is_asked_for => return Err(error),
            Err(error) => (watch.tell)(Told::Note(&format!(
                "the node {node} {}, but cannot be watched: {error}",
                wanted.why
            ))),
        }
        Ok(())
    }

    /// Returns the nodes with their reasons, to append to the description of the pods.
    pub(crate) fn in_words(&self) -> String {
        let name = |node: &Watcher| format!("{} ({})", node.wanted.node, node.wanted.why);
        let names: Vec<String> = self.all.iter().map(name).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(", watching {}", names.join(", ")),
        }
    }

    /// Runs `run` while sampling these nodes.
    pub(crate) fn beside(
        &mut self,
        observer: &mut dyn Observer,
        run: impl FnOnce(&mut dyn Observer) -> Result<RunResult, RunError>,
    ) -> Result<RunResult, RunError> {
        if self.all.is_empty() {
            return run(observer);
        }
        let mut beside = Beside {
            observer,
            nodes: self,
        };
        beside.begin();
        let mut result = run(&mut beside)?;
        result.nodes = self.all.iter_mut().filter_map(Watcher::result).collect();
        judge(&mut result);
        Ok(result)
    }

    /// Requests the removal of the watchers without waiting for it.
    pub(crate) fn ask_to_go(&self) {
        for node in &self.all {
            // On failure, `close` requests it again.
            let asked = async { timeout(ANSWER, node.objects.ask_to_delete()).await };
            let _ = node.runtime.block_on(asked);
        }
    }

    /// Removes the watchers, noting leftovers. One more interrupt than `before` ends the wait.
    pub(crate) fn close(&mut self, before: u32, watch: &mut Watch<'_>) {
        for node in self.all.drain(..) {
            let deleted = node.objects.delete_since(before, watch.interrupts);
            if let Err(left) = node.runtime.block_on(deleted) {
                (watch.tell)(Told::Note(&format!("{left}; {}", left.remedy())));
            }
        }
    }
}

impl Watcher {
    fn new(wanted: Wanted, made: Made) -> Watcher {
        let Made {
            runtime,
            objects,
            mut pods,
            ..
        } = made;
        let first = pods.swap_remove(0);
        Watcher {
            wanted,
            runtime,
            objects,
            pod: first.name,
            connection: first.connection,
            lost: None,
            seen: Seen::default(),
        }
    }

    /// Returns the samples of the run, if there are any.
    fn result(&mut self) -> Option<NodeResult> {
        let series = std::mem::take(&mut self.seen).series;
        (!series.slices.is_empty()).then(|| NodeResult {
            node: self.wanted.node.clone(),
            why: self.wanted.why.clone(),
            serves: self.wanted.serves,
            series,
        })
    }

    /// Returns the activity of the node since the last sample, and a message for the user. A
    /// watcher that does not answer is skipped, and reconnected after [`AGAIN`].
    fn sample(&mut self) -> (Option<MachineSlice>, Option<String>) {
        let is_back = match self.lost {
            Some(since) if since.elapsed() < AGAIN => return (None, None),
            Some(_) => true,
            None => false,
        };
        if is_back {
            let (objects, pod) = (&self.objects, &self.pod);
            let opened = async { timeout(ANSWER, Connection::open(objects, pod)).await };
            match self.runtime.block_on(opened) {
                Ok(Ok(connection)) => self.connection = connection,
                _ => {
                    self.lost = Some(Instant::now());
                    return (None, None);
                }
            }
        }
        let node = &self.wanted.node;
        match ask(&self.connection) {
            Some(slice) => {
                self.lost = None;
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

impl Seen {
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
                ..slice
            });
        }
    }
}

/// Returns the activity since the last request on this connection. The first one is empty.
fn ask(connection: &Connection) -> Option<MachineSlice> {
    connection.ask(&Request::Sample);
    let begun = Instant::now();
    loop {
        match connection.heard.recv_timeout(TICK) {
            Ok(Heard::Message(Message::Sample(slice))) => return Some(*slice),
            Ok(Heard::Message(_)) => {}
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER => {}
            _ => return None,
        }
    }
}

/// Returns the options of a watcher pod.
fn watcher(options: &ClusterOptions, node: &str, namespace: &str) -> ClusterOptions {
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
        namespace: Some(namespace.to_owned()),
        target: Target::EmptyDir,
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
        watch_nodes: Some(Vec::new()),
        ..options.clone()
    }
}

/// Forwards all calls to the observer, and samples the nodes at the end of each interval.
struct Beside<'a, 'n> {
    observer: &'a mut dyn Observer,
    nodes: &'n mut Nodes,
}

impl Beside<'_, '_> {
    /// Starts sampling: discards earlier activity.
    fn begin(&mut self) {
        for node in &mut self.nodes.all {
            node.seen = Seen::default();
            if let (_, Some(message)) = node.sample() {
                self.observer.event(&Event { at_ns: 0, message });
            }
        }
    }

    fn sample(&mut self, interval: &Interval) {
        for node in &mut self.nodes.all {
            let (slice, message) = node.sample();
            if let Some(slice) = slice {
                node.seen.keep(slice, interval);
            }
            if let Some(message) = message {
                node.seen.series.missing.push(message.clone());
                let at_ns = interval.start_ns + interval.length_ns;
                self.observer.event(&Event { at_ns, message });
            }
        }
    }
}

impl Observer for Beside<'_, '_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
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

    fn start(&mut self) -> Start {
        self.observer.start()
    }

    fn event(&mut self, event: &Event) {
        self.observer.event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::wire::line;

    #[test]
    fn a_watcher_is_a_pod_of_that_node_whatever_the_pods_that_measure_are_like() {
        let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
        options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
        options.pod_patch = Some(serde_json::json!({"spec": {"hostNetwork": true}}));
        options.pod.image_pull_secrets = vec!["registry".to_owned()];
        options.pod.limits = crate::options::pod::resource("cpu=2").into_iter().collect();
        options.volume_mode = VolumeMode::Block;
        let watcher = watcher(&options, "n1", "lab");
        assert_eq!(watcher.namespace.as_deref(), Some("lab"));
        assert_eq!(watcher.target, Target::EmptyDir);
        assert_eq!(watcher.pod.node.as_deref(), Some("n1"));
        assert_eq!(watcher.pod.image_pull_secrets, ["registry"]);
        assert!(watcher.node_selector.is_empty() && watcher.pod.requests.is_empty());
        assert_eq!(
            watcher.pod.limits["cpu"].0, "100m",
            "a quota may ask for it"
        );
        assert!(watcher.pod_patch.is_none() && watcher.pods.is_none());
        assert_eq!(
            watcher.watch_nodes,
            Some(Vec::new()),
            "nobody watches watchers"
        );
        assert_eq!(watcher.tolerations[0].operator.as_deref(), Some("Exists"));
    }

    fn interval(second: u64, ramp: bool) -> Interval {
        Interval {
            start_ns: second * 1_000_000_000,
            length_ns: 1_000_000_000,
            ramp,
            ..Interval::default()
        }
    }

    fn slice(seconds: f64) -> MachineSlice {
        MachineSlice {
            length_ns: (seconds * 1e9) as u64,
            ..MachineSlice::default()
        }
    }

    #[test]
    fn what_came_before_the_measured_time_is_no_part_of_it() {
        let mut seen = Seen::default();
        // Layout or activity between two runs, then a ramp, then a late answer.
        seen.keep(slice(60.0), &interval(0, false));
        seen.keep(slice(1.0), &interval(1, true));
        seen.keep(slice(1.0), &interval(2, false));
        seen.keep(slice(2.0), &interval(4, false));
        seen.keep(slice(0.0), &interval(5, false));
        let kept: Vec<(u64, u64)> = seen
            .series
            .slices
            .iter()
            .map(|slice| (slice.start_ns / 1_000_000, slice.length_ns / 1_000_000))
            .collect();
        assert_eq!(kept, [(2000, 1000), (3000, 2000)]);
    }

    #[test]
    fn a_watcher_is_asked_once_and_another_word_is_not_its_answer() {
        let (connection, mut asked, tell) = Connection::fake();
        tell.send(Heard::Message(Message::Clock { now_ns: 1 }))
            .unwrap();
        let answer = Message::Sample(Box::new(slice(1.0)));
        tell.send(Heard::Message(answer)).unwrap();
        assert_eq!(ask(&connection).unwrap().length_ns, 1_000_000_000);
        assert_eq!(asked.try_recv().unwrap(), line(&Request::Sample));
        assert!(asked.try_recv().is_err());
        drop(tell);
        assert_eq!(ask(&connection), None, "nobody is there");
    }
}
