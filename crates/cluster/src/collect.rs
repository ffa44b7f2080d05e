//! [`collect`]: combines the results that the pods of a rendered manifest have written.

mod kept;

use crate::api;
use crate::connect::Cluster;
use crate::diagnose::{Hindrance, Sight, State};
use crate::lifecycle::{AWAY, Hindered, too_late};
use crate::manifest::{PODS_ANNOTATION, RENDERED_LABEL, TARGET_ANNOTATION};
use crate::options::ClusterOptions;
use crate::runner::{complete, runtime, unless_interrupted};
use crate::session::{Told, Watch};
use iosonde_result::pods::{PodRun, combined};
use iosonde_result::run::RunResult;
use iosonde_result::session::RunError;
use iosonde_result::wire::{LAST_WORD, outcome_in, was_cut_short};
use iosonde_result::words;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kept::KeptParts;
use kube::api::{Api, ListParams, LogParams};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Polling interval for the pods.
const LOOK: Duration = Duration::from_secs(1);

/// Time to wait for the first pod of a manifest that was just applied.
const APPLIED: Duration = Duration::from_secs(10);
/// Number of last log lines that are searched for the end marker.
const END_LINES: i64 = 200;

/// The collected result and its circumstances.
#[derive(Debug, Clone)]
pub struct Collected {
    /// Result of the only pod, or of all pods combined.
    pub result: RunResult,
    /// Target of the manifest.
    pub target: String,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Reason why the result does not cover the whole job. `None` if it does.
    pub cut: Option<RunError>,
}

/// Result of a pod that runs a job by itself.
struct Found {
    result: RunResult,
    /// Whether the pod was terminated before its job ended.
    is_cut: bool,
}

/// Waits for the results of all pods of a rendered manifest and combines them. Removes nothing.
///
/// # Errors
/// If the namespace has no such manifest, or a pod will never have a result.
pub fn collect(
    options: &ClusterOptions,
    run: Option<&str>,
    mut watch: Watch<'_>,
) -> Result<Collected, RunError> {
    let runtime = runtime()?;
    (watch.tell)(Told::Waiting("the cluster's answer"));
    let collected = runtime.block_on(async {
        let cluster = Cluster::connect(options).await?;
        let run = run.map(|run| run.trim_start_matches("iosonde-"));
        let id = find(&cluster, run, APPLIED.min(options.timeout), &mut watch).await?;
        let gathering = Gathering {
            timeout: options.timeout,
            cluster,
            id,
            parts: RefCell::default(),
        };
        gathering.gather(&mut watch).await
    });
    (watch.tell)(Told::Over);
    collected
}

/// Returns the named manifest, or the only one. Waits for the first pod of a new manifest.
async fn find(
    cluster: &Cluster,
    run: Option<&str>,
    patience: Duration,
    watch: &mut Watch<'_>,
) -> Result<String, RunError> {
    let begun = Instant::now();
    loop {
        let known = known(cluster).await?;
        let is_there = run.is_none_or(|run| known.iter().any(|id| id == run));
        if !known.is_empty() && is_there || begun.elapsed() >= patience {
            return meant(cluster, run, &known);
        }
        (watch.tell)(Told::Waiting("the run's first pod"));
        tokio::time::sleep(LOOK / 4).await;
        if (watch.interrupts)() > 0 {
            return Err(RunError::Interrupted);
        }
    }
}

/// Returns the ids of the rendered manifests that have pods.
async fn known(cluster: &Cluster) -> Result<Vec<String>, RunError> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let all = pods
        .list(&ListParams::default().labels(RENDERED_LABEL))
        .await;
    let all = all.map_err(|error| api::failed("looking for pods", &error))?;
    let mut known: Vec<String> = all.items.iter().filter_map(rendered).collect();
    known.sort_unstable();
    known.dedup();
    Ok(known)
}

fn meant(cluster: &Cluster, run: Option<&str>, known: &[String]) -> Result<String, RunError> {
    let problem = match (run, known) {
        (None, [only]) => return Ok(only.clone()),
        (Some(run), known) if known.iter().any(|id| id == run) => return Ok(run.to_owned()),
        (Some(run), _) => format!("no pod of {run} is in the namespace {}", cluster.namespace),
        (None, []) => format!("no rendered run is in the namespace {}", cluster.namespace),
        (None, _) => "several rendered runs are in this namespace".to_owned(),
    };
    Err(RunError::Unsupported {
        problem,
        remedy: match known {
            [] => {
                "choose its namespace with -n; pods that were removed took their results with them"
                    .to_owned()
            }
            known => format!("name one: {}", known.join(", ")),
        },
    })
}

