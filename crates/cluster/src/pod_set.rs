//! [`ClusterRunner`]: checks a cluster, creates pods and waits until their agents answer.

mod failed_start;

pub(crate) use failed_start::with_keep_option;

use crate::agent_upload::{select_agent, send_agent};
use crate::connect::{KubeCluster, runtime};
use crate::connection::{Connection, Retry};
use crate::diagnose::ObservedPod;
use crate::event_signal::EventSignal;
use crate::free_room::ShareFacts;
use crate::image::carries_agent;
use crate::manifest::{AgentStart, RunSpec};
use crate::namespace;
use crate::node_readiness::node_not_ready;
use crate::options::{AgentProgram, ClusterOptions, own_arch};
use crate::pod_selection::select_pods;
use crate::preflight::{self, NodeLabels, Readiness};
use crate::rights_role::CommandRights;
use crate::run_objects::{API_OUTAGE_MAX, RunObjects};
use crate::serving_nodes::{WatchedNode, nodes_to_watch};
use crate::setup_observer::{SetupEvent, SetupObserver, unless_interrupted};
use crate::volume_origin::{VolumeOrigin, volume_origin};
use failed_start::end_failed_start;
use futures::future::{try_join, try_join_all};
use iosonde_job::TargetUri;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::api::Api;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

/// Time between two attempts to connect to an agent.
const RETRY: Duration = Duration::from_millis(500);
/// Time for the kubelet to report that a container has ended.
const END_REPORTED: Duration = Duration::from_secs(4);
/// First connections of an agent that may end before its greeting.
const CUT_CONNECTIONS_MAX: u32 = 3;

/// Options and agents from which sessions in a cluster are opened.
#[derive(Debug, Clone)]
pub struct ClusterRunner<'a> {
    /// Cluster, volume and pods.
    pub options: ClusterOptions,
    /// The programs that run in the pods: one for each architecture whose nodes can be measured.
    pub agents: &'a [AgentProgram<'a>],
}

/// The pods of a run, with connected agents.
pub(crate) struct PodSet {
    pub(crate) runtime: Runtime,
    pub(crate) objects: RunObjects,
    /// Labels of the result that all pods share.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) pods: Vec<StartedPod>,
    pub(crate) is_block: bool,
    /// Origin of the volumes. Only determined for block devices.
    pub(crate) origin: VolumeOrigin,
    /// Description of the volume, if it outlives the run.
    pub(crate) persistent_volume: Option<String>,
    /// Nodes to sample during the runs.
    pub(crate) wanted: Vec<WatchedNode>,
    /// The share that holds the volumes, if the class has one.
    pub(crate) share: ShareFacts,
}

pub(crate) struct StartedPod {
    pub(crate) name: String,
    /// Labels of the pod's node and namespace.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) scratch: String,
    pub(crate) connection: Connection,
}

