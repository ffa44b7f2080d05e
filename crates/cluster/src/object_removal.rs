//! Removes the objects of a run, and waits until they are gone: with one list and one watch of each
//! kind, without polling.

use crate::api::{self, RequestError};
use crate::namespace;
use crate::run_objects::RunObjects;
use crate::run_watch::RunWatch;
use crate::setup_observer::TICK;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{
    FailedObject, FailureCondition, PodOnNode, RemainingObject,
};
use kube::api::DeleteParams;
use std::time::{Duration, Instant};

/// Time before a deletion gives up on pods whose nodes are not ready.
const NODE: Duration = Duration::from_secs(5);
/// Interval at which the nodes of the remaining pods are read.
const NODE_PERIOD: Duration = Duration::from_secs(5);
/// Delay before a request to delete is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Timeout of a deletion: the grace period of the pod, and its volume.
const REMOVAL: Duration = Duration::from_secs(90);

const _: () = assert!(NODE.as_secs() < REMOVAL.as_secs());

impl RunObjects {
    /// Deletes all objects and waits for it. Some storage classes keep the data of deleted claims.
    pub(crate) async fn delete(&self, interrupts: &dyn Fn() -> u32) -> Result<(), RunError> {
        self.delete_since(interrupts(), interrupts).await
    }

    /// Like [`delete`](Self::delete). One more interrupt than `before` ends the wait, but
    /// the first one never does: it only ends the run.
    pub(crate) async fn delete_since(
        &self,
        before: u32,
        interrupts: &dyn Fn() -> u32,
    ) -> Result<(), RunError> {
        self.wait_for_deletion(false, before, interrupts).await
    }

    /// Like [`delete_since`](Self::delete_since). `is_asked`: the deletion was requested before.
    pub(crate) async fn wait_for_deletion(
        &self,
        is_asked: bool,
        before: u32,
        interrupts: &dyn Fn() -> u32,
    ) -> Result<(), RunError> {
        let begun = Instant::now();
        let mut watch: Option<RunWatch<'_>> = is_asked.then(|| RunWatch::of_removal(self));
        let mut nodes_at = begun + NODE;
        loop {
            // An unavailable API server may be back before the timeout.
            let left = match &mut watch {
                None => self.ask_to_delete().await,
                Some(watch) => watch.find_remaining(TICK).await,
            };
            match left {
                Ok(None) => return self.leave_namespace(before, interrupts).await,
                // A server that refuses the request does so again.
                Err(refused) if !api::is_away(&refused.error) => {
                    return Err(self.left(refused.condition()));
                }
                _ => {}
            }
            if watch.is_none() {
                match &left {
                    Ok(_) => watch = Some(RunWatch::of_removal(self)),
                    Err(_) => tokio::time::sleep(RETRY_DELAY).await,
                }
            }
            if watch.is_some() && Instant::now() >= nodes_at {
                nodes_at = Instant::now() + NODE_PERIOD;
                if let Some(stranded) = self.stranded().await {
                    return Err(self.left_on(stranded));
                }
            }
            if begun.elapsed() > REMOVAL {
                return Err(self.left(match left {
                    Ok(object) => FailureCondition::StillThere {
                        object: object.unwrap_or_else(|| self.job_object()),
                        seconds: Some(begun.elapsed().as_secs()),
                    },
                    Err(request) => request.condition(),
                }));
            }
            if interrupts() > before.max(1) {
                let job = self.job.clone();
                let left = left.ok().flatten();
                let object = left.unwrap_or(RemainingObject::Objects { job });
                return Err(self.left(FailureCondition::RemovalInterrupted { object }));
            }
        }
    }

    /// Removes the namespace after the last run in it, if it was created for runs.
    async fn leave_namespace(
        &self,
        before: u32,
        interrupts: &dyn Fn() -> u32,
    ) -> Result<(), RunError> {
        let is_wanted = || interrupts() <= before.max(1);
        let left = namespace::leave(&self.cluster, Some(&self.id), &is_wanted).await;
        // A namespace that stays is only reported if this run was to create it.
        left.map(drop).or_else(|left| match self.made_namespace {
            true => Err(left),
            false => Ok(()),
        })
    }

