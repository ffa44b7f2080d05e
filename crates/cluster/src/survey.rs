//! Surveys a cluster: storage classes, nodes, leftovers, and problems that affect measurements.
//!
//! [`survey`] queries, `SurveyAnswers::survey` is pure and judges. Facts hidden from this user are
//! `None`.

mod cluster_findings;
pub(crate) mod drivers;
mod gke_version;

pub use drivers::{DriverFacts, SnapshotClass};

use crate::api;
use crate::connect::KubeCluster;
use crate::free_room::is_shared_by_nodes;
use crate::kept_directory::KeptDirectory;
use crate::leftovers::{self, LeftoverRun, LostNamespace, LostVolume};
use crate::manifest::{quantity, quantity_bytes};
use crate::options::ClusterOptions;
use crate::preflight::{allocatable_ephemeral_bytes, is_usable, label};
use iosonde_result::doctor::Finding;
use iosonde_result::node_storage::InspectedNode;
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, StorageClass};
use kube::api::{Api, DynamicObject, ListParams};
use serde::Serialize;

/// Facts about a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// The context of the kubeconfig, if there is one.
    pub context: Option<String>,
    /// Version of the API server.
    pub version: String,
    /// Storage classes, by name. `None`: this user may not list them.
    pub classes: Option<Vec<ClassFacts>>,
    /// CSI drivers, by name. `None`: this user may not list them.
    pub drivers: Option<Vec<DriverFacts>>,
    /// Snapshot classes. `None`: this user may not list them, or the cluster has no snapshots.
    pub snapshot_classes: Option<Vec<SnapshotClass>>,
    /// Whether the cluster has no snapshots: their custom resource definitions are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lacks_snapshots: bool,
    /// Nodes, by name. `None`: this user may not list them.
    pub nodes: Option<Vec<NodeFacts>>,
    /// Ephemeral storage that the user intends to request for a pod, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_bytes: Option<u64>,
    /// Disks and mounts of the nodes, if they were inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspected: Option<Vec<InspectedNode>>,
    /// Runs whose Jobs exist.
    pub leftovers: Vec<LeftoverRun>,
    /// Whether this user may not list Jobs, so that runs are not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hides_runs: bool,
    /// Volumes of runs whose claims are gone.
    pub lost_volumes: Vec<LostVolume>,
    /// Namespaces that were created for runs and contain none.
    pub lost_namespaces: Vec<LostNamespace>,
    /// Problems that affect measurements, the worst first.
    pub findings: Vec<Finding>,
}

/// A storage class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassFacts {
    /// Name of the class.
    pub name: String,
    /// Provisioner of its volumes.
    pub provisioner: String,
    /// Whether it is the default for claims without a class.
    pub is_default: bool,
    /// Whether binding waits for the first pod that uses the claim.
    pub waits_for_pod: bool,
    /// Reclaim policy of its volumes: `Delete` or `Retain`.
    pub reclaim: String,
    /// Whether claims can be expanded.
    pub expands: bool,
    /// Directory that its provisioner keeps of removed volumes, although they are to be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_directory: Option<KeptDirectory>,
    /// Number of existing volumes. `None`: this user may not list them.
    pub volumes: Option<usize>,
    /// Whether pods on several nodes can write one volume. `None`: it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Result of a trial claim, if one was created.
    pub trial: Option<Trial>,
}

/// Result of creating a claim and a pod to test a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trial {
    /// The claim was bound and mounted, and the agent in the pod answered.
    Works {
        /// Time from the request to the agent's answer.
        elapsed_ms: u64,
        /// Free space of the volume, in bytes.
        free_bytes: Option<u64>,
        /// The exchange of data between pods, if the class was tried with several.
        #[serde(skip_serializing_if = "Option::is_none")]
        shared: Option<SharedTrial>,
        /// Why one pod tried a class whose volumes several nodes can write.
        #[serde(skip_serializing_if = "Option::is_none")]
        sharing_not_tried: Option<SharingNotTried>,
    },
    /// The trial failed.
    Fails {
        /// The cause.
        cause: String,
        /// Action to take.
        remedy: String,
    },
}

/// Why two pods could not try a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharingNotTried {
    /// The cause.
    pub cause: String,
    /// Action to take.
    pub remedy: String,
}

/// Data that each pod of a trial wrote to one volume, and that the others read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedTrial {
    /// Nodes of the pods, each once.
    pub nodes: Vec<String>,
    /// Bytes that pods read of what others had written. All were as expected.
    pub verified_bytes: u64,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFacts {
    /// Name of the node.
    pub name: String,
    /// Whether it accepts pods.
    pub is_usable: bool,
    /// Architecture of its processors.
    pub arch: String,
    /// Machine type of the provider.
    pub machine: Option<String>,
    /// Zone of the provider.
    pub zone: Option<String>,
    /// Version of its kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<String>,
    /// Local disk space that pods may use, in bytes.
    pub disk_bytes: Option<u64>,
    /// Labels of the node that announce local SSDs.
    pub local_ssd: Vec<String>,
    /// Size in bytes of each local volume of this node.
    pub local_volumes: Vec<u64>,
    /// Taints in kubectl's notation.
    pub taints: Vec<String>,
    /// Resource shortages: `DiskPressure`, `MemoryPressure`, `PIDPressure`.
    pub pressure: Vec<String>,
}