impl ClusterRunner<'_> {
    /// Checks the prerequisites, then creates the pods and waits for their agents.
    pub(crate) fn make(&self, watch: &mut SetupObserver<'_>) -> Result<PodSet, RunError> {
        self.make_for(&preflight::rights_of_run(&self.options), watch)
    }

    /// As [`make`](Self::make), for a command that needs these rights: all of a run, and its own.
    pub(crate) fn make_for(
        &self,
        command: &CommandRights,
        watch: &mut SetupObserver<'_>,
    ) -> Result<PodSet, RunError> {
        if let TargetUri::Pods { selector, path } = &self.options.target {
            return self.join_pods((selector, path.as_deref()), watch);
        }
        let runtime = runtime()?;
        let options = with_namespace(&self.options);
        let archs = self.archs();
        let (cluster, ready) =
            self.await_readiness(&runtime, (&options, &archs), command, watch)?;
        let id = new_id();
        let namespace = cluster.namespace.clone();
        let spec = RunSpec {
            id: &id,
            namespace: &namespace,
            image: &ready.image,
            archs: &archs,
            pods: ready.pods,
            may_claim: ready.may_claim,
            start: AgentStart::of_image(&ready.image),
            labels: &ready.labels,
            options: &options,
        };
        let objects = RunObjects {
            cluster,
            id: id.clone(),
            job: spec.name(),
            agent: spec.start.agent(),
            made_namespace: options.create_namespace,
            keep_failed: options.keep_failed,
            event_signal: EventSignal::default(),
            selected: None,
        };
        if options.create_namespace {
            runtime.block_on(come_in(&objects, &ready, command, watch))?;
        }
        let begun = runtime.block_on(async {
            objects.create(&spec).await?;
            let agents = (self.agents, &ready.node_labels);
            let (pods, wanted) = begin(&objects, &spec, agents, watch).await?;
            let origin = check_device(&objects, &spec).await?;
            Ok((pods, origin, wanted))
        });
        match begun {
            Ok((pods, origin, wanted)) => {
                (watch.tell)(SetupEvent::Over);
                Ok(PodSet {
                    is_block: spec.is_block(),
                    origin,
                    persistent_volume: persistent_volume(&options.target, spec.is_block())
                        .filter(|_| !options.inspects_node),
                    wanted,
                    share: ready.share,
                    labels: ready.labels,
                    runtime,
                    objects,
                    pods,
                })
            }
            Err(error) => {
                let retained = options.removes_retained;
                Err(end_failed_start(&runtime, &objects, retained, error, watch))
            }
        }
    }

    /// Returns the architectures that the pods may have. An image with an agent has the first, as
    /// `k8s image` builds it.
    pub(crate) fn archs(&self) -> Vec<&str> {
        match self.options.image.as_deref() {
            Some(image) if carries_agent(image) => {
                vec![match self.agents.first() {
                    Some(agent) => agent.arch,
                    None => own_arch(),
                }]
            }
            _ => self.agents.iter().map(|agent| agent.arch).collect(),
        }
    }

    /// Connects to the cluster, judges whether a run is possible, and shows the notes on it.
    fn await_readiness(
        &self,
        runtime: &Runtime,
        (options, archs): (&ClusterOptions, &[&str]),
        command: &CommandRights,
        watch: &mut SetupObserver<'_>,
    ) -> Result<(KubeCluster, Readiness), RunError> {
        (watch.tell)(SetupEvent::Waiting("the cluster's answer"));
        let (cluster, ready) = runtime.block_on(unless_interrupted(
            watch.interrupts,
            query_readiness(options, archs, command),
        ))?;
        for note in &ready.notes {
            (watch.tell)(SetupEvent::Note(note));
        }
        Ok((cluster, ready))
    }
}

/// Creates the namespace if needed and checks the permissions in it. Undoes this on failure.
pub(crate) async fn come_in(
    objects: &RunObjects,
    ready: &Readiness,
    command: &CommandRights,
    watch: &mut SetupObserver<'_>,
) -> Result<(), RunError> {
    let cluster = &objects.cluster;
    (watch.tell)(SetupEvent::Waiting("the namespace"));
    // The request is not dropped on an interrupt: the namespace could be created afterwards.
    let mut entered = namespace::enter(cluster, &objects.id, &|| (watch.interrupts)() == 0).await;
    if ready.makes_namespace && entered.is_ok() {
        let judged = preflight::judge_new_namespace(cluster, command);
        entered = unless_interrupted(watch.interrupts, judged).await;
    }
    if entered.is_err() {
        let is_wanted = || (watch.interrupts)() <= 1;
        if let Err(left) = namespace::undo_entry(cluster, &objects.id, &is_wanted).await {
            (watch.tell)(SetupEvent::Note(&format!("{left}; {}", left.remedy())));
        }
    }
    entered
}

/// Facts about a target that are known before anything is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightResult {
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Size of the volume in bytes, if known.
    pub volume_bytes: Option<u64>,
}

/// Checks whether a run is possible, without creating anything.
///
/// # Errors
/// If the run is not possible, or the cluster does not answer.
pub fn check(
    options: &ClusterOptions,
    archs: &[&str],
    interrupts: &dyn Fn() -> u32,
) -> Result<PreflightResult, RunError> {
    if let TargetUri::Pods { selector, path } = &options.target {
        let asked = select_pods(options, (selector, path.as_deref()), "");
        let (_, selected, _) = runtime()?.block_on(unless_interrupted(interrupts, asked))?;
        return Ok(PreflightResult {
            notes: vec![selected.in_words()],
            volume_bytes: None,
        });
    }
    let options = with_namespace(options);
    let command = preflight::rights_of_run(&options);
    let asked = query_readiness(&options, archs, &command);
    let (_, ready) = runtime()?.block_on(unless_interrupted(interrupts, asked))?;
    Ok(PreflightResult {
        notes: ready.notes,
        volume_bytes: ready.volume_bytes,
    })
}

