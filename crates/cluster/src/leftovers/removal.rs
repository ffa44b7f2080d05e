//! Removes leftovers: several runs at the same time, then the volumes that their classes retain.

use super::{LeftoverRun, LostNamespace, LostVolume, RemovedLeftovers, run_of_volume};
use crate::api;
use crate::bounded_requests::await_bounded;
use crate::connect::KubeCluster;
use crate::manifest::RUN_LABEL;
use crate::namespace;
use crate::object_watch::{ObjectWatch, Selector};
use crate::rights_role::{Right, cluster_role_manifest, role_manifest};
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition, RemainingObject};
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Timeout for the removal of one object and all that it owns.
const REMOVAL: Duration = Duration::from_secs(90);
/// Polling interval for volumes, which a user may read by name only.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Rights for finding and removing leftovers of runs in all namespaces.
const CLEAN_UP_RIGHTS: [Right; 12] = [
    ("get", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("watch", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "persistentvolumeclaims", ""),
    ("watch", "", "persistentvolumeclaims", ""),
    ("get", "", "persistentvolumes", ""),
    ("list", "", "persistentvolumes", ""),
    ("patch", "", "persistentvolumes", ""),
    ("get", "", "namespaces", ""),
    ("list", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
];

/// Removes all leftovers. An error for one of them does not stop the others; the first is returned.
pub(super) async fn remove_all(
    cluster: &KubeCluster,
    runs: &[LeftoverRun],
    volumes: &[LostVolume],
    namespaces: &[LostNamespace],
) -> Result<RemovedLeftovers, RunError> {
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    // The data of volumes that are still bound is deleted with their claims.
    let (retained, refused) = match volumes_of(cluster, &ids).await {
        Ok(retained) => (retained.unwrap_or_default(), None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let lost = volumes.iter().map(|volume| volume.name.clone());
    let names: BTreeSet<String> = lost.chain(retained).collect();
    let role = role_for_runs(runs);
    let released = await_bounded(names.iter().map(|name| delete_with_claim(cluster, name))).await;
    let removed = await_bounded(runs.iter().map(|run| remove_run(cluster, run, &role))).await;
    let begun = Instant::now();
    // A volume whose policy could not be changed stays, so iosonde does not wait for it.
    let going = names.iter().zip(&released);
    let going = going.filter(|(_, released)| released.is_ok());
    let gone = going.map(|(name, _)| wait_for_volume(cluster, name, begun));
    let gone = await_bounded(gone).await;
    // Includes the namespaces of the removed runs.
    let of_runs = runs.iter().map(|run| &run.namespace);
    let made = namespaces.iter().map(|lost| &lost.name);
    let all: BTreeSet<&String> = of_runs.chain(made).collect();
    let left = await_bounded(all.into_iter().map(|name| leave(cluster, name))).await;
    let count = RemovedLeftovers {
        runs: removed.iter().filter(|one| one.is_ok()).count(),
        volumes: gone.iter().filter(|one| one.is_ok()).count(),
        namespaces: left.iter().filter(|one| **one == Ok(true)).count(),
    };
    let failures = [removed, released, gone].into_iter().flatten();
    let failures = failures.filter_map(Result::err);
    let mut failures = failures
        .chain(left.into_iter().filter_map(Result::err))
        .chain(refused);
    failures.next().map_or(Ok(count), Err)
}

/// Removes the volumes of these runs, whose claims are gone. Returns their number. `None`: this
/// user may not list volumes.
pub(super) async fn remove_volumes_of(
    cluster: &KubeCluster,
    runs: &[&str],
) -> Result<Option<usize>, RunError> {
    let Some(names) = volumes_of(cluster, runs).await? else {
        return Ok(None);
    };
    for name in &names {
        delete_with_claim(cluster, name).await?;
    }
    let begun = Instant::now();
    for name in &names {
        wait_for_volume(cluster, name, begun).await?;
    }
    Ok(Some(names.len()))
}

/// Returns the volumes of these runs that outlive their claims. `None`: this user may not list
/// volumes.
async fn volumes_of(cluster: &KubeCluster, runs: &[&str]) -> Result<Option<Vec<String>>, RunError> {
    if runs.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let all: Api<PersistentVolume> = Api::all(cluster.client.clone());
    let volumes = match all.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) if api::is_refused(&error) => return Ok(None),
        Err(error) => return Err(api::failed(ClusterRequest::ListVolumes, &error)),
    };
    let is_retained = |volume: &&PersistentVolume| {
        let spec = volume.spec.as_ref();
        let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        policy == Some("Retain") && run_of_volume(volume).is_some_and(|run| runs.contains(&run))
    };
    let retained = volumes.iter().filter(is_retained);
    let names = retained.filter_map(|volume| volume.metadata.name.clone());
    Ok(Some(names.collect()))
}

/// Has the volume deleted once its claim is gone. Only the provisioner can delete the data, which
/// the reclaim policy `Delete` causes.
async fn delete_with_claim(cluster: &KubeCluster, name: &str) -> Result<(), RunError> {
    let all: Api<PersistentVolume> = Api::all(cluster.client.clone());
    let delete = serde_json::json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
    let patch = Patch::Merge(delete);
    let patched = all.patch(name, &PatchParams::default(), &patch).await;
    let right = ("patch persistentvolumes", (clean_up_role(None), false));
    let name = name.to_owned();
    accept(
        ClusterRequest::RemoveVolume { name },
        right,
        patched.map(drop),
    )
}

async fn wait_for_volume(
    cluster: &KubeCluster,
    name: &str,
    begun: Instant,
) -> Result<(), RunError> {
    let all: Api<PersistentVolume> = Api::all(cluster.client.clone());
    loop {
        match all.get_opt(name).await {
            Ok(None) => return Ok(()),
            // A user who may not read the volume does not wait.
            Err(error) if !api::is_away(&error) => return Ok(()),
            // An unavailable API server does not say that the volume is gone.
            Ok(Some(_)) | Err(_) => {}
        }
        if begun.elapsed() > REMOVAL {
            let name = name.to_owned();
            return Err(still_there(RemainingObject::Volume { name }));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Deletes the Job of a run, and waits until its objects are gone. An error for a missing right
/// has `role`.
async fn remove_run(
    cluster: &KubeCluster,
    run: &LeftoverRun,
    role: &(String, bool),
) -> Result<(), RunError> {
    let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &run.namespace);
    let deleted = jobs.delete(&run.job, &DeleteParams::foreground()).await;
    let name = run.job.clone();
    let request = ClusterRequest::DeleteJob { name };
    let right = ("delete jobs", role.clone());
    accept(request, right, deleted.map(drop))?;
    let deadline = Instant::now() + REMOVAL;
    let name = run.job.clone();
    let watch = ObjectWatch::new(jobs, Selector::Name(name.clone()));
    wait_until_none(watch, deadline, RemainingObject::Job { name }).await?;
    // A claim owned by the Job itself is deleted after the Job.
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client.clone(), &run.namespace);
    let ours = Selector::Label(format!("{RUN_LABEL}={}", run.id));
    let job = run.job.clone();
    let object = RemainingObject::ClaimOf { job };
    wait_until_none(ObjectWatch::new(claims, ours), deadline, object).await
}

/// Waits until no watched object is left. A user who may not read the objects does not wait.
async fn wait_until_none<K>(
    mut watch: ObjectWatch<K>,
    deadline: Instant,
    object: RemainingObject,
) -> Result<(), RunError>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    loop {
        match timeout_at(deadline, watch.changed()).await {
            Ok(Ok(objects)) if objects.is_empty() => return Ok(()),
            Ok(Ok(_)) => {}
            Ok(Err(error)) if api::is_away(&error) => {}
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(still_there(object)),
        }
    }
}

/// Removes a namespace that was created for runs and has none. Returns whether it was removed.
async fn leave(cluster: &KubeCluster, name: &str) -> Result<bool, RunError> {
    let there = KubeCluster {
        namespace: name.to_owned(),
        ..cluster.clone()
    };
    namespace::leave(&there, None, &|| true).await
}

/// Returns the manifest of a role that has all rights of `doctor --cluster --clean`: for runs in
/// one namespace, or for runs, retained volumes and namespaces in the whole cluster.
#[must_use]
pub fn clean_up_role(namespace: Option<&str>) -> String {
    let name = "iosonde-doctor";
    let Some(namespace) = namespace else {
        return cluster_role_manifest(name, &CLEAN_UP_RIGHTS);
    };
    let is_namespaced =
        |(_, _, resource, _): &Right| ["jobs", "persistentvolumeclaims"].contains(resource);
    let rights: Vec<Right> = CLEAN_UP_RIGHTS.into_iter().filter(is_namespaced).collect();
    role_manifest(namespace, name, &rights)
}

/// Returns the role that suffices for removing these runs, and whether one namespace needs less.
fn role_for_runs(runs: &[LeftoverRun]) -> (String, bool) {
    let namespaces: BTreeSet<&str> = runs.iter().map(|run| run.namespace.as_str()).collect();
    match namespaces.len() {
        1 => (clean_up_role(namespaces.first().copied()), false),
        _ => (clean_up_role(None), true),
    }
}

/// An object that is already gone is not an error.
fn accept(
    request: ClusterRequest,
    (right, (role, suggests_namespace)): (&str, (String, bool)),
    answer: Result<(), kube::Error>,
) -> Result<(), RunError> {
    match answer {
        Err(error) if api::is_refused(&error) => {
            let rights = vec![right.to_owned()];
            let obstacle = ClusterObstacle::CleanUpForbidden {
                rights,
                role,
                suggests_namespace,
            };
            Err(obstacle.into())
        }
        Err(error) if !api::is_missing(&error) => Err(api::failed(request, &error)),
        _ => Ok(()),
    }
}

fn still_there(object: RemainingObject) -> RunError {
    RunError::not_ready(
        FailedObject::Leftovers,
        FailureCondition::StillThere {
            object,
            seconds: Some(REMOVAL.as_secs()),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, list, serve};
    use serde_json::json;

    fn leftover(id: &str) -> LeftoverRun {
        LeftoverRun {
            namespace: "bench".to_owned(),
            job: format!("iosonde-{id}"),
            id: id.to_owned(),
            created: String::new(),
            is_running: true,
        }
    }

    #[test]
    fn runs_and_their_retained_volumes_are_removed_in_one_call() {
        let runtime = crate::connect::runtime().unwrap();
        let volume = |name: &str, claim: &str| {
            let by = json!({"pv.kubernetes.io/provisioned-by": "example.com/disk"});
            let metadata = json!({"name": name, "annotations": by});
            json!({"metadata": metadata, "status": {"phase": "Bound"}, "spec": {
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"name": claim, "namespace": "bench"}}})
        };
        let bound = volume("pv-1", "iosonde-0a1b2c3d-data");
        let other = volume("pv-2", "shop-data");
        let (objects, requests) = serve(&runtime, move |request, _| match request {
            _ if request.contains("watch=true") => ApiAnswer::Watch(Duration::ZERO, vec![]),
            _ if request.contains("/persistentvolumes/") => ApiAnswer::Status(404),
            _ if request.contains("/persistentvolumes") => list(&[bound.clone(), other.clone()]),
            _ if request.contains("/persistentvolumeclaims") => list(&[]),
            _ if request.ends_with("/namespaces/bench") => {
                ApiAnswer::Document(json!({"metadata": {"name": "bench"}}))
            }
            _ => ApiAnswer::Status(404),
        });
        let runs = [leftover("0a1b2c3d"), leftover("1a1b2c3d")];
        let removed = runtime.block_on(remove_all(&objects.cluster, &runs, &[], &[]));
        let expected = RemovedLeftovers {
            runs: 2,
            volumes: 1,
            namespaces: 0,
        };
        assert_eq!(removed, Ok(expected));
        let all = requests.list_all();
        // The policy is changed, and the volume is then read until it is gone.
        assert_eq!(requests.count(&["/persistentvolumes/pv-1"]), 2, "{all:?}");
        assert_eq!(requests.count(&["/persistentvolumes/pv-2"]), 0, "{all:?}");
        assert_eq!(requests.count(&["/jobs/iosonde-1a1b2c3d"]), 2, "{all:?}");
    }

    #[test]
    fn missing_right_to_clean_up_is_named() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, |_, _| ApiAnswer::Status(403));
        let runs = [leftover("0a1b2c3d")];
        let refused = runtime.block_on(remove_all(&objects.cluster, &runs, &[], &[]));
        let rights = vec!["delete jobs".to_owned()];
        let role = clean_up_role(Some("bench"));
        let expected = ClusterObstacle::CleanUpForbidden {
            rights,
            role,
            suggests_namespace: false,
        };
        assert_eq!(refused, Err(expected.into()));
    }

    #[test]
    fn clean_up_role_of_one_namespace_has_no_cluster_resource() {
        let jobs = "resources: [jobs], verbs: [get, list, watch, delete]";
        let of_one = clean_up_role(Some("bench"));
        assert!(of_one.contains("kind: Role\n"), "{of_one}");
        assert!(of_one.contains("namespace: bench}"), "{of_one}");
        assert!(of_one.contains(jobs), "{of_one}");
        assert!(of_one.contains("persistentvolumeclaims"), "{of_one}");
        assert!(!of_one.contains("persistentvolumes]"), "{of_one}");
        let of_all = clean_up_role(None);
        assert!(of_all.contains("kind: ClusterRole\n"), "{of_all}");
        assert!(of_all.contains(jobs), "{of_all}");
        assert!(of_all.contains("persistentvolumes]"), "{of_all}");
        let mut runs = vec![leftover("0a1b2c3d")];
        assert_eq!(role_for_runs(&runs), (of_one, false));
        runs.push(LeftoverRun {
            namespace: "lab".to_owned(),
            ..leftover("1a1b2c3d")
        });
        assert_eq!(role_for_runs(&runs), (of_all, true));
    }
}
