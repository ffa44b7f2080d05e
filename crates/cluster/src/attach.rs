//! Attaches to a run without a client. Its pod continues, and keeps its result for a while.

use crate::api;
use crate::collect::annotation;
use crate::connect::{KubeCluster, runtime};
use crate::connection::Connection;
use crate::diagnose::PodState;
use crate::event_signal::EventSignal;
use crate::free_room::ShareFacts;
use crate::leftovers;
use crate::manifest::{
    AgentStart, LABELS_ANNOTATION, TARGET_ANNOTATION, job_name, run_id_from_job_name,
};
use crate::options::{ClusterOptions, KeepOption};
use crate::pod_session::PodSession;
use crate::pod_set::{PodSet, StartedPod, complete, index, persistent_volume};
use crate::preflight::judge_rights_to_attach;
use crate::refusal::refuse;
use crate::run_objects::RunObjects;
use crate::setup_observer::{SetupEvent, SetupObserver};
use crate::volume_origin::VolumeOrigin;
use iosonde_job::{TargetUri, read_json};
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use std::collections::BTreeMap;

/// A run of another client that this client follows.
pub struct Attached<'w> {
    /// Session of its pods, which are removed on close or drop.
    pub session: PodSession<'w>,
    /// The target as the first client named it. `None` if the pods have no annotation.
    pub target: Option<String>,
}

/// Connects to the pods of a run, given by its id or the name of its Job.
///
/// # Errors
/// If there is no such run, or its agents do not answer.
pub fn attach<'w>(
    options: &ClusterOptions,
    run: &str,
    watch: SetupObserver<'w>,
) -> Result<Attached<'w>, RunError> {
    let runtime = runtime()?;
    (watch.tell)(SetupEvent::Waiting("the cluster's answer"));
    let (objects, known, pods) = runtime.block_on(async {
        let cluster = KubeCluster::connect(options).await?;
        let mut objects = find_run(cluster, run_id_from_job_name(run)).await?;
        judge_rights_to_attach(&objects.cluster, true).await?;
        let running = running_pods(&objects).await?;
        objects.agent = running.first().map(agent).unwrap_or_default();
        let mut pods = Vec::new();
        for pod in &running {
            pods.push(taken(&objects, pod).await?);
        }
        let known = running
            .first()
            .map(RunAnnotations::from_pod)
            .unwrap_or_default();
        Ok::<_, RunError>((objects, known, pods))
    })?;
    (watch.tell)(SetupEvent::Over);
    let made = PodSet {
        runtime,
        objects,
        labels: known.labels,
        pods,
        is_block: false,
        origin: VolumeOrigin::Unknown,
        persistent_volume: known.persistent_volume,
        wanted: Vec::new(),
        share: ShareFacts::default(),
    };
    Ok(Attached {
        session: PodSession::of_existing_run(made, watch),
        target: known.target,
    })
}

/// Facts that the client which created the run stored in annotations of its pods.
#[derive(Debug, Default, PartialEq)]
struct RunAnnotations {
    target: Option<String>,
    labels: BTreeMap<String, String>,
    persistent_volume: Option<String>,
}

impl RunAnnotations {
    fn from_pod(pod: &Pod) -> RunAnnotations {
        let target = annotation(pod, TARGET_ANNOTATION);
        let labels = annotation(pod, LABELS_ANNOTATION);
        let labels = labels.and_then(|text| read_json(text).ok());
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let is_block = containers.flat_map(|one| &one.volume_devices).count() > 0;
        let volume = target.and_then(|target| target.parse::<TargetUri>().ok());
        RunAnnotations {
            target: target.map(str::to_owned),
            labels: labels.unwrap_or_default(),
            persistent_volume: volume.and_then(|volume| persistent_volume(&volume, is_block)),
        }
    }
}

/// Connects to the agent of a pod.
async fn taken(objects: &RunObjects, pod: &Pod) -> Result<StartedPod, RunError> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let connection = Connection::open(objects, &name).await?;
    let mut labels = BTreeMap::new();
    complete(&mut labels, &objects.cluster, pod).await;
    Ok(StartedPod {
        name,
        labels,
        // Unused: the pod already has its plan.
        scratch: String::new(),
        connection,
    })
}

