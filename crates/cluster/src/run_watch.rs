//! [`RunWatch`]: the job, pods, claims and events of a run, kept current by one watch each. A start
//! needs no list, a removal one of each kind.

use crate::api::{self, RequestError};
use crate::diagnose::ObservedPod;
use crate::object_watch::{ObjectWatch, Selector};
use crate::run_objects::{
    API_OUTAGE_MAX, EVENT_OBJECTS_MAX, RunObjects, event_objects, sort_events,
};
use iosonde_result::run_error::pod_failure::RemainingObject;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::Resource;
use kube::api::Api;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Limit of queued changes. The watches pause while the queue is full.
const CHANGES_MAX: usize = 64;

/// Origin of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum WatchSource {
    Job,
    Pods,
    Claims,
    /// Events about one object, or all events if there is no name.
    Events(Option<String>),
}

/// All objects of a source after a change.
#[derive(Debug)]
enum ObjectList {
    Jobs(Vec<Job>),
    Pods(Vec<Pod>),
    Claims(Vec<PersistentVolumeClaim>),
    Events(Vec<Event>),
}

type RunChange = (WatchSource, Result<ObjectList, kube::Error>);

impl WatchSource {
    /// Returns the verb and the resource of its list.
    fn request(&self) -> (&'static str, &'static str) {
        match self {
            WatchSource::Job => ("get", "jobs"),
            WatchSource::Pods => ("list", "pods"),
            WatchSource::Claims => ("list", "persistentvolumeclaims"),
            WatchSource::Events(_) => ("list", "events"),
        }
    }
}

/// Phase of the objects of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPhase {
    /// They are being created.
    Start,
    /// They are being removed. Their events are not needed.
    Removal,
}

/// The objects of a run. Dropping it ends the watches.
pub(crate) struct RunWatch<'a> {
    run: &'a RunObjects,
    phase: RunPhase,
    tasks: JoinSet<()>,
    tell: Sender<RunChange>,
    changes: Receiver<RunChange>,
    job: Option<Job>,
    pods: Vec<Pod>,
    claims: Vec<PersistentVolumeClaim>,
    events: BTreeMap<Option<String>, Vec<Event>>,
    /// Sources that were read at least once.
    known: BTreeSet<WatchSource>,
    /// Sources that cannot be read, and since when.
    failing: BTreeMap<WatchSource, Instant>,
}

