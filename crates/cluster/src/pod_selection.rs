//! Finds the pods of the user that a label selector names.

use crate::api;
use crate::connect::KubeCluster;
use crate::object_watch::Selector;
use crate::options::ClusterOptions;
use crate::preflight::{judge_rights_in_pods, judge_rights_on_pods};
use crate::refusal::refuse;
use crate::selected_pods::{SelectedPod, SelectedPods};
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError, SelectedPodsProblem};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use std::collections::BTreeMap;

/// Finds the running pods of a selector, and the directory to use in each. Changes nothing.
///
/// # Errors
/// If there are none, one does not run, or has not exactly one volume and no directory is named.
pub(crate) async fn select_pods(
    options: &ClusterOptions,
    (selector, path): (&str, Option<&str>),
    id: &str,
) -> Result<(KubeCluster, SelectedPods, Vec<Pod>), RunError> {
    let cluster = KubeCluster::connect(options).await?;
    judge_rights_on_pods(&cluster).await?;
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let wanted = Selector::Label(selector.to_owned());
    let found = api.list(&wanted.list_params()).await;
    let found = found.map_err(|error| {
        let request = ClusterRequest::ListPods;
        api::failed_at(&cluster.server, request, &error)
    })?;
    let mut pods = found.items;
    pods.retain(|pod| !has_ended(pod));
    pods.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    if pods.is_empty() {
        let problem = SelectedPodsProblem::NoPods {
            selector: selector.to_owned(),
            namespace: cluster.namespace.clone(),
        };
        return refuse(ClusterObstacle::UnusablePods(problem));
    }
    let names = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
    let names: Vec<&str> = names.collect();
    judge_rights_in_pods(&cluster, &names).await?;
    let mut chosen = BTreeMap::new();
    for (index, pod) in pods.iter().enumerate() {
        let selected = SelectedPod::choose(pod, path, (id, index))?;
        chosen.insert(pod.metadata.name.clone().unwrap_or_default(), selected);
    }
    let selected = SelectedPods {
        selector: selector.to_owned(),
        pods: chosen,
    };
    Ok((cluster, selected, pods))
}

/// Whether all containers of the pod have ended, as those of a Job that is complete.
fn has_ended(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