/// Finds the run in the selected namespace, or else in all that this user may list.
async fn find_run(mut cluster: KubeCluster, id: &str) -> Result<RunObjects, RunError> {
    let job = job_name(id);
    let objects = |cluster: KubeCluster, job: String| RunObjects {
        cluster,
        id: id.to_owned(),
        job,
        agent: AgentStart::Streamed.agent(),
        made_namespace: true,
        keep_failed: KeepOption::Unavailable,
        event_signal: EventSignal::default(),
        selected: None,
    };
    // A minimal role may get a Job by its name but list none.
    let here: Api<Job> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let refused = match here.get_opt(&job).await {
        Ok(Some(_)) => return Ok(objects(cluster, job)),
        Ok(None) => None,
        Err(error) if api::is_missing(&error) => None,
        Err(error) if api::is_refused(&error) => Some(error),
        Err(error) => {
            let request = ClusterRequest::FindRun;
            return Err(api::failed_at(&cluster.server, request, &error));
        }
    };
    let visible = leftovers::find_visible(&cluster).await?;
    if let (None, Some(error)) = (&visible, &refused) {
        // The run may be in another namespace, where this user has the rights.
        judge_rights_to_attach(&cluster, false).await?;
        return Err(api::failed(ClusterRequest::FindRun, error));
    }
    let is_whole_cluster = visible.as_ref().is_some_and(|found| found.is_whole_cluster);
    let all = visible.map_or_else(Vec::new, |found| found.runs);
    let Some(found) = all.iter().find(|run| run.job == job) else {
        return refuse(ClusterObstacle::NoSuchRun {
            run: id.to_owned(),
            known: all.iter().map(|run| run.id.clone()).collect(),
            hidden_outside: (!is_whole_cluster).then(|| cluster.namespace.clone()),
        });
    };
    cluster.namespace = found.namespace.clone();
    Ok(objects(cluster, job))
}

/// Returns the path of the agent in this pod.
fn agent(pod: &Pod) -> String {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let image = container.and_then(|container| container.image.as_deref());
    AgentStart::of_image(image.unwrap_or_default()).agent()
}

/// Returns the pods of the run by index. A missing pod is an error: its result is lost.
async fn running_pods(objects: &RunObjects) -> Result<Vec<Pod>, RunError> {
    let observed = objects.observe_pods().await;
    let observed = observed.map_err(|error| api::failed(ClusterRequest::FindRunPods, &error))?;
    let mut pods = Vec::new();
    for observed in observed {
        match (observed.judge(), observed.pod) {
            (PodState::Running, Some(pod)) => pods.push(pod),
            (PodState::Problem(problem), Some(pod)) if has_agent_ended(&problem.condition) => {
                let name = pod.metadata.name.unwrap_or_default();
                let ended = FailureCondition::AgentEnded {
                    namespace: objects.cluster.namespace.clone(),
                    job: objects.job.clone(),
                };
                return Err(RunError::not_ready(FailedObject::named_pod(&name), ended));
            }
            (_, pod) => return Err(not_running(objects, pod.as_ref())),
        }
    }
    pods.sort_by_key(index);
    Ok(pods)
}

/// Whether the container of a run has ended, and its result with it.
fn has_agent_ended(condition: &FailureCondition) -> bool {
    matches!(
        condition,
        FailureCondition::NoRequests
            | FailureCondition::ContainerEnded { .. }
            | FailureCondition::OutOfMemory
            | FailureCondition::VolumeRefused { .. }
            | FailureCondition::JobFailed { .. }
    )
}