impl<'a> RunWatch<'a> {
    /// Begins to watch new objects. Must be called within a runtime.
    pub(crate) fn start(run: &'a RunObjects) -> RunWatch<'a> {
        RunWatch::begin(run, RunPhase::Start)
    }

    /// Begins to watch objects that are being removed. Must be called within a runtime.
    pub(crate) fn of_removal(run: &'a RunObjects) -> RunWatch<'a> {
        RunWatch::begin(run, RunPhase::Removal)
    }

    fn begin(run: &'a RunObjects, phase: RunPhase) -> RunWatch<'a> {
        let (tell, changes) = channel(CHANGES_MAX);
        let mut watch = RunWatch {
            run,
            phase,
            tasks: JoinSet::new(),
            tell,
            changes,
            job: None,
            pods: Vec::new(),
            claims: Vec::new(),
            events: BTreeMap::new(),
            known: BTreeSet::new(),
            failing: BTreeMap::new(),
        };
        let ours = Selector::Label(run.label());
        let job = Selector::Name(run.job.clone());
        watch.follow(WatchSource::Job, job, ObjectList::Jobs);
        watch.follow(WatchSource::Pods, ours.clone(), ObjectList::Pods);
        watch.follow(WatchSource::Claims, ours, ObjectList::Claims);
        watch.follow_events();
        watch
    }

    /// Spawns the watch of a source.
    fn follow<K>(&mut self, source: WatchSource, selector: Selector, wrap: fn(Vec<K>) -> ObjectList)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let cluster = &self.run.cluster;
        let api = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let mut watch = match self.phase {
            RunPhase::Start => ObjectWatch::of_new_objects(api, selector),
            RunPhase::Removal => ObjectWatch::new(api, selector),
        };
        let tell = self.tell.clone();
        self.tasks.spawn(async move {
            loop {
                let changed = watch.changed().await.map(wrap);
                if tell.send((source.clone(), changed)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Spawns the watches for events about objects that are not watched yet.
    fn follow_events(&mut self) {
        if self.phase == RunPhase::Removal || self.events.contains_key(&None) {
            return;
        }
        let mut names = event_objects(&self.run.job, &self.pods);
        // The events of pods that are gone may explain why.
        names.extend(self.events.keys().flatten().cloned());
        if names.len() > EVENT_OBJECTS_MAX {
            self.events.insert(None, Vec::new());
            self.follow(WatchSource::Events(None), Selector::All, ObjectList::Events);
            return;
        }
        for name in names {
            let key = Some(name.clone());
            if !self.events.contains_key(&key) {
                self.events.insert(key.clone(), Vec::new());
                let selector = Selector::EventsAbout(name);
                self.follow(WatchSource::Events(key), selector, ObjectList::Events);
            }
        }
        debug_assert!(self.events.len() <= EVENT_OBJECTS_MAX);
    }

    /// Waits up to `longest` for changes. Returns whether there are any.
    ///
    /// # Errors
    /// If the API server refuses the objects, or is unavailable for too long.
    pub(crate) async fn wait_for_changes(
        &mut self,
        longest: Duration,
    ) -> Result<bool, RequestError> {
        let Ok(Some(first)) = timeout(longest, self.changes.recv()).await else {
            return Ok(false);
        };
        self.apply(first)?;
        while let Ok(next) = self.changes.try_recv() {
            self.apply(next)?;
        }
        self.follow_events();
        Ok(true)
    }

    /// Waits up to `longest` for changes. Returns the first object that is left, or `None` if all
    /// are gone. Before all were read once, it is the Job.
    ///
    /// # Errors
    /// As with [`wait_for_changes`](Self::wait_for_changes).
    pub(crate) async fn find_remaining(
        &mut self,
        longest: Duration,
    ) -> Result<Option<RemainingObject>, RequestError> {
        debug_assert_eq!(self.phase, RunPhase::Removal);
        self.wait_for_changes(longest).await?;
        Ok(if self.job.is_some() || !self.is_known() {
            let name = self.run.job.clone();
            Some(RemainingObject::Job { name })
        } else if !self.pods.is_empty() {
            Some(RemainingObject::Pod)
        } else {
            (!self.claims.is_empty()).then_some(RemainingObject::Claim)
        })
    }

    /// Whether the Job, its pods and its claims were read at least once.
    fn is_known(&self) -> bool {
        let first = [WatchSource::Job, WatchSource::Pods, WatchSource::Claims];
        first.iter().all(|source| self.known.contains(source))
    }

    fn apply(&mut self, (source, objects): RunChange) -> Result<(), RequestError> {
        let objects = match objects {
            Ok(objects) => objects,
            Err(error) => {
                let (verb, resource) = source.request();
                let since = self.failing.entry(source).or_insert_with(Instant::now);
                let is_tolerated = api::is_away(&error) && since.elapsed() < API_OUTAGE_MAX;
                return match is_tolerated {
                    true => Ok(()),
                    false => Err(RequestError {
                        verb,
                        resource,
                        error,
                    }),
                };
            }
        };
        self.failing.remove(&source);
        match (objects, &source) {
            (ObjectList::Jobs(jobs), _) => self.job = jobs.into_iter().next(),
            (ObjectList::Pods(pods), _) => self.pods = pods,
            (ObjectList::Claims(claims), _) => self.claims = claims,
            (ObjectList::Events(events), WatchSource::Events(name)) => {
                self.events.insert(name.clone(), events);
            }
            (ObjectList::Events(_), _) => debug_assert!(false, "events of {source:?}"),
        }
        self.known.insert(source);
        Ok(())
    }

    /// Returns each pod with its objects, or `None` before all of them were read once. There is one
    /// entry without a pod if there are no pods yet.
    pub(crate) fn observed_pods(&self) -> Option<Vec<ObservedPod>> {
        if !self.is_known() {
            return None;
        }
        let mut events: Vec<Event> = self.events.values().flatten().cloned().collect();
        sort_events(&mut events);
        Some(ObservedPod::each(
            &self.run.job,
            self.job.clone(),
            self.pods.clone(),
            &self.claims,
            &events,
        ))
    }
}
