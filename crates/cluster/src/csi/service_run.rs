//! [`ServiceRun`]: the rounds of the services, as a task beside the application.
//!
//! A round writes new data, takes a snapshot and overwrites the data. The restored volume must have
//! the earlier data, and a clone the later ones, without sharing them with the source. The source
//! still has its data after its expansion.

mod clone_check;
#[cfg(test)]
mod rights_tests;
mod service_removal;

use super::CsiOptions;
use super::application_link::{ServiceMessage, ServiceSwitches};
use super::object_wait::{ObjectState, ObjectWait, WaitEnd};
use super::service_objects::{
    ClaimSource, capacity_bytes, check_pod, claim_with_source, clone_pod, judge_capacity,
    judge_ended, judge_snapshot, judge_started, snapshots, volume_snapshot,
};
use super::written_data::{check_message, read_printed, read_time_ns, sum_script, write_script};
use crate::lifecycle::lifecycle_manifest::{claim_name, pod_name};
use crate::manifest::{AgentStart, CONTAINER, RunSpec, quantity};
use crate::options::ClusterOptions;
use crate::pod_command::output_of;
use crate::run_objects::RunObjects;
use crate::setup_observer::TICK;
use iosonde_result::data_service::{
    DataCheck, DataService, DataServiceClass, ServiceAbsence, ServiceOutcome, ServiceRecord,
};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, Patch, PatchParams, PostParams};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Bytes by which a volume is expanded.
pub(super) const EXPANSION_BYTES: u64 = 1 << 30;
/// Objects that each round numbers: the restored volume and the clone.
const NUMBERS_PER_ROUND: u32 = 2;

/// The user has stopped the run, or the application has ended.
struct ServicesStopped;

impl From<ServicesStopped> for WaitEnd {
    fn from(_: ServicesStopped) -> WaitEnd {
        WaitEnd::Stopped
    }
}

/// Outcome of a service, and its end. A later check of the data is not part of the service.
type ServedAt = (ServiceOutcome, Instant);

/// The rounds of all services.
pub(super) struct ServiceRun {
    pub(super) objects: RunObjects,
    pub(super) cluster: ClusterOptions,
    pub(super) options: CsiOptions,
    pub(super) class: DataServiceClass,
    pub(super) image: String,
    /// The Job of the application's pod.
    pub(super) owner: OwnerReference,
    /// The application's pod.
    pub(super) pod: String,
    /// The claim of the application's pod.
    pub(super) source: String,
    /// Labels of the result: none are in manifests.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) switches: ServiceSwitches,
    /// Services that have failed: further rounds leave them out.
    pub(super) left_out: Mutex<Vec<DataService>>,
}

/// One round of one size.
#[derive(Clone, Copy)]
struct ServiceRound<'r> {
    /// Number among the rounds of the size, from 1.
    number: u32,
    data_bytes: u64,
    volume_bytes: u64,
    /// Number of the round's first object.
    first_object: u32,
    tell: &'r Sender<ServiceMessage>,
}

impl ServiceRun {
    /// Measures all rounds once the application runs.
    pub(super) async fn measure(self, tell: Sender<ServiceMessage>) {
        if self.measure_rounds(&tell).await.is_ok() {
            // Without a receiver the session has ended: the message is not needed.
            let _ = tell.send(ServiceMessage::Complete);
        }
    }

    async fn measure_rounds(&self, tell: &Sender<ServiceMessage>) -> Result<(), ServicesStopped> {
        while !self.switches.is_running() {
            self.pause(TICK).await?;
        }
        let mut first_object = 0;
        for number in 1..=self.options.rounds {
            for data_bytes in &self.options.data_bytes {
                let round = ServiceRound {
                    number,
                    data_bytes: *data_bytes,
                    volume_bytes: self.source_bytes().await,
                    first_object,
                    tell,
                };
                self.measure_round(round).await?;
                first_object += NUMBERS_PER_ROUND;
            }
        }
        Ok(())
    }

