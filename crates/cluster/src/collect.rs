//! [`collect`]: combines the results that the pods of a rendered manifest have written.

mod collected_output;
mod due_pods;
mod kept;
mod rendered_runs;

use crate::api;
use crate::connect::{KubeCluster, runtime};
use crate::diagnose::ObservedPod;
use crate::manifest::{
    PODS_ANNOTATION, RENDERED_LABEL, TARGET_ANNOTATION, job_name, run_id_from_job_name,
};
use crate::options::ClusterOptions;
use crate::pod_set::complete;
use crate::run_objects::{API_OUTAGE_MAX, event_objects, list_events};
use crate::setup_observer::{SetupEvent, SetupObserver, unless_interrupted};
use collected_output::PodOutput;
pub use collected_output::{CollectedDocuments, CollectedOutput, CollectedResult, PodDocument};
use due_pods::{WaitTimeouts, explain_problem};
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterRequest, RunError};
use iosonde_result::wire::{LOG_END_MARK, RenderedDocument, read_outcome, was_cut_short};
use iosonde_result::words;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kept::KeptParts;
use kube::api::{Api, ListParams, LogParams};
use rendered_runs::find_rendered_run;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Polling interval for the pods.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time to wait for the first pod of a manifest that was just applied.
const APPLIED: Duration = Duration::from_secs(10);
/// Number of last log lines that are searched for the end marker.
const END_LINES: i64 = 200;

/// Result of a pod that runs a job or a command by itself.
struct CollectedPod {
    output: PodOutput,
    /// Whether the pod was terminated before its job or command ended.
    is_cut: bool,
}

/// Waits for the results of all pods of a rendered manifest and combines them. Removes nothing.
///
/// # Errors
/// If the namespace has no such manifest, or a pod will never have a result.
pub fn collect(
    options: &ClusterOptions,
    run: Option<&str>,
    mut watch: SetupObserver<'_>,
) -> Result<CollectedOutput, RunError> {
    let runtime = runtime()?;
    (watch.tell)(SetupEvent::Waiting("the cluster's answer"));
    let collected = runtime.block_on(async {
        let cluster = KubeCluster::connect(options).await?;
        let run = run.map(run_id_from_job_name);
        let id = find_rendered_run(&cluster, run, APPLIED.min(options.timeout), &mut watch).await?;
        let collector = ResultCollector {
            timeout: options.timeout,
            cluster,
            id,
            parts: RefCell::default(),
        };
        collector.collect_results(&mut watch).await
    });
    (watch.tell)(SetupEvent::Over);
    collected
}

pub(crate) fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let all = pod.metadata.annotations.as_ref()?;
    all.get(key).map(String::as_str)
}

