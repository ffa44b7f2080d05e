//! Creates, waits for and deletes the objects of a run. Each wait ends with success, an explained
//! failure, or an interrupt of the user.

use crate::api;
use crate::connect::Cluster;
use crate::diagnose::{Hindrance, Sight, State};
use crate::manifest::{RUN_LABEL, RunSpec};
use crate::namespace;
use crate::preflight::is_ready;
use crate::session::{Told, Watch};
use iosonde_result::session::RunError;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use std::time::{Duration, Instant};

/// Time before a deletion gives up on pods whose nodes are not ready.
const NODE: Duration = Duration::from_secs(5);
/// Polling interval of all waits.
const LOOK: Duration = Duration::from_millis(200);
/// Time for which an unavailable API server is tolerated while waiting for pods.
pub(crate) const AWAY: Duration = Duration::from_secs(60);
/// Time for a Job that deletes its pods to report the reason.
const EXPLAINED: Duration = Duration::from_secs(3);
/// Timeout of a deletion: the grace period of the pod, and its volume.
const REMOVAL: Duration = Duration::from_secs(90);

/// Objects of one run, identified by its id.
#[derive(Clone)]
pub(crate) struct Objects {
    pub(crate) cluster: Cluster,
    pub(crate) id: String,
    pub(crate) job: String,
    /// Path of the agent's executable in the pods.
    pub(crate) agent: String,
    /// Whether the run was to create the namespace.
    pub(crate) made_namespace: bool,
}

impl Objects {
    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    fn ours(&self) -> ListParams {
        ListParams::default().labels(&format!("{RUN_LABEL}={}", self.id))
    }

    /// Returns the run's pods, or none if this user may not list them.
    pub(crate) async fn all_pods(&self) -> Vec<Pod> {
        let pods = self.pods().list(&self.ours()).await;
        pods.map(|pods| pods.items).unwrap_or_default()
    }

    /// Returns the kubectl command that removes all objects of the run.
    pub(crate) fn removal(&self) -> String {
        format!(
            "kubectl -n {} delete job {}",
            self.cluster.namespace, self.job
        )
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
        let job = created
            .map_err(|error| api::failed(&format!("creating the job {}", self.job), &error))?;
        let uid = job.metadata.uid.unwrap_or_default();
        let Some(claim) = spec.only_claim(Some(&uid)) else {
            return Ok(());
        };
        match self.claims().create(&post, &claim).await {
            Err(error) if !api::is_there(&error) => Err(api::failed("creating the claim", &error)),
            _ => Ok(()),
        }
    }

    /// Observes each pod with its claims and events. Returns one entry if there are no pods yet.
    pub(crate) async fn sights(&self) -> Result<Vec<Sight>, kube::Error> {
        let ours = self.ours();
        let (jobs, pods, claims) = (self.jobs(), self.pods(), self.claims());
        let events: Api<Event> =
            Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let all = ListParams::default();
        let (job, pods, claims, events) = futures::join!(
            jobs.get_opt(&self.job),
            pods.list(&ours),
            claims.list(&ours),
            events.list(&all),
        );
        let mut events = events?.items;
        events.sort_by_key(|event| {
            let last = event.last_timestamp.as_ref().map(|time| time.0);
            last.or(event.event_time.as_ref().map(|time| time.0))
        });
        Ok(Sight::each(
            &self.job,
            job?,
            pods?.items,
            &claims?.items,
            &events,
        ))
    }

