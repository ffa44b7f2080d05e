//! [`ClusterRunner`]: checks a cluster, creates pods and waits until their agents answer.

use crate::agent_upload::send_agent;
use crate::any::AnySession;
use crate::connect::Cluster;
use crate::device_consent::DeviceTarget;
use crate::lifecycle::{AWAY, Objects};
use crate::manifest::{RunSpec, Start};
use crate::namespace;
use crate::node_watch::node_cause_and_remedy;
use crate::nodes::{self, Wanted};
use crate::options::{AgentProgram, ClusterOptions};
use crate::pods::PodsSession;
use crate::preflight::{self, Readiness};
use crate::session::{ClusterSession, TICK, Told, Watch};
use crate::transport::{Connection, Retry};
use crate::volume_origin::{VolumeOrigin, volume_origin};
use futures::future::try_join_all;
use iosonde_job::Target;
use iosonde_result::session::RunError;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

/// Time between two attempts to connect to an agent.
const RETRY: Duration = Duration::from_millis(500);
/// First connections of an agent that may end before its greeting.
const CUT_CONNECTIONS_MAX: u32 = 3;

/// Options and agent from which sessions in a cluster are opened.
#[derive(Debug, Clone)]
pub struct ClusterRunner<'a> {
    /// Cluster, volume and pods.
    pub options: ClusterOptions,
    /// The program that runs in the pods.
    pub agent: AgentProgram<'a>,
}

/// The pods of a run, with connected agents.
pub(crate) struct Made {
    pub(crate) runtime: Runtime,
    pub(crate) objects: Objects,
    /// Labels of the result that all pods share.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) pods: Vec<MadePod>,
    pub(crate) is_block: bool,
    /// Origin of the volumes. Only determined for block devices.
    pub(crate) origin: VolumeOrigin,
    /// Description of the volume, if it outlives the run.
    pub(crate) lasting: Option<String>,
    /// Nodes to sample during the runs.
    pub(crate) wanted: Vec<Wanted>,
}

pub(crate) struct MadePod {
    pub(crate) name: String,
    /// Labels of the pod's node and namespace.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) scratch: String,
    pub(crate) connection: Connection,
}

impl ClusterRunner<'_> {
    /// Creates pod and volume, and waits until plans can run. Removes both on failure.
    ///
    /// # Errors
    /// Before anything is created: the unmet prerequisite. Later: the explained cause.
    pub fn open<'w>(&self, mut watch: Watch<'w>) -> Result<ClusterSession<'w>, RunError> {
        let mut made = self.make(&mut watch)?;
        let wanted = std::mem::take(&mut made.wanted);
        let origin = made.origin;
        let mut session = ClusterSession::new(made, watch);
        if self.options.is_block() {
            let found = session.look()?;
            session.agree_to(DeviceTarget::judge(&self.options, origin, &[found])?);
        }
        session.watch_nodes(wanted, self)?;
        Ok(session)
    }

    /// Like [`open`](Self::open), with as many pods as the options request.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_any<'w>(&self, mut watch: Watch<'w>) -> Result<AnySession<'w>, RunError> {
        if self.options.pods.is_none() {
            return Ok(AnySession::One(Box::new(self.open(watch)?)));
        }
        let mut made = self.make(&mut watch)?;
        let wanted = std::mem::take(&mut made.wanted);
        let origin = made.origin;
        let mut session = PodsSession::new(made, watch);
        if self.options.is_block() {
            let found = session.look_in_all()?;
            session.agree_to(DeviceTarget::judge(&self.options, origin, &found)?);
        }
        session.watch_nodes(wanted, self)?;
        Ok(AnySession::Several(Box::new(session)))
    }

    /// Checks the prerequisites, then creates the pods and waits for their agents.
    pub(crate) fn make(&self, watch: &mut Watch<'_>) -> Result<Made, RunError> {
        let runtime = runtime()?;
        let options = with_namespace(&self.options);
        (watch.tell)(Told::Waiting("the cluster's answer"));
        let (cluster, ready) = runtime.block_on(unless_interrupted(
            watch.interrupts,
            asked(&options, self.agent.arch),
        ))?;
        for note in &ready.notes {
            (watch.tell)(Told::Note(note));
        }
        let id = new_id();
        let namespace = cluster.namespace.clone();
        let spec = RunSpec {
            id: &id,
            namespace: &namespace,
            image: &ready.image,
            arch: self.agent.arch,
            pods: ready.pods,
            may_claim: ready.may_claim,
            start: Start::of_image(&ready.image),
            labels: &ready.labels,
            options: &options,
        };
        let objects = Objects {
            cluster,
            id: id.clone(),
            job: spec.name(),
            agent: spec.start.agent(),
            made_namespace: options.create_namespace,
        };
        if options.create_namespace {
            runtime.block_on(come_in(&objects, &options, &ready, watch))?;
        }
        let begun = runtime.block_on(async {
            objects.create(&spec).await?;
            let pods = begin(&objects, &spec, &self.agent, watch).await?;
            let mut origin = VolumeOrigin::Unknown;
            if spec.is_block() {
                preflight::refuse_other_users(&objects.cluster, &options, &id).await?;
                origin = volume_origin(&objects).await;
            }
            let wanted = async { Ok(nodes::wanted(&options, &objects).await) };
            let wanted = unless_interrupted(watch.interrupts, wanted).await?;
            Ok((pods, origin, wanted))
        });
        match begun {
            Ok((pods, origin, wanted)) => {
                (watch.tell)(Told::Over);
                Ok(Made {
                    is_block: spec.is_block(),
                    origin,
                    lasting: lasting(&options.target, spec.is_block()),
                    wanted,
                    labels: ready.labels,
                    runtime,
                    objects,
                    pods,
                })
            }
            Err(error) => {
                (watch.tell)(Told::Waiting("everything to be removed"));
                if let Err(left) = runtime.block_on(objects.delete(watch.interrupts)) {
                    (watch.tell)(Told::Note(&format!("{left}; {}", left.remedy())));
                }
                Err(error)
            }
        }
    }
}

