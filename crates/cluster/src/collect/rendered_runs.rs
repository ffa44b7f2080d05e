//! Finds the rendered manifest whose results are collected.

use super::POLL_INTERVAL;
use crate::api;
use crate::connect::KubeCluster;
use crate::manifest::RENDERED_LABEL;
use crate::refusal::refuse;
use crate::setup_observer::{SetupEvent, SetupObserver};
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use std::time::{Duration, Instant};

/// Returns the named manifest, or the only one. Waits for the first pod of a new manifest.
pub(super) async fn find_rendered_run(
    cluster: &KubeCluster,
    run: Option<&str>,
    timeout: Duration,
    watch: &mut SetupObserver<'_>,
) -> Result<String, RunError> {
    let begun = Instant::now();
    loop {
        let known = list_rendered_runs(cluster).await?;
        let is_there = run.is_none_or(|run| known.iter().any(|id| id == run));
        if !known.is_empty() && is_there || begun.elapsed() >= timeout {
            return select_run(cluster, run, &known);
        }
        (watch.tell)(SetupEvent::Waiting("the run's first pod"));
        tokio::time::sleep(POLL_INTERVAL / 4).await;
        if (watch.interrupts)() > 0 {
            return Err(RunError::Interrupted);
        }
    }
}

/// Returns the ids of the rendered manifests that have pods.
async fn list_rendered_runs(cluster: &KubeCluster) -> Result<Vec<String>, RunError> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let all = pods
        .list(&ListParams::default().labels(RENDERED_LABEL))
        .await;
    let all =
        all.map_err(|error| api::failed_at(&cluster.server, ClusterRequest::FindPods, &error))?;
    let mut known: Vec<String> = all.items.iter().filter_map(rendered).collect();
    known.sort_unstable();
    known.dedup();
    Ok(known)
}

fn select_run(
    cluster: &KubeCluster,
    run: Option<&str>,
    known: &[String],
) -> Result<String, RunError> {
    let namespace = cluster.namespace.clone();
    refuse(match (run, known) {
        (None, [only]) => return Ok(only.clone()),
        (Some(run), known) if known.iter().any(|id| id == run) => return Ok(run.to_owned()),
        (Some(run), known) => ClusterObstacle::NoPodsOfRendered {
            run: run.to_owned(),
            namespace,
            known: known.to_vec(),
        },
        (None, []) => ClusterObstacle::NoRenderedRun { namespace },
        (None, known) => ClusterObstacle::SeveralRenderedRuns {
            known: known.to_vec(),
        },
    })
}

fn rendered(pod: &Pod) -> Option<String> {
    pod.metadata.labels.as_ref()?.get(RENDERED_LABEL).cloned()
}
