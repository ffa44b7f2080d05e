//! Checks whether a run is possible, before anything is created.
//!
//! `look` queries the cluster, [`Facts::judge`] is pure and decides on the answers. Facts that this
//! user may not read are not judged. `volume`, `security` and `nodes` judge one aspect each.

mod claim_users;
mod nodes;
mod security;
mod volume;

pub(crate) use claim_users::refuse_other_users;
pub(crate) use nodes::{is_ready, is_usable, label, node_labels};
pub(crate) use volume::judge_mode;

use crate::api;
use crate::connect::Cluster;
use crate::namespace;
use crate::options::ClusterOptions;
use iosonde_job::Target;
use iosonde_result::session::RunError;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota,
};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use kube::api::{Api, ListParams, PostParams};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Verb, API group, resource, subresource.
type Right = (&'static str, &'static str, &'static str, &'static str);

/// Permissions that a run needs in its namespace.
pub const RIGHTS: [Right; 8] = [
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "exec"),
    ("list", "", "persistentvolumeclaims", ""),
    ("list", "", "events", ""),
];
/// Additional permission for a claim that several pods share.
const RIGHT_TO_CLAIM: Right = ("create", "", "persistentvolumeclaims", "");
/// Additional permission that some clusters require for setting an owner reference.
const RIGHT_TO_OWN: Right = ("delete", "", "persistentvolumeclaims", "");

/// Permissions for creating and removing a namespace.
const RIGHTS_TO_MAKE: [Right; 4] = [
    ("create", "", "namespaces", ""),
    ("get", "", "namespaces", ""),
    ("patch", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
];
/// Additional permission for checking that a namespace is empty before its removal.
const RIGHT_TO_LEAVE: Right = ("list", "batch", "jobs", "");
/// Time to wait for permissions in a new namespace, which some clusters grant to its creator.
const GIVEN: Duration = Duration::from_secs(5);

/// Answers of the cluster. `None`: this user may not read them.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// All storage classes.
    pub classes: Option<Vec<StorageClass>>,
    /// All nodes.
    pub nodes: Option<Vec<Node>>,
    /// The namespace.
    pub namespace: Option<Namespace>,
    /// Quotas of the namespace.
    pub quotas: Option<Vec<ResourceQuota>>,
    /// Limits of the namespace for a single object.
    pub limits: Option<Vec<LimitRange>>,
    /// Free space that drivers publish.
    pub capacities: Option<Vec<CSIStorageCapacity>>,
    /// All CSI drivers.
    pub drivers: Option<Vec<CSIDriver>>,
    /// CSI drivers registered on each node.
    pub driver_nodes: Option<Vec<CSINode>>,
    /// The claim, if it is the target and exists.
    pub claim: Option<PersistentVolumeClaim>,
    /// Unfinished pods that use the claim.
    pub claim_users: Vec<String>,
    /// Descriptions of the [`RIGHTS`] that this user lacks.
    pub missing_rights: Vec<String>,
    /// Whether this user may create claims with an owner.
    pub may_claim: bool,
    /// Whether the namespace is missing and must be created.
    pub lacks_namespace: bool,
}

/// Decisions for the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readiness {
    /// The image to use.
    pub image: String,
    /// Notes for the user before anything is created.
    pub notes: Vec<String>,
    /// Labels of the result.
    pub labels: BTreeMap<String, String>,
    /// Number of pods.
    pub pods: u32,
    /// Whether this user may create claims.
    pub may_claim: bool,
    /// Whether to create the namespace.
    pub makes_namespace: bool,
    /// Size of the volume in bytes, if known.
    pub volume_bytes: Option<u64>,
}

