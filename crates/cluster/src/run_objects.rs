//! Creates and observes the objects of a run. Each wait ends with success, an explained failure, or
//! an interrupt of the user.

use crate::api;
use crate::connect::KubeCluster;
use crate::diagnose::{ObservedPod, PodProblem, PodState, last_line};
use crate::event_signal::EventSignal;
use crate::manifest::{AGENT_DIRECTORY, CONTAINER, RUN_LABEL, RunSpec};
use crate::object_watch::Selector;
use crate::options::KeepOption;
use crate::preflight::is_ready;
use crate::selected_pods::{SelectedPod, SelectedPods};
use futures::future::try_join_all;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition, PodOnNode};
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, ListParams, LogParams, PostParams};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polling interval of the wait for an explanation.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time for which an unavailable API server is tolerated while waiting for pods.
pub(crate) const API_OUTAGE_MAX: Duration = Duration::from_secs(60);
/// Time for a Job that deletes its pods to report the reason.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(3);

/// Lines of a log that are searched for the last one with a text.
const LOG_LINES: i64 = 20;
/// Most characters of a line of a log in an error.
const LINE_CHARS_MAX: usize = 400;

/// Reasons of warnings that delay nothing. A kubelet repeats those of name servers and pull secrets
/// whenever it synchronizes a pod. An image that cannot be pulled has a warning of its own.
const HARMLESS_WARNINGS: [&str; 4] = [
    "MissingClusterDNS",
    "DNSConfigForming",
    "FailedToRetrieveImagePullSecret",
    "ExternalExpanding",
];

/// Most objects whose events are watched or listed one by one. Above it, one request gets all
/// events of the namespace.
pub(crate) const EVENT_OBJECTS_MAX: usize = 16;

const _: () = assert!(POLL_INTERVAL.as_millis() < EXPLANATION_TIMEOUT.as_millis());

/// Objects of one run, identified by its id.
#[derive(Clone)]
pub(crate) struct RunObjects {
    pub(crate) cluster: KubeCluster,
    pub(crate) id: String,
    pub(crate) job: String,
    /// Path of the agent's executable in the pods.
    pub(crate) agent: String,
    /// Whether the run was to create the namespace.
    pub(crate) made_namespace: bool,
    /// Whether the objects are kept if a pod fails.
    pub(crate) keep_failed: KeepOption,
    /// Set by the connections to its pods when they have an event.
    pub(crate) event_signal: EventSignal,
    /// Pods of the user, in which the plans run. `None`: the run has pods of its own.
    pub(crate) selected: Option<Arc<SelectedPods>>,
}

impl RunObjects {
    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    pub(crate) fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    /// Returns the label of all objects of the run, or the selector of the user's pods.
    pub(crate) fn label(&self) -> String {
        match &self.selected {
            Some(selected) => selected.selector.clone(),
            None => format!("{RUN_LABEL}={}", self.id),
        }
    }

    /// Returns the facts of a pod of the user. `None` for pods of the run.
    pub(crate) fn selected_pod(&self, pod: &str) -> Option<&SelectedPod> {
        self.selected.as_ref()?.pods.get(pod)
    }

    /// Returns the container of the agent in this pod.
    pub(crate) fn container(&self, pod: &str) -> &str {
        let selected = self.selected_pod(pod);
        selected.map_or(CONTAINER, |selected| selected.container.as_str())
    }

    /// Returns the directory of the agent in this pod.
    pub(crate) fn agent_directory(&self, pod: &str) -> &str {
        let selected = self.selected_pod(pod);
        selected.map_or(AGENT_DIRECTORY, |selected| {
            selected.agent_directory.as_str()
        })
    }

    /// Returns the path of the agent's executable in this pod.
    pub(crate) fn agent_program(&self, pod: &str) -> String {
        match self.selected_pod(pod) {
            Some(selected) => selected.program(),
            None => self.agent.clone(),
        }
    }

    /// Returns the path of the agent's socket in this pod.
    pub(crate) fn agent_socket(&self, pod: &str) -> String {
        match self.selected_pod(pod) {
            Some(selected) => selected.socket(&self.id),
            None => format!("{AGENT_DIRECTORY}/socket"),
        }
    }

