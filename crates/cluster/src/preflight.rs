//! Checks whether a run is possible, before anything is created.
//!
//! `query_facts` queries the cluster, [`Facts::judge`] is pure and decides on the answers. Facts
//! that this user may not read are not judged. `volume`, `security` and `node_checks` judge one
//! aspect each.

mod claim_users;
mod compute_quota;
mod ephemeral_storage;
mod namespace_rights;
mod node_checks;
mod rights_review;
mod run_rights;
mod security;
mod volume;

pub(crate) use claim_users::refuse_other_users;
pub(crate) use ephemeral_storage::allocatable_ephemeral_bytes;
pub(crate) use namespace_rights::judge_new_namespace;
pub(crate) use node_checks::{is_ready, is_usable, label, node_labels, untolerated_taints};
pub(crate) use rights_review::{in_words, missing};
pub(crate) use run_rights::{
    RIGHTS, judge_rights_in_pods, judge_rights_on_pods, judge_rights_to_attach, rights_of_run,
    role_with_namespace,
};
pub(crate) use volume::judge_mode;

use crate::api;
use crate::connect::KubeCluster;
use crate::free_room::ShareFacts;
use crate::namespace;
use crate::options::ClusterOptions;
use crate::rights_role::CommandRights;
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota,
};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use kube::api::{Api, ListParams};
use namespace_rights::judge_making;
use run_rights::{UserRights, rights};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Answers of the cluster. `None`: this user may not read them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// All storage classes.
    pub(crate) classes: Option<Vec<StorageClass>>,
    /// All nodes.
    pub(crate) nodes: Option<Vec<Node>>,
    /// The namespace.
    pub(crate) namespace: Option<Namespace>,
    /// Quotas of the namespace.
    pub(crate) quotas: Option<Vec<ResourceQuota>>,
    /// Limits of the namespace for a single object.
    pub(crate) limits: Option<Vec<LimitRange>>,
    /// Free space that drivers publish.
    pub(crate) capacities: Option<Vec<CSIStorageCapacity>>,
    /// All CSI drivers.
    pub(crate) drivers: Option<Vec<CSIDriver>>,
    /// CSI drivers registered on each node.
    pub(crate) driver_nodes: Option<Vec<CSINode>>,
    /// The claim, if it is the target and exists.
    pub(crate) claim: Option<PersistentVolumeClaim>,
    /// Unfinished pods that use the claim.
    pub(crate) claim_users: Vec<String>,
    /// Descriptions of the [`RIGHTS`] that this user lacks.
    pub(crate) missing_rights: Vec<String>,
    /// Manifest of a role with all rights of the run, if some are missing.
    pub(crate) role: String,
    /// Whether this user may create claims with an owner.
    pub(crate) may_claim: bool,
    /// Whether the namespace is missing and must be created.
    pub(crate) lacks_namespace: bool,
}

/// Labels of results by the name of a node.
pub(crate) type NodeLabels = BTreeMap<String, BTreeMap<String, String>>;

/// Decisions for the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Readiness {
    /// The image to use.
    pub(crate) image: String,
    /// Notes for the user before anything is created.
    pub(crate) notes: Vec<String>,
    /// Labels of the result.
    pub(crate) labels: BTreeMap<String, String>,
    /// Number of pods.
    pub(crate) pods: u32,
    /// Whether this user may create claims.
    pub(crate) may_claim: bool,
    /// Whether to create the namespace.
    pub(crate) makes_namespace: bool,
    /// Size of the volume in bytes, if known.
    pub(crate) volume_bytes: Option<u64>,
    /// Labels of the nodes that were read.
    pub(crate) node_labels: NodeLabels,
    /// The share of the class, if it has one.
    pub(crate) share: ShareFacts,
}