/// Queries the cluster.
///
/// # Errors
/// If the cluster cannot be reached.
pub(crate) async fn look(cluster: &Cluster, options: &ClusterOptions) -> Result<Facts, RunError> {
    let client = &cluster.client;
    let (missing_rights, may_claim) = rights(cluster, options).await?;
    let all = ListParams::default();
    let classes: Api<StorageClass> = Api::all(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), &cluster.namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &cluster.namespace);
    let limits: Api<LimitRange> = Api::namespaced(client.clone(), &cluster.namespace);
    let capacities: Api<CSIStorageCapacity> = Api::all(client.clone());
    let drivers: Api<CSIDriver> = Api::all(client.clone());
    let driver_nodes: Api<CSINode> = Api::all(client.clone());
    let (classes, nodes, namespace, quotas, limits, capacities, drivers, driver_nodes) = futures::join!(
        classes.list(&all),
        nodes.list(&all),
        namespaces.get_opt(&cluster.namespace),
        quotas.list(&all),
        limits.list(&all),
        capacities.list(&all),
        drivers.list(&all),
        driver_nodes.list(&all),
    );
    let is_missing = matches!(namespace, Ok(None));
    if is_missing && !options.create_namespace {
        return Err(RunError::Unsupported {
            problem: format!("the namespace {} does not exist", cluster.namespace),
            remedy: format!(
                "choose another with -n, make it (kubectl create namespace {}), or add --create-namespace: it is made for the \
                 run, and removed after it",
                cluster.namespace
            ),
        });
    }
    let is_going = matches!(&namespace, Ok(Some(there)) if namespace::is_going(there));
    if is_going && !options.create_namespace {
        return Err(RunError::Unsupported {
            problem: format!("the namespace {} is being removed", cluster.namespace),
            remedy: "wait until it is gone, or choose another with -n".to_owned(),
        });
    }
    // A namespace that is being removed is awaited, and created again.
    let lacks_namespace = is_missing || is_going;
    if lacks_namespace {
        judge_making(cluster).await?;
    }
    let claim = match &options.target {
        Target::Claim { name, .. } => claims
            .get_opt(name)
            .await
            .map_err(|error| api::failed(&format!("reading the claim {name}"), &error))?,
        _ => None,
    };
    let claim_users = match &claim {
        Some(claim) => {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &cluster.namespace);
            let pods = pods.list(&all).await.map(|list| list.items);
            claim_users::users(claim, &pods.unwrap_or_default(), None)
        }
        None => Vec::new(),
    };
    Ok(Facts {
        classes: classes.ok().map(|list| list.items),
        nodes: nodes.ok().map(|list| list.items),
        namespace: namespace.ok().flatten(),
        quotas: quotas.ok().map(|list| list.items),
        limits: limits.ok().map(|list| list.items),
        capacities: capacities.ok().map(|list| list.items),
        drivers: drivers.ok().map(|list| list.items),
        driver_nodes: driver_nodes.ok().map(|list| list.items),
        claim,
        claim_users,
        missing_rights,
        may_claim,
        lacks_namespace,
    })
}

/// Returns descriptions of the missing permissions, and whether claims may be created.
async fn rights(
    cluster: &Cluster,
    options: &ClusterOptions,
) -> Result<(Vec<String>, bool), RunError> {
    let wanted = RIGHTS.into_iter().chain([RIGHT_TO_CLAIM, RIGHT_TO_OWN]);
    let mut missing = missing(cluster, wanted).await?;
    let may_claim = !missing.contains(&RIGHT_TO_CLAIM) && !missing.contains(&RIGHT_TO_OWN);
    let is_shared = options.pods.is_some_and(|pods| pods.shared);
    missing.retain(|right| match *right {
        RIGHT_TO_CLAIM => is_shared,
        right => right != RIGHT_TO_OWN,
    });
    Ok((missing.into_iter().map(in_words).collect(), may_claim))
}

/// Fails if this user may not create and remove a namespace.
async fn judge_making(cluster: &Cluster) -> Result<(), RunError> {
    let missing = missing(cluster, RIGHTS_TO_MAKE.into_iter()).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = missing.into_iter().map(in_words).collect();
    Err(RunError::Unsupported {
        problem: format!(
            "the namespace {} does not exist, and of what making and removing it needs this user may not: {}",
            cluster.namespace,
            named.join(", ")
        ),
        remedy: "choose one that exists with -n, or ask for these rights".to_owned(),
    })
}

