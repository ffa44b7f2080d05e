//! Finds the pods that use a claim: by its name, or as a generic ephemeral volume.

use crate::api;
use crate::connect::KubeCluster;
use crate::manifest::RUN_LABEL;
use crate::options::ClusterOptions;
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterRequest, RunError, VolumeProblem};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use kube::api::{Api, ListParams};

/// Returns the unfinished pods that use this claim and do not belong to this run.
pub(super) fn users(claim: &PersistentVolumeClaim, pods: &[Pod], own: Option<&str>) -> Vec<String> {
    let is_user = |pod: &&Pod| {
        let volumes = pod.spec.iter().flat_map(|spec| &spec.volumes).flatten();
        let is_own = own.is_some() && run_of(pod) == own;
        !is_over(pod) && !is_own && volumes.into_iter().any(|volume| is_of(claim, pod, volume))
    };
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    pods.iter().filter(is_user).map(name).collect()
}

/// Whether a volume of a pod is this claim.
fn is_of(claim: &PersistentVolumeClaim, pod: &Pod, volume: &Volume) -> bool {
    let Some(name) = claim.metadata.name.as_deref() else {
        return false;
    };
    if let Some(named) = &volume.persistent_volume_claim {
        return named.claim_name == name;
    }
    // The claim of an ephemeral volume is named after pod and volume, and owned by the pod. If
    // another object owns a claim of that name, the pod does not get it and waits.
    let own_name = pod.metadata.name.as_deref().unwrap_or_default();
    let owners = claim.metadata.owner_references.iter().flatten();
    volume.ephemeral.is_some()
        && name == format!("{own_name}-{}", volume.name)
        && owners
            .into_iter()
            .any(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref())
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn run_of(pod: &Pod) -> Option<&str> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(RUN_LABEL).map(String::as_str)
}

/// Checks again once the run's pods exist, since another pod may have started meanwhile.
///
/// # Errors
/// If another pod uses the claim, or the cluster does not answer.
pub(crate) async fn refuse_other_users(
    cluster: &KubeCluster,
    options: &ClusterOptions,
    run: &str,
) -> Result<(), RunError> {
    let TargetUri::Claim { name, .. } = &options.target else {
        return Ok(());
    };
    let failed = |error| api::failed(ClusterRequest::FindClaimUsers, &error);
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let claim = claims.get_opt(name).await.map_err(failed)?;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let pods = pods.list(&ListParams::default()).await.map_err(failed)?;
    let users = claim.map(|claim| users(&claim, &pods.items, Some(run)));
    match users.iter().flatten().next() {
        Some(user) => Err(in_use(&options.target, user)),
        None => Ok(()),
    }
}

/// Returns the error for a block device that another pod uses.
pub(super) fn in_use(target: &TargetUri, user: &str) -> RunError {
    let pod = user.to_owned();
    RunError::unusable_target(target.to_string(), VolumeProblem::UsedByPod { pod }.into())
}
