//! Attaches to a run without a client. Its pod continues, and keeps its result for a while.

use crate::any::AnySession;
use crate::api;
use crate::collect::annotation;
use crate::connect::Cluster;
use crate::diagnose::State;
use crate::leftovers;
use crate::lifecycle::Objects;
use crate::manifest::{LABELS_ANNOTATION, RUN_LABEL, Start, TARGET_ANNOTATION};
use crate::options::ClusterOptions;
use crate::pods::PodsSession;
use crate::runner::{Made, MadePod, complete, index, lasting, runtime};
use crate::session::{ClusterSession, Told, Watch};
use crate::transport::Connection;
use crate::volume_origin::VolumeOrigin;
use iosonde_job::Target;
use iosonde_result::session::RunError;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use std::collections::BTreeMap;

/// A run of another client that this client follows.
pub struct Attached<'w> {
    /// Session of its pods, which are removed on close or drop.
    pub session: AnySession<'w>,
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
    watch: Watch<'w>,
) -> Result<Attached<'w>, RunError> {
    let runtime = runtime()?;
    (watch.tell)(Told::Waiting("the cluster's answer"));
    let (objects, known, pods) = runtime.block_on(async {
        let cluster = Cluster::connect(options).await?;
        let mut objects = find(cluster, run.trim_start_matches("iosonde-")).await?;
        let running = running_pods(&objects).await?;
        objects.agent = running.first().map(agent).unwrap_or_default();
        let mut pods = Vec::new();
        for pod in &running {
            pods.push(taken(&objects, pod).await?);
        }
        let known = running.first().map(Known::of).unwrap_or_default();
        Ok::<_, RunError>((objects, known, pods))
    })?;
    (watch.tell)(Told::Over);
    let is_one = pods.len() == 1;
    let made = Made {
        runtime,
        objects,
        labels: known.labels,
        pods,
        is_block: false,
        origin: VolumeOrigin::Unknown,
        lasting: known.lasting,
        wanted: Vec::new(),
    };
    let session = match is_one {
        true => AnySession::One(Box::new(ClusterSession::taken_up(made, watch))),
        false => AnySession::Several(Box::new(PodsSession::taken_up(made, watch))),
    };
    Ok(Attached {
        session,
        target: known.target,
    })
}

/// Facts that the client which created the run stored in annotations of its pods.
#[derive(Debug, Default, PartialEq)]
struct Known {
    target: Option<String>,
    labels: BTreeMap<String, String>,
    lasting: Option<String>,
}

impl Known {
    fn of(pod: &Pod) -> Known {
        let target = annotation(pod, TARGET_ANNOTATION);
        let labels = annotation(pod, LABELS_ANNOTATION);
        let labels = labels.and_then(|text| serde_json::from_str(text).ok());
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let is_block = containers.flat_map(|one| &one.volume_devices).count() > 0;
        let volume = target.and_then(|target| target.parse::<Target>().ok());
        Known {
            target: target.map(str::to_owned),
            labels: labels.unwrap_or_default(),
            lasting: volume.and_then(|volume| lasting(&volume, is_block)),
        }
    }
}

/// Connects to the agent of a pod.
async fn taken(objects: &Objects, pod: &Pod) -> Result<MadePod, RunError> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let connection = Connection::open(objects, &name).await?;
    let mut labels = BTreeMap::new();
    complete(&mut labels, &objects.cluster, pod).await;
    Ok(MadePod {
        name,
        labels,
        // Unused: the pod already has its plan.
        scratch: String::new(),
        connection,
    })
}

async fn find(mut cluster: Cluster, id: &str) -> Result<Objects, RunError> {
    let job = format!("iosonde-{id}");
    let objects = |cluster: Cluster, job: String| Objects {
        cluster,
        id: id.to_owned(),
        job,
        agent: Start::Streamed.agent(),
        made_namespace: true,
    };
    // A minimal role may get a Job by its name but list none.
    let here: Api<Job> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let there = here.get_opt(&job).await;
    let there = there.map_err(|error| api::failed("looking for the run", &error))?;
    if there.is_some() {
        return Ok(objects(cluster, job));
    }
    let all = leftovers::find(&cluster).await?;
    let Some(found) = all.iter().find(|run| run.job == job) else {
        let known: Vec<&str> = all
            .iter()
            .map(|run| run.job.trim_start_matches("iosonde-"))
            .collect();
        return Err(RunError::Unsupported {
            problem: format!("there is no run {id} in this cluster"),
            remedy: match known.as_slice() {
                [] => "there are none; one that has ended is removed after some minutes".to_owned(),
                known => format!("there are {}", known.join(", ")),
            },
        });
    };
    cluster.namespace = found.namespace.clone();
    Ok(objects(cluster, job))
}

/// Returns the path of the agent in this pod.
fn agent(pod: &Pod) -> String {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let image = container.and_then(|container| container.image.as_deref());
    Start::of_image(image.unwrap_or_default()).agent()
}

/// Returns the pods of the run by index. A missing pod is an error: its result is lost.
async fn running_pods(objects: &Objects) -> Result<Vec<Pod>, RunError> {
    let sights = objects.sights().await;
    let sights = sights.map_err(|error| api::failed("looking for the run's pods", &error))?;
    let mut pods = Vec::new();
    for sight in sights {
        match (sight.judge(), sight.pod) {
            (State::Running, Some(pod)) => pods.push(pod),
            (_, pod) => return Err(not_running(objects, pod.as_ref())),
        }
    }
    pods.sort_by_key(index);
    Ok(pods)
}

fn not_running(objects: &Objects, pod: Option<&Pod>) -> RunError {
    let name = pod.and_then(|pod| pod.metadata.name.as_deref());
    RunError::Unready {
        what: match name {
            Some(name) => format!("the pod {name}"),
            None => format!("a pod of {}", objects.job),
        },
        cause: "it does not run, or no longer".to_owned(),
        remedy: format!(
            "see `kubectl -n {} get pods -l {RUN_LABEL}={}`",
            objects.cluster.namespace, objects.id
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_run_measures_is_read_from_its_pods() {
        let known = |target: &str, labels: &str, container: serde_json::Value| {
            let pod = json!({
                "metadata": {"annotations": {"iosonde/target": target, "iosonde/labels": labels}},
                "spec": {"containers": [container]},
            });
            Known::of(&serde_json::from_value(pod).unwrap())
        };
        let plain = json!({"name": "iosonde"});
        let class = known("sc://fast", r#"{"storage_class": "fast"}"#, plain.clone());
        assert_eq!(class.target.as_deref(), Some("sc://fast"));
        assert_eq!(class.labels["storage_class"], "fast");
        assert_eq!(class.lasting, None);
        let claim = known("pvc://data", "none", plain);
        assert_eq!(claim.lasting.as_deref(), Some("the claim data"));
        assert!(claim.labels.is_empty());
        let device =
            json!({"name": "iosonde", "volumeDevices": [{"name": "d", "devicePath": "/dev/d"}]});
        assert_eq!(known("pvc://data", "{}", device).lasting, None);
        // Pods of another version have no annotations.
        let silent = serde_json::from_value(json!({"metadata": {}})).unwrap();
        assert_eq!(Known::of(&silent), Known::default());
    }
}
