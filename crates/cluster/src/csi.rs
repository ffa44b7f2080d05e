//! [`CsiSession`]: measures the data services of a storage class, snapshot, restore, clone and
//! expansion, while an application runs on the volume.
//!
//! The application is a plan in the pod of a [`PodSession`]. A task beside it makes all other
//! objects, which the Job of that pod owns. The session extends the Job's deadline, so that the
//! cluster removes everything soon after the client is killed.

mod application_link;
mod application_observer;
mod csi_preflight;
mod object_wait;
mod service_objects;
mod service_run;
mod written_data;

use crate::api;
use crate::leftovers;
use crate::lifecycle::lifecycle_manifest;
use crate::lifecycle::{extend_lease, labels};
use crate::manifest::CONTAINER;
use crate::options::ClusterOptions;
use crate::pod_session::PodSession;
use crate::pod_set::ClusterRunner;
use crate::setup_observer::{SetupObserver, TICK};
use application_link::ServiceSwitches;
use application_observer::ApplicationObserver;
use csi_preflight::CheckedServices;
use iosonde_job::Plan;
use iosonde_result::data_service::{DataService, DataServiceClass, ServiceMeasurements};
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterRequest, RunError};
use iosonde_result::session::Session;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use service_run::{EXPANSION_BYTES, ServiceRun};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Timeout for the removal of the snapshots.
const SNAPSHOT_REMOVAL: Duration = Duration::from_secs(60);

/// Services to measure, and the data and times of each measurement.
#[derive(Debug, Clone)]
pub struct CsiOptions {
    /// The services.
    pub services: Vec<DataService>,
    /// Sizes of the data with a checksum, in bytes.
    pub data_bytes: Vec<u64>,
    /// Rounds of each size.
    pub rounds: u32,
    /// Time before and after each service in which only the application runs.
    pub window: Duration,
    /// Name of the snapshot class. `None` selects one of the driver.
    pub snapshot_class: Option<String>,
}

impl CsiOptions {
    /// Returns the options of one round with 1 MiB of data, without time before and after.
    #[cfg(test)]
    pub(crate) fn of_one_round(services: &[DataService]) -> CsiOptions {
        CsiOptions {
            services: services.to_vec(),
            data_bytes: vec![1 << 20],
            rounds: 1,
            window: Duration::ZERO,
            snapshot_class: None,
        }
    }

    /// Number and size of the claims that exist at the same time: the volume, and a copy. The
    /// volume grows in each round if the class expands volumes.
    pub(crate) fn most_claims(&self, claim_bytes: u64, expands: bool) -> (u32, u64) {
        let is_copy =
            |service: &DataService| matches!(service, DataService::Restore | DataService::Clone);
        let has_copies = self.services.iter().any(is_copy);
        let expansions = match expands && self.services.contains(&DataService::Expand) {
            true => (self.data_bytes.len() as u64).saturating_mul(u64::from(self.rounds)),
            false => 0,
        };
        // The last expansion comes after the last copy.
        let (claims, expansions) = match has_copies {
            true => (2, expansions.saturating_sub(1)),
            false => (1, expansions),
        };
        let grown = expansions.saturating_mul(EXPANSION_BYTES);
        let largest_bytes = claim_bytes.saturating_add(grown);
        debug_assert!(largest_bytes >= claim_bytes, "a volume never shrinks");
        (claims, largest_bytes)
    }

    /// Whether a service uses snapshots.
    pub(crate) fn uses_snapshots(&self) -> bool {
        let is_of_snapshots =
            |service: &DataService| matches!(service, DataService::Snapshot | DataService::Restore);
        self.services.iter().any(is_of_snapshots)
    }
}

/// A session that measures data services of one class.
pub struct CsiSession<'a> {
    session: PodSession<'a>,
    class: DataServiceClass,
    retains_volumes: bool,
    cluster: ClusterOptions,
    options: CsiOptions,
    labels: BTreeMap<String, String>,
    lease: JoinHandle<()>,
}

