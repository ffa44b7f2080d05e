//! Determines whether the volumes of a run were provisioned for it. A claim may also be bound to an
//! existing volume: created by an administrator, or released and made available again.

use crate::run_objects::RunObjects;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, ListParams};
use std::collections::BTreeSet;

/// Annotation with the provisioner of a volume. Tools that restore volumes also set it.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Annotation of a volume that the controller bound to the claim, so that it already existed.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Origin of the volumes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VolumeOrigin {
    /// Each was provisioned for the claim of this run.
    Provisioned,
    /// This user may not read the objects.
    Unknown,
    /// At least one existed before.
    Existing,
}

/// Determines the origin of the volumes of the run's pods.
pub(crate) async fn volume_origin(objects: &RunObjects) -> VolumeOrigin {
    let pods = objects.all_pods().await;
    let names: BTreeSet<String> = pods.iter().filter_map(claim_of).collect();
    let Some(claims) = claims(objects, &names).await else {
        return VolumeOrigin::Unknown;
    };
    let mut origin = VolumeOrigin::Provisioned;
    for claim in &claims {
        origin = origin.max(origin_of(objects, claim).await);
    }
    origin
}

/// Returns the claims of these names, or `None` if one of them is not visible.
async fn claims(
    objects: &RunObjects,
    names: &BTreeSet<String>,
) -> Option<Vec<PersistentVolumeClaim>> {
    let (client, namespace) = (&objects.cluster.client, &objects.cluster.namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let mut claims = claims.list(&ListParams::default()).await.ok()?.items;
    claims.retain(|claim| {
        let name = claim.metadata.name.as_ref();
        name.is_some_and(|name| names.contains(name))
    });
    (!names.is_empty() && claims.len() == names.len()).then_some(claims)
}

async fn origin_of(objects: &RunObjects, claim: &PersistentVolumeClaim) -> VolumeOrigin {
    if is_named_after(claim) {
        return VolumeOrigin::Provisioned;
    }
    let volume = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_ref());
    let Some(volume) = volume else {
        return VolumeOrigin::Unknown;
    };
    let volumes: Api<PersistentVolume> = Api::all(objects.cluster.client.clone());
    match volumes.get(volume).await {
        Ok(volume) if is_made_for(&volume, claim) => VolumeOrigin::Provisioned,
        Ok(_) => VolumeOrigin::Existing,
        Err(_) => VolumeOrigin::Unknown,
    }
}

/// Whether the name of the claim's volume contains the claim's UID, as provisioners name volumes.
/// The UID did not exist before the claim.
fn is_named_after(claim: &PersistentVolumeClaim) -> bool {
    let volume = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_ref());
    let uid = claim.metadata.uid.as_deref().filter(|uid| !uid.is_empty());
    match (volume, uid) {
        (Some(volume), Some(uid)) => volume.contains(uid),
        _ => false,
    }
}

/// Whether a volume was provisioned for this claim: created after it and bound from the start.
fn is_made_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let has = |key: &str| {
        let annotations = volume.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(key))
    };
    let spec = volume.spec.as_ref();
    let bound_to = spec.and_then(|spec| spec.claim_ref.as_ref()?.uid.as_ref());
    let times = (
        &volume.metadata.creation_timestamp,
        &claim.metadata.creation_timestamp,
    );
    let is_later = matches!(times, (Some(volume), Some(claim)) if volume >= claim);
    let is_bound = bound_to.is_some() && bound_to == claim.metadata.uid.as_ref();
    is_bound && is_later && has(PROVISIONED_BY) && !has(BOUND_BY_CONTROLLER)
}

/// Whether a volume was provisioned for the claim that it is, or was, bound to. Another volume
/// existed before, and belongs to an administrator.
pub(crate) fn is_provisioned_for_claim(volume: &PersistentVolume) -> bool {
    let annotations = volume.metadata.annotations.as_ref();
    let has = |key: &str| annotations.is_some_and(|all| all.contains_key(key));
    let spec = volume.spec.as_ref();
    let uid = spec.and_then(|spec| spec.claim_ref.as_ref()?.uid.as_deref());
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let is_named_after_claim = uid.is_some_and(|uid| !uid.is_empty() && name.contains(uid));
    is_named_after_claim || (has(PROVISIONED_BY) && !has(BOUND_BY_CONTROLLER))
}

/// Returns the claim of the volume `data` of a pod.
pub(crate) fn claim_of(pod: &Pod) -> Option<String> {
    let volumes = pod.spec.as_ref()?.volumes.as_ref()?;
    let data = volumes.iter().find(|volume| volume.name == "data")?;
    match (&data.persistent_volume_claim, &data.ephemeral) {
        (Some(source), _) => Some(source.claim_name.clone()),
        (None, Some(_)) => Some(format!("{}-data", pod.metadata.name.as_ref()?)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    const UID: &str = "0b1c2d3e-0000-4000-8000-0123456789ab";

    fn claim(volume: &str) -> PersistentVolumeClaim {
        from_value(json!({
            "metadata": {"name": "c", "uid": UID, "creationTimestamp": "2026-01-01T00:00:10Z"},
            "spec": {"volumeName": volume},
        }))
        .unwrap()
    }

    fn volume(annotations: Value, made: &str, uid: &str) -> PersistentVolume {
        from_value(json!({
            "metadata": {"name": "v", "annotations": annotations, "creationTimestamp": made},
            "spec": {"claimRef": {"name": "c", "uid": uid}},
        }))
        .unwrap()
    }

    #[test]
    fn volume_named_after_its_claim_was_made_for_it() {
        assert!(is_named_after(&claim(&format!("pvc-{UID}"))));
        assert!(!is_named_after(&claim("local-pv-1")));
        assert!(!is_named_after(&claim("")));
        let mut unknown = claim("local-pv-1");
        unknown.metadata.uid = Some(String::new());
        assert!(!is_named_after(&unknown));
    }

    #[test]
    fn volume_older_than_its_claim_was_not_made_for_it() {
        let by = json!({PROVISIONED_BY: "csi.example.com"});
        let (before, after) = ("2026-01-01T00:00:09Z", "2026-01-01T00:00:10Z");
        let is_made = |annotations: &Value, made, uid| {
            is_made_for(&volume(annotations.clone(), made, uid), &claim("v"))
        };
        assert!(is_made(&by, after, UID));
        assert!(!is_made(&by, before, UID), "restored by a script");
        assert!(!is_made(&by, after, "another"));
        assert!(!is_made(&json!({}), after, UID));
        let chosen = json!({PROVISIONED_BY: "local-static", BOUND_BY_CONTROLLER: "yes"});
        assert!(!is_made(&chosen, after, UID));
    }
}