fn rendered(pod: &Pod) -> Option<String> {
    pod.metadata.labels.as_ref()?.get(RENDERED_LABEL).cloned()
}

pub(crate) fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let all = pod.metadata.annotations.as_ref()?;
    all.get(key).map(String::as_str)
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// Returns the number of container restarts of the pod.
fn restarts(pod: &Pod) -> i32 {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|s| s.container_statuses.as_ref());
    statuses
        .into_iter()
        .flatten()
        .map(|status| status.restart_count)
        .sum()
}

/// The results so far, by the names of their pods.
type Results = BTreeMap<String, (Pod, Found)>;

/// Timeouts while no pod runs.
struct Patience {
    timeout: Duration,
    hindered: Hindered,
    idle: Instant,
}

impl Patience {
    fn new(timeout: Duration) -> Patience {
        Patience {
            timeout,
            hindered: Hindered::default(),
            idle: Instant::now(),
        }
    }

    /// Returns what pods without result wait for, or `None` while one runs. An error ends the wait.
    fn judge(&mut self, due: &[Sight]) -> Result<Option<String>, RunError> {
        match judge_due(due) {
            State::Running => {
                self.idle = Instant::now();
                self.hindered = Hindered::default();
                Ok(None)
            }
            State::Hindered(hindrance) => {
                if self.hindered.by(&hindrance) >= hindrance.patience.min(self.timeout) {
                    return Err(unready(due, hindrance));
                }
                Ok(Some(format!("this to go away: {}", hindrance.cause)))
            }
            State::Waiting(what) if self.idle.elapsed() >= self.timeout => {
                Err(unready(due, too_late(self.timeout, &what)))
            }
            State::Waiting(what) => {
                self.hindered = Hindered::default();
                Ok(Some(what))
            }
        }
    }
}

struct Gathering {
    cluster: Cluster,
    id: String,
    timeout: Duration,
    parts: RefCell<KeptParts>,
}

impl Gathering {
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    async fn gather(&self, watch: &mut Watch<'_>) -> Result<Collected, RunError> {
        let mut results = Results::new();
        let mut patience = Patience::new(self.timeout);
        let mut unheard = Instant::now();
        let mut expected = 1;
        loop {
            if let Some(pods) = self.listed(&mut unheard).await? {
                for pod in &pods {
                    if !results.contains_key(name(pod))
                        && let Some(result) =
                            unless_interrupted(watch.interrupts, self.result_of(pod)).await?
                    {
                        results.insert(name(pod).to_owned(), (pod.clone(), result));
                    }
                }
                // The count never falls: pods that are removed meanwhile still belong to the whole.
                expected = expected.max(announced(&pods));
                if results.len() >= expected {
                    return self.together(results).await;
                }
                let due = self.due(pods, &results, expected).await;
                let what = patience.judge(&due)?.unwrap_or_else(|| {
                    let done = results.len();
                    format!("the pods to end; {done} of {expected} have their result")
                });
                (watch.tell)(Told::Waiting(&what));
            }
            tokio::time::sleep(LOOK).await;
            if (watch.interrupts)() > 0 {
                return Err(RunError::Interrupted);
            }
        }
    }

    /// Returns the pods of the run, or `None` while the API server is unavailable.
    async fn listed(&self, unheard: &mut Instant) -> Result<Option<Vec<Pod>>, RunError> {
        let ours = ListParams::default().labels(&format!("{RENDERED_LABEL}={}", self.id));
        match self.pods().list(&ours).await {
            Ok(found) => {
                *unheard = Instant::now();
                Ok(Some(found.items))
            }
            Err(error) if api::is_away(&error) && unheard.elapsed() < AWAY => Ok(None),
            Err(error) => Err(api::failed("looking at the pods", &error)),
        }
    }

    /// Returns the pods without a result.
    async fn due(&self, pods: Vec<Pod>, results: &Results, expected: usize) -> Vec<Sight> {
        let has_result = |sight: &Sight| {
            let name = sight.pod_name();
            name.is_some_and(|name| results.contains_key(name))
        };
        let mut due = self.sights(pods).await;
        due.retain(|sight| !has_result(sight));
        // A removed pod whose result was read is not missing.
        let there = due.iter().filter(|sight| sight.pod.is_some()).count();
        due.retain(|sight| sight.pod.is_some() || results.len() + there < expected);
        due
    }