impl<'a> CsiSession<'a> {
    /// Checks the class, its snapshot class and the rights, and creates the pod with the volume.
    /// `name` is the class as the user named it.
    ///
    /// # Errors
    /// If a service cannot be measured, a right is missing, or the pod does not start.
    pub fn open(
        runner: &ClusterRunner<'_>,
        name: String,
        options: CsiOptions,
        mut observer: SetupObserver<'a>,
    ) -> Result<CsiSession<'a>, RunError> {
        debug_assert!(!options.services.is_empty() && !options.data_bytes.is_empty());
        let begun = Instant::now();
        let checked =
            csi_preflight::check_services(&runner.options, name, &options, &mut observer)?;
        let CheckedServices {
            class,
            retains_volumes,
            rights,
        } = checked;
        let starter = ClusterRunner {
            options: ClusterOptions {
                removes_retained: retains_volumes,
                ..runner.options.clone()
            },
            agents: runner.agents,
        };
        let session = starter.open_for(&rights, observer)?;
        let objects = session.run_objects().clone();
        let labels = labels(&objects.cluster);
        let extended = extend_lease(objects, begun, runner.options.deadline);
        let lease = session.runtime_handle().spawn(extended);
        Ok(CsiSession {
            session,
            class,
            retains_volumes,
            cluster: runner.options.clone().limited_to_archs(&runner.archs()),
            options,
            labels,
            lease,
        })
    }

    /// Returns the class.
    pub fn class(&self) -> &DataServiceClass {
        &self.class
    }

    /// Returns the labels of the result: namespace and context.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Moves the files of the application into the volume. Returns notes for the user.
    pub fn relocate_plan(&self, plan: &mut Plan) -> Vec<String> {
        self.session.relocate_plan(plan)
    }

    /// Runs the application, and measures the services meanwhile. `show` gets the current step.
    ///
    /// # Errors
    /// If the application cannot start. A later error is part of the measurements.
    pub fn measure(
        &mut self,
        application: &Plan,
        show: &mut dyn FnMut(&str),
    ) -> Result<ServiceMeasurements, RunError> {
        let handle = self.session.runtime_handle();
        let (tell, messages) = channel();
        let switches = ServiceSwitches::default();
        let run = handle.block_on(self.service_run(switches.clone()))?;
        let task = handle.spawn(run.measure(tell));
        let mut observer = ApplicationObserver::new(messages, switches.clone(), show);
        let ran = self.session.run(application, &mut observer);
        let is_complete = observer.is_complete();
        switches.stop();
        // The task reads the switch once per tick, or after the request that it waits for.
        let _ = handle.block_on(task);
        observer.read_messages();
        let is_interrupted = self.session.interrupts()() > 0;
        let mut measured = observer.into_measurements(self.options.window);
        measured.is_interrupted = is_interrupted;
        match ran {
            Err(error) if measured.records.is_empty() => return Err(error),
            Err(error) => measured.error = Some(error),
            Ok(result) if !is_complete && !is_interrupted => {
                let mut workers = result.workers.into_iter();
                let cause = workers.find_map(|worker| Some(worker.error?.message));
                let cause = cause.unwrap_or_else(|| "its run is over".to_owned());
                measured.application_failure = Some(cause);
            }
            Ok(_) => {}
        }
        Ok(measured)
    }

    /// Reads the pod and its Job, from which the manifests of the services are derived.
    async fn service_run(&self, switches: ServiceSwitches) -> Result<ServiceRun, RunError> {
        let objects = self.session.run_objects();
        let name = objects.job.clone();
        let job = objects.jobs().get(&name).await;
        let job = job.map_err(|error| api::failed(ClusterRequest::FindRun, &error))?;
        let is_running = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        let mut pods = objects.all_pods().await.into_iter();
        let source = pods
            .find(is_running)
            .and_then(|pod| Some((source_claim(&pod)?, image_of(&pod)?, pod.metadata.name?)));
        let Some((source, image, pod)) = source else {
            let gone = FailureCondition::Deleted;
            return Err(RunError::lost(FailedObject::only_pod(), gone));
        };
        Ok(ServiceRun {
            owner: lifecycle_manifest::owner_reference(&job),
            objects: objects.clone(),
            cluster: self.cluster.clone(),
            options: self.options.clone(),
            class: self.class.clone(),
            image,
            pod,
            source,
            labels: BTreeMap::new(),
            switches,
            left_out: Mutex::default(),
        })
    }

    /// Removes everything that the session has created, and waits for it.
    ///
    /// # Errors
    /// If objects are left.
    pub fn close(mut self) -> Result<(), RunError> {
        self.lease.abort();
        let run = self.session.run_id().to_owned();
        let snapshots = match self.options.uses_snapshots() {
            true => self.remove_snapshots(),
            false => Ok(()),
        };
        let closed = Box::new(self.session).close();
        let retained = match self.retains_volumes {
            true => leftovers::remove_retained_volumes(&self.cluster, &run).map(drop),
            false => Ok(()),
        };
        closed.and(snapshots).and(retained)
    }

    /// Deletes the snapshots that a stopped round has left, and waits for it.
    fn remove_snapshots(&mut self) -> Result<(), RunError> {
        self.session.show_waiting("snapshots to be removed");
        let handle = self.session.runtime_handle();
        let interrupts = self.session.interrupts();
        let before = interrupts();
        let objects = self.session.run_objects();
        let snapshots = service_objects::snapshots(&objects.cluster);
        let ours = ListParams::default().labels(&objects.label());
        let begun = Instant::now();
        loop {
            let left = handle.block_on(delete_all(&snapshots, &ours));
            let failure = match left {
                Ok(0) => return Ok(()),
                Ok(_) => None,
                Err(error) => Some(error),
            };
            let is_over = begun.elapsed() > SNAPSHOT_REMOVAL || interrupts() > before.max(1);
            if let Some(error) = failure.filter(|error| is_over || !api::is_away(error)) {
                return Err(api::failed(ClusterRequest::RemoveSnapshots, &error));
            }
            if is_over {
                // The Job owns the snapshots, so the cluster removes the rest.
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
    }
}

/// Deletes the snapshots that are not being deleted yet. Returns the number of all that are left.
async fn delete_all(
    snapshots: &Api<DynamicObject>,
    ours: &ListParams,
) -> Result<usize, kube::Error> {
    let left = snapshots.list(ours).await?.items;
    for snapshot in &left {
        let name = snapshot.metadata.name.as_deref().unwrap_or_default();
        if snapshot.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let deleted = snapshots.delete(name, &DeleteParams::default()).await;
        if let Err(error) = deleted
            && !api::is_missing(&error)
        {
            return Err(error);
        }
    }
    Ok(left.len())
}

/// Returns the claim of the pod's volume. A generic ephemeral volume has the name of its pod.
fn source_claim(pod: &Pod) -> Option<String> {
    let mut volumes = pod.spec.as_ref()?.volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == "data")?;
    match &volume.persistent_volume_claim {
        Some(claim) => Some(claim.claim_name.clone()),
        None => Some(format!("{}-data", pod.metadata.name.as_ref()?)),
    }
}

