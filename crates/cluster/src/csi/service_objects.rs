//! Objects of the data services: snapshots, claims with a source, the pods that read them, and what
//! their states mean.

use super::object_wait::ObjectState;
use super::written_data::pod_script;
use crate::connect::KubeCluster;
use crate::lifecycle::lifecycle_manifest::{
    claim_name, metadata, pod_name, shell, use_claim, volume_claim, wait_for_deletion,
};
use crate::manifest::{CONTAINER, RunSpec, quantity};
use crate::quantity::quantity_bytes;
use iosonde_result::run_error::RunError;
use k8s_openapi::api::core::v1::{
    ContainerState, PersistentVolumeClaim, Pod, TypedLocalObjectReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;

/// Name of the init container that reads the data of a clone.
const READER: &str = "reader";
/// API group of snapshots.
const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";

/// The source of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimSource<'s> {
    /// A snapshot of this name.
    Snapshot(&'s str),
    /// A claim of this name.
    Claim(&'s str),
}

fn snapshot_resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(SNAPSHOT_GROUP, "v1", "VolumeSnapshot");
    ApiResource::from_gvk_with_plural(&kind, "volumesnapshots")
}

/// Returns the snapshots of the namespace. They are custom resources.
pub(super) fn snapshots(cluster: &KubeCluster) -> Api<DynamicObject> {
    let resource = snapshot_resource();
    Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource)
}

/// Returns a snapshot of a claim.
pub(super) fn volume_snapshot(
    spec: &RunSpec<'_>,
    name: &str,
    (class, claim): (&str, &str),
    owner: &OwnerReference,
) -> DynamicObject {
    let source = json!({"persistentVolumeClaimName": claim});
    let snapshot = json!({"spec": {"volumeSnapshotClassName": class, "source": source}});
    let mut object = DynamicObject::new(name, &snapshot_resource()).data(snapshot);
    object.metadata = metadata(spec, name.to_owned(), owner);
    object
}