    fn ours(&self) -> ListParams {
        Selector::Label(self.label()).list_params()
    }

    /// Returns the run's pods, or none if this user may not list them.
    pub(crate) async fn all_pods(&self) -> Vec<Pod> {
        let pods = self.pods().list(&self.ours()).await;
        pods.map(|pods| pods.items).unwrap_or_default()
    }

    /// Creates the Job, which owns all other objects, and the claim if there is only one. Both may
    /// exist after a failure.
    pub(crate) async fn create(&self, spec: &RunSpec<'_>) -> Result<(), RunError> {
        let post = PostParams::default();
        let created = match self.jobs().create(&post, &spec.job()?).await {
            // A retry may find the Job of the first attempt: its name is unique.
            Err(error) if api::is_there(&error) => self.jobs().get(&self.job).await,
            created => created,
        };
        let job = created.map_err(|error| {
            let name = self.job.clone();
            api::failed(ClusterRequest::CreateJob { name }, &error)
        })?;
        let uid = job.metadata.uid.unwrap_or_default();
        let Some(claim) = spec.only_claim(Some(&uid)) else {
            return Ok(());
        };
        match self.claims().create(&post, &claim).await {
            Err(error) if !api::is_there(&error) => {
                Err(api::failed(ClusterRequest::CreateClaim, &error))
            }
            _ => Ok(()),
        }
    }

    /// Observes each pod with its claims and events. Returns one entry if there are no pods yet.
    pub(crate) async fn observe_pods(&self) -> Result<Vec<ObservedPod>, kube::Error> {
        let ours = Selector::Label(self.label()).list_params();
        let (jobs, pods, claims) = (self.jobs(), self.pods(), self.claims());
        let (job, pods, claims) = futures::join!(
            jobs.get_opt(&self.job),
            pods.list(&ours),
            claims.list(&ours),
        );
        let (job, pods, claims) = (job?, pods?.items, claims?.items);
        let names = event_objects(&self.job, &pods);
        let events = list_events(&self.cluster, &names).await?;
        Ok(ObservedPod::each(&self.job, job, pods, &claims, &events))
    }

