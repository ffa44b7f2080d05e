//! Finds leftovers of runs in a cluster by their label, and removes them on request.

use crate::api;
use crate::connect::Cluster;
use crate::manifest::RUN_LABEL;
use crate::namespace;
use crate::options::ClusterOptions;
use iosonde_result::session::RunError;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Timeout for the removal.
const REMOVAL: Duration = Duration::from_secs(90);

/// A run whose Job exists. It is still running, or its client is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// Namespace of the Job.
    pub namespace: String,
    /// Name of the Job.
    pub job: String,
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

impl Leftover {
    fn of(job: &Job) -> Leftover {
        let metadata = job.metadata.clone();
        let active = job.status.as_ref().and_then(|status| status.active);
        Leftover {
            namespace: metadata.namespace.unwrap_or_default(),
            job: metadata.name.unwrap_or_default(),
            created: metadata
                .creation_timestamp
                .map(|time| time.0.to_string())
                .unwrap_or_default(),
            is_running: active.unwrap_or(0) > 0,
        }
    }
}

/// Returns the runs in all namespaces that this user may list.
pub(crate) async fn find(cluster: &Cluster) -> Result<Vec<Leftover>, RunError> {
    let ours = ListParams::default().labels(RUN_LABEL);
    let everywhere: Api<Job> = Api::all(cluster.client.clone());
    let here: Api<Job> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = match everywhere.list(&ours).await {
        Err(kube::Error::Api(status)) if status.code == 403 => here.list(&ours).await,
        answer => answer,
    };
    let found = found.map_err(|error| api::failed("listing jobs", &error))?;
    Ok(found.items.iter().map(Leftover::of).collect())
}

/// Returns the volume if it is of a run whose claim is gone, judged by the claim's name.
pub(crate) fn lost_volume(volume: &PersistentVolume) -> Option<LostVolume> {
    let status = volume.status.as_ref()?;
    let spec = volume.spec.as_ref()?;
    let reference = spec.claim_ref.as_ref()?;
    let claim = reference.name.as_deref()?;
    let id = claim.strip_prefix("iosonde-")?.split('-').next()?;
    let is_ours =
        claim.ends_with("-data") && id.len() == 8 && id.chars().all(|c| c.is_ascii_hexdigit());
    let is_lost = matches!(status.phase.as_deref(), Some("Released" | "Failed"));
    (is_ours && is_lost).then(|| LostVolume {
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
pub(crate) async fn lost_namespaces(cluster: &Cluster) -> Result<Vec<LostNamespace>, RunError> {
    let all: Api<Namespace> = Api::all(cluster.client.clone());
    let made = ListParams::default().labels(namespace::MADE_LABEL);
    let failed = |error| api::failed("looking for namespaces", &error);
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

/// Removes runs, lost volumes and lost namespaces, and waits until they are gone. Namespaces
/// created for runs are removed with their last run. Returns the number of removed namespaces.
///
/// # Errors
/// If the cluster refuses, or an object still exists at the timeout.
pub fn remove(
    options: &ClusterOptions,
    runs: &[Leftover],
    volumes: &[LostVolume],
    namespaces: &[LostNamespace],
) -> Result<usize, RunError> {
    let runtime = crate::runner::runtime()?;
    runtime.block_on(async {
        let cluster = Cluster::connect(options).await?;
        for run in runs {
            remove_run(&cluster, run).await?;
        }
        let all: Api<PersistentVolume> = Api::all(cluster.client.clone());
        for volume in volumes {
            // Only the provisioner can delete the data, which the reclaim policy `Delete` causes.
            let delete = serde_json::json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
            let patched = all
                .patch(&volume.name, &PatchParams::default(), &Patch::Merge(delete))
                .await;
            accept(
                &format!("removing the volume {}", volume.name),
                patched.map(drop),
            )?;
        }
        let begun = Instant::now();
        for volume in volumes {
            while all
                .get_opt(&volume.name)
                .await
                .is_ok_and(|there| there.is_some())
            {
                still_there(begun, &format!("the volume {}", volume.name))?;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        let (mut gone, mut held) = (0, None);
        // Includes the namespaces of the removed runs.
        let of_runs = runs.iter().map(|run| &run.namespace);
        let lost = namespaces.iter().map(|lost| &lost.name);
        for name in of_runs.chain(lost).collect::<BTreeSet<_>>() {
            let there = Cluster {
                namespace: name.clone(),
                ..cluster.clone()
            };
            // An error for one namespace does not stop the others.
            match namespace::leave(&there, None, &|| true).await {
                Ok(went) => gone += usize::from(went),
                Err(left) => {
                    held.get_or_insert(left);
                }
            }
        }
        held.map_or(Ok(gone), Err)
    })
}

async fn remove_run(cluster: &Cluster, run: &Leftover) -> Result<(), RunError> {
    let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &run.namespace);
    let deleted = jobs.delete(&run.job, &DeleteParams::foreground()).await;
    accept(&format!("deleting {}", run.job), deleted.map(drop))?;
    let begun = Instant::now();
    while jobs
        .get_opt(&run.job)
        .await
        .is_ok_and(|there| there.is_some())
    {
        still_there(begun, &format!("the job {}", run.job))?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // A claim owned by the Job itself is deleted after the Job.
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client.clone(), &run.namespace);
    let id = run.job.trim_start_matches("iosonde-");
    let ours = ListParams::default().labels(&format!("{RUN_LABEL}={id}"));
    while claims
        .list(&ours)
        .await
        .is_ok_and(|found| !found.items.is_empty())
    {
        still_there(begun, &format!("the claim of {}", run.job))?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// An object that is already gone is not an error.
fn accept(doing: &str, answer: Result<(), kube::Error>) -> Result<(), RunError> {
    match answer {
        Err(error) if !api::is_missing(&error) => Err(api::failed(doing, &error)),
        _ => Ok(()),
    }
}

fn still_there(begun: Instant, what: &str) -> Result<(), RunError> {
    if begun.elapsed() < REMOVAL {
        return Ok(());
    }
    Err(RunError::Unready {
        what: "removing what runs have left".to_owned(),
        cause: format!("{what} is still there after {} s", REMOVAL.as_secs()),
        remedy: "see `kubectl describe` of it: a finalizer, or a node that is gone, holds it"
            .to_owned(),
    })
}