fn not_running(objects: &RunObjects, pod: Option<&Pod>) -> RunError {
    let name = pod.and_then(|pod| pod.metadata.name.as_deref());
    let object = match name {
        Some(name) => FailedObject::named_pod(name),
        None => FailedObject::AnyPod {
            job: Some(objects.job.clone()),
        },
    };
    RunError::not_ready(
        object,
        FailureCondition::NotRunning {
            namespace: objects.cluster.namespace.clone(),
            selector: objects.label(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, list, serve};
    use iosonde_result::run_error::UnsupportedFeature;
    use serde_json::json;

    /// Looks for a run in a cluster where this user may list no Jobs. `found` is the status of a
    /// Job's request. `may_all`: the user has all rights on other objects.
    fn find_without_list(found: u16, may_all: bool) -> RunError {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, move |request, _| match request {
            _ if request.contains("/jobs/") => ApiAnswer::Status(found),
            _ if request.contains("/jobs") => ApiAnswer::Status(403),
            _ => ApiAnswer::Document(json!({"metadata": {}, "spec": {}, "status": {
                "allowed": may_all, "incomplete": false, "nonResourceRules": [],
                "resourceRules": []}})),
        });
        let found = runtime.block_on(find_run(objects.cluster.clone(), "0a1b2c3d"));
        found.err().expect("no run")
    }

    #[test]
    fn user_who_may_not_get_jobs_receives_the_role_for_attaching() {
        let error = find_without_list(403, false);
        let role = error.role_to_apply().unwrap();
        assert!(role.contains("metadata: {name: iosonde-attach, "), "{role}");
        let RunError::NoFeature { cause } = &error else {
            panic!("{error:?}");
        };
        // The run may be in another namespace.
        let is_free_to_choose = matches!(
            **cause,
            UnsupportedFeature::Cluster(ClusterObstacle::MissingRights {
                is_bound_to_namespace: false,
                ..
            })
        );
        assert!(is_free_to_choose, "{error:?}");
    }

    #[test]
    fn missing_run_is_named_although_jobs_are_not_listed() {
        let obstacle = ClusterObstacle::NoSuchRun {
            run: "0a1b2c3d".to_owned(),
            known: Vec::new(),
            hidden_outside: Some("bench".to_owned()),
        };
        // A user who may get the Job by its name lacks no right to find it.
        for may_all in [true, false] {
            let expected = RunError::from(obstacle.clone());
            assert_eq!(find_without_list(404, may_all), expected);
        }
    }

    #[test]
    fn missing_run_may_be_hidden_if_one_namespace_is_listed() {
        for (everywhere, hidden_outside) in [(403, Some("bench".to_owned())), (200, None)] {
            let runtime = crate::connect::runtime().unwrap();
            let (objects, _) = serve(&runtime, move |request, _| match request {
                _ if request.contains("/jobs/") => ApiAnswer::Status(404),
                _ if request.contains("/namespaces/") || everywhere == 200 => list(&[]),
                _ => ApiAnswer::Status(everywhere),
            });
            let found = runtime.block_on(find_run(objects.cluster.clone(), "0a1b2c3d"));
            let obstacle = ClusterObstacle::NoSuchRun {
                run: "0a1b2c3d".to_owned(),
                known: Vec::new(),
                hidden_outside,
            };
            assert_eq!(found.err().expect("no run"), obstacle.into());
        }
    }

    #[test]
    fn run_target_and_labels_are_read_from_its_pods() {
        let known = |target: &str, labels: &str, container: serde_json::Value| {
            let pod = json!({
                "metadata": {"annotations": {"iosonde/target": target, "iosonde/labels": labels}},
                "spec": {"containers": [container]},
            });
            RunAnnotations::from_pod(&serde_json::from_value(pod).unwrap())
        };
        let plain = json!({"name": "iosonde"});
        let class = known("sc://fast", r#"{"storage_class": "fast"}"#, plain.clone());
        assert_eq!(class.target.as_deref(), Some("sc://fast"));
        assert_eq!(class.labels["storage_class"], "fast");
        assert_eq!(class.persistent_volume, None);
        let claim = known("pvc://data", "none", plain);
        assert_eq!(claim.persistent_volume.as_deref(), Some("the claim data"));
        assert!(claim.labels.is_empty());
        let device =
            json!({"name": "iosonde", "volumeDevices": [{"name": "d", "devicePath": "/dev/d"}]});
        assert_eq!(known("pvc://data", "{}", device).persistent_volume, None);
        // Pods of another version have no annotations.
        let silent = serde_json::from_value(json!({"metadata": {}})).unwrap();
        assert_eq!(RunAnnotations::from_pod(&silent), RunAnnotations::default());
    }
}