    /// Waits until the containers of all pods run.
    pub(crate) async fn wait(
        &self,
        pods: u32,
        timeout: Duration,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Pod>, RunError> {
        let begun = Instant::now();
        let mut hindered = Hindered::default();
        let mut unheard = Instant::now();
        loop {
            if (watch.interrupts)() > 0 {
                return Err(RunError::Interrupted);
            }
            let sights = match self.sights().await {
                Ok(sights) => sights,
                // The API server is unavailable rather than refusing, so the poll is retried.
                Err(error) if api::is_away(&error) && unheard.elapsed() < AWAY => {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                Err(error) => return Err(api::failed("watching the pod", &error)),
            };
            unheard = Instant::now();
            let waits_for = match judge_all(&sights, pods) {
                State::Running => {
                    return Ok(sights.into_iter().filter_map(|sight| sight.pod).collect());
                }
                State::Waiting(what) => {
                    hindered = Hindered::default();
                    what
                }
                State::Hindered(hindrance) => {
                    if hindered.by(&hindrance) >= hindrance.patience {
                        return Err(self.unready(hindrance));
                    }
                    format!("this to go away: {}", hindrance.cause)
                }
            };
            let has_job = sights.iter().any(|sight| sight.job.is_some());
            if !has_job && begun.elapsed() > Duration::from_secs(5) {
                return Err(self.vanished());
            }
            if begun.elapsed() > timeout {
                let late = || too_late(timeout, &waits_for);
                return Err(self.unready(hindered.last().unwrap_or_else(late)));
            }
            (watch.tell)(Told::Waiting(&waits_for));
            tokio::time::sleep(LOOK).await;
        }
    }

    fn unready(&self, hindrance: Hindrance) -> RunError {
        RunError::Unready {
            what: "the pod".to_owned(),
            cause: hindrance.cause,
            remedy: hindrance.remedy,
        }
    }

    fn vanished(&self) -> RunError {
        RunError::Unready {
            what: "the pod".to_owned(),
            cause: format!("somebody has deleted the job {}", self.job),
            remedy: "run it again".to_owned(),
        }
    }

    /// Returns why the connection to this pod's agent broke, or `None` if its container runs.
    pub(crate) async fn loss(&self, pod: &str) -> Result<Option<RunError>, kube::Error> {
        let begun = Instant::now();
        loop {
            let sights = self.sights().await?;
            let (loss, is_explained) = loss_seen(pod, &sights);
            // A Job that terminates its pods reports the reason a moment later.
            if is_explained || begun.elapsed() > EXPLAINED {
                return Ok(loss);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the pod and its node, if the node is not ready and this user may read nodes.
    pub(crate) async fn dead_node(&self, pod: &str) -> Option<Stranded> {
        let placed = self.placed().await?;
        let is_it = |(placed, is_dead): &(Stranded, bool)| *is_dead && placed.pod == pod;
        placed.into_iter().find(is_it).map(first)
    }

    /// Returns all remaining pods if the nodes of all are not ready: they cannot end by themselves.
    async fn stranded(&self) -> Option<Vec<Stranded>> {
        let placed = self.placed().await?;
        let is_over = !placed.is_empty() && placed.iter().all(|(_, is_dead)| *is_dead);
        is_over.then(|| placed.into_iter().map(first).collect())
    }

    /// Returns the run's pods with their nodes, and whether each node is not ready.
    async fn placed(&self) -> Option<Vec<(Stranded, bool)>> {
        let pods = self.pods().list(&self.ours()).await.ok()?;
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let mut placed = Vec::new();
        for pod in pods.items {
            let name = pod.metadata.name.unwrap_or_default();
            let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
            let is_dead = !node.is_empty()
                && matches!(nodes.get_opt(&node).await, Ok(Some(known)) if !is_ready(&known));
            placed.push((Stranded { pod: name, node }, is_dead));
        }
        Some(placed)
    }

    /// Deletes all objects and waits for it. Some storage classes keep the data of deleted claims.
    pub(crate) async fn delete(&self, interrupts: &dyn Fn() -> u32) -> Result<(), RunError> {
        self.delete_since(interrupts(), interrupts).await
    }

    /// Like [`delete`](Self::delete). One more interrupt than `before` ends the wait.
    pub(crate) async fn delete_since(
        &self,
        before: u32,
        interrupts: &dyn Fn() -> u32,
    ) -> Result<(), RunError> {
        let begun = Instant::now();
        let mut is_asked = false;
        loop {
            // An unavailable API server may be back before the timeout.
            let left = match is_asked {
                false => self.ask_to_delete().await,
                true => self.is_gone().await,
            };
            is_asked |= left.is_ok();
            if let Ok(None) = left {
                let is_wanted = || interrupts() <= before.max(1);
                let left = namespace::leave(&self.cluster, Some(&self.id), &is_wanted).await;
                // A namespace that stays is only reported if this run was to create it.
                return left.map(drop).or_else(|left| match self.made_namespace {
                    true => Err(left),
                    false => Ok(()),
                });
            }
            if is_asked
                && begun.elapsed() > NODE
                && let Some(stranded) = self.stranded().await
            {
                return Err(self.left_on(&stranded));
            }
            if begun.elapsed() > REMOVAL {
                return Err(self.left(&match left {
                    Ok(what) => format!("{} is still there", what.unwrap_or_default()),
                    Err(error) => api::chain(&error),
                }));
            }
            if interrupts() > before.max(1) {
                let what = left.ok().flatten().unwrap_or_else(|| self.job.clone());
                return Err(self.left(&format!("{what} was still there when you interrupted")));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Requests deletion of the Job with its dependents. Returns the Job, as still present.
    pub(crate) async fn ask_to_delete(&self) -> Result<Option<String>, kube::Error> {
        let parameters = DeleteParams::foreground();
        match self.jobs().delete(&self.job, &parameters).await {
            Err(error) if !api::is_missing(&error) => Err(error),
            _ => Ok(Some(format!("the job {}", self.job))),
        }
    }

    /// Returns the first object that is left.
    async fn is_gone(&self) -> Result<Option<String>, kube::Error> {
        let ours = self.ours();
        if self.jobs().get_opt(&self.job).await?.is_some() {
            return Ok(Some(format!("the job {}", self.job)));
        }
        if !self.pods().list(&ours).await?.items.is_empty() {
            return Ok(Some("its pod".to_owned()));
        }
        let claims = self.claims().list(&ours).await?.items;
        Ok((!claims.is_empty()).then(|| "its claim".to_owned()))
    }

    /// Returns the error for pods on nodes that are not ready. They are not deleted by force,
    /// because a pod may still write.
    fn left_on(&self, stranded: &[Stranded]) -> RunError {
        let each: Vec<String> = stranded
            .iter()
            .map(|Stranded { pod, node }| format!("the node {node} of its pod {pod}"))
            .collect();
        let pods: Vec<&str> = stranded.iter().map(|one| one.pod.as_str()).collect();
        RunError::Left {
            what: format!("the job {}", self.job),
            cause: format!("{} is not ready", each.join(", ")),
            remedy: format!(
                "the cluster removes it when the node is back; if it is gone for good: kubectl -n {} delete pod {} \
                 --force --grace-period=0",
                self.cluster.namespace,
                pods.join(" ")
            ),
        }
    }

    fn left(&self, why: &str) -> RunError {
        RunError::Left {
            what: format!("the job {}", self.job),
            cause: why.to_owned(),
            remedy: format!(
                "the cluster goes on removing it; if it does not: {}",
                self.removal()
            ),
        }
    }
}

/// A pod and its node.
pub(crate) struct Stranded {
    pub(crate) pod: String,
    pub(crate) node: String,
}

fn first((stranded, _): (Stranded, bool)) -> Stranded {
    stranded
}

/// Judges all pods together: a problem of one counts for all, and the last to run is awaited.
fn judge_all(sights: &[Sight], pods: u32) -> State {
    let states: Vec<State> = sights.iter().map(Sight::judge).collect();
    let hindrances = states.iter().filter_map(|state| match state {
        State::Hindered(hindrance) => Some(hindrance),
        _ => None,
    });
    // Permanent problems are reported before those that may pass.
    if let Some(hindrance) = hindrances.min_by_key(|hindrance| hindrance.patience) {
        return State::Hindered(hindrance.clone());
    }
    let running = states
        .iter()
        .filter(|state| **state == State::Running)
        .count();
    let waiting = states.into_iter().find(|state| *state != State::Running);
    let what = match waiting {
        Some(State::Waiting(what)) => what,
        _ if running >= pods as usize => return State::Running,
        _ => "the pod to be made".to_owned(),
    };
    State::Waiting(match pods {
        1 => what,
        pods => format!("{what}; {running} of {pods} pods run"),
    })
}

/// Returns why the pod is lost, and whether that is final: a later poll may explain more.
fn loss_seen(pod: &str, sights: &[Sight]) -> (Option<RunError>, bool) {
    let is_meant = |sight: &&Sight| sight.pod_name() == Some(pod);
    let gone = Sight::default();
    let sight = sights.iter().find(is_meant).unwrap_or(&gone);
    let is_deleted = sight
        .pod
        .as_ref()
        .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
    // A deadline ends pods by deleting them, so it is checked first.
    let (state, is_explained) = match sights.iter().find_map(Sight::deadline) {
        Some(deadline) => (State::Hindered(deadline), true),
        None if is_deleted || sight.pod.is_none() => {
            let may_say_more = sights.iter().any(Sight::has_job_that_goes_on);
            (State::Hindered(deleted()), !may_say_more)
        }
        None => (sight.judge(), true),
    };
    let (cause, remedy) = match state {
        State::Running => return (None, true),
        State::Hindered(hindrance) => (hindrance.cause, hindrance.remedy),
        State::Waiting(what) => (
            format!("its container no longer runs; it waits for {what}"),
            "see `kubectl describe pod`, and run it again".to_owned(),
        ),
    };
    let lost = RunError::Lost {
        what: "the pod".to_owned(),
        cause,
        remedy,
    };
    (Some(lost), is_explained)
}

fn deleted() -> Hindrance {
    Hindrance {
        cause: "somebody or something has deleted it".to_owned(),
        remedy: "run it again".to_owned(),
        patience: Duration::ZERO,
    }
}

/// The current problem, and the time when it was first seen.
#[derive(Default)]
pub(crate) struct Hindered {
    known: Option<(Hindrance, Instant)>,
}

impl Hindered {
    /// Returns how long this problem has lasted. Another problem restarts the time.
    pub(crate) fn by(&mut self, hindrance: &Hindrance) -> Duration {
        let since = match self.known.take() {
            Some((known, since)) if known.remedy == hindrance.remedy => since,
            _ => Instant::now(),
        };
        self.known = Some((hindrance.clone(), since));
        since.elapsed()
    }

    fn last(self) -> Option<Hindrance> {
        self.known.map(|(hindrance, _)| hindrance)
    }
}

pub(crate) fn too_late(timeout: Duration, waits_for: &str) -> Hindrance {
    Hindrance {
        cause: format!(
            "after {} s it still waits for {waits_for}",
            timeout.as_secs()
        ),
        remedy: "give it more time with --timeout, or see `kubectl describe pod`".to_owned(),
        patience: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_go_away_is_told_before_what_may() {
        let pod = |name: &str, status: serde_json::Value| -> Pod {
            let pod =
                json!({"metadata": {"name": name}, "spec": {"containers": []}, "status": status});
            serde_json::from_value(pod).unwrap()
        };
        let event = |reason: &str| -> Event {
            let event = json!({"metadata": {}, "involvedObject": {"name": "iosonde-x-0"}, "reason": reason, "message": "no room"});
            serde_json::from_value(event).unwrap()
        };
        let waits = Sight {
            pod: Some(pod("iosonde-x-0", json!({"phase": "Pending"}))),
            events: vec![event("FailedScheduling"), event("TriggeredScaleUp")],
            ..Sight::default()
        };
        let evicted = Sight {
            pod: Some(pod(
                "iosonde-x-1",
                json!({"phase": "Failed", "reason": "Evicted"}),
            )),
            ..Sight::default()
        };
        let State::Hindered(hindrance) = judge_all(&[waits, evicted], 2) else {
            panic!("both are hindered");
        };
        assert!(hindrance.cause.contains("evicted"), "{hindrance:?}");
    }
}