fn pod_name(pod: &Pod) -> &str {
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
type Results = BTreeMap<String, (Pod, CollectedPod)>;

struct ResultCollector {
    cluster: KubeCluster,
    id: String,
    timeout: Duration,
    parts: RefCell<KeptParts>,
}

impl ResultCollector {
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    async fn collect_results(
        &self,
        watch: &mut SetupObserver<'_>,
    ) -> Result<CollectedOutput, RunError> {
        let mut results = Results::new();
        let mut timeouts = WaitTimeouts::new(self.timeout);
        let mut last_answer = Instant::now();
        let mut expected = 1;
        loop {
            if let Some(pods) = self.list_pods(&mut last_answer).await? {
                for pod in &pods {
                    if !results.contains_key(pod_name(pod))
                        && let Some(result) =
                            unless_interrupted(watch.interrupts, self.read_result(pod)).await?
                    {
                        results.insert(pod_name(pod).to_owned(), (pod.clone(), result));
                    }
                }
                // The count never falls: pods that are removed meanwhile still belong to the whole.
                expected = expected.max(announced(&pods));
                if results.len() >= expected {
                    return self.combine_results(results).await;
                }
                let unread = self.list_unread(pods, &results, expected).await;
                let awaited = match timeouts.judge(&unread) {
                    Ok(awaited) => awaited,
                    Err(problem) => {
                        return Err(explain_problem(&self.cluster, &unread, problem).await);
                    }
                };
                let what = awaited.unwrap_or_else(|| {
                    let done = results.len();
                    format!("the pods to end; {done} of {expected} have their result")
                });
                (watch.tell)(SetupEvent::Waiting(&what));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            if (watch.interrupts)() > 0 {
                return Err(RunError::Interrupted);
            }
        }
    }

    /// Returns the pods of the run, or `None` while the API server is unavailable.
    async fn list_pods(&self, last_answer: &mut Instant) -> Result<Option<Vec<Pod>>, RunError> {
        let ours = ListParams::default().labels(&format!("{RENDERED_LABEL}={}", self.id));
        match self.pods().list(&ours).await {
            Ok(found) => {
                *last_answer = Instant::now();
                Ok(Some(found.items))
            }
            Err(error) if api::is_away(&error) && last_answer.elapsed() < API_OUTAGE_MAX => {
                Ok(None)
            }
            Err(error) => Err(api::failed(ClusterRequest::ListPods, &error)),
        }
    }

    /// Returns the pods without a result.
    async fn list_unread(
        &self,
        pods: Vec<Pod>,
        results: &Results,
        expected: usize,
    ) -> Vec<ObservedPod> {
        let has_result = |observed: &ObservedPod| {
            let name = observed.pod_name();
            name.is_some_and(|name| results.contains_key(name))
        };
        let mut unread = self.observe_pods(pods).await;
        unread.retain(|observed| !has_result(observed));
        // A removed pod whose result was read is not missing.
        let present = unread
            .iter()
            .filter(|observed| observed.pod.is_some())
            .count();
        unread.retain(|observed| observed.pod.is_some() || results.len() + present < expected);
        unread
    }

    /// Returns the result of a pod if it has one, or an error if it never will.
    async fn read_result(&self, pod: &Pod) -> Result<Option<CollectedPod>, RunError> {
        let has_ended = matches!(phase(pod), "Succeeded" | "Failed");
        let log = match self.whole_log(pod).await {
            Ok(Some(log)) => log,
            Ok(None) => return Ok(None),
            // Server unavailable, pod gone or container not started: the next poll decides.
            Err(error) if api::is_away(&error) || api::is_missing(&error) => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 400 => return Ok(None),
            Err(error) => {
                let pod = pod_name(pod).to_owned();
                return Err(api::failed(ClusterRequest::ReadLog { pod }, &error));
            }
        };
        if let Some(rendered) = RenderedDocument::from_log(&log) {
            return Ok(Some(CollectedPod {
                is_cut: rendered.is_cut,
                output: PodOutput::Document(rendered),
            }));
        }
        let (log, outcome) = match (read_outcome(&log), phase(pod)) {
            (None, "Running") => {
                let Some(kept) = self.kept(pod).await? else {
                    return Ok(None);
                };
                let Some(outcome) = read_outcome(&kept) else {
                    return Err(lost_pod_error(pod, FailureCondition::KeptResultInvalid));
                };
                (kept, Some(outcome))
            }
            (outcome, _) => (log, outcome),
        };
        match outcome {
            Some(Ok(result)) => Ok(Some(CollectedPod {
                output: PodOutput::Job(Box::new(result)),
                is_cut: was_cut_short(&log),
            })),
            Some(Err(_)) if was_cut_short(&log) => Err(self.why_cut(pod).await),
            Some(Err(error)) => Err(lost_pod_error(
                pod,
                FailureCondition::JobRefused {
                    error: Box::new(error),
                },
            )),
            None if has_ended => Err(lost_pod_error(pod, why_ended(pod, &log))),
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
                end.lines().any(|line| line == LOG_END_MARK)
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
        self.pods().logs(pod_name(pod), &params).await
    }

    /// Observes each pod with its events and its Job, if this user may read them.
    async fn observe_pods(&self, pods: Vec<Pod>) -> Vec<ObservedPod> {
        let name = job_name(&self.id);
        let jobs: Api<Job> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let names = event_objects(&name, &pods);
        let events = list_events(&self.cluster, &names);
        let (job, events) = futures::join!(jobs.get_opt(&name), events);
        let events = events.unwrap_or_default();
        ObservedPod::each(&name, job.ok().flatten(), pods, &[], &events)
    }

    async fn combine_results(&self, results: Results) -> Result<CollectedOutput, RunError> {
        let mut notes = notes(results.values());
        notes.dedup();
        let cut = match results.values().find(|(_, found)| found.is_cut) {
            Some((pod, _)) => Some(self.why_cut(pod).await),
            None => None,
        };
        let mut outputs = Vec::new();
        let mut target = String::new();
        for (name, (pod, found)) in results {
            annotation(&pod, TARGET_ANNOTATION)
                .unwrap_or_default()
                .clone_into(&mut target);
            let mut labels = found.output.labels();
            complete(&mut labels, &self.cluster, &pod).await;
            labels.insert("rendered".to_owned(), self.id.clone());
            outputs.push((name, labels, found.output));
        }
        collected_output::combine_outputs(&self.id, target, outputs, (notes, cut))
    }

    /// Returns the reason why a pod was terminated before its job ended.
    async fn why_cut(&self, pod: &Pod) -> RunError {
        let seen = self.observe_pods(vec![pod.clone()]).await;
        let deadline = seen.iter().find_map(ObservedPod::deadline);
        let condition = match deadline.map(|problem| problem.condition) {
            Some(FailureCondition::DeadlinePassed { seconds, .. }) => {
                FailureCondition::DeadlinePassed {
                    seconds,
                    is_measured: true,
                }
            }
            _ => FailureCondition::TerminatedEarly,
        };
        lost_pod_error(pod, condition)
    }
}

/// Returns the announced number of pods.
fn announced(pods: &[Pod]) -> usize {
    let first = pods
        .first()
        .and_then(|pod| annotation(pod, PODS_ANNOTATION));
    first.and_then(|count| count.parse().ok()).unwrap_or(1)
}

fn notes<'a>(results: impl Iterator<Item = &'a (Pod, CollectedPod)> + Clone) -> Vec<String> {
    let mut notes = Vec::new();
    let began = results
        .clone()
        .filter_map(|(_, found)| found.output.began_ms());
    let (first, last) = (began.clone().min().unwrap_or(0), began.max().unwrap_or(0));
    if last > first {
        notes.push(format!(
            "the pods started by themselves, the last {} after the first by the clocks of their \
             nodes: the sum is of rates that were not all reached at the same time",
            words::latency((last - first) as f64 * 1e6)
        ));
    }
    notes.extend(
        results
            .filter(|(pod, _)| restarts(pod) > 0)
            .map(|(pod, _)| {
                format!(
                    "{} was started again: this is the result of its last run",
                    pod_name(pod)
                )
            }),
    );
    notes
}

/// Returns the end of a pod without a result, with the last line of its log.
fn why_ended(pod: &Pod, log: &str) -> FailureCondition {
    let status = pod.status.clone().unwrap_or_default();
    let ended = status
        .container_statuses
        .unwrap_or_default()
        .into_iter()
        .find_map(|container| container.state?.terminated);
    let (reason, exit_code) = match (status.reason, ended) {
        (Some(reason), _) => (Some(reason), None),
        (None, Some(ended)) => (ended.reason, Some(ended.exit_code)),
        (None, None) => (None, None),
    };
    let last_line = log
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && line.len() < 300);
    FailureCondition::NoResult {
        reason,
        exit_code,
        last_line: last_line.map(str::to_owned),
    }
}

fn lost_pod_error(pod: &Pod, condition: FailureCondition) -> RunError {
    RunError::lost(FailedObject::named_pod(pod_name(pod)), condition)
}

#[cfg(test)]
mod tests;
