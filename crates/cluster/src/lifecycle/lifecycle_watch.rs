//! [`LifecycleWatch`]: one watch for each kind of object of a run, whose changes have the time of
//! their arrival.

use super::observed_change::{
    ObservedChange, WatchedRun, read_attachments, read_claims, read_pods, read_volumes,
    read_warnings,
};
use crate::api;
use crate::object_watch::{ObjectWatch, Selector};
use crate::run_objects::RunObjects;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Resource;
use kube::api::Api;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Limit of queued changes. A watch pauses while the queue is full, which it never is in a round.
const CHANGES_MAX: usize = 4096;
/// Time for the first answers of all watches.
const FIRST_ANSWER: Duration = Duration::from_secs(20);
/// Number of watches.
const WATCHES: usize = 5;

/// Kind of the watched objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchedKind {
    Claims,
    Pods,
    Volumes,
    Attachments,
    Events,
}

/// Objects of a kind, or the refusal to show them.
#[derive(Debug)]
enum WatchMessage {
    Changed(ObservedChange),
    /// This user may not list the objects. The watch has ended.
    Refused,
}

/// A message with the time of its arrival.
struct Arrival {
    at: Instant,
    kind: WatchedKind,
    message: WatchMessage,
}

/// The watches. Dropping it ends them.
pub(super) struct LifecycleWatch {
    tasks: JoinSet<()>,
    tell: Sender<Arrival>,
    arrivals: Receiver<Arrival>,
    /// Kinds that this user may not list.
    refused: Vec<WatchedKind>,
}

impl LifecycleWatch {
    /// Begins to watch, and waits for the first answer of each watch. Must be called within a
    /// runtime.
    pub(super) async fn start(objects: &RunObjects) -> LifecycleWatch {
        let (tell, arrivals) = channel(CHANGES_MAX);
        let mut watch = LifecycleWatch {
            tasks: JoinSet::new(),
            tell,
            arrivals,
            refused: Vec::new(),
        };
        let client = || objects.cluster.client.clone();
        let namespace = &objects.cluster.namespace;
        let ours = || Selector::Label(objects.label());
        let run = WatchedRun {
            namespace: namespace.clone(),
            job: objects.job.clone(),
        };
        let of_run = run.clone();
        let read_run_warnings = move |events: &[&Event]| read_warnings(events, &of_run);
        let read_run_volumes = move |volumes: &[&PersistentVolume]| read_volumes(volumes, &run);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client(), namespace);
        watch.follow(WatchedKind::Claims, claims, ours(), read_claims);
        watch.follow(WatchedKind::Pods, objects.pods(), ours(), read_pods);
        let events: Api<Event> = Api::namespaced(client(), namespace);
        watch.follow(
            WatchedKind::Events,
            events,
            Selector::Warnings,
            read_run_warnings,
        );
        let volumes: Api<PersistentVolume> = Api::all(client());
        let kind = WatchedKind::Volumes;
        watch.follow(kind, volumes, Selector::All, read_run_volumes);
        let attachments: Api<VolumeAttachment> = Api::all(client());
        let kind = WatchedKind::Attachments;
        watch.follow(kind, attachments, Selector::All, read_attachments);
        watch.wait_for_first_answers().await;
        watch
    }

    /// Spawns a watch. Changes after which `read` returns the same are left out.
    fn follow<K>(
        &mut self,
        kind: WatchedKind,
        api: Api<K>,
        selector: Selector,
        read: impl Fn(&[&K]) -> ObservedChange + Send + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let mut watch = ObjectWatch::new(api, selector);
        let tell = self.tell.clone();
        self.tasks.spawn(async move {
            let mut last: Option<ObservedChange> = None;
            loop {
                let changed = watch.wait_for_change().await;
                let at = Instant::now();
                let message = match changed {
                    Ok(()) => {
                        let change = read(&watch.objects().collect::<Vec<_>>());
                        if last.as_ref() == Some(&change) {
                            continue;
                        }
                        last = Some(change.clone());
                        WatchMessage::Changed(change)
                    }
                    Err(error) if api::is_refused(&error) => WatchMessage::Refused,
                    // Unavailable: the objects are listed again.
                    Err(_) => continue,
                };
                let is_refused = matches!(message, WatchMessage::Refused);
                let sent = tell.send(Arrival { at, kind, message }).await;
                if sent.is_err() || is_refused {
                    return;
                }
            }
        });
    }

    /// Waits until each kind was listed or refused.
    async fn wait_for_first_answers(&mut self) {
        let begun = Instant::now();
        let mut answered: Vec<WatchedKind> = Vec::new();
        while answered.len() < WATCHES && begun.elapsed() < FIRST_ANSWER {
            let left = FIRST_ANSWER.saturating_sub(begun.elapsed());
            let Ok(Some(arrival)) = timeout(left, self.arrivals.recv()).await else {
                break;
            };
            if !answered.contains(&arrival.kind) {
                answered.push(arrival.kind);
            }
            self.note_refusal(&arrival);
        }
    }

    fn note_refusal(&mut self, arrival: &Arrival) {
        if matches!(arrival.message, WatchMessage::Refused) {
            self.refused.push(arrival.kind);
        }
    }

    /// Whether this user may list objects of this kind.
    pub(super) fn sees(&self, kind: WatchedKind) -> bool {
        !self.refused.contains(&kind)
    }

    /// Drops the changes that have arrived so far.
    pub(super) fn skip_arrivals(&mut self) {
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.note_refusal(&arrival);
        }
    }

    /// Waits up to `longest` for a change, and returns it with the time of its arrival.
    pub(super) async fn next_change(
        &mut self,
        longest: Duration,
    ) -> Option<(Instant, ObservedChange)> {
        let arrival = timeout(longest, self.arrivals.recv()).await.ok()??;
        self.note_refusal(&arrival);
        match arrival.message {
            WatchMessage::Changed(change) => Some((arrival.at, change)),
            WatchMessage::Refused => None,
        }
    }
}