/// Queries the cluster. `command` has the rights that are needed, and those of the role that is
/// printed if the namespace is missing and may not be created.
///
/// # Errors
/// If the cluster cannot be reached, or the namespace is missing and may not be created.
pub(crate) async fn query_facts(
    cluster: &KubeCluster,
    options: &ClusterOptions,
    command: &CommandRights,
) -> Result<Facts, RunError> {
    let client = &cluster.client;
    let class = match &options.target {
        TargetUri::StorageClass(class) | TargetUri::Ephemeral(class) => Some(class),
        _ => None,
    };
    let has_class = class.is_some();
    let classes: Api<StorageClass> = Api::all(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), &cluster.namespace);
    let limits: Api<LimitRange> = Api::namespaced(client.clone(), &cluster.namespace);
    let drivers: Api<CSIDriver> = Api::all(client.clone());
    let (rights, classes, nodes, namespace, quotas, limits, drivers) = futures::join!(
        rights(cluster, options, command),
        list_if(has_class, classes),
        list_if(true, nodes),
        namespaces.get_opt(&cluster.namespace),
        list_if(true, quotas),
        list_if(true, limits),
        list_if(has_class, drivers),
    );
    let UserRights {
        missing_rights,
        role,
        may_claim,
    } = rights?;
    let driver = class.and_then(|class| driver_of(class, classes.as_deref(), drivers.as_deref()));
    let publishes = driver.is_some_and(|driver| driver.spec.storage_capacity == Some(true));
    let (capacities, driver_nodes) = futures::join!(
        list_if(publishes, Api::<CSIStorageCapacity>::all(client.clone())),
        list_if(driver.is_some(), Api::<CSINode>::all(client.clone())),
    );
    let lacks_namespace = judge_namespace(cluster, options, command, &namespace).await?;
    let claim = match missing_rights.is_empty() {
        true => query_claim(cluster, &options.target).await?,
        // The claim may be unreadable. The missing rights are the error.
        false => None,
    };
    let claim_users = query_claim_users(cluster, claim.as_ref()).await;
    Ok(Facts {
        classes,
        nodes,
        namespace: namespace.ok().flatten(),
        quotas,
        limits,
        capacities,
        drivers,
        driver_nodes,
        claim,
        claim_users,
        missing_rights,
        role,
        may_claim,
        lacks_namespace,
    })
}

/// Lists all objects, if they are needed and this user may.
async fn list_if<K>(is_needed: bool, api: Api<K>) -> Option<Vec<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    if !is_needed {
        return None;
    }
    let list = api.list(&ListParams::default()).await.ok()?;
    Some(list.items)
}

/// Returns the CSI driver of a class. A provisioner of another kind has none.
fn driver_of<'a>(
    class: &str,
    classes: Option<&[StorageClass]>,
    drivers: Option<&'a [CSIDriver]>,
) -> Option<&'a CSIDriver> {
    let is_named = |known: &&StorageClass| known.metadata.name.as_deref() == Some(class);
    let class = classes?.iter().find(is_named)?;
    let is_its_own =
        |driver: &&CSIDriver| driver.metadata.name.as_ref() == Some(&class.provisioner);
    drivers?.iter().find(is_its_own)
}

/// Returns whether the namespace must be created. Fails if it is needed, but may not be created.
async fn judge_namespace(
    cluster: &KubeCluster,
    options: &ClusterOptions,
    command: &CommandRights,
    namespace: &kube::Result<Option<Namespace>>,
) -> Result<bool, RunError> {
    let is_missing = matches!(namespace, Ok(None));
    if is_missing && !options.create_namespace {
        let namespace = cluster.namespace.clone();
        return Err(ClusterObstacle::NoNamespace { namespace }.into());
    }
    let is_going = matches!(namespace, Ok(Some(there)) if namespace::is_going(there));
    if is_going && !options.create_namespace {
        let namespace = cluster.namespace.clone();
        return Err(ClusterObstacle::NamespaceTerminating { namespace }.into());
    }
    // A namespace that is being removed is awaited, and created again.
    let lacks_namespace = is_missing || is_going;
    if lacks_namespace {
        judge_making(cluster, command).await?;
    }
    Ok(lacks_namespace)
}