fn image_of(pod: &Pod) -> Option<String> {
    let mut containers = pod.spec.as_ref()?.containers.iter();
    let container = containers.find(|container| container.name == CONTAINER)?;
    container.image.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn source_is_the_claim_of_the_data_volume() {
        let pod = |volume: serde_json::Value| -> Pod {
            let container = json!({"name": CONTAINER, "image": "busybox"});
            from_value(json!({
                "metadata": {"name": "iosonde-1-0-x"},
                "spec": {"containers": [container], "volumes": [volume]}
            }))
            .unwrap()
        };
        let claimed = pod(json!({"name": "data", "persistentVolumeClaim": {"claimName": "c"}}));
        assert_eq!(source_claim(&claimed).as_deref(), Some("c"));
        assert_eq!(image_of(&claimed).as_deref(), Some("busybox"));
        let ephemeral = pod(json!({"name": "data", "ephemeral": {}}));
        let expected = Some("iosonde-1-0-x-data");
        assert_eq!(source_claim(&ephemeral).as_deref(), expected);
    }

    #[test]
    fn claims_include_a_copy_and_all_expansions() {
        let most = |services: &[DataService], expands: bool| {
            let options = CsiOptions {
                data_bytes: vec![1 << 20, 2 << 20],
                rounds: 3,
                ..CsiOptions::of_one_round(services)
            };
            options.most_claims(5 << 30, expands)
        };
        assert_eq!(most(&DataService::ALL, true), (2, 10 << 30));
        assert_eq!(most(&DataService::ALL, false), (2, 5 << 30));
        assert_eq!(most(&[DataService::Expand], true), (1, 11 << 30));
        assert_eq!(most(&[DataService::Snapshot], true), (1, 5 << 30));
    }

    #[test]
    fn only_snapshot_and_restore_use_snapshots() {
        let uses = |services: &[DataService]| CsiOptions::of_one_round(services).uses_snapshots();
        assert!(uses(&[DataService::Clone, DataService::Restore]));
        assert!(!uses(&[DataService::Clone, DataService::Expand]));
    }
}