    /// Returns the result of a pod if it has one, or an error if it never will.
    async fn result_of(&self, pod: &Pod) -> Result<Option<Found>, RunError> {
        let has_ended = matches!(phase(pod), "Succeeded" | "Failed");
        let log = match self.whole_log(pod).await {
            Ok(Some(log)) => log,
            Ok(None) => return Ok(None),
            // Server unavailable, pod gone or container not started: the next poll decides.
            Err(error) if api::is_away(&error) || api::is_missing(&error) => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 400 => return Ok(None),
            Err(error) => {
                let doing = format!("reading what {} has written", name(pod));
                return Err(api::failed(&doing, &error));
            }
        };
        let (log, outcome) = match (outcome_in(&log), phase(pod)) {
            (None, "Running") => {
                let Some(kept) = self.kept(pod).await? else {
                    return Ok(None);
                };
                let Some(outcome) = outcome_in(&kept) else {
                    return Err(lost(
                        pod,
                        "its node has cut its log, and what the pod has kept is no result",
                        "see `kubectl logs` of the pod, and render the manifest with an image of this version",
                    ));
                };
                (kept, Some(outcome))
            }
            (outcome, _) => (log, outcome),
        };
        match outcome {
            Some(Ok(result)) => Ok(Some(Found {
                result,
                is_cut: was_cut_short(&log),
            })),
            Some(Err(_)) if was_cut_short(&log) => Err(self.why_cut(pod).await),
            Some(Err(error)) => Err(lost(
                pod,
                &format!("its job was refused: {error}"),
                &error.remedy(),
            )),
            None if has_ended => Err(lost(
                pod,
                &why_ended(pod, &log),
                "see `kubectl describe pod`, and apply the manifest again",
            )),
            None => Ok(None),
        }
    }

    /// Returns the whole log of a pod once nothing more will be written to it.
    async fn whole_log(&self, pod: &Pod) -> Result<Option<String>, kube::Error> {
        let is_over = match phase(pod) {
            "Succeeded" | "Failed" => true,
            // A pod of a StatefulSet keeps running, and only the end of its log is read. Standard
            // error may follow the end marker, since the node merges both streams.
            "Running" => {
                let end = self.log(pod, Some(END_LINES)).await?;
                end.lines().any(|line| line == LAST_WORD)
            }
            _ => false,
        };
        match is_over {
            true => self.log(pod, None).await.map(Some),
            false => Ok(None),
        }
    }

    async fn log(&self, pod: &Pod, tail_lines: Option<i64>) -> Result<String, kube::Error> {
        let params = LogParams {
            tail_lines,
            ..LogParams::default()
        };
        self.pods().logs(name(pod), &params).await
    }

    /// Observes each pod with its events and its Job, if this user may read them.
    async fn sights(&self, pods: Vec<Pod>) -> Vec<Sight> {
        let client = || self.cluster.client.clone();
        let (jobs, events): (Api<Job>, Api<Event>) = (
            Api::namespaced(client(), &self.cluster.namespace),
            Api::namespaced(client(), &self.cluster.namespace),
        );
        let name = format!("iosonde-{}", self.id);
        let all = ListParams::default();
        let (job, events) = futures::join!(jobs.get_opt(&name), events.list(&all));
        let events = events.map(|list| list.items).unwrap_or_default();
        Sight::each(&name, job.ok().flatten(), pods, &[], &events)
    }

    async fn together(&self, results: Results) -> Result<Collected, RunError> {
        let mut notes = notes(results.values());
        let cut = match results.values().find(|(_, found)| found.is_cut) {
            Some((pod, _)) => Some(self.why_cut(pod).await),
            None => None,
        };
        let mut runs = Vec::new();
        let mut target = String::new();
        let first_ms = results
            .values()
            .map(|(_, found)| began_ms(&found.result))
            .min()
            .unwrap_or(0);
        for (name, (pod, Found { mut result, .. })) in results {
            annotation(&pod, TARGET_ANNOTATION)
                .unwrap_or_default()
                .clone_into(&mut target);
            complete(&mut result.labels, &self.cluster, &pod).await;
            result.labels.insert("rendered".to_owned(), self.id.clone());
            runs.push(PodRun {
                name,
                node: result.labels.get("node").cloned().unwrap_or_default(),
                started_ns: (began_ms(&result) - first_ms) * 1_000_000,
                clock_error_ns: 0,
                result,
            });
        }
        let result = match runs.len() {
            1 => runs.pop().map(|run| run.result),
            _ => combined(runs),
        };
        let result = result.ok_or_else(|| RunError::Unsupported {
            problem: format!("{} has no pods any more", self.id),
            remedy: "apply its manifest again".to_owned(),
        })?;
        notes.dedup();
        Ok(Collected {
            result,
            target,
            notes,
            cut,
        })
    }

