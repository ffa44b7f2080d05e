//! Runs plans in pods of the user: finds them, starts an agent in each over exec, and removes the
//! agent and the files of the run at the end. Nothing else in the pods is changed.

use crate::agent_upload::{select_agent, send_agent};
use crate::api;
use crate::bounded_requests::await_bounded;
use crate::connect::runtime;
use crate::connection::{SILENCE, read_to_end};
use crate::event_signal::EventSignal;
use crate::existing_pods_scripts::{STARTED, find_directory_script, removal_script, start_script};
use crate::free_room::ShareFacts;
use crate::options::KeepOption;
use crate::pod_command::{CommandEnd, Printed, output_of};
use crate::pod_selection::select_pods;
use crate::pod_set::{ClusterRunner, PodSet, StartedPod, complete, connect, new_id};
use crate::run_objects::RunObjects;
use crate::selected_pods::{SelectedPod, SelectedPods};
use crate::serving_nodes::WatchedNode;
use crate::setup_observer::{SetupEvent, SetupObserver, unless_interrupted};
use crate::volume_origin::VolumeOrigin;
use futures::future::{join_all, try_join_all};
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, AttachParams};
use kube::client::UpgradeConnectionError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::timeout;

/// Seconds after which an agent without a client ends.
const IDLE_TIMEOUT_S: u32 = 120;
/// Seconds after which the first agent ends if no client connects. The client starts the other
/// agents before it connects.
const FIRST_CLIENT_TIMEOUT_S: u32 = 600;

/// Most bytes of the output of a script that starts an agent.
const START_OUTPUT_BYTES_MAX: u64 = 1 << 20;

fn pod_name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

impl ClusterRunner<'_> {
    /// Starts an agent in each pod of the selector. Removes the agents on failure.
    pub(crate) fn join_pods(
        &self,
        wanted: (&str, Option<&str>),
        watch: &mut SetupObserver<'_>,
    ) -> Result<PodSet, RunError> {
        let runtime = runtime()?;
        (watch.tell)(SetupEvent::Waiting("the cluster's answer"));
        let id = new_id();
        let selecting = select_pods(&self.options, wanted, &id);
        let selecting = unless_interrupted(watch.interrupts, selecting);
        let (cluster, selected, pods) = runtime.block_on(selecting)?;
        let objects = RunObjects {
            cluster,
            job: String::new(),
            agent: String::new(),
            made_namespace: false,
            keep_failed: KeepOption::Unavailable,
            event_signal: EventSignal::default(),
            selected: Some(Arc::new(selected)),
            id,
        };
        let waiting = match pods.len() {
            1 => "the agent to be started in the pod".to_owned(),
            all => format!("the agent to be started in {all} pods"),
        };
        (watch.tell)(SetupEvent::Waiting(&waiting));
        let starting = self.start_agents(&objects, &pods);
        let begun = runtime.block_on(unless_interrupted(watch.interrupts, starting));
        match begun {
            Ok((objects, started)) => {
                (watch.tell)(SetupEvent::Over);
                Ok(self.pod_set_of_user(runtime, objects, started, &pods))
            }
            Err(error) => {
                (watch.tell)(SetupEvent::Waiting("the agent's files to be removed"));
                if let Err(left) = runtime.block_on(objects.remove_agent_files()) {
                    (watch.tell)(SetupEvent::Note(&format!("{left}; {}", left.remedy())));
                }
                Err(error)
            }
        }
    }

    fn pod_set_of_user(
        &self,
        runtime: tokio::runtime::Runtime,
        objects: RunObjects,
        started: Vec<StartedPod>,
        pods: &[Pod],
    ) -> PodSet {
        let first = pods
            .first()
            .and_then(|pod| objects.selected_pod(pod_name(pod)));
        let path = first.map_or(String::new(), |pod| pod.path.clone());
        let claim = first.and_then(|pod| pod.claim.clone());
        let labels = runtime.block_on(labels_of_claim(&objects, claim.as_deref()));
        let nodes = self.options.watch_nodes.iter().flatten();
        PodSet {
            is_block: false,
            origin: VolumeOrigin::Unknown,
            persistent_volume: Some(format!("{path} of the pods")),
            wanted: nodes.cloned().map(WatchedNode::asked_for).collect(),
            share: ShareFacts::default(),
            labels,
            runtime,
            objects,
            pods: started,
        }
    }

    /// Starts the agents. Returns the objects with the directories of the agents.
    async fn start_agents(
        &self,
        objects: &RunObjects,
        pods: &[Pod],
    ) -> Result<(RunObjects, Vec<StartedPod>), RunError> {
        let finding = pods
            .iter()
            .map(|pod| find_directory(objects, pod_name(pod)));
        // All are awaited: a script that goes on would create a directory after the removal.
        let directories = join_all(finding).await.into_iter();
        let directories: Vec<String> = directories.collect::<Result<_, _>>()?;
        debug_assert_eq!(directories.len(), pods.len(), "each pod has a directory");
        let mut selected = match &objects.selected {
            Some(selected) => SelectedPods::clone(selected),
            None => return Ok((objects.clone(), Vec::new())),
        };
        for (pod, directory) in pods.iter().zip(directories) {
            if let Some(selected) = selected.pods.get_mut(pod_name(pod)) {
                selected.agent_directory = directory;
            }
        }
        let objects = RunObjects {
            selected: Some(Arc::new(selected)),
            ..objects.clone()
        };
        let starting = pods.iter().map(|pod| self.start_agent(&objects, pod));
        let started = try_join_all(starting).await?;
        Ok((objects, started))
    }

    async fn start_agent(&self, objects: &RunObjects, pod: &Pod) -> Result<StartedPod, RunError> {
        let pod_name = pod_name(pod);
        let Some(selected) = objects.selected_pod(pod_name) else {
            return Err(not_started(pod_name, "the pod is gone".to_owned()));
        };
        if selected.has_agent {
            start_agent_of_image(objects, pod_name, selected).await?;
        } else {
            let selected_agent = select_agent(objects, pod_name, self.agents).await;
            let agent = selected_agent.map_err(|error| error_of_pod(error, pod_name))?;
            let sent = send_agent(objects, pod_name, agent).await;
            sent.map_err(|error| error_of_pod(error, pod_name))?;
            let script = start_script(
                selected,
                &objects.id,
                (IDLE_TIMEOUT_S, FIRST_CLIENT_TIMEOUT_S),
            );
            run_start_script(objects, pod_name, &script).await?;
        }
        let connected = connect(objects, pod_name).await;
        let connection = connected.map_err(|error| error_of_pod(error, pod_name))?;
        let mut labels = BTreeMap::new();
        complete(&mut labels, &objects.cluster, pod).await;
        Ok(StartedPod {
            name: pod_name.to_owned(),
            labels,
            scratch: selected.scratch.clone(),
            connection,
        })
    }
}