    /// Returns why the connection to this pod's agent broke, or `None` if its container runs.
    pub(crate) async fn why_pod_lost(&self, pod: &str) -> Result<Option<RunError>, kube::Error> {
        if let Some(selected) = self.selected_pod(pod) {
            let pods = self.pods().list(&self.ours()).await?;
            return Ok(selected.loss(pod, &pods.items));
        }
        let begun = Instant::now();
        loop {
            let observed_pods = self.observe_pods().await?;
            let (loss, is_explained) = judge_loss(pod, &observed_pods);
            // A Job that terminates its pods reports the reason a moment later.
            if is_explained || begun.elapsed() > EXPLANATION_TIMEOUT {
                return Ok(loss);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the last line of the pod's log, if this user may read it.
    pub(crate) async fn last_log_line(&self, pod: &str) -> Option<String> {
        let params = LogParams {
            tail_lines: Some(LOG_LINES),
            ..LogParams::default()
        };
        let log = self.pods().logs(pod, &params).await.ok()?;
        let line = last_line(&log);
        (!line.is_empty()).then(|| line.chars().take(LINE_CHARS_MAX).collect())
    }

    /// Returns the pod and its node, if the node is not ready and this user may read nodes.
    pub(crate) async fn dead_node(&self, pod: &str) -> Option<PodOnNode> {
        let placed = self.placed().await?;
        let is_it = |(placed, is_dead): &(PodOnNode, bool)| *is_dead && placed.pod == pod;
        placed.into_iter().find(is_it).map(first)
    }

    /// Returns all remaining pods if the nodes of all are not ready: they cannot end by themselves.
    pub(crate) async fn stranded(&self) -> Option<Vec<PodOnNode>> {
        let placed = self.placed().await?;
        let is_over = !placed.is_empty() && placed.iter().all(|(_, is_dead)| *is_dead);
        is_over.then(|| placed.into_iter().map(first).collect())
    }

    /// Returns the run's pods with their nodes, and whether each node is not ready.
    async fn placed(&self) -> Option<Vec<(PodOnNode, bool)>> {
        let pods = self.pods().list(&self.ours()).await.ok()?;
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let mut placed = Vec::new();
        for pod in pods.items {
            let name = pod.metadata.name.unwrap_or_default();
            let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
            let is_dead = !node.is_empty()
                && matches!(nodes.get_opt(&node).await, Ok(Some(known)) if !is_ready(&known));
            placed.push((PodOnNode { pod: name, node }, is_dead));
        }
        Some(placed)
    }
}

fn first((placed, _): (PodOnNode, bool)) -> PodOnNode {
    placed
}

/// Returns the names of the objects of a run that events are about: the job, the pods, and the
/// claim of all pods or of each.
pub(crate) fn event_objects(job: &str, pods: &[Pod]) -> BTreeSet<String> {
    let names = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
    let owners = std::iter::once(job).chain(names);
    owners
        .flat_map(|owner| [owner.to_owned(), format!("{owner}-data")])
        .collect()
}

/// Returns the events about these objects, oldest first. Above [`EVENT_OBJECTS_MAX`] objects, one
/// request gets all events of the namespace.
pub(crate) async fn list_events(
    cluster: &KubeCluster,
    names: &BTreeSet<String>,
) -> Result<Vec<Event>, kube::Error> {
    let api: Api<Event> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let mut events = Vec::new();
    if names.len() > EVENT_OBJECTS_MAX {
        events = api.list(&Selector::All.list_params()).await?.items;
    } else {
        let selectors = names.iter().cloned().map(Selector::EventsAbout);
        let lists = selectors.map(|selector| {
            let api = api.clone();
            async move { api.list(&selector.list_params()).await }
        });
        for list in try_join_all(lists).await? {
            events.extend(list.items);
        }
    }
    sort_events(&mut events);
    Ok(events)
}

/// Whether an event is a warning that may explain why a pod or a volume makes no progress.
pub(crate) fn is_explaining_warning(event: &Event) -> bool {
    let reason = event.reason.as_deref().unwrap_or_default();
    event.type_.as_deref() == Some("Warning") && !HARMLESS_WARNINGS.contains(&reason)
}

/// Sorts events by time, oldest first.
pub(crate) fn sort_events(events: &mut [Event]) {
    events.sort_by_key(|event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0))
    });
}

/// Returns why the pod is lost, and whether that is final: a later poll may explain more.
fn judge_loss(pod: &str, observed_pods: &[ObservedPod]) -> (Option<RunError>, bool) {
    let is_meant = |observed: &&ObservedPod| observed.pod_name() == Some(pod);
    let gone = ObservedPod::default();
    let observed = observed_pods.iter().find(is_meant).unwrap_or(&gone);
    let is_deleted = observed
        .pod
        .as_ref()
        .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
    // A deadline ends pods by deleting them, so it is checked first.
    let (state, is_explained) = match observed_pods.iter().find_map(ObservedPod::deadline) {
        Some(deadline) => (PodState::Problem(deadline), true),
        None if is_deleted && observed.disruption().is_some() => {
            let condition = observed.disruption().unwrap_or(FailureCondition::Deleted);
            (PodState::Problem(PodProblem::permanent(condition)), true)
        }
        None if is_deleted || observed.pod.is_none() => {
            let may_say_more = observed_pods.iter().any(ObservedPod::has_job_that_goes_on);
            let deleted = PodProblem::permanent(FailureCondition::Deleted);
            (PodState::Problem(deleted), !may_say_more)
        }
        None => (observed.judge(), true),
    };
    let condition = match state {
        PodState::Running => return (None, true),
        PodState::Problem(problem) => problem.condition,
        PodState::Waiting(awaits) => FailureCondition::ContainerStopped { awaits },
    };
    let lost = RunError::lost(FailedObject::only_pod(), condition);
    (Some(lost), is_explained)
}
