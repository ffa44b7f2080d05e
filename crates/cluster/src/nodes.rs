//! Nodes that are watched while pods on other nodes measure: those that serve the volume, and those that are asked for.
//!
//! A watcher is a pod like any other, without a volume and on a node that nobody chose for measuring: it is unprivileged, puts up
//! with every taint, and only reads counters. One that fails once plans run fails no run.

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

/// Room that a watcher asks for: it writes nothing.
const NO_ROOM: u64 = 1 << 20;
/// How long to wait for a watcher that nobody asked for.
const UNASKED: Duration = Duration::from_secs(30);
/// How long a watcher may take for an answer while a run goes on.
const ANSWER: Duration = Duration::from_secs(2);
/// How long to wait before a watcher that is lost is sought again.
const AGAIN: Duration = Duration::from_secs(10);

/// A node to be watched, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) node: String,
    pub(crate) why: String,
    /// Whether the volume is known to be served from there.
    pub(crate) serves: bool,
}

/// A node that is watched.
struct Watcher {
    wanted: Wanted,
    runtime: Runtime,
    objects: Objects,
    pod: String,
    connection: Connection,
    /// Since when its pod does not answer, or was last sought.
    lost: Option<Instant>,
    /// Of this run.
    seen: Seen,
}

/// What a watcher saw of a run.
#[derive(Debug, Default)]
struct Seen {
    /// Whether a slice of measured time has begun, and not before it.
    is_measured: bool,
    series: MachineSeries,
}

/// All nodes that are watched beside a session.
#[derive(Default)]
pub(crate) struct Nodes {
    all: Vec<Watcher>,
}

/// Which nodes are to be watched beside these pods: those that are asked for, or those that serve their volumes.
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
    /// Makes a watcher on each of these nodes.
    ///
    /// # Errors
    /// When one that was asked for cannot be made, or the user wants it all no longer. One that was found is done without, which is
    /// said.
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
        // What it waits for is said above.
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

    /// Which nodes, and why, behind where the pods are.
    pub(crate) fn in_words(&self) -> String {
        let name = |node: &Watcher| format!("{} ({})", node.wanted.node, node.wanted.why);
        let names: Vec<String> = self.all.iter().map(name).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(", watching {}", names.join(", ")),
        }
    }

    /// Runs something with these nodes beside it.
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

    /// Asks the cluster to remove the watchers, without waiting for it.
    pub(crate) fn ask_to_go(&self) {
        for node in &self.all {
            // Where it fails, `close` asks again.
            let asked = async { timeout(ANSWER, node.objects.ask_to_delete()).await };
            let _ = node.runtime.block_on(asked);
        }
    }

    /// Removes the watchers, for a user who had interrupted so often before. What is left is said: no run fails by it.
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

    /// What was seen of the run, if anything was.
    fn result(&mut self) -> Option<NodeResult> {
        let series = std::mem::take(&mut self.seen).series;
        (!series.slices.is_empty()).then(|| NodeResult {
            node: self.wanted.node.clone(),
            why: self.wanted.why.clone(),
            serves: self.wanted.serves,
            series,
        })
    }

    /// What the node did since this was last asked, and what is to be said. The run is not to wait for a watcher that does not
    /// answer: it goes on without, and the watcher is sought again now and then.
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
    /// Keeps what belongs to an interval. What came before the first that is measured, such as layout, is no part of it.
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

/// What the machine of an agent did since this was last asked over this connection; the first answer is empty.
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

/// What a watcher is like.
fn watcher(options: &ClusterOptions, node: &str, namespace: &str) -> ClusterOptions {
    // Quotas ask for both.
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
        // It comes into a namespace that is there.
        create_namespace: false,
        run_as: options.run_as.filter(|user| *user != 0),
        pods: None,
        watch_nodes: Some(Vec::new()),
        ..options.clone()
    }
}

/// Passes everything on, and samples the nodes at the end of each interval.
struct Beside<'a, 'n> {
    observer: &'a mut dyn Observer,
    nodes: &'n mut Nodes,
}

impl Beside<'_, '_> {
    /// From here on they are watched.
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
        // Layout, or what others did between two runs; then a ramp; then an answer that came late.
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