    /// Requests deletion of the Job with its dependents. Returns the Job, as still present. The
    /// cluster would delete a claim of the Job only after the Job: with a request of its own, the
    /// claim goes with the last pod that uses it.
    pub(crate) async fn ask_to_delete(&self) -> Result<Option<RemainingObject>, RequestError> {
        let (jobs, claims) = (self.jobs(), self.claims());
        let claim = format!("{}-data", self.job);
        let (foreground, plainly) = (DeleteParams::foreground(), DeleteParams::default());
        // There may be no such claim, or no right to delete it.
        let (deleted, _) = futures::join!(
            jobs.delete(&self.job, &foreground),
            claims.delete(&claim, &plainly),
        );
        match deleted {
            Err(error) if !api::is_missing(&error) => Err(RequestError {
                verb: "delete",
                resource: "jobs",
                error,
            }),
            _ => Ok(Some(self.job_object())),
        }
    }

    fn job_object(&self) -> RemainingObject {
        RemainingObject::Job {
            name: self.job.clone(),
        }
    }

    /// Returns the error for pods on nodes that are not ready. They are not deleted by force,
    /// because a pod may still write.
    fn left_on(&self, pods: Vec<PodOnNode>) -> RunError {
        self.left(FailureCondition::NodesNotReady { pods })
    }

    fn left(&self, condition: FailureCondition) -> RunError {
        let object = FailedObject::Job {
            namespace: self.cluster.namespace.clone(),
            name: self.job.clone(),
        };
        RunError::not_removed(object, condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, list, serve};
    use serde_json::json;

    fn deleted_job() -> serde_json::Value {
        json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "iosonde-0a1b2c3d",
            "resourceVersion": "5", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    }

    #[test]
    fn removal_is_watched_with_one_list_of_each_kind() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, requests) = serve(&runtime, |request, before| {
            let is_watch = request.contains("watch=true");
            match request {
                _ if is_watch && request.contains("/jobs") => ApiAnswer::Watch(
                    Duration::from_millis(1500),
                    vec![json!({"type": "DELETED", "object": deleted_job()})],
                ),
                _ if is_watch => ApiAnswer::Watch(Duration::ZERO, vec![]),
                // The first request deletes the Job, the second reads it.
                _ if request.contains("/jobs/") && before < 2 => ApiAnswer::Document(deleted_job()),
                _ if request.contains("/namespaces/bench/") => list(&[]),
                _ => ApiAnswer::Status(404),
            }
        });
        let removed = runtime.block_on(objects.delete(&|| 0));
        assert_eq!(removed, Ok(()));
        let all = requests.list_all();
        let others: Vec<_> = all
            .iter()
            .filter(|one| !one.contains("watch=true"))
            .collect();
        // Two deletions, the Job, its pods, its claims, and the namespace.
        assert_eq!(others.len(), 6, "{all:?}");
        let claim = "/persistentvolumeclaims/iosonde-0a1b2c3d-data";
        assert_eq!(requests.count(&[claim]), 1, "{all:?}");
    }

    #[test]
    fn removal_with_lost_credentials_ends_at_once() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, |_, _| ApiAnswer::Status(401));
        let begun = Instant::now();
        let error = runtime.block_on(objects.delete(&|| 0)).unwrap_err();
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "401 does not pass"
        );
        let RunError::NotRemoved(failure) = &error else {
            panic!("{error:?}");
        };
        let job = FailedObject::Job {
            namespace: "bench".to_owned(),
            name: "iosonde-0a1b2c3d".to_owned(),
        };
        assert_eq!(failure.object(), Some(&job));
        // The message is that of the API server, not its whole status in the notation of Rust.
        let refused = FailureCondition::ApiFailed {
            verb: "delete".to_owned(),
            resource: "jobs".to_owned(),
            code: Some(401),
            message: "no".to_owned(),
        };
        assert_eq!(failure.condition(), Some(&refused));
    }
}