    async fn measure_round(&self, round: ServiceRound<'_>) -> Result<(), ServicesStopped> {
        let Some(mut sum) = self.write_data(round).await? else {
            return Ok(());
        };
        let snapshot = format!("{}-{}", self.objects.job, round.first_object);
        if self.options.uses_snapshots() && !self.is_left_out(DataService::Snapshot) {
            let taken = self.take_snapshot(&snapshot);
            let taken = self
                .use_service(round, DataService::Snapshot, taken)
                .await?;
            if self.measures(DataService::Restore) {
                let earlier = sum.clone();
                match taken {
                    true => {
                        // The snapshot must not follow its source.
                        let Some(later) = self.write_data(round).await? else {
                            return Ok(());
                        };
                        sum = later;
                        let source = (ClaimSource::Snapshot(&snapshot), round.first_object);
                        let restored = self.read_new_volume(round, source, &earlier);
                        self.use_service(round, DataService::Restore, restored)
                            .await?;
                        self.remove_volume(round, round.first_object).await?;
                    }
                    false => {
                        let absent = ServiceOutcome::Absent(ServiceAbsence::NoSnapshot);
                        round.record_absent(DataService::Restore, absent);
                    }
                }
            }
            self.remove_snapshot(round, &snapshot, taken).await?;
        }
        if self.measures(DataService::Clone) {
            let Some(later) = self.measure_clone(round, &sum).await? else {
                return Ok(());
            };
            sum = later;
        }
        if self.measures(DataService::Expand) {
            match self.class.expands {
                Some(true) => {
                    let expanded = self.expand_source(round, &sum);
                    self.use_service(round, DataService::Expand, expanded)
                        .await?;
                }
                known => {
                    let absence = match known {
                        None => ServiceAbsence::ExpansionNotKnown,
                        Some(_) => ServiceAbsence::NoExpansion,
                    };
                    let absent = ServiceOutcome::Absent(absence);
                    round.record_absent(DataService::Expand, absent);
                }
            }
        }
        Ok(())
    }

    fn measures(&self, service: DataService) -> bool {
        self.options.services.contains(&service) && !self.is_left_out(service)
    }

    fn is_left_out(&self, service: DataService) -> bool {
        let left_out = self.left_out.lock();
        left_out.is_ok_and(|all| all.contains(&service))
    }

    /// Leaves a service out of the further rounds, which would fail after the same wait.
    fn leave_out(&self, round: ServiceRound<'_>, service: DataService) {
        if let Ok(mut left_out) = self.left_out.lock() {
            left_out.push(service);
        }
        let title = service.title();
        let note = format!("{title} has failed, so that further rounds were made without it");
        let _ = round.tell.send(ServiceMessage::Note(note));
    }

    /// Uses a service between two windows in which only the application runs. Returns whether the
    /// service has succeeded.
    async fn use_service(
        &self,
        round: ServiceRound<'_>,
        service: DataService,
        work: impl Future<Output = Result<ServedAt, WaitEnd>> + Send,
    ) -> Result<bool, ServicesStopped> {
        round.show(service.title());
        self.pause(self.options.window).await?;
        let begun = Instant::now();
        let (outcome, ended) = match work.await {
            Ok(served) => served,
            Err(WaitEnd::Stopped) => return Err(ServicesStopped),
            Err(WaitEnd::Failed(cause)) => (ServiceOutcome::Failed { cause }, Instant::now()),
        };
        let is_measured = matches!(outcome, ServiceOutcome::Measured { .. });
        if !is_measured {
            self.leave_out(round, service);
        }
        round.record(service, outcome, (begun, ended));
        self.pause(self.options.window).await?;
        Ok(is_measured)
    }

    async fn take_snapshot(&self, name: &str) -> Result<ServedAt, WaitEnd> {
        let begun = Instant::now();
        let class = self.class.snapshot_class.as_deref().unwrap_or_default();
        let source = (class, self.source.as_str());
        let snapshot = volume_snapshot(&self.spec(), name, source, &self.owner);
        let snapshots = snapshots(&self.objects.cluster);
        snapshots.create(&PostParams::default(), &snapshot).await?;
        let wait = self.begin_wait(&[name]);
        let (at, ()) = wait.wait(&snapshots, name, judge_snapshot).await?;
        let taken = ServiceOutcome::Measured {
            took_ns: between_ns(begun, at),
            read_ns: None,
            data: None,
        };
        Ok((taken, at))
    }