/// Connects to the cluster and judges whether a run is possible.
async fn query_readiness(
    options: &ClusterOptions,
    archs: &[&str],
    command: &CommandRights,
) -> Result<(KubeCluster, Readiness), RunError> {
    let cluster = KubeCluster::connect(options).await?;
    let facts = preflight::query_facts(&cluster, options, command).await?;
    let ready = facts.judge(options, archs)?;
    Ok((cluster, ready))
}

/// Waits until the pods run and their agents answer. Finds the nodes to watch meanwhile.
async fn begin(
    objects: &RunObjects,
    spec: &RunSpec<'_>,
    (agents, node_labels): (&[AgentProgram<'_>], &NodeLabels),
    watch: &mut SetupObserver<'_>,
) -> Result<(Vec<StartedPod>, Vec<WatchedNode>), RunError> {
    let timeout = spec.options.timeout;
    let observed_pods = objects.wait_observed(spec.pods, timeout, watch).await?;
    let claims = claims_of(&observed_pods);
    let pods: Vec<Pod> = observed_pods
        .into_iter()
        .filter_map(|one| one.pod)
        .collect();
    let what = match (spec.start, pods.len()) {
        (AgentStart::Streamed, 1) => "the agent to be sent".to_owned(),
        (AgentStart::Streamed, all) => format!("the agent to be sent into {all} pods"),
        _ => "the agent to answer".to_owned(),
    };
    (watch.tell)(SetupEvent::Waiting(&what));
    let mut pods: Vec<(u32, Pod)> = pods.into_iter().map(|pod| (index(&pod), pod)).collect();
    pods.sort_by_key(|(index, _)| *index);
    let starting = pods
        .iter()
        .map(|(index, pod)| start(objects, spec, (agents, node_labels), *index, pod));
    let nodes = async { Ok(nodes_to_watch(spec.options, objects, claims).await) };
    let begun = try_join(try_join_all(starting), nodes);
    unless_interrupted(watch.interrupts, begun).await
}

/// Refuses a block device that other pods use. Returns the origin of the volumes.
async fn check_device(objects: &RunObjects, spec: &RunSpec<'_>) -> Result<VolumeOrigin, RunError> {
    if !spec.is_block() {
        return Ok(VolumeOrigin::Unknown);
    }
    preflight::refuse_other_users(&objects.cluster, spec.options, spec.id).await?;
    Ok(volume_origin(objects).await)
}

/// Returns the claims of the pods, each once: pods may share one.
fn claims_of(observed_pods: &[ObservedPod]) -> Vec<PersistentVolumeClaim> {
    let claims = observed_pods.iter().flat_map(|observed| &observed.claims);
    let by_name: BTreeMap<_, _> = claims
        .map(|claim| (claim.metadata.name.clone(), claim.clone()))
        .collect();
    by_name.into_values().collect()
}

async fn start(
    objects: &RunObjects,
    spec: &RunSpec<'_>,
    (agents, node_labels): (&[AgentProgram<'_>], &NodeLabels),
    index: u32,
    pod: &Pod,
) -> Result<StartedPod, RunError> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let started = async {
        if spec.start == AgentStart::Streamed {
            // A single agent has selected the nodes.
            let agent = match agents {
                [agent] => agent,
                several => select_agent(objects, &name, several).await?,
            };
            send_agent(objects, &name, agent).await?;
        }
        connect(objects, &name).await
    };
    let connection = match started.await {
        Ok(connection) => connection,
        Err(error) => return Err(why_not_started(objects, &name, error).await),
    };
    let mut labels = BTreeMap::new();
    complete_from(&mut labels, &objects.cluster, pod, node_labels).await;
    let index = spec.is_one_of_several().then(|| index.to_string());
    Ok(StartedPod {
        name,
        labels,
        scratch: spec.scratch(index.as_deref()),
        connection,
    })
}

/// Returns the cause why an agent does not answer: from the state of its pod, which the kubelet
/// reports late, its node, or its log. All of them are read before the pod is removed.
async fn why_not_started(objects: &RunObjects, pod: &str, error: RunError) -> RunError {
    let begun = Instant::now();
    loop {
        match objects.why_pod_lost(pod).await {
            Ok(Some(RunError::Lost(failure))) => return RunError::NotReady(failure),
            _ if begun.elapsed() >= END_REPORTED => break,
            _ => tokio::time::sleep(RETRY).await,
        }
    }
    if let Some(dead) = objects.dead_node(pod).await {
        return RunError::not_ready(FailedObject::named_pod(pod), node_not_ready(dead));
    }
    let is_silent = matches!(
        &error,
        RunError::NotReady(failure) if failure.condition() == Some(&FailureCondition::NoGreeting)
    );
    match is_silent {
        true => match objects.last_log_line(pod).await {
            Some(last_line) => RunError::not_ready(
                FailedObject::Agent,
                FailureCondition::NoGreetingButLog { last_line },
            ),
            None => error,
        },
        false => error,
    }
}

/// Connects to the agent of a new pod, with retries while the API server is unavailable.
pub(crate) async fn connect(objects: &RunObjects, pod: &str) -> Result<Connection, RunError> {
    let begun = Instant::now();
    let mut cut = 0;
    loop {
        let failure = match Connection::try_open(objects, pod).await {
            Ok(connection) => return Ok(connection),
            Err(failure) => failure,
        };
        cut += u32::from(failure.retry == Retry::FewTimes);
        let is_final = match failure.retry {
            Retry::Never => true,
            Retry::FewTimes => cut >= CUT_CONNECTIONS_MAX,
            Retry::WhileAway => begun.elapsed() >= API_OUTAGE_MAX,
        };
        let is_lost = async { matches!(objects.why_pod_lost(pod).await, Ok(Some(_))) };
        if is_final || is_lost.await || objects.dead_node(pod).await.is_some() {
            return Err(failure.error);
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Returns a description of the volume, if it outlives the run.
pub(crate) fn persistent_volume(target: &TargetUri, is_block: bool) -> Option<String> {
    match target {
        TargetUri::Claim { name, .. } if !is_block => Some(format!("the claim {name}")),
        TargetUri::HostPath(path) => Some(format!("{path} of the node")),
        _ => None,
    }
}

/// Returns the completion index of the pod in its Job.
pub(crate) fn index(pod: &Pod) -> u32 {
    let annotations = pod.metadata.annotations.as_ref();
    let index = annotations.and_then(|all| all.get("batch.kubernetes.io/job-completion-index"));
    index.and_then(|index| index.parse().ok()).unwrap_or(0)
}

/// Selects the namespace of the claim, since a pod can only use claims of its own namespace.
fn with_namespace(options: &ClusterOptions) -> ClusterOptions {
    let mut options = options.clone();
    if let TargetUri::Claim {
        namespace: Some(namespace),
        ..
    } = &options.target
    {
        options.namespace = Some(namespace.clone());
    }
    options
}

/// Returns a new run id of eight hex digits, from the time, the process id, and the number of ids
/// before: runs of one process may begin at the same time.
pub(crate) fn new_id() -> String {
    static IDS: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let number = IDS.fetch_add(1, Ordering::Relaxed);
    run_id(now.as_nanos() as u64, std::process::id(), number)
}

fn run_id(now_ns: u64, process: u32, number: u32) -> String {
    let seed = now_ns ^ u64::from(process).rotate_left(40);
    // The factor is odd, so that different numbers give different ids at the same time.
    let mixed = seed
        .wrapping_add(u64::from(number) << 32)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let id = format!("{:08x}", mixed >> 32);
    debug_assert_eq!(id.len(), 8);
    id
}

/// Adds the labels for namespace, context and node of the pod.
pub(crate) async fn complete(
    labels: &mut BTreeMap<String, String>,
    cluster: &KubeCluster,
    pod: &Pod,
) {
    complete_from(labels, cluster, pod, &NodeLabels::new()).await;
}

/// As [`complete`], with the labels of nodes that were read before. Other nodes are read.
async fn complete_from(
    labels: &mut BTreeMap<String, String>,
    cluster: &KubeCluster,
    pod: &Pod,
    known: &NodeLabels,
) {
    labels.insert("namespace".to_owned(), cluster.namespace.clone());
    if let Some(context) = &cluster.context {
        labels.insert("context".to_owned(), context.clone());
    }
    let Some(name) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) else {
        return;
    };
    labels.insert("node".to_owned(), name.clone());
    if let Some(known) = known.get(name) {
        labels.extend(known.clone());
        return;
    }
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    // Node labels that this user may not read are omitted.
    if let Ok(node) = nodes.get(name).await {
        labels.extend(preflight::node_labels(&node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn runs_that_begin_at_the_same_time_have_different_ids() {
        let ids: BTreeSet<String> = (0..1000).map(|number| run_id(7, 9, number)).collect();
        assert_eq!(ids.len(), 1000);
        assert_ne!(new_id(), new_id());
    }
}