/// Creates the namespace if needed and checks the permissions in it. Undoes this on failure.
async fn come_in(
    objects: &Objects,
    options: &ClusterOptions,
    ready: &Readiness,
    watch: &mut Watch<'_>,
) -> Result<(), RunError> {
    let cluster = &objects.cluster;
    (watch.tell)(Told::Waiting("the namespace"));
    // The request is not dropped on an interrupt: the namespace could be created afterwards.
    let mut entered = namespace::enter(cluster, &objects.id, &|| (watch.interrupts)() == 0).await;
    if ready.makes_namespace && entered.is_ok() {
        let judged = preflight::judge_new_namespace(cluster, options);
        entered = unless_interrupted(watch.interrupts, judged).await;
    }
    if entered.is_err() {
        let is_wanted = || (watch.interrupts)() <= 1;
        if let Err(left) = namespace::undo(cluster, &objects.id, &is_wanted).await {
            (watch.tell)(Told::Note(&format!("{left}; {}", left.remedy())));
        }
    }
    entered
}

/// Facts about a target that are known before anything is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
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
    arch: &str,
    interrupts: &dyn Fn() -> u32,
) -> Result<Checked, RunError> {
    let options = with_namespace(options);
    let asked = unless_interrupted(interrupts, asked(&options, arch));
    let (_, ready) = runtime()?.block_on(asked)?;
    Ok(Checked {
        notes: ready.notes,
        volume_bytes: ready.volume_bytes,
    })
}

/// Connects to the cluster and judges whether a run is possible.
async fn asked(options: &ClusterOptions, arch: &str) -> Result<(Cluster, Readiness), RunError> {
    let cluster = Cluster::connect(options).await?;
    let facts = preflight::look(&cluster, options).await?;
    let ready = facts.judge(options, arch)?;
    Ok((cluster, ready))
}

