//! One round: volumes of a class that are made, used and removed at the same time.
//!
//! Each phase sends one request for each volume and then waits for its effect, so that all volumes
//! are in the same phase.

use super::lifecycle_manifest::{claim_name, pod_name, volume_claim, volume_pod};
use super::lifecycle_watch::{LifecycleWatch, WatchedKind};
use super::phase_progress::PhaseProgress;
use super::round_state::{RoundPhase, RoundState, RoundVolume};
use super::volume_timeline::StageRules;
use crate::api;
use crate::manifest::{RunSpec, quantity};
use crate::run_objects::RunObjects;
use crate::setup_observer::{SetupEvent, SetupObserver, TICK};
use futures::StreamExt;
use futures::stream::iter;
use iosonde_result::run_error::RunError;
use iosonde_result::volume_lifecycle::{
    LifecycleClass, LifecycleRound, LifecycleRoundResult, LifecycleStage, VolumeRecord,
};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Most requests at the same time.
const REQUESTS_MAX: usize = 64;
/// Requests of a removal that may be repeated while the API server is unavailable.
const REMOVAL_TRIES: u32 = 5;

/// The parameters of a round.
pub(super) struct RoundRun<'r> {
    pub(super) spec: RunSpec<'r>,
    pub(super) owner: &'r OwnerReference,
    pub(super) objects: &'r RunObjects,
    pub(super) class: &'r LifecycleClass,
    /// Number of the first volume in the run.
    pub(super) first_volume: u32,
    pub(super) round: LifecycleRound,
}

/// Outcome of the request for a volume.
struct RequestOutcome {
    index: usize,
    sent_at: Instant,
    answer: Result<(), RequestProblem>,
}

/// Why a request for a volume failed.
enum RequestProblem {
    Manifest(RunError),
    Api(String),
}

impl From<kube::Error> for RequestProblem {
    fn from(error: kube::Error) -> RequestProblem {
        RequestProblem::Api(match &error {
            kube::Error::Api(status) => status.message.clone(),
            other => api::chain(other),
        })
    }
}