/// Returns a claim of this size whose volume begins with the data of the source. `None` if the
/// target is no class.
pub(super) fn claim_with_source(
    spec: &RunSpec<'_>,
    number: u32,
    (source, bytes): (ClaimSource<'_>, u64),
    owner: &OwnerReference,
) -> Option<PersistentVolumeClaim> {
    let mut claim = volume_claim(spec, number, owner)?;
    let wanted = claim.spec.get_or_insert_default();
    let (group, kind, name) = match source {
        ClaimSource::Snapshot(name) => (Some(SNAPSHOT_GROUP), "VolumeSnapshot", name),
        ClaimSource::Claim(name) => (None, "PersistentVolumeClaim", name),
    };
    wanted.data_source = Some(TypedLocalObjectReference {
        api_group: group.map(str::to_owned),
        kind: kind.to_owned(),
        name: name.to_owned(),
    });
    let resources = wanted.resources.get_or_insert_default();
    let requests = resources.requests.get_or_insert_default();
    requests.insert("storage".to_owned(), quantity(bytes));
    Some(claim)
}

/// Returns the pod that reads the data of a claim and reports their checksum.
///
/// # Errors
/// If the user's patch does not fit a pod.
pub(super) fn check_pod(
    spec: &RunSpec<'_>,
    number: u32,
    owner: &OwnerReference,
) -> Result<Pod, RunError> {
    let template = spec.template()?;
    let mut pod = template.spec.unwrap_or_default();
    use_claim(&mut pod, claim_name(spec, number));
    for container in &mut pod.containers {
        if container.name == CONTAINER {
            container.command = Some(shell(&pod_script(spec.id)));
        }
    }
    let mut metadata = metadata(spec, pod_name(spec, number), owner);
    let of_template = template.metadata.unwrap_or_default();
    let labels = metadata.labels.get_or_insert_default();
    for (key, value) in of_template.labels.unwrap_or_default() {
        labels.entry(key).or_insert(value);
    }
    metadata.annotations = of_template.annotations;
    Ok(Pod {
        metadata,
        spec: Some(pod),
        status: None,
    })
}

/// Returns the pod that reads the data of a clone like [`check_pod`], and then keeps the clone
/// mounted for further commands.
///
/// # Errors
/// If the user's patch does not fit a pod.
pub(super) fn clone_pod(
    spec: &RunSpec<'_>,
    number: u32,
    owner: &OwnerReference,
) -> Result<Pod, RunError> {
    let mut pod = check_pod(spec, number, owner)?;
    let of_pod = pod.spec.get_or_insert_default();
    let mut readers = Vec::new();
    for container in &mut of_pod.containers {
        if container.name == CONTAINER {
            let mut reader = container.clone();
            reader.name = READER.to_owned();
            readers.push(reader);
            wait_for_deletion(container);
        }
    }
    of_pod
        .init_containers
        .get_or_insert_default()
        .extend(readers);
    Ok(pod)
}

/// Whether a snapshot can be restored.
pub(super) fn judge_snapshot(snapshot: &DynamicObject) -> ObjectState<()> {
    let status = &snapshot.data["status"];
    if status["readyToUse"].as_bool() == Some(true) {
        return ObjectState::Reached(());
    }
    match status["error"]["message"].as_str() {
        Some(message) => ObjectState::Warned(message.to_owned()),
        None => ObjectState::Waiting,
    }
}

/// Whether the container that reads the data has started, so that its volume is mounted. Returns
/// whether it has ended, too.
pub(super) fn judge_started(pod: &Pod) -> ObjectState<bool> {
    match reader_state(pod) {
        Some(state) if state.terminated.is_some() => ObjectState::Reached(true),
        Some(state) if state.running.is_some() => ObjectState::Reached(false),
        _ => judge_unstarted(pod),
    }
}

/// Returns the message of the container that reads the data, once it has ended.
pub(super) fn judge_ended(pod: &Pod) -> ObjectState<String> {
    match reader_state(pod).and_then(|state| state.terminated.as_ref()) {
        Some(ended) => ObjectState::Reached(ended.message.clone().unwrap_or_default()),
        None => judge_unstarted(pod),
    }
}

/// Whether commands can be run in the container of a pod.
pub(super) fn judge_running(pod: &Pod) -> ObjectState<()> {
    match container_state(pod) {
        Some(state) if state.running.is_some() => ObjectState::Reached(()),
        _ => judge_unstarted(pod),
    }
}

/// A pod can fail before its container has a state, e.g. if the kubelet refuses or evicts it.
fn judge_unstarted<T>(pod: &Pod) -> ObjectState<T> {
    let status = pod.status.as_ref();
    let is_failed = status.is_some_and(|status| status.phase.as_deref() == Some("Failed"));
    let words = |text: Option<&String>| text.cloned().unwrap_or_default();
    match status.filter(|_| is_failed) {
        Some(status) => {
            let (reason, message) = (
                words(status.reason.as_ref()),
                words(status.message.as_ref()),
            );
            ObjectState::Failed(format!("the pod has failed: {reason} {message}"))
        }
        None => ObjectState::Waiting,
    }
}

fn reader_state(pod: &Pod) -> Option<&ContainerState> {
    let mut all = pod
        .status
        .as_ref()?
        .init_container_statuses
        .iter()
        .flatten();
    match all.find(|status| status.name == READER) {
        Some(reader) => reader.state.as_ref(),
        None => container_state(pod),
    }
}

fn container_state(pod: &Pod) -> Option<&ContainerState> {
    let mut all = pod.status.as_ref()?.container_statuses.iter().flatten();
    all.find(|status| status.name == CONTAINER)?.state.as_ref()
}

/// Returns the capacity of a bound claim in bytes.
pub(super) fn capacity_bytes(claim: &PersistentVolumeClaim) -> Option<u64> {
    let capacity = claim.status.as_ref()?.capacity.as_ref()?;
    quantity_bytes(capacity.get("storage")?)
}

/// Whether a claim has at least this capacity.
pub(super) fn judge_capacity(claim: &PersistentVolumeClaim, bytes: u64) -> ObjectState<()> {
    match capacity_bytes(claim) {
        Some(capacity) if capacity >= bytes => ObjectState::Reached(()),
        _ => ObjectState::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ClusterOptions;
    use crate::sample_spec::{self, owner};
    use serde_json::from_value;

    fn with_spec(check: impl FnOnce(&RunSpec<'_>)) {
        let options = ClusterOptions::new("sc://fast".parse().unwrap());
        sample_spec::with_spec(&options, check);
    }

    #[test]
    fn snapshot_belongs_to_the_job_and_names_class_and_claim() {
        with_spec(|spec| {
            let snapshot = volume_snapshot(spec, "s", ("daily", "c"), &owner());
            let document = serde_json::to_value(&snapshot).unwrap();
            assert_eq!(document["apiVersion"], "snapshot.storage.k8s.io/v1");
            assert_eq!(document["kind"], "VolumeSnapshot");
            assert_eq!(document["metadata"]["namespace"], "lab");
            assert_eq!(document["metadata"]["labels"]["iosonde/run"], "3f2a9c00");
            assert_eq!(document["metadata"]["ownerReferences"][0]["uid"], "u-1");
            assert_eq!(document["spec"]["volumeSnapshotClassName"], "daily");
            assert_eq!(document["spec"]["source"]["persistentVolumeClaimName"], "c");
        });
    }

    #[test]
    fn claim_has_the_source_and_the_size_of_its_volume() {
        with_spec(|spec| {
            let source = (ClaimSource::Snapshot("s"), 6 << 30);
            let claim = claim_with_source(spec, 3, source, &owner()).unwrap();
            let document = serde_json::to_value(&claim).unwrap();
            assert_eq!(document["metadata"]["name"], "iosonde-3f2a9c00-3-data");
            let source = &document["spec"]["dataSource"];
            assert_eq!(source["apiGroup"], SNAPSHOT_GROUP);
            assert_eq!(source["kind"], "VolumeSnapshot");
            assert_eq!(document["spec"]["resources"]["requests"]["storage"], "6Gi");
            let clone = (ClaimSource::Claim("c"), 6 << 30);
            let claim = claim_with_source(spec, 4, clone, &owner()).unwrap();
            let source = claim.spec.unwrap().data_source.unwrap();
            assert_eq!(source.api_group, None);
            assert_eq!(source.kind, "PersistentVolumeClaim");
        });
    }

    #[test]
    fn check_pod_reads_the_data_of_its_claim() {
        with_spec(|spec| {
            let pod = check_pod(spec, 3, &owner()).unwrap().spec.unwrap();
            let claims = pod.volumes.iter().flatten();
            let claims: Vec<_> = claims
                .filter_map(|volume| volume.persistent_volume_claim.as_ref())
                .collect();
            assert_eq!(claims.len(), 1);
            assert_eq!(claims[0].claim_name, "iosonde-3f2a9c00-3-data");
            let command = pod.containers[0].command.as_ref().unwrap();
            assert!(command[2].contains("sha256sum /data/"), "{command:?}");
        });
    }

    #[test]
    fn clone_pod_reads_the_data_first_and_then_waits_for_commands() {
        with_spec(|spec| {
            let pod = clone_pod(spec, 3, &owner()).unwrap().spec.unwrap();
            let readers = pod.init_containers.unwrap();
            let reader = readers.iter().find(|one| one.name == READER).unwrap();
            let script = |container: &k8s_openapi::api::core::v1::Container| {
                container.command.as_ref().unwrap()[2].clone()
            };
            assert!(script(reader).contains("sha256sum /data/"));
            assert_eq!(reader.volume_mounts, pod.containers[0].volume_mounts);
            assert!(!script(&pod.containers[0]).contains("sha256sum"));
        });
        let status = |name: &str, state: serde_json::Value| {
            json!({"name": name, "state": state, "image": "", "imageID": "", "ready": false,
                "restartCount": 0})
        };
        let pod = |reader: serde_json::Value, container: serde_json::Value| -> Pod {
            from_value(json!({"metadata": {"name": "p"}, "status": {
                "initContainerStatuses": [status(READER, reader)],
                "containerStatuses": [status(CONTAINER, container)]}}))
            .unwrap()
        };
        let ended = || json!({"terminated": {"exitCode": 0, "message": "sum"}});
        let read = pod(ended(), json!({"waiting": {}}));
        assert_eq!(judge_ended(&read), ObjectState::Reached("sum".to_owned()));
        assert_eq!(judge_running(&read), ObjectState::Waiting);
        let running = pod(ended(), json!({"running": {}}));
        assert_eq!(judge_running(&running), ObjectState::Reached(()));
    }

    #[test]
    fn snapshot_with_an_error_is_a_warning_until_it_is_ready() {
        let snapshot = |status: serde_json::Value| -> DynamicObject {
            from_value(json!({"metadata": {"name": "s"}, "status": status})).unwrap()
        };
        let ready = snapshot(json!({"readyToUse": true}));
        assert_eq!(judge_snapshot(&ready), ObjectState::Reached(()));
        let failing = snapshot(json!({"readyToUse": false, "error": {"message": "no space"}}));
        let expected = ObjectState::Warned("no space".to_owned());
        assert_eq!(judge_snapshot(&failing), expected);
        assert_eq!(judge_snapshot(&snapshot(json!(null))), ObjectState::Waiting);
    }

    #[test]
    fn pod_state_is_waiting_started_ended_or_failed() {
        let pod = |status: serde_json::Value| -> Pod {
            from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
        };
        let container = |state: serde_json::Value| {
            json!({"name": CONTAINER, "state": state, "image": "", "imageID": "", "ready": false,
                "restartCount": 0})
        };
        let running = container(json!({"running": {}}));
        let running = pod(json!({"containerStatuses": [running]}));
        assert_eq!(judge_started(&running), ObjectState::Reached(false));
        assert_eq!(judge_ended(&running), ObjectState::Waiting);
        let ended = container(json!({"terminated": {"exitCode": 0, "message": "sum"}}));
        let ended = pod(json!({"containerStatuses": [ended]}));
        let message = ObjectState::Reached("sum".to_owned());
        assert_eq!(judge_ended(&ended), message);
        assert_eq!(judge_started(&ended), ObjectState::Reached(true));
        let evicted = pod(json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}));
        let failed = ObjectState::Failed("the pod has failed: Evicted disk".to_owned());
        assert_eq!(judge_started(&evicted), failed);
    }
}