/// Returns the labels of the claim's class, if this user may read the claim.
async fn labels_of_claim(objects: &RunObjects, claim: Option<&str>) -> BTreeMap<String, String> {
    let cluster = &objects.cluster;
    let api: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let mut labels = BTreeMap::new();
    if let Some(claim) = claim
        && let Ok(Some(found)) = api.get_opt(claim).await
        && let Some(class) = found.spec.and_then(|spec| spec.storage_class_name)
    {
        labels.insert("storage_class".to_owned(), class);
    }
    labels
}

/// Creates a directory for the agent in the pod, in which its user may execute files.
async fn find_directory(objects: &RunObjects, pod: &str) -> Result<String, RunError> {
    match objects.selected_pod(pod) {
        Some(selected) if !selected.has_agent => {
            let script = find_directory_script(selected, &objects.id);
            let printed = run_script(objects, pod, &script).await?;
            // The path becomes a part of scripts.
            match is_plain_path(&printed) {
                true => Ok(printed),
                false => Err(not_started(pod, printed)),
            }
        }
        _ => Ok(objects.agent_directory(pod).to_owned()),
    }
}

/// Whether the shell takes the path as one word. The script prints no other.
fn is_plain_path(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    !path.is_empty() && path.chars().all(is_plain)
}

/// Runs a script in the pod and returns its output.
async fn run_script(objects: &RunObjects, pod: &str, script: &str) -> Result<String, RunError> {
    let place = (pod, objects.container(pod));
    let printed = output_of(&objects.pods(), place, &["sh", "-c", script]).await;
    let Printed { bytes, end } =
        printed.map_err(|error| api::failed(ClusterRequest::SendAgent, &error))?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    match end {
        Some(CommandEnd::Success) => Ok(text),
        Some(CommandEnd::Failure { message, .. }) if text.is_empty() => {
            Err(not_started(pod, message))
        }
        Some(CommandEnd::Failure { .. }) => Err(not_started(pod, text)),
        None => Err(not_started(
            pod,
            "the connection broke before its answer".to_owned(),
        )),
    }
}

/// Starts the agent by a script, whose shell stays connected until the agent has ended. It
/// continues without the connection.
async fn run_start_script(objects: &RunObjects, pod: &str, script: &str) -> Result<(), RunError> {
    let params = AttachParams::default()
        .container(objects.container(pod))
        .stdin(false)
        .stdout(true)
        .stderr(false);
    let command = vec!["sh", "-c", script];
    let started = objects.pods().exec(pod, command, &params).await;
    let mut process = started.map_err(|error| api::failed(ClusterRequest::SendAgent, &error))?;
    let printed = match process.stdout() {
        Some(stdout) => read_until_started(stdout, SILENCE).await,
        None => Err(String::new()),
    };
    match printed {
        Ok(()) => {
            tokio::spawn(async move {
                // Dropping the process earlier would close its streams.
                let _ = process.join().await;
            });
            Ok(())
        }
        Err(text) => {
            process.abort();
            let message = match text.is_empty() {
                true => "the connection broke before its answer".to_owned(),
                false => text,
            };
            Err(not_started(pod, message))
        }
    }
}

