//! Finds leftovers of runs in a cluster by their label, and removes them on request.

mod removal;

pub use removal::clean_up_role;

use crate::api;
use crate::connect::KubeCluster;
use crate::manifest::{JOB_NAME_PREFIX, RUN_LABEL, run_id_from_job_name};
use crate::namespace;
use crate::options::ClusterOptions;
use crate::run_objects::RunObjects;
use crate::setup_observer::{SetupEvent, SetupObserver, unless_interrupted};
use crate::volume_origin::is_provisioned_for_claim;
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume};
use kube::api::{Api, ListParams};
use serde::Serialize;
use tokio::runtime::Runtime;

/// A run whose Job exists. It is still running, or its client is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftoverRun {
    /// Namespace of the Job.
    pub namespace: String,
    /// Name of the Job.
    pub job: String,
    /// Id of the run.
    #[serde(skip)]
    pub id: String,
    /// Creation time in the format of the cluster.
    pub created: String,
    /// Whether a pod of the Job is active.
    pub is_running: bool,
}

/// A volume of a run whose claim is gone, because its class retains volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostVolume {
    /// Name of the volume.
    pub name: String,
    /// Namespace of its former claim.
    pub namespace: String,
    /// Size in the notation of Kubernetes.
    pub size: String,
}

/// A namespace that iosonde created and that has no run any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostNamespace {
    /// Name of the namespace.
    pub name: String,
}

impl LeftoverRun {
    fn from_job(job: &Job) -> LeftoverRun {
        let metadata = job.metadata.clone();
        let active = job.status.as_ref().and_then(|status| status.active);
        let name = metadata.name.unwrap_or_default();
        let label = metadata
            .labels
            .and_then(|mut labels| labels.remove(RUN_LABEL));
        LeftoverRun {
            namespace: metadata.namespace.unwrap_or_default(),
            id: label.unwrap_or_else(|| run_id_from_job_name(&name).to_owned()),
            job: name,
            created: metadata
                .creation_timestamp
                .map(|time| time.0.to_string())
                .unwrap_or_default(),
            is_running: active.unwrap_or(0) > 0,
        }
    }
}

/// Returns the runs in all namespaces that this user may list, or else in the selected one. `None`:
/// this user may list them in neither.
pub(crate) async fn find_if_allowed(
    cluster: &KubeCluster,
) -> Result<Option<Vec<LeftoverRun>>, RunError> {
    Ok(find_visible(cluster).await?.map(|visible| visible.runs))
}

/// Runs that this user may list.
pub(crate) struct VisibleRuns {
    pub(crate) runs: Vec<LeftoverRun>,
    /// Whether they are those of all namespaces.
    pub(crate) is_whole_cluster: bool,
}

/// As [`find_if_allowed`], with the namespaces that were listed.
pub(crate) async fn find_visible(cluster: &KubeCluster) -> Result<Option<VisibleRuns>, RunError> {
    match list_jobs(cluster).await {
        Ok((jobs, is_whole_cluster)) => Ok(Some(VisibleRuns {
            runs: jobs.iter().map(LeftoverRun::from_job).collect(),
            is_whole_cluster,
        })),
        Err(error) if api::is_refused(&error) => Ok(None),
        Err(error) => Err(api::failed_at(
            &cluster.server,
            ClusterRequest::ListJobs,
            &error,
        )),
    }
}

/// Returns the Jobs of runs, and whether they are those of all namespaces.
async fn list_jobs(cluster: &KubeCluster) -> Result<(Vec<Job>, bool), kube::Error> {
    let ours = ListParams::default().labels(RUN_LABEL);
    let everywhere: Api<Job> = Api::all(cluster.client.clone());
    let here: Api<Job> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    match everywhere.list(&ours).await {
        Ok(list) => Ok((list.items, true)),
        Err(error) if api::is_refused(&error) => Ok((here.list(&ours).await?.items, false)),
        Err(error) => Err(error),
    }
}

/// Returns the volume if it is of a run whose claim is gone, judged by the claim's name.
pub(crate) fn lost_volume(volume: &PersistentVolume) -> Option<LostVolume> {
    let status = volume.status.as_ref()?;
    let spec = volume.spec.as_ref()?;
    let reference = spec.claim_ref.as_ref()?;
    run_of_volume(volume)?;
    let is_lost = matches!(status.phase.as_deref(), Some("Released" | "Failed"));
    is_lost.then(|| LostVolume {
        name: volume.metadata.name.clone().unwrap_or_default(),
        namespace: reference.namespace.clone().unwrap_or_default(),
        size: spec
            .capacity
            .as_ref()
            .and_then(|capacity| capacity.get("storage"))
            .map_or_else(|| "of unknown size".to_owned(), |size| size.0.clone()),
    })
}

/// Returns namespaces created for runs that contain none, as far as this user may list them.
pub(crate) async fn lost_namespaces(cluster: &KubeCluster) -> Result<Vec<LostNamespace>, RunError> {
    let all: Api<Namespace> = Api::all(cluster.client.clone());
    let made = ListParams::default().labels(namespace::MADE_LABEL);
    let failed = |error| api::failed(ClusterRequest::ListNamespaces, &error);
    let made = match all.list(&made).await {
        Ok(made) => made.items,
        // A user who may not list namespaces may be allowed to get the selected one.
        Err(error) if api::is_refused(&error) => match all.get_opt(&cluster.namespace).await {
            Err(error) if api::is_refused(&error) => Vec::new(),
            there => there.map_err(failed)?.into_iter().collect(),
        },
        Err(error) => return Err(failed(error)),
    };
    let mut lost = Vec::new();
    for there in made {
        if !namespace::is_made_for_runs(&there) || namespace::is_going(&there) {
            continue;
        }
        let name = there.metadata.name.unwrap_or_default();
        let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &name);
        let runs = jobs.list(&ListParams::default().labels(RUN_LABEL)).await;
        if runs.is_ok_and(|runs| runs.items.is_empty()) {
            lost.push(LostNamespace { name });
        }
    }
    Ok(lost)
}

