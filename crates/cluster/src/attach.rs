//! Taking up a run whose client is gone: the pod goes on without one, and keeps what it has found for a while.

use crate::api;
use crate::connect::Cluster;
use crate::leftovers;
use crate::lifecycle::Objects;
use crate::manifest::RUN_LABEL;
use crate::options::ClusterOptions;
use crate::runner::runtime;
use crate::session::{ClusterSession, Told, Watch};
use crate::transport::Connection;
use iosonde_result::session::RunError;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};

/// Connects with the pod of a run: by its id, or by the name of its Job. It is removed when the session is closed or dropped.
///
/// # Errors
/// When there is no such run, or its agent does not answer.
pub fn attach<'w>(
    options: &ClusterOptions,
    run: &str,
    watch: Watch<'w>,
) -> Result<ClusterSession<'w>, RunError> {
    let runtime = runtime()?;
    (watch.tell)(Told::Waiting("the cluster's answer"));
    let (objects, pod, connection) = runtime.block_on(async {
        let cluster = Cluster::connect(options).await?;
        let objects = find(cluster, run.trim_start_matches("iosonde-")).await?;
        let pod = running_pod(&objects).await?;
        let name = pod.metadata.name.clone().unwrap_or_default();
        let connection = Connection::open(&objects, &name).await?;
        Ok::<_, RunError>((objects, pod, connection))
    })?;
    (watch.tell)(Told::Over);
    Ok(ClusterSession::taken_up(
        runtime, objects, pod, connection, watch,
    ))
}

async fn find(mut cluster: Cluster, id: &str) -> Result<Objects, RunError> {
    let all = leftovers::find(&cluster).await?;
    let job = format!("iosonde-{id}");
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
    Ok(Objects {
        cluster,
        id: id.to_owned(),
        job,
    })
}

async fn running_pod(objects: &Objects) -> Result<Pod, RunError> {
    let pods: Api<Pod> = objects.pods();
    let ours = ListParams::default().labels(&format!("{RUN_LABEL}={}", objects.id));
    let found = pods.list(&ours).await;
    let found = found.map_err(|error| api::failed("looking for the run's pod", &error))?;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let running = |pod: &Pod| phase(pod).as_deref() == Some("Running");
    found
        .items
        .into_iter()
        .find(running)
        .ok_or_else(|| RunError::Unready {
            what: format!("the pod of {}", objects.job),
            cause: "it does not run, or no longer".to_owned(),
            remedy: format!(
                "see `kubectl -n {} get pods -l {RUN_LABEL}={}`",
                objects.cluster.namespace, objects.id
            ),
        })
}