/// Waits until the pods run and their agents answer.
async fn begin(
    objects: &Objects,
    spec: &RunSpec<'_>,
    agent: &AgentProgram<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<MadePod>, RunError> {
    let pods = objects.wait(spec.pods, spec.options.timeout, watch).await?;
    let what = match (spec.start, pods.len()) {
        (Start::Streamed, 1) => "the agent to be sent".to_owned(),
        (Start::Streamed, all) => format!("the agent to be sent into {all} pods"),
        _ => "the agent to answer".to_owned(),
    };
    (watch.tell)(Told::Waiting(&what));
    let mut pods: Vec<(u32, Pod)> = pods.into_iter().map(|pod| (index(&pod), pod)).collect();
    pods.sort_by_key(|(index, _)| *index);
    let starting = pods
        .iter()
        .map(|(index, pod)| start(objects, spec, agent, *index, pod));
    unless_interrupted(watch.interrupts, try_join_all(starting)).await
}

/// Awaits `work`, or returns [`RunError::Interrupted`] on an interrupt.
pub(crate) async fn unless_interrupted<T>(
    interrupts: &dyn Fn() -> u32,
    work: impl Future<Output = Result<T, RunError>>,
) -> Result<T, RunError> {
    let interrupted = async {
        while interrupts() == 0 {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = interrupted => Err(RunError::Interrupted),
    }
}

async fn start(
    objects: &Objects,
    spec: &RunSpec<'_>,
    agent: &AgentProgram<'_>,
    index: u32,
    pod: &Pod,
) -> Result<MadePod, RunError> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let started = async {
        if spec.start == Start::Streamed {
            send_agent(objects, &name, agent).await?;
        }
        connect(objects, &name).await
    };
    let connection = match started.await {
        Ok(connection) => connection,
        // The state of the pod may give a more precise cause.
        Err(error) => {
            return Err(match objects.loss(&name).await {
                Ok(Some(RunError::Lost {
                    cause,
                    remedy,
                    what,
                })) => RunError::Unready {
                    what,
                    cause,
                    remedy,
                },
                _ => match objects.dead_node(&name).await {
                    Some(dead) => {
                        let (cause, remedy) = node_cause_and_remedy(&dead);
                        RunError::Unready {
                            what: format!("the pod {name}"),
                            cause,
                            remedy,
                        }
                    }
                    None => error,
                },
            });
        }
    };
    let mut labels = BTreeMap::new();
    complete(&mut labels, &objects.cluster, pod).await;
    let index = spec.is_one_of_several().then(|| index.to_string());
    Ok(MadePod {
        name,
        labels,
        scratch: spec.scratch(index.as_deref()),
        connection,
    })
}

/// Connects to the agent of a new pod, with retries while the API server is unavailable.
async fn connect(objects: &Objects, pod: &str) -> Result<Connection, RunError> {
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
            Retry::WhileAway => begun.elapsed() >= AWAY,
        };
        let is_lost = async { matches!(objects.loss(pod).await, Ok(Some(_))) };
        if is_final || is_lost.await || objects.dead_node(pod).await.is_some() {
            return Err(failure.error);
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Returns a description of the volume, if it outlives the run.
pub(crate) fn lasting(target: &Target, is_block: bool) -> Option<String> {
    match target {
        Target::Claim { name, .. } if !is_block => Some(format!("the claim {name}")),
        Target::HostPath(path) => Some(format!("{path} of the node")),
        _ => None,
    }
}

/// Returns the completion index of the pod in its Job.
pub(crate) fn index(pod: &Pod) -> u32 {
    let annotations = pod.metadata.annotations.as_ref();
    let index = annotations.and_then(|all| all.get("batch.kubernetes.io/job-completion-index"));
    index.and_then(|index| index.parse().ok()).unwrap_or(0)
}

pub(crate) fn runtime() -> Result<Runtime, RunError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| RunError::Unsupported {
            problem: format!("no thread can be made: {error}"),
            remedy: "allow more threads (ulimit -u)".to_owned(),
        })
}

/// Selects the namespace of the claim, since a pod can only use claims of its own namespace.
fn with_namespace(options: &ClusterOptions) -> ClusterOptions {
    let mut options = options.clone();
    if let Target::Claim {
        namespace: Some(namespace),
        ..
    } = &options.target
    {
        options.namespace = Some(namespace.clone());
    }
    options
}

/// Returns a new run id of eight hex digits, from the time and the process id.
fn new_id() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mixed = (now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(40))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}", mixed >> 32)
}

/// Adds the labels for namespace, context and node of the pod.
pub(crate) async fn complete(labels: &mut BTreeMap<String, String>, cluster: &Cluster, pod: &Pod) {
    labels.insert("namespace".to_owned(), cluster.namespace.clone());
    if let Some(context) = &cluster.context {
        labels.insert("context".to_owned(), context.clone());
    }
    let Some(name) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) else {
        return;
    };
    labels.insert("node".to_owned(), name.clone());
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    // Node labels that this user may not read are omitted.
    if let Ok(node) = nodes.get(name).await {
        labels.extend(preflight::node_labels(&node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn what_never_comes_is_not_waited_for_when_the_user_wants_it_no_longer() {
        let asked_for = AtomicU32::new(0);
        let asked = || asked_for.fetch_add(1, Relaxed) / 3;
        let work = std::future::pending::<Result<(), RunError>>();
        let outcome = runtime()
            .unwrap()
            .block_on(unless_interrupted(&asked, work));
        assert_eq!(outcome, Err(RunError::Interrupted));
        let work = async { Ok(7) };
        let outcome = runtime().unwrap().block_on(unless_interrupted(&|| 0, work));
        assert_eq!(outcome, Ok(7));
    }
}