impl RoundRun<'_> {
    /// Measures the round, and removes its volumes unless the user stops it.
    pub(super) async fn measure(
        &self,
        watch: &mut LifecycleWatch,
        observer: &mut SetupObserver<'_>,
    ) -> Result<LifecycleRoundResult, RunError> {
        watch.skip_arrivals();
        let mut state = self.state(watch);
        let mut notes = Vec::new();
        let begun = Instant::now();
        let mut is_interrupted = false;
        for phase in RoundPhase::ALL {
            state.begin_phase();
            if phase == RoundPhase::Delete {
                notes.extend(self.release_retained(&state).await);
            }
            self.request_all(&mut state, phase, begun).await?;
            if !self.wait(&mut state, phase, begun, watch, observer).await {
                is_interrupted = true;
                break;
            }
        }
        let contradicted = state.contradicted_provisions();
        if contradicted > 0 {
            notes.push(format!(
                "{}: the server's creation times of claim and volume contradict the measured \
                 provision of {contradicted} of {} volumes by more than 2 s",
                self.class.name,
                state.volumes.len()
            ));
        }
        let record = |stages| VolumeRecord {
            class: self.class.name.clone(),
            at_once: self.round.at_once,
            round: self.round.number,
            stages,
        };
        Ok(LifecycleRoundResult {
            volumes: state.stages().into_iter().map(record).collect(),
            notes,
            is_interrupted,
        })
    }

    fn state(&self, watch: &LifecycleWatch) -> RoundState {
        let volume = |number: u32| RoundVolume {
            pod: pod_name(&self.spec, number),
            claim: claim_name(&self.spec, number),
            ..RoundVolume::default()
        };
        let numbers = self.first_volume..self.first_volume + self.round.at_once;
        let sees_volumes = watch.sees(WatchedKind::Volumes);
        RoundState {
            volumes: numbers.map(volume).collect(),
            rules: StageRules {
                binds_late: self.class.binds_late,
                expands: self.class.expands,
                sees_volumes,
                // Attachments have the name of the volume.
                sees_attachments: sees_volumes && watch.sees(WatchedKind::Attachments),
            },
            namespace: self.objects.cluster.namespace.clone(),
            claim_bytes: self.spec.options.claim_bytes,
            warnings: BTreeSet::new(),
            past_warnings: BTreeSet::new(),
        }
    }

    /// Sends the request of a phase for all its volumes, and records when each was sent.
    async fn request_all(
        &self,
        state: &mut RoundState,
        phase: RoundPhase,
        begun: Instant,
    ) -> Result<(), RunError> {
        let requests = state.requested(phase).into_iter();
        let requests = requests.map(|index| {
            let expanded_bytes = state.expanded_bytes(index);
            self.request(index, phase, expanded_bytes)
        });
        let outcomes: Vec<RequestOutcome> = iter(requests.collect::<Vec<_>>())
            .buffer_unordered(REQUESTS_MAX)
            .collect()
            .await;
        for outcome in outcomes {
            let volume = &mut state.volumes[outcome.index];
            let at_ns = since_ns(begun, outcome.sent_at);
            match outcome.answer {
                Ok(()) => {
                    volume.timeline.record(phase.request(), at_ns);
                }
                Err(RequestProblem::Manifest(error)) => return Err(error),
                Err(RequestProblem::Api(cause)) => {
                    let cause = volume.without_names(&cause);
                    volume.timeline.fail(requested_stage(phase), cause);
                }
            }
        }
        Ok(())
    }

    /// Sends the request of a phase for one volume.
    async fn request(
        &self,
        index: usize,
        phase: RoundPhase,
        expanded_bytes: u64,
    ) -> RequestOutcome {
        let sent_at = Instant::now();
        let number = self.first_volume + index as u32;
        let answer = match phase {
            RoundPhase::Claim => self.create_claim(number).await,
            RoundPhase::Start => self.create_pod(number).await,
            RoundPhase::Expand => self.expand_claim(number, expanded_bytes).await,
            RoundPhase::Stop => remove(&self.objects.pods(), &pod_name(&self.spec, number)).await,
            RoundPhase::Delete => remove(&self.claims(), &claim_name(&self.spec, number)).await,
        };
        RequestOutcome {
            index,
            sent_at,
            answer,
        }
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        let cluster = &self.objects.cluster;
        Api::namespaced(cluster.client.clone(), &cluster.namespace)
    }

    async fn create_claim(&self, number: u32) -> Result<(), RequestProblem> {
        let claim = volume_claim(&self.spec, number, self.owner);
        let Some(claim) = claim else {
            return Err(RequestProblem::Api("the target is not a class".to_owned()));
        };
        let created = self.claims().create(&PostParams::default(), &claim).await;
        created.map(drop).map_err(RequestProblem::from)
    }

    async fn create_pod(&self, number: u32) -> Result<(), RequestProblem> {
        let pod = volume_pod(&self.spec, number, self.owner).map_err(RequestProblem::Manifest)?;
        let pods: Api<Pod> = self.objects.pods();
        let created = pods.create(&PostParams::default(), &pod).await;
        created.map(drop).map_err(RequestProblem::from)
    }

    async fn expand_claim(&self, number: u32, expanded_bytes: u64) -> Result<(), RequestProblem> {
        let size = quantity(expanded_bytes);
        let larger = serde_json::json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let name = claim_name(&self.spec, number);
        let (patch, plainly) = (Patch::Merge(larger), PatchParams::default());
        let patched = self.claims().patch(&name, &plainly, &patch).await;
        patched.map(drop).map_err(RequestProblem::from)
    }

    /// Waits until the phase has ended for all volumes. Volumes that do not complete it fail once
    /// no volume has made progress for the timeout.
    /// Returns `false` if the user stops the run.
    async fn wait(
        &self,
        state: &mut RoundState,
        phase: RoundPhase,
        begun: Instant,
        watch: &mut LifecycleWatch,
        observer: &mut SetupObserver<'_>,
    ) -> bool {
        let mut progress = PhaseProgress::begin(phase, Instant::now(), self.spec.options.timeout);
        loop {
            if (observer.interrupts)() > 0 {
                return false;
            }
            let waiting = state.waiting(phase);
            if waiting.is_empty() {
                return true;
            }
            (observer.tell)(SetupEvent::Waiting(&self.progress(
                state,
                phase,
                waiting.len(),
            )));
            let mut volumes = waiting.iter().map(|index| &state.volumes[*index]);
            let are_warned = volumes.all(|volume| volume.warning.is_some());
            let now = Instant::now();
            if progress.is_over(now, are_warned) {
                let otherwise = progress.failure(now);
                for index in waiting {
                    state.fail_waiting(index, phase, &otherwise);
                }
                return true;
            }
            if let Some((at, change)) = watch.next_change(TICK).await
                && state.apply(&change, since_ns(begun, at))
            {
                progress.record(Instant::now());
            }
        }
    }

    /// Describes the progress of a phase, for the user.
    fn progress(&self, state: &RoundState, phase: RoundPhase, waiting: usize) -> String {
        let all = state.volumes.len();
        let name = &self.class.name;
        let round = self.round.number;
        // A log gets a few lines for each phase.
        let step = all.div_ceil(4).max(1);
        let done = all.saturating_sub(waiting) / step * step;
        let words = phase.words();
        format!("{name}, {all} at once, round {round}: {done} of {all} volumes {words}")
    }

    /// Makes the provisioner remove volumes of a class that retains them. Returns notes.
    async fn release_retained(&self, state: &RoundState) -> Option<String> {
        let volumes: Api<PersistentVolume> = Api::all(self.objects.cluster.client.clone());
        let delete = serde_json::json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
        let (patch, plainly) = (Patch::Merge(delete), PatchParams::default());
        let retained = state.volumes.iter().filter(|volume| volume.is_retained);
        let mut kept = None;
        for name in retained.filter_map(|volume| volume.volume.as_ref()) {
            if let Err(error) = volumes.patch(name, &plainly, &patch).await {
                let reason = api::chain(&error);
                kept.get_or_insert(format!(
                    "{}: the class retains volumes, and this user cannot change that for {name}: \
                     {reason}; remove it with `iosonde doctor --cluster --clean`",
                    self.class.name
                ));
            }
        }
        kept
    }
}

/// Returns the stage that fails if the request of a phase is refused.
fn requested_stage(phase: RoundPhase) -> LifecycleStage {
    match phase {
        RoundPhase::Claim => LifecycleStage::Provision,
        RoundPhase::Start => LifecycleStage::Mount,
        RoundPhase::Expand => LifecycleStage::Expand,
        RoundPhase::Stop => LifecycleStage::Detach,
        RoundPhase::Delete => LifecycleStage::Delete,
    }
}

/// Deletes an object. An object that is already gone is no error.
async fn remove<K>(objects: &Api<K>, name: &str) -> Result<(), RequestProblem>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut tries = 0;
    loop {
        tries += 1;
        match objects.delete(name, &DeleteParams::default()).await {
            Ok(_) => return Ok(()),
            Err(error) if api::is_missing(&error) => return Ok(()),
            Err(error) if api::is_away(&error) && tries < REMOVAL_TRIES => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the nanoseconds from the begin of the round. An event may have arrived before.
fn since_ns(begun: Instant, at: Instant) -> u64 {
    let since = at.saturating_duration_since(begun);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
