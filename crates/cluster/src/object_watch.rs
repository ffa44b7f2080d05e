//! [`ObjectWatch`]: objects of one kind, kept current by a watch. Where a watch is refused, or does
//! not last, the objects are listed again at a calm pace.

use crate::object_events::{ObjectEvents, watch_events};
use futures::TryStreamExt;
use kube::Resource;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Shortest time between two lists of the same objects.
pub(crate) const LIST_PERIOD: Duration = Duration::from_secs(1);
/// Time after which the server ends a watch, in seconds. The objects are then listed again.
const WATCH_S: u32 = 60;
/// Time of silence after which a watch counts as broken: a vanished server may never close it.
const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_S as u64 + 5);

/// Shortest length of a watch that is resumed at its end. A proxy may end watches at once, and the
/// objects are then listed.
const RESUMABLE: Duration = Duration::from_secs(10);

const _: () = assert!(WATCH_SILENCE.as_secs() > WATCH_S as u64);
const _: () = assert!(RESUMABLE.as_secs() < WATCH_S as u64);

/// The objects to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    /// The object of this name. Only the verb `get` is needed to read it.
    Name(String),
    /// Objects with this label.
    Label(String),
    /// Events about the object of this name.
    EventsAbout(String),
    /// Events that are warnings.
    Warnings,
    /// All objects of the namespace.
    All,
}

impl Selector {
    /// Returns the parameters of a list.
    pub(crate) fn list_params(&self) -> ListParams {
        let list = ListParams::default();
        match self {
            Selector::Label(label) => list.labels(label),
            Selector::All => list,
            Selector::Name(_) | Selector::EventsAbout(_) | Selector::Warnings => {
                list.fields(&self.fields())
            }
        }
    }

    fn watch_params(&self) -> WatchParams {
        let watch = WatchParams::default().timeout(WATCH_S);
        match self {
            Selector::Label(label) => watch.labels(label),
            Selector::All => watch,
            Selector::Name(_) | Selector::EventsAbout(_) | Selector::Warnings => {
                watch.fields(&self.fields())
            }
        }
    }

    fn fields(&self) -> String {
        match self {
            Selector::Name(name) => format!("metadata.name={name}"),
            Selector::EventsAbout(name) => format!("involvedObject.name={name}"),
            Selector::Warnings => "type=Warning".to_owned(),
            Selector::Label(_) | Selector::All => String::new(),
        }
    }
}

/// Objects of one kind, and the watch that reports their changes.
pub(crate) struct ObjectWatch<K> {
    api: Api<K>,
    selector: Selector,
    /// The objects by name.
    objects: BTreeMap<String, K>,
    /// `None`: the objects are watched from `resume_from`, or else listed next.
    events: Option<ObjectEvents<K>>,
    /// Version from which a watch begins without a list. An empty one stands for the present: the
    /// server then first reports all objects that exist.
    resume_from: Option<String>,
    /// Latest version that a list or a watch has reported.
    version: String,
    /// Start of the watch.
    watched_since: Instant,
    /// Earliest time of the next list.
    list_at: Instant,
}

impl<K> ObjectWatch<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(crate) fn new(api: Api<K>, selector: Selector) -> ObjectWatch<K> {
        ObjectWatch {
            api,
            selector,
            objects: BTreeMap::new(),
            events: None,
            resume_from: None,
            version: String::new(),
            watched_since: Instant::now(),
            list_at: Instant::now(),
        }
    }

    /// As [`new`](Self::new), for objects that are just being created. They are not listed: the
    /// watch reports those that exist, and the first result may lack them.
    pub(crate) fn of_new_objects(api: Api<K>, selector: Selector) -> ObjectWatch<K> {
        ObjectWatch {
            resume_from: Some(String::new()),
            ..ObjectWatch::new(api, selector)
        }
    }

    /// Waits for the next change, and returns all objects. The first call returns at once. There is
    /// no deadline, as objects may never change: the caller has one.
    ///
    /// # Errors
    /// If the objects cannot be listed. The next call tries again.
    pub(crate) async fn changed(&mut self) -> Result<Vec<K>, kube::Error> {
        self.wait_for_change().await?;
        Ok(self.objects().cloned().collect())
    }

    /// As [`changed`](Self::changed), without a copy of the objects: there may be thousands.
    ///
    /// # Errors
    /// As with [`changed`](Self::changed).
    pub(crate) async fn wait_for_change(&mut self) -> Result<(), kube::Error> {
        loop {
            let Some(events) = &mut self.events else {
                sleep_until(self.list_at).await;
                self.list_at = Instant::now() + LIST_PERIOD;
                if let Some(version) = self.resume_from.take() {
                    self.begin_watch(&version).await;
                }
                if self.events.is_none() {
                    self.version = self.list().await?;
                    // Without a version the watch would report the listed objects again.
                    if !self.version.is_empty() {
                        let version = self.version.clone();
                        self.begin_watch(&version).await;
                    }
                }
                return Ok(());
            };
            match timeout(WATCH_SILENCE, events.try_next()).await {
                Ok(Ok(Some(event))) => {
                    if self.apply(event) {
                        return Ok(());
                    }
                }
                // Ended, broken or silent.
                _ => self.end_watch(),
            }
        }
    }

    /// Ends the watch. The next one continues where it has ended, if it lasted.
    fn end_watch(&mut self) {
        self.events = None;
        let has_lasted = self.watched_since.elapsed() >= RESUMABLE;
        self.resume_from = (has_lasted && !self.version.is_empty()).then(|| self.version.clone());
    }

    /// Returns the objects as of the last change, by name.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &K> {
        self.objects.values()
    }

    /// Reads the objects. Returns the version from which a watch continues.
    async fn list(&mut self) -> Result<String, kube::Error> {
        let (found, version) = match &self.selector {
            Selector::Name(name) => {
                let found = self.api.get_opt(name).await?;
                let version = found
                    .as_ref()
                    .and_then(|it| it.meta().resource_version.clone());
                (found.into_iter().collect(), version)
            }
            selector => {
                let list = self.api.list(&selector.list_params()).await?;
                (list.items, list.metadata.resource_version)
            }
        };
        let by_name = |object: K| (name_of(&object), object);
        self.objects = found.into_iter().map(by_name).collect();
        Ok(version.unwrap_or_default())
    }

    /// Begins the watch. If the server refuses it, or is unavailable, the objects are listed.
    async fn begin_watch(&mut self, version: &str) {
        debug_assert!(self.events.is_none(), "one watch at a time");
        self.watched_since = Instant::now();
        let params = self.selector.watch_params();
        self.events = watch_events(&self.api, &params, version).await.ok();
    }

    /// Applies an event. Returns whether the objects have changed.
    fn apply(&mut self, event: WatchEvent<K>) -> bool {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.record_version(object.meta().resource_version.as_ref());
                self.objects.insert(name_of(&object), object);
                true
            }
            WatchEvent::Deleted(object) => {
                self.record_version(object.meta().resource_version.as_ref());
                self.objects.remove(&name_of(&object)).is_some()
            }
            WatchEvent::Bookmark(bookmark) => {
                self.record_version(Some(&bookmark.metadata.resource_version));
                false
            }
            // Such as: the version is too old.
            WatchEvent::Error(_) => {
                self.events = None;
                self.version.clear();
                false
            }
        }
    }

    fn record_version(&mut self, version: Option<&String>) {
        if let Some(version) = version {
            self.version.clone_from(version);
        }
    }
}

fn name_of<K: Resource<DynamicType = ()>>(object: &K) -> String {
    object.meta().name.clone().unwrap_or_default()
}