    /// Makes a volume with a source, and reads its data in a pod.
    async fn read_new_volume(
        &self,
        round: ServiceRound<'_>,
        (source, number): (ClaimSource<'_>, u32),
        expected: &str,
    ) -> Result<ServedAt, WaitEnd> {
        let begun = Instant::now();
        let spec = self.spec();
        let (pod_name, claim_name) = (pod_name(&spec, number), claim_name(&spec, number));
        let source = (source, round.volume_bytes);
        let claim = claim_with_source(&spec, number, source, &self.owner);
        let claim = claim.ok_or_else(|| WaitEnd::Failed("the target is no class".to_owned()))?;
        let pod = match source.0 {
            ClaimSource::Snapshot(_) => check_pod(&spec, number, &self.owner),
            ClaimSource::Claim(_) => clone_pod(&spec, number, &self.owner),
        };
        let pod = pod.map_err(|error| WaitEnd::Failed(error.to_string()))?;
        self.claims().create(&PostParams::default(), &claim).await?;
        let pods = self.objects.pods();
        pods.create(&PostParams::default(), &pod).await?;
        let wait = self.begin_wait(&[&pod_name, &claim_name]);
        let (seen, is_over) = wait.wait(&pods, &pod_name, judge_started).await?;
        let wait = self.begin_wait(&[&pod_name, &claim_name]);
        let (ended, message) = wait.wait(&pods, &pod_name, judge_ended).await?;
        let read_ns = read_time_ns(&message);
        // A short read is over when the cluster first reports its container.
        let late_ns = read_ns.filter(|_| is_over).unwrap_or(0);
        let copied = ServiceOutcome::Measured {
            took_ns: between_ns(begun, seen).saturating_sub(late_ns),
            read_ns,
            data: Some(check_message(&message, expected)),
        };
        Ok((copied, ended))
    }

    async fn expand_source(
        &self,
        round: ServiceRound<'_>,
        expected: &str,
    ) -> Result<ServedAt, WaitEnd> {
        let begun = Instant::now();
        let bytes = round.volume_bytes.saturating_add(EXPANSION_BYTES);
        let size = quantity(bytes);
        let larger = serde_json::json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let (patch, plainly) = (Patch::Merge(larger), PatchParams::default());
        let claims = self.claims();
        claims.patch(&self.source, &plainly, &patch).await?;
        let judge = move |claim: &PersistentVolumeClaim| -> ObjectState<()> {
            judge_capacity(claim, bytes)
        };
        let wait = self.begin_wait(&[&self.source]);
        let (at, ()) = wait.wait(&claims, &self.source, judge).await?;
        // The application's latencies after the service must not include this read.
        self.pause(self.options.window).await?;
        let read = self.run_script(&sum_script(&self.objects.id)).await?;
        let data = match read {
            Ok(found) if found == expected => DataCheck::Right,
            Ok(found) => DataCheck::Wrong {
                expected: expected.to_owned(),
                found,
            },
            Err(cause) => DataCheck::NotRead { cause },
        };
        let expanded = ServiceOutcome::Measured {
            took_ns: between_ns(begun, at),
            read_ns: None,
            data: Some(data),
        };
        Ok((expanded, at))
    }

    /// Writes new data and returns their checksum. A failure counts as one of the first service.
    async fn write_data(&self, round: ServiceRound<'_>) -> Result<Option<String>, ServicesStopped> {
        round.show("new data");
        let begun = Instant::now();
        let script = write_script(&self.objects.id, round.data_bytes);
        let cause = match self.run_script(&script).await {
            Ok(Ok(sum)) => return Ok(Some(sum)),
            Ok(Err(cause)) | Err(WaitEnd::Failed(cause)) => cause,
            Err(WaitEnd::Stopped) => return Err(ServicesStopped),
        };
        let cause = format!("the data cannot be written: {cause}");
        if let Some(service) = self.options.services.first() {
            let failed = ServiceOutcome::Failed { cause };
            round.record(*service, failed, (begun, Instant::now()));
        }
        Ok(None)
    }

    /// Runs a script in the application's pod. Returns the checksum that it prints, or the reason
    /// why it prints none.
    async fn run_script(&self, script: &str) -> Result<Result<String, String>, WaitEnd> {
        self.run_script_in(&self.pod, script).await
    }

    /// As [`run_script`](Self::run_script), in another pod of the run.
    async fn run_script_in(
        &self,
        pod: &str,
        script: &str,
    ) -> Result<Result<String, String>, WaitEnd> {
        let pods = self.objects.pods();
        let command = ["sh", "-c", script];
        tokio::select! {
            printed = output_of(&pods, (pod, CONTAINER), &command) => Ok(read_printed(&printed?)),
            () = self.wait_for_stop() => Err(WaitEnd::Stopped),
        }
    }

    async fn wait_for_stop(&self) {
        while !self.switches.is_stopped() {
            tokio::time::sleep(TICK).await;
        }
    }

    /// Waits, unless the run is stopped.
    async fn pause(&self, time: Duration) -> Result<(), ServicesStopped> {
        let until = Instant::now() + time;
        loop {
            if self.switches.is_stopped() {
                return Err(ServicesStopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.min(TICK)).await;
        }
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        let cluster = &self.objects.cluster;
        Api::namespaced(cluster.client.clone(), &cluster.namespace)
    }

    /// Returns the size of the source. A restored volume and a clone need at least as much.
    async fn source_bytes(&self) -> u64 {
        let claim = self.claims().get_opt(&self.source).await;
        let capacity = claim.ok().flatten().as_ref().and_then(capacity_bytes);
        capacity.unwrap_or(self.cluster.claim_bytes)
    }

    fn begin_wait(&self, explained_by: &[&str]) -> ObjectWait<'_> {
        let names = explained_by.iter().copied();
        ObjectWait {
            cluster: &self.objects.cluster,
            switches: &self.switches,
            explained_by: names.map(str::to_owned).collect(),
            begun: Instant::now(),
            timeout: self.cluster.timeout,
        }
    }

    fn spec(&self) -> RunSpec<'_> {
        RunSpec {
            id: &self.objects.id,
            namespace: &self.objects.cluster.namespace,
            image: &self.image,
            // The options limit the nodes, and no agent is sent.
            archs: &[],
            pods: 1,
            may_claim: true,
            start: AgentStart::Streamed,
            labels: &self.labels,
            options: &self.cluster,
        }
    }
}