/// Removes runs, lost volumes and lost namespaces at the same time, and waits until they are gone.
/// Volumes that the class of a run retains are removed too, and namespaces created for runs with
/// their last run.
///
/// # Errors
/// If the cluster refuses, or an object still exists at the timeout. The other objects are removed.
pub fn remove(
    options: &ClusterOptions,
    runs: &[LeftoverRun],
    volumes: &[LostVolume],
    namespaces: &[LostNamespace],
) -> Result<RemovedLeftovers, RunError> {
    let runtime = crate::connect::runtime()?;
    runtime.block_on(async {
        let cluster = KubeCluster::connect(options).await?;
        removal::remove_all(&cluster, runs, volumes, namespaces).await
    })
}

/// Removes the volumes of a run that is over, which its class has retained. Returns their number.
///
/// # Errors
/// If the cluster refuses, or a volume still exists at the timeout.
pub fn remove_retained_volumes(options: &ClusterOptions, run: &str) -> Result<usize, RunError> {
    let runtime = crate::connect::runtime()?;
    runtime.block_on(async {
        let cluster = KubeCluster::connect(options).await?;
        let removed = removal::remove_volumes_of(&cluster, &[run]).await;
        removed.map(Option::unwrap_or_default)
    })
}

/// Number of objects that were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedLeftovers {
    /// Runs.
    pub runs: usize,
    /// Volumes that classes had retained.
    pub volumes: usize,
    /// Namespaces created for runs.
    pub namespaces: usize,
}

/// As [`remove_retained_volumes`], within a runtime. `None`: this user may not list volumes.
pub(crate) async fn remove_retained_volumes_of(
    cluster: &KubeCluster,
    run: &str,
) -> Result<Option<usize>, RunError> {
    removal::remove_volumes_of(cluster, &[run]).await
}

/// Note on a run whose retained volumes could not be removed.
pub(crate) const RETAINED_MAY_BE_LEFT: &str = "volumes that their class retains may be left; \
     remove them with `iosonde doctor --cluster --clean`";

/// As [`remove_retained_volumes_of`], for a run in a session. One more interrupt ends the wait, and
/// a note then names what may be left.
pub(crate) fn remove_retained_unless_interrupted(
    runtime: &Runtime,
    objects: &RunObjects,
    observer: &mut SetupObserver<'_>,
) -> Result<Option<usize>, RunError> {
    let interrupts = observer.interrupts;
    let before = interrupts().max(1);
    let is_stopped = || u32::from(interrupts() > before);
    let removal = remove_retained_volumes_of(&objects.cluster, &objects.id);
    let removed = runtime.block_on(unless_interrupted(&is_stopped, removal));
    if matches!(removed, Err(RunError::Interrupted)) {
        (observer.tell)(SetupEvent::Note(RETAINED_MAY_BE_LEFT));
    }
    removed
}

/// Returns the id of the run that this volume was provisioned for. A volume of an administrator,
/// to which a claim of a run was bound, is not removed.
fn run_of_volume(volume: &PersistentVolume) -> Option<&str> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    let claim = reference.name.as_deref()?;
    let id = claim.strip_prefix(JOB_NAME_PREFIX)?.split('-').next()?;
    let is_ours =
        claim.ends_with("-data") && id.len() == 8 && id.chars().all(|c| c.is_ascii_hexdigit());
    (is_ours && is_provisioned_for_claim(volume)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_of_an_administrator_is_no_leftover() {
        let volume = |name: &str, annotations: serde_json::Value| -> PersistentVolume {
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"claimRef": {"namespace": "bench", "uid": "0b1c2d3e",
                    "name": "iosonde-3f2a9c00-data"}},
                "status": {"phase": "Released"},
            }))
            .unwrap()
        };
        let provisioned = ("pv.kubernetes.io/provisioned-by", "example.com/disk");
        let bound = ("pv.kubernetes.io/bound-by-controller", "yes");
        let by = |all: &[(&str, &str)]| {
            let pairs = all
                .iter()
                .map(|(key, value)| ((*key).to_owned(), serde_json::Value::from(*value)));
            serde_json::Value::Object(pairs.collect())
        };
        assert!(lost_volume(&volume("disk-7", by(&[provisioned]))).is_some());
        assert!(lost_volume(&volume("pvc-0b1c2d3e", by(&[]))).is_some());
        assert_eq!(lost_volume(&volume("disk-7", by(&[bound]))), None);
        let restored = by(&[provisioned, bound]);
        assert_eq!(lost_volume(&volume("disk-7", restored)), None);
    }

    #[test]
    fn run_id_of_a_leftover_is_its_label() {
        let job = |labels| {
            let metadata = serde_json::json!({"name": "iosonde-3f2a9c00", "labels": labels});
            let job = serde_json::json!({"metadata": metadata});
            LeftoverRun::from_job(&serde_json::from_value(job).unwrap())
        };
        let labelled = job(serde_json::json!({RUN_LABEL: "0a1b2c3d"}));
        assert_eq!(labelled.id, "0a1b2c3d");
        assert_eq!(job(serde_json::json!({})).id, "3f2a9c00");
    }
}