/// Reads the output of the script that starts an agent. The error is its text, as far as it was
/// received.
async fn read_until_started(from: impl AsyncRead + Unpin, silence: Duration) -> Result<(), String> {
    let mut lines = BufReader::new(from.take(START_OUTPUT_BYTES_MAX)).lines();
    let mut printed = Vec::new();
    loop {
        match timeout(silence, lines.next_line()).await {
            Ok(Ok(Some(line))) if line == STARTED => return Ok(()),
            Ok(Ok(Some(line))) => printed.push(line),
            // The end of the output, a broken connection, or silence.
            _ => return Err(printed.join("\n").trim().to_owned()),
        }
    }
}

/// Starts the agent that the image contains. Its image has no shell, so the command stays
/// connected. It continues without the connection.
async fn start_agent_of_image(
    objects: &RunObjects,
    pod: &str,
    selected: &SelectedPod,
) -> Result<(), RunError> {
    debug_assert!(
        selected.has_agent,
        "other images get the agent from this machine"
    );
    let (program, socket) = (selected.program(), selected.socket(&objects.id));
    let (idle, first) = (
        IDLE_TIMEOUT_S.to_string(),
        FIRST_CLIENT_TIMEOUT_S.to_string(),
    );
    let command = [
        program.as_str(),
        "serve",
        "--socket",
        &socket,
        "--idle",
        &idle,
        "--first",
        &first,
        "--foreign-container",
        "--scratch",
        &selected.scratch,
    ];
    let params = AttachParams::default()
        .container(objects.container(pod))
        .stdin(false)
        .stdout(false)
        .stderr(true);
    let started = objects.pods().exec(pod, command, &params).await;
    let mut process = started.map_err(|error| api::failed(ClusterRequest::ConnectAgent, &error))?;
    tokio::spawn(async move {
        let mut unused = String::new();
        read_to_end(process.stderr(), &mut unused).await;
        // Dropping the process earlier would close its streams.
        let _ = process.join().await;
    });
    Ok(())
}

fn not_started(pod: &str, message: String) -> RunError {
    let condition = FailureCondition::AgentNotStarted { message };
    RunError::not_ready(FailedObject::named_pod(pod), condition)
}

/// Adds the name of the pod to an error that lacks it.
fn error_of_pod(error: RunError, pod: &str) -> RunError {
    match error {
        RunError::NotReady(failure) => {
            RunError::NotReady(Box::new(failure.with_object(FailedObject::named_pod(pod))))
        }
        other => other,
    }
}

impl RunObjects {
    /// Removes the agents and the files of the run from the pods of the user. Skips pods that no
    /// longer exist.
    ///
    /// # Errors
    /// The first pod in which files are left.
    pub(crate) async fn remove_agent_files(&self) -> Result<(), RunError> {
        let Some(selected) = &self.selected else {
            return Ok(());
        };
        let removing = selected.pods.iter().map(|(pod, selected)| async move {
            match selected.has_agent {
                // The agent removes its files itself.
                true => Ok(()),
                false => self.remove_agent_files_of(pod, selected).await,
            }
        });
        await_bounded(removing).await.into_iter().collect()
    }

    async fn remove_agent_files_of(
        &self,
        pod: &str,
        selected: &SelectedPod,
    ) -> Result<(), RunError> {
        let script = removal_script(selected, &self.id);
        let place = (pod, selected.container.as_str());
        let printed = output_of(&self.pods(), place, &["sh", "-c", &script]).await;
        let is_removed = match &printed {
            Ok(printed) => printed.bytes.is_empty() && printed.end == Some(CommandEnd::Success),
            Err(error) => is_gone(error),
        };
        if is_removed {
            return Ok(());
        }
        let mut paths = vec![selected.scratch.clone()];
        if !selected.agent_directory.is_empty() {
            paths.push(selected.agent_directory.clone());
        }
        Err(RunError::not_removed(
            FailedObject::named_pod(pod),
            FailureCondition::FilesLeft {
                namespace: self.cluster.namespace.clone(),
                paths,
            },
        ))
    }
}

/// Whether the pod of an exec request does not exist.
fn is_gone(error: &kube::Error) -> bool {
    match error {
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) => {
            status.as_u16() == 404
        }
        other => api::is_missing(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_of_an_agent_is_its_line_and_not_the_end_of_the_output() {
        let runtime = runtime().unwrap();
        let silence = Duration::from_millis(200);
        let read = |text: &'static str, is_ended: bool| {
            runtime.block_on(async {
                let (mut pod, client) = tokio::io::duplex(1024);
                tokio::io::AsyncWriteExt::write_all(&mut pod, text.as_bytes())
                    .await
                    .unwrap();
                let _open = (!is_ended).then_some(pod);
                read_until_started(client, silence).await
            })
        };
        assert_eq!(read("started\n", false), Ok(()));
        let failed = read("no space\nexit 3\n", true);
        assert_eq!(failed, Err("no space\nexit 3".to_owned()));
        assert_eq!(read("", false), Err(String::new()), "silence");
    }
}