impl ServiceRound<'_> {
    fn show(&self, step: &str) {
        let mib = self.data_bytes >> 20;
        let round = self.number;
        let text = format!("{step}, round {round} with {mib} MiB of data");
        let _ = self.tell.send(ServiceMessage::Step(text));
    }

    fn record_absent(&self, service: DataService, outcome: ServiceOutcome) {
        let now = Instant::now();
        self.record(service, outcome, (now, now));
    }

    fn record(
        &self,
        service: DataService,
        outcome: ServiceOutcome,
        (begun, ended): (Instant, Instant),
    ) {
        let record = Box::new(ServiceRecord {
            service,
            data_bytes: self.data_bytes,
            volume_bytes: self.volume_bytes,
            round: self.number,
            outcome,
            application: None,
        });
        let _ = self.tell.send(ServiceMessage::Record {
            record,
            begun,
            ended,
        });
    }
}

fn between_ns(begun: Instant, ended: Instant) -> u64 {
    let took = ended.saturating_duration_since(begun);
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_a_service_has_its_round_and_size() {
        let (tell, messages) = std::sync::mpsc::channel();
        let round = ServiceRound {
            number: 2,
            data_bytes: 64 << 20,
            volume_bytes: 5 << 30,
            first_object: 4,
            tell: &tell,
        };
        round.show(DataService::Clone.title());
        let absent = ServiceOutcome::Absent(ServiceAbsence::NoExpansion);
        round.record_absent(DataService::Expand, absent.clone());
        let Ok(ServiceMessage::Step(step)) = messages.recv() else {
            panic!("no step");
        };
        assert_eq!(step, "clone, round 2 with 64 MiB of data");
        let Ok(ServiceMessage::Record { record, .. }) = messages.recv() else {
            panic!("no record");
        };
        assert_eq!((record.round, record.outcome), (2, absent));
    }
}
