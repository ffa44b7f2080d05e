//! What makes and mounts volumes, and what takes snapshots of them.

use super::Seen;
use k8s_openapi::api::storage::v1::CSINode;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde::Serialize;

/// A CSI driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriverFacts {
    /// Its name, which classes have as their provisioner.
    pub name: String,
    /// On how many nodes it can mount volumes. `None`: this user may not see that.
    pub nodes: Option<usize>,
    /// Whether it publishes how much room there is.
    pub publishes_capacity: bool,
}

/// A class of snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotClass {
    /// Its name.
    pub name: String,
    /// What takes them.
    pub driver: String,
    /// What becomes of snapshots whose objects are gone: `Delete` or `Retain`.
    pub deletion_policy: String,
}

/// Snapshot classes are no part of Kubernetes itself, but of an extension that most clusters have.
pub(super) fn snapshot_classes(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "volumesnapshotclasses");
    Api::all_with(client.clone(), &resource)
}

impl Seen {
    pub(super) fn driver_facts(&self) -> Option<Vec<DriverFacts>> {
        let drivers = self.drivers.as_ref()?.iter();
        let mut facts: Vec<DriverFacts> = drivers
            .map(|driver| {
                let name = driver.metadata.name.clone().unwrap_or_default();
                DriverFacts {
                    nodes: self.nodes_with(&name),
                    publishes_capacity: driver.spec.storage_capacity == Some(true),
                    name,
                }
            })
            .collect();
        facts.sort_by(|a, b| a.name.cmp(&b.name));
        Some(facts)
    }

    /// On how many nodes a driver has registered.
    fn nodes_with(&self, driver: &str) -> Option<usize> {
        let has = |node: &&CSINode| node.spec.drivers.iter().any(|known| known.name == driver);
        Some(self.driver_nodes.as_ref()?.iter().filter(has).count())
    }

    pub(super) fn snapshot_class_facts(&self) -> Option<Vec<SnapshotClass>> {
        let classes = self.snapshot_classes.as_ref()?.iter();
        let fact = |class: &DynamicObject| {
            let text = |key: &str| class.data[key].as_str().unwrap_or_default().to_owned();
            SnapshotClass {
                name: class.metadata.name.clone().unwrap_or_default(),
                driver: text("driver"),
                deletion_policy: text("deletionPolicy"),
            }
        };
        Some(classes.map(fact).collect())
    }
}
