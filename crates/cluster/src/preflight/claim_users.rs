//! Which pods use a claim: those that name it, and the one that it was made for, as a generic ephemeral volume.

use crate::api;
use crate::connect::Cluster;
use crate::manifest::RUN_LABEL;
use crate::options::ClusterOptions;
use iosonde_job::Target;
use iosonde_result::session::RunError;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use kube::api::{Api, ListParams};

/// The pods that have this claim, are not over, and do not belong to this run.
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
    // Such a claim is named after its pod and volume, and belongs to the pod. One of that name that belongs to another is not given
    // to this pod, which waits.
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

/// Looks again once the pods of this run are there: another pod may have started meanwhile.
///
/// # Errors
/// When another pod uses the claim, or the cluster cannot be asked.
pub(crate) async fn refuse_other_users(
    cluster: &Cluster,
    options: &ClusterOptions,
    run: &str,
) -> Result<(), RunError> {
    let Target::Claim { name, .. } = &options.target else {
        return Ok(());
    };
    let failed = |error| api::failed("looking for other pods that use the claim", &error);
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

/// What is wrong with a block device that a pod has.
pub(super) fn in_use(target: &Target, user: &str) -> RunError {
    RunError::Target {
        path: target.to_string(),
        problem: format!(
            "the pod {user} uses this block device, on which every write would overwrite something of it"
        ),
        remedy: "measure a claim of your own: sc://CLASS with --volume-mode block".to_owned(),
    }
}