    /// Returns the reason why a pod was terminated before its job ended.
    async fn why_cut(&self, pod: &Pod) -> RunError {
        let seen = self.sights(vec![pod.clone()]).await;
        let (cause, remedy) = match seen.iter().find_map(Sight::deadline) {
            Some(deadline) => (deadline.cause, deadline.remedy),
            None => (
                "it was told to end before its job was over".to_owned(),
                "see `kubectl get events` for who wanted that, and apply the manifest again"
                    .to_owned(),
            ),
        };
        let cause = format!("{cause}; what it has measured is of the time until then");
        lost(pod, &cause, &remedy)
    }
}

/// Judges the pods without result. A permanent problem of one comes first, then a running pod,
/// which is worth waiting for. Problems that may pass count only if none runs.
fn judge_due(due: &[Sight]) -> State {
    let states: Vec<State> = due.iter().map(judge_one).collect();
    let for_good = |state: &&State| matches!(state, State::Hindered(h) if h.patience.is_zero());
    let runs = |state: &&State| **state == State::Running;
    let hindered = |state: &&State| matches!(state, State::Hindered(_));
    let states = || states.iter();
    let mut telling = states()
        .filter(for_good)
        .chain(states().filter(runs))
        .chain(states().filter(hindered))
        .chain(states());
    let others = || State::Waiting("the other pods to be made".to_owned());
    telling.next().cloned().unwrap_or_else(others)
}

/// A terminated container is no problem: its log is still to be read, or it is restarted.
fn judge_one(sight: &Sight) -> State {
    match (sight.judge(), &sight.pod) {
        (State::Hindered(_), Some(pod)) if has_ended(pod) => {
            State::Waiting("what a pod has written".to_owned())
        }
        (state, _) => state,
    }
}

/// Whether the container has terminated and the kubelet reports no reason for the pod.
fn has_ended(pod: &Pod) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let containers = status.container_statuses.iter().flatten();
    let mut states = containers.filter_map(|container| container.state.as_ref());
    status.reason.is_none() && states.any(|state| state.terminated.is_some())
}

fn unready(due: &[Sight], hindrance: Hindrance) -> RunError {
    let hinders = |sight: &&Sight| sight.judge() == State::Hindered(hindrance.clone());
    let sight = due.iter().find(hinders);
    let name = sight.and_then(Sight::pod_name);
    RunError::Unready {
        what: name.map_or("a pod".to_owned(), |name| format!("the pod {name}")),
        cause: hindrance.cause,
        remedy: hindrance.remedy,
    }
}

/// Returns the announced number of pods.
fn announced(pods: &[Pod]) -> usize {
    let first = pods
        .first()
        .and_then(|pod| annotation(pod, PODS_ANNOTATION));
    first.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Returns the start of the first job, in milliseconds by the clock of its node.
fn began_ms(result: &RunResult) -> u64 {
    let workers = result.workers.iter().map(|worker| worker.started_at_ms);
    workers.min().unwrap_or(result.started_at_ms)
}

fn notes<'a>(results: impl Iterator<Item = &'a (Pod, Found)> + Clone) -> Vec<String> {
    let mut notes = Vec::new();
    let began = results.clone().map(|(_, found)| began_ms(&found.result));
    let (first, last) = (began.clone().min().unwrap_or(0), began.max().unwrap_or(0));
    if last > first {
        notes.push(format!(
            "the pods started by themselves, the last {} after the first by the clocks of their nodes: the sum is of \
             rates that were not all reached at the same time",
            words::latency((last - first) as f64 * 1e6)
        ));
    }
    notes.extend(
        results
            .filter(|(pod, _)| restarts(pod) > 0)
            .map(|(pod, _)| {
                format!(
                    "{} was started again: this is the result of its last run",
                    name(pod)
                )
            }),
    );
    notes
}

fn why_ended(pod: &Pod, log: &str) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let ended = status
        .container_statuses
        .unwrap_or_default()
        .into_iter()
        .find_map(|container| {
            let ended = container.state?.terminated?;
            Some(format!(
                "{} (exit status {})",
                ended.reason.unwrap_or_default(),
                ended.exit_code
            ))
        });
    let reason = status
        .reason
        .or(ended)
        .unwrap_or_else(|| "it ended".to_owned());
    match log
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && line.len() < 300)
    {
        Some(last) => format!("{reason}, and its last words are: {last}"),
        None => reason,
    }
}

fn lost(pod: &Pod, cause: &str, remedy: &str) -> RunError {
    RunError::Lost {
        what: format!("the pod {}", name(pod)),
        cause: cause.to_owned(),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests;
