//! [`ProvisionerQueue`]: whether the provisioner of a claim without events works on other claims.
//!
//! A provisioner that makes one volume after the other reports nothing about the claims that wait.
//! Its silence therefore counts from its last event about any claim.

use crate::api;
use crate::diagnose::ObservedPod;
use crate::run_objects::RunObjects;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use kube::api::{Api, ListParams};

/// Annotations of a claim with its provisioner, newest first.
const PROVISIONER: [&str; 2] = [
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
];
/// Selects the events about claims.
const ABOUT_CLAIMS: &str = "involvedObject.kind=PersistentVolumeClaim";

/// The claim that waits for its provisioner.
struct WaitingClaim {
    provisioner: String,
    /// Creation by the clock of the server, in whole seconds.
    created_s: i64,
}

/// An event of a provisioner. A repeated one has a new time or count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ProvisionerEvent {
    /// Time by a clock of the cluster, in whole seconds.
    at_s: i64,
    name: String,
    count: i32,
}

/// The last event of the provisioner that was seen.
#[derive(Debug, Default)]
pub(super) struct ProvisionerQueue {
    last: Option<ProvisionerEvent>,
}

impl ProvisionerQueue {
    /// Whether the provisioner has reported work on any claim since the last call, or, in the first
    /// one, since the claim of the run was created.
    pub(super) async fn has_advanced(
        &mut self,
        objects: &RunObjects,
        observed_pods: &[ObservedPod],
    ) -> bool {
        let mut claims = observed_pods.iter().flat_map(|observed| &observed.claims);
        let Some(claim) = claims.find_map(waiting_claim) else {
            return false;
        };
        let events = list_claim_events(objects).await.unwrap_or_default();
        let of_provisioner = events
            .iter()
            .filter(|event| is_reported_by(event, &claim.provisioner));
        match of_provisioner.map(read_event).max() {
            Some(newest) => self.record(newest, claim.created_s),
            None => false,
        }
    }

    /// Records the newest event. Returns whether it is new.
    fn record(&mut self, newest: ProvisionerEvent, created_s: i64) -> bool {
        let is_new = match &self.last {
            Some(last) => *last != newest,
            None => newest.at_s >= created_s,
        };
        self.last = Some(newest);
        is_new
    }
}

fn waiting_claim(claim: &PersistentVolumeClaim) -> Option<WaitingClaim> {
    let status = claim.status.as_ref();
    if status.and_then(|status| status.phase.as_deref()) == Some("Bound") {
        return None;
    }
    let annotations = claim.metadata.annotations.as_ref()?;
    let provisioner = PROVISIONER.iter().find_map(|name| annotations.get(*name))?;
    let created = claim.metadata.creation_timestamp.as_ref()?;
    Some(WaitingClaim {
        provisioner: provisioner.clone(),
        created_s: created.0.as_second(),
    })
}

/// Lists events about claims: of all namespaces, if this user may list them.
async fn list_claim_events(objects: &RunObjects) -> Result<Vec<Event>, kube::Error> {
    let client = &objects.cluster.client;
    let about_claims = ListParams::default().fields(ABOUT_CLAIMS);
    let all: Api<Event> = Api::all(client.clone());
    let listed = match all.list(&about_claims).await {
        Err(error) if api::is_refused(&error) => {
            let ours: Api<Event> = Api::namespaced(client.clone(), &objects.cluster.namespace);
            ours.list(&about_claims).await
        }
        listed => listed,
    };
    listed.map(|events| events.items)
}

/// Whether the event is of this provisioner. The source of its events begins with its name.
fn is_reported_by(event: &Event, provisioner: &str) -> bool {
    let source = event.source.as_ref();
    let component = source.and_then(|source| source.component.as_deref());
    let reporter = component.or(event.reporting_component.as_deref());
    let rest = reporter.and_then(|reporter| reporter.strip_prefix(provisioner));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn read_event(event: &Event) -> ProvisionerEvent {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let at = last.or(event.event_time.as_ref().map(|time| time.0));
    ProvisionerEvent {
        at_s: at.map_or(0, |at| at.as_second()),
        name: event.metadata.name.clone().unwrap_or_default(),
        count: event.count.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, list, serve};
    use serde_json::{Value, from_value, json};

    fn event(source: &str, second: usize, count: usize) -> Value {
        json!({"metadata": {"name": "other.1"}, "involvedObject": {"name": "other"},
            "reason": "Provisioning", "source": {"component": source}, "count": count,
            "lastTimestamp": format!("2026-01-01T00:00:{second:02}Z")})
    }

    fn pods_with_claim(phase: &str) -> Vec<ObservedPod> {
        let claim = json!({"metadata": {"name": "iosonde-0a1b2c3d-data",
            "creationTimestamp": "2026-01-01T00:00:10Z",
            "annotations": {"volume.kubernetes.io/storage-provisioner": "disk.example.com"}},
            "status": {"phase": phase}});
        vec![ObservedPod {
            claims: vec![from_value(claim).unwrap()],
            ..ObservedPod::default()
        }]
    }

    #[test]
    fn provisioner_of_a_queue_is_silent_once_it_reports_nothing_new() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, requests) = serve(&runtime, |request, before| match request {
            _ if !request.contains("/namespaces/bench/") => ApiAnswer::Status(403),
            // The third list has the same event as the second.
            _ => list(&[
                event("disk.example.com_host_1", 15, 1 + before.min(1)),
                event("disk.example.com2_host_1", 20 + before, 1),
            ]),
        });
        let mut queue = ProvisionerQueue::default();
        let pods = pods_with_claim("Pending");
        let mut has_advanced = || runtime.block_on(queue.has_advanced(&objects, &pods));
        assert!(has_advanced(), "after the creation of the claim");
        assert!(has_advanced(), "the event was repeated");
        assert!(!has_advanced(), "only another provisioner reports");
        assert_eq!(
            requests.count(&["involvedObject.kind=PersistentVolumeClaim"]),
            6
        );
        let bound = pods_with_claim("Bound");
        let mut other = ProvisionerQueue::default();
        assert!(!runtime.block_on(other.has_advanced(&objects, &bound)));
    }

    #[test]
    fn event_from_before_the_claim_is_no_progress() {
        let newest = |at_s| ProvisionerEvent {
            at_s,
            name: "other.1".to_owned(),
            count: 1,
        };
        let mut queue = ProvisionerQueue::default();
        assert!(!queue.record(newest(9), 10));
        assert!(queue.record(newest(12), 10));
        assert!(!queue.record(newest(12), 10));
    }
}
