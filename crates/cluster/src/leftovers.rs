//! What runs have left in a cluster: found by our label, and removed on request.

use crate::api;
use crate::connect::Cluster;
use crate::manifest::RUN_LABEL;
use crate::options::ClusterOptions;
use iosonde_result::session::RunError;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, ListParams};

/// A run whose Job is in the cluster: it goes on, or its client is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The namespace.
    pub namespace: String,
    /// The Job.
    pub job: String,
    /// When it was created, as the cluster writes it.
    pub created: String,
    /// Whether its pod still runs.
    pub is_running: bool,
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

/// Finds the runs that are in the cluster, in all namespaces that this user may see, and removes them if that is asked for.
///
/// # Errors
/// When the cluster cannot be asked, or does not delete.
pub fn leftovers(options: &ClusterOptions, remove: bool) -> Result<Vec<Leftover>, RunError> {
    let runtime = crate::session::runtime()?;
    runtime.block_on(async {
        let cluster = Cluster::connect(options).await?;
        let ours = ListParams::default().labels(RUN_LABEL);
        let everywhere: Api<Job> = Api::all(cluster.client.clone());
        let here: Api<Job> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let found = match everywhere.list(&ours).await {
            Err(kube::Error::Api(status)) if status.code == 403 => here.list(&ours).await,
            answer => answer,
        };
        let found = found.map_err(|error| api::failed("listing jobs", &error))?;
        let all: Vec<Leftover> = found.items.iter().map(Leftover::of).collect();
        for leftover in all.iter().filter(|_| remove) {
            let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &leftover.namespace);
            let deleted = jobs
                .delete(&leftover.job, &DeleteParams::foreground())
                .await;
            if let Err(error) = deleted
                && !api::is_missing(&error)
            {
                return Err(api::failed(&format!("deleting {}", leftover.job), &error));
            }
        }
        Ok(all)
    })
}