/// Answers of the cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurveyAnswers {
    pub(crate) context: Option<String>,
    pub(crate) version: String,
    pub(crate) classes: Option<Vec<StorageClass>>,
    pub(crate) nodes: Option<Vec<Node>>,
    pub(crate) drivers: Option<Vec<CSIDriver>>,
    pub(crate) driver_nodes: Option<Vec<CSINode>>,
    pub(crate) snapshot_classes: Option<Vec<DynamicObject>>,
    /// Whether the API server has no resource for snapshot classes.
    pub(crate) lacks_snapshots: bool,
    pub(crate) volumes: Option<Vec<PersistentVolume>>,
    pub(crate) lost_namespaces: Vec<LostNamespace>,
    /// `None`: this user may not list Jobs.
    pub(crate) leftovers: Option<Vec<LeftoverRun>>,
}

/// Surveys a cluster without creating anything. A namespace limits the leftovers to it.
///
/// # Errors
/// If the cluster does not answer.
pub fn survey(options: &ClusterOptions) -> Result<Survey, RunError> {
    let runtime = crate::connect::runtime()?;
    let seen = runtime.block_on(async {
        let cluster = KubeCluster::connect(options).await?;
        let client = &cluster.client;
        let version = client.apiserver_version().await;
        let version = version.map_err(|error| {
            api::failed_at(&cluster.server, ClusterRequest::ReadVersion, &error)
        })?;
        let all = ListParams::default();
        let classes: Api<StorageClass> = Api::all(client.clone());
        let nodes: Api<Node> = Api::all(client.clone());
        let volumes: Api<PersistentVolume> = Api::all(client.clone());
        let drivers: Api<CSIDriver> = Api::all(client.clone());
        let driver_nodes: Api<CSINode> = Api::all(client.clone());
        let snapshot_classes = drivers::snapshot_classes(client);
        let (
            classes,
            nodes,
            drivers,
            driver_nodes,
            snapshot_classes,
            volumes,
            lost_namespaces,
            leftovers,
        ) = futures::join!(
            classes.list(&all),
            nodes.list(&all),
            drivers.list(&all),
            driver_nodes.list(&all),
            snapshot_classes.list(&all),
            volumes.list(&all),
            leftovers::lost_namespaces(&cluster),
            leftovers::find_if_allowed(&cluster),
        );
        Ok::<_, RunError>(SurveyAnswers {
            context: cluster.context.clone(),
            version: version.git_version,
            classes: classes.ok().map(|list| list.items),
            nodes: nodes.ok().map(|list| list.items),
            drivers: drivers.ok().map(|list| list.items),
            driver_nodes: driver_nodes.ok().map(|list| list.items),
            lacks_snapshots: matches!(&snapshot_classes, Err(error) if api::is_missing(error)),
            snapshot_classes: snapshot_classes.ok().map(|list| list.items),
            volumes: volumes.ok().map(|list| list.items),
            lost_namespaces: lost_namespaces?,
            leftovers: leftovers?,
        })
    })?;
    let mut survey = seen.survey();
    if let Some(only) = &options.namespace {
        survey.leftovers.retain(|run| run.namespace == *only);
        survey
            .lost_volumes
            .retain(|volume| volume.namespace == *only);
        survey.lost_namespaces.retain(|lost| lost.name == *only);
        survey.judge();
    }
    Ok(survey)
}

impl SurveyAnswers {
    /// Derives the survey from the answers.
    pub(crate) fn survey(&self) -> Survey {
        let sorted = |classes: &Vec<StorageClass>| {
            let mut facts: Vec<_> = classes.iter().map(|class| self.class(class)).collect();
            facts.sort_by(|a, b| a.name.cmp(&b.name));
            facts
        };
        let mut survey = Survey {
            context: self.context.clone(),
            version: self.version.clone(),
            classes: self.classes.as_ref().map(sorted),
            drivers: self.driver_facts(),
            snapshot_classes: self.snapshot_class_facts(),
            lacks_snapshots: self.lacks_snapshots,
            nodes: self
                .nodes
                .as_ref()
                .map(|nodes| nodes.iter().map(|node| self.node(node)).collect()),
            requested_bytes: None,
            inspected: None,
            leftovers: self.leftovers.clone().unwrap_or_default(),
            hides_runs: self.leftovers.is_none(),
            lost_volumes: self
                .volumes
                .iter()
                .flatten()
                .filter_map(leftovers::lost_volume)
                .collect(),
            lost_namespaces: self.lost_namespaces.clone(),
            findings: Vec::new(),
        };
        survey.judge();
        survey
    }

