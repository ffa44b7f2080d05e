//! Facts about CSI drivers and snapshot classes.

use super::SurveyAnswers;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde::Serialize;

/// A CSI driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriverFacts {
    /// Name of the driver, which classes use as provisioner.
    pub name: String,
    /// Number of nodes that it can mount volumes on. `None`: this user may not list them.
    pub nodes: Option<usize>,
    /// Whether it publishes its free space.
    pub publishes_capacity: bool,
    /// Whether its volumes are attached to nodes before they are mounted.
    pub attaches: bool,
    /// Whether pods may define its volumes inline, which live as long as the pod.
    pub has_ephemeral_volumes: bool,
    /// Whether a class of the driver allows expansion. `None`: this user may not list classes.
    pub expands: Option<bool>,
    /// Whether a snapshot class belongs to the driver. `None`: this user may not list them.
    pub takes_snapshots: Option<bool>,
}

/// A snapshot class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotClass {
    /// Name of the class.
    pub name: String,
    /// Driver that takes the snapshots.
    pub driver: String,
    /// Deletion policy of the snapshots: `Delete` or `Retain`.
    pub deletion_policy: String,
}

/// Snapshot classes are custom resources of an extension that most clusters have.
pub(crate) fn snapshot_classes(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "volumesnapshotclasses");
    Api::all_with(client.clone(), &resource)
}

impl SurveyAnswers {
    pub(super) fn driver_facts(&self) -> Option<Vec<DriverFacts>> {
        let drivers = self.drivers.as_ref()?.iter();
        let mut facts: Vec<DriverFacts> = drivers
            .map(|driver| {
                let name = driver.metadata.name.clone().unwrap_or_default();
                DriverFacts {
                    nodes: self.nodes_with(&name),
                    publishes_capacity: driver.spec.storage_capacity == Some(true),
                    // The default of the API is to attach.
                    attaches: driver.spec.attach_required != Some(false),
                    has_ephemeral_volumes: has_ephemeral_volumes(driver),
                    expands: self.expands_with(&name),
                    takes_snapshots: self.takes_snapshots_with(&name),
                    name,
                }
            })
            .collect();
        facts.sort_by(|a, b| a.name.cmp(&b.name));
        Some(facts)
    }

    /// Returns the number of nodes on which a driver is registered.
    fn nodes_with(&self, driver: &str) -> Option<usize> {
        let has = |node: &&CSINode| node.spec.drivers.iter().any(|known| known.name == driver);
        Some(self.driver_nodes.as_ref()?.iter().filter(has).count())
    }

    /// Returns whether a class of a driver allows expansion.
    fn expands_with(&self, driver: &str) -> Option<bool> {
        let mut classes = self.classes.as_ref()?.iter();
        Some(
            classes.any(|class| {
                class.provisioner == driver && class.allow_volume_expansion == Some(true)
            }),
        )
    }

    /// Returns whether a snapshot class belongs to a driver.
    fn takes_snapshots_with(&self, driver: &str) -> Option<bool> {
        if self.lacks_snapshots {
            return Some(false);
        }
        let mut classes = self.snapshot_classes.as_ref()?.iter();
        Some(classes.any(|class| class.data["driver"].as_str() == Some(driver)))
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

fn has_ephemeral_volumes(driver: &CSIDriver) -> bool {
    let mut modes = driver.spec.volume_lifecycle_modes.iter().flatten();
    modes.any(|mode| mode == "Ephemeral")
}