/// Returns the claim, if it is the target and exists.
async fn query_claim(
    cluster: &KubeCluster,
    target: &TargetUri,
) -> Result<Option<PersistentVolumeClaim>, RunError> {
    let TargetUri::Claim { name, .. } = target else {
        return Ok(None);
    };
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client.clone(), &cluster.namespace);
    claims
        .get_opt(name)
        .await
        .map_err(|error| api::failed(ClusterRequest::ReadClaim { name: name.clone() }, &error))
}

/// Returns the unfinished pods that use the claim, if this user may list pods.
async fn query_claim_users(
    cluster: &KubeCluster,
    claim: Option<&PersistentVolumeClaim>,
) -> Vec<String> {
    let Some(claim) = claim else {
        return Vec::new();
    };
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let pods = pods.list(&ListParams::default()).await;
    let pods = pods.map(|list| list.items).unwrap_or_default();
    claim_users::users(claim, &pods, None)
}

impl Facts {
    /// Decides whether the run may begin, and with which parameters. `archs` are the architectures
    /// of the agents, as node labels name them: empty if no agent is sent.
    ///
    /// # Errors
    /// If the run cannot succeed, with cause and remedy.
    pub(crate) fn judge(
        &self,
        options: &ClusterOptions,
        archs: &[&str],
    ) -> Result<Readiness, RunError> {
        // A missing namespace is checked later: its creator may be granted permissions.
        if !self.lacks_namespace {
            self.judge_rights(matches!(options.target, TargetUri::Claim { .. }))?;
        }
        let mut ready = Readiness {
            pods: self.pods(options, archs)?,
            may_claim: self.may_claim,
            makes_namespace: self.lacks_namespace,
            ..Readiness::default()
        };
        let claims = match options.pods {
            Some(pods) if pods.shared => 1,
            _ => u64::from(ready.pods),
        };
        match &options.target {
            TargetUri::StorageClass(class) | TargetUri::Ephemeral(class) => {
                self.judge_class(class, options, &mut ready)?;
                self.judge_limits(options.claim_bytes)?;
                self.judge_quotas(class, options.claim_bytes, claims)?;
                self.judge_capacity(class, options.claim_bytes)?;
                ready.volume_bytes = Some(options.claim_bytes);
            }
            TargetUri::Claim { name, .. } => self.judge_claim(name, options, &mut ready)?,
            TargetUri::HostPath(path) => self.judge_level(path)?,
            _ => {}
        }
        volume::judge_space(options, &ready)?;
        self.judge_compute_quotas(options, ready.pods)?;
        judge_mode(options)?;
        self.judge_root(options)?;
        if let Some(why) = options.why_root() {
            let said = format!(
                "the pod runs as root, without capabilities: {why} (--run-as UID makes it another \
                 user)"
            );
            ready.notes.push(said);
        }
        self.judge_nodes(options, archs)?;
        self.judge_ephemeral_storage(options, archs)?;
        ready.node_labels = self.node_labels();
        ready.image = match &options.image {
            Some(image) => image.clone(),
            None => self.image(options, archs),
        };
        Ok(ready)
    }

    fn node_labels(&self) -> NodeLabels {
        let nodes = self.nodes.iter().flatten();
        let named = nodes.filter_map(|node| Some((node.metadata.name.clone()?, node_labels(node))));
        named.collect()
    }

    fn judge_rights(&self, is_bound_to_namespace: bool) -> Result<(), RunError> {
        if self.missing_rights.is_empty() {
            return Ok(());
        }
        let obstacle = ClusterObstacle::MissingRights {
            rights: self.missing_rights.clone(),
            role: self.role.clone(),
            is_bound_to_namespace,
        };
        Err(obstacle.into())
    }
}

#[cfg(test)]
mod tests;