    fn class(&self, class: &StorageClass) -> ClassFacts {
        let name = class.metadata.name.clone().unwrap_or_default();
        let default = "storageclass.kubernetes.io/is-default-class";
        let annotation = class
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(default));
        let is_of_class = |volume: &&PersistentVolume| {
            let spec = volume.spec.as_ref();
            spec.and_then(|spec| spec.storage_class_name.as_ref()) == Some(&name)
        };
        let volumes = self
            .volumes
            .as_ref()
            .map(|volumes| volumes.iter().filter(is_of_class).collect::<Vec<_>>());
        let has_shared_volume = volumes.iter().flatten().any(|volume| is_for_many(volume));
        ClassFacts {
            provisioner: class.provisioner.clone(),
            is_default: annotation.is_some_and(|value| value == "true"),
            waits_for_pod: class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
            reclaim: class
                .reclaim_policy
                .clone()
                .unwrap_or_else(|| "Delete".to_owned()),
            expands: class.allow_volume_expansion == Some(true),
            kept_directory: KeptDirectory::of_class(class),
            volumes: volumes.map(|volumes| volumes.len()),
            shared: is_shared_by_nodes(&class.provisioner)
                .or_else(|| has_shared_volume.then_some(true)),
            trial: None,
            name,
        }
    }

    fn node(&self, node: &Node) -> NodeFacts {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let volumes = self.volumes.iter().flatten();
        NodeFacts {
            local_volumes: volumes
                .filter_map(|volume| local_bytes(volume, name))
                .collect(),
            ..node_facts(node)
        }
    }
}

/// Whether pods on several nodes can write the file system of a volume. A block device for several
/// nodes, as that of a virtual machine, has none.
fn is_for_many(volume: &PersistentVolume) -> bool {
    let Some(spec) = &volume.spec else {
        return false;
    };
    let mut modes = spec.access_modes.iter().flatten();
    spec.volume_mode.as_deref() != Some("Block") && modes.any(|mode| mode == "ReadWriteMany")
}

/// Returns the size of a local volume of this node: a disk, or a part of one.
fn local_bytes(volume: &PersistentVolume, node: &str) -> Option<u64> {
    let spec = volume.spec.as_ref()?;
    spec.local.as_ref()?;
    let required = spec.node_affinity.as_ref()?.required.as_ref()?;
    let terms = required.node_selector_terms.iter();
    let mut expressions = terms.flat_map(|term| term.match_expressions.iter().flatten());
    let is_here = expressions.any(|expression| {
        let is_in = expression.key == "kubernetes.io/hostname" && expression.operator == "In";
        let mut values = expression.values.iter().flatten();
        is_in && values.any(|value| value == node)
    });
    let size = spec.capacity.as_ref().and_then(|all| all.get("storage"));
    is_here.then(|| size.and_then(quantity_bytes).unwrap_or(0))
}

fn node_facts(node: &Node) -> NodeFacts {
    let text = |key: &str| label(node, key).map(str::to_owned);
    let status = node.status.clone().unwrap_or_default();
    let info = status.node_info.as_ref();
    let kubelet = info.map(|info| info.kubelet_version.clone());
    let is_pressure = |condition: &str| condition.ends_with("Pressure");
    NodeFacts {
        name: node.metadata.name.clone().unwrap_or_default(),
        is_usable: is_usable(node),
        arch: text("kubernetes.io/arch").unwrap_or_default(),
        machine: text("node.kubernetes.io/instance-type"),
        zone: text("topology.kubernetes.io/zone"),
        kubelet: kubelet.filter(|version| !version.is_empty()),
        disk_bytes: allocatable_ephemeral_bytes(node),
        local_ssd: local_ssd(node),
        local_volumes: Vec::new(),
        taints: taints(node),
        pressure: status
            .conditions
            .unwrap_or_default()
            .into_iter()
            .filter(|condition| condition.status == "True" && is_pressure(&condition.type_))
            .map(|condition| condition.type_)
            .collect(),
    }
}

/// Returns the node's labels by which providers announce local SSDs.
fn local_ssd(node: &Node) -> Vec<String> {
    const LABELS: [&str; 5] = [
        "cloud.google.com/gke-ephemeral-storage-local-ssd",
        "cloud.google.com/gke-local-nvme-ssd",
        "cloud.google.com/gke-local-ssd",
        "karpenter.k8s.aws/instance-local-nvme",
        "aws.amazon.com/eks-local-ssd",
    ];
    let shown = |key: &&str| Some(format!("{key}={}", label(node, key)?));
    LABELS.iter().filter_map(shown).collect()
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let shown = |taint: k8s_openapi::api::core::v1::Taint| {
        let value = taint.value.filter(|value| !value.is_empty());
        let value = value.map_or(String::new(), |value| format!("={value}"));
        format!("{}{value}:{}", taint.key, taint.effect)
    };
    taints.into_iter().map(shown).collect()
}

/// Formats bytes in the notation of Kubernetes.
pub fn kubernetes_quantity(bytes: u64) -> String {
    // Rounded down, since sizes of node disks are rarely round and only the magnitude matters.
    let rounded = if bytes > 10 << 30 {
        bytes >> 30 << 30
    } else {
        bytes >> 20 << 20
    };
    quantity(rounded).0
}

#[cfg(test)]
mod tests;