/// Checks the permissions of this user in a new namespace, with retries.
///
/// # Errors
/// If permissions are still missing after [`GIVEN`].
pub(crate) async fn judge_new_namespace(
    cluster: &Cluster,
    options: &ClusterOptions,
) -> Result<(), RunError> {
    let begun = Instant::now();
    loop {
        let (mut missing_rights, _) = rights(cluster, options).await?;
        let to_leave = missing(cluster, [RIGHT_TO_LEAVE].into_iter()).await?;
        missing_rights.extend(to_leave.into_iter().map(in_words));
        let facts = Facts {
            missing_rights,
            ..Facts::default()
        };
        match facts.judge_rights() {
            Err(_) if begun.elapsed() < GIVEN => tokio::time::sleep(GIVEN / 20).await,
            judged => return judged,
        }
    }
}

/// Returns those permissions that this user lacks.
async fn missing(
    cluster: &Cluster,
    wanted: impl Iterator<Item = Right> + Clone,
) -> Result<Vec<Right>, RunError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let questions: Vec<_> = wanted
        .clone()
        .map(|right| review(&cluster.namespace, right))
        .collect();
    let post = PostParams::default();
    let asked = questions
        .iter()
        .map(|question| reviews.create(&post, question));
    let mut missing = Vec::new();
    for (answer, right) in futures::future::join_all(asked).await.iter().zip(wanted) {
        let answer = answer
            .as_ref()
            .map_err(|error| api::failed("asking for this user's rights", error))?;
        if !answer.status.as_ref().is_some_and(|status| status.allowed) {
            missing.push(right);
        }
    }
    Ok(missing)
}

fn in_words((verb, _, resource, sub): Right) -> String {
    let slash = if sub.is_empty() { "" } else { "/" };
    format!("{verb} {resource}{slash}{sub}")
}

fn review(namespace: &str, (verb, group, resource, sub): Right) -> SelfSubjectAccessReview {
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                // Namespaces are cluster-scoped. All verbs but `create` are checked for the name.
                namespace: (resource != "namespaces").then(|| namespace.to_owned()),
                name: (resource == "namespaces" && verb != "create").then(|| namespace.to_owned()),
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource: Some(sub.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

impl Facts {
    /// Decides whether the run may begin, and with which parameters.
    ///
    /// # Errors
    /// If the run cannot succeed, with cause and remedy.
    pub fn judge(&self, options: &ClusterOptions, arch: &str) -> Result<Readiness, RunError> {
        // A missing namespace is checked later: its creator may be granted permissions.
        if !self.lacks_namespace {
            self.judge_rights()?;
        }
        let mut ready = Readiness {
            pods: self.pods(options, arch)?,
            may_claim: self.may_claim,
            makes_namespace: self.lacks_namespace,
            ..Readiness::default()
        };
        let claims = match options.pods {
            Some(pods) if pods.shared => 1,
            _ => u64::from(ready.pods),
        };
        match &options.target {
            Target::StorageClass(class) | Target::Ephemeral(class) => {
                self.judge_class(class, options, &mut ready)?;
                self.judge_limits(options.claim_bytes)?;
                self.judge_quotas(class, options.claim_bytes, claims)?;
                self.judge_capacity(class, options.claim_bytes)?;
                ready.volume_bytes = Some(options.claim_bytes);
            }
            Target::Claim { name, .. } => self.judge_claim(name, options, &mut ready)?,
            Target::HostPath(path) => self.judge_level(path)?,
            _ => {}
        }
        judge_mode(options)?;
        self.judge_root(options)?;
        if let Some(why) = options.why_root() {
            let said = format!(
                "the pod runs as root, without capabilities: {why} (--run-as UID makes it another user)"
            );
            ready.notes.push(said);
        }
        self.judge_nodes(options, arch)?;
        ready.image = match &options.image {
            Some(image) => image.clone(),
            None => self.image(options, arch),
        };
        Ok(ready)
    }

    fn judge_rights(&self) -> Result<(), RunError> {
        if self.missing_rights.is_empty() {
            return Ok(());
        }
        Err(RunError::Unsupported {
            problem: format!(
                "this user may not do here what a run needs: {}",
                self.missing_rights.join(", ")
            ),
            remedy: "ask for the role in docs/kubernetes.md, or choose another namespace with -n"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
