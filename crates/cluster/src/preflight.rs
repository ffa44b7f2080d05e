//! Whether a run can be done at all, asked before anything is created.
//!
//! `look` asks the cluster, [`Facts::judge`] decides: pure, on what was answered. What this user may not see is not
//! judged; the run then finds out.

mod count;

use crate::api;
use crate::connect::Cluster;
use crate::manifest::{Quantity, quantity_bytes};
use crate::options::{ClusterOptions, VolumeMode, pod};
use iosonde_job::Target;
use iosonde_job::diagnostic::nearest;
use iosonde_result::session::RunError;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolumeClaim, ResourceQuota,
};
use k8s_openapi::api::storage::v1::{CSIStorageCapacity, StorageClass};
use kube::api::{Api, ListParams, PostParams};
use std::collections::BTreeMap;

/// Images with a shell, the smallest first: by the last part of their name.
const SHELLS: [&str; 5] = ["busybox", "alpine", "debian", "ubuntu", "bash"];
/// What is used where no node has any of them.
const FALLBACK_IMAGE: &str = "busybox";

/// What a run does in its namespace: verb, API group, resource, subresource.
pub const RIGHTS: [(&str, &str, &str, &str); 8] = [
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "exec"),
    ("list", "", "persistentvolumeclaims", ""),
    ("list", "", "events", ""),
];
/// What a claim that several pods share needs besides.
const RIGHT_TO_CLAIM: (&str, &str, &str, &str) = ("create", "", "persistentvolumeclaims", "");

/// What the cluster answered. `None`: this user may not ask.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// All storage classes.
    pub classes: Option<Vec<StorageClass>>,
    /// All nodes.
    pub nodes: Option<Vec<Node>>,
    /// The namespace.
    pub namespace: Option<Namespace>,
    /// The quotas of the namespace.
    pub quotas: Option<Vec<ResourceQuota>>,
    /// What the namespace allows a single object.
    pub limits: Option<Vec<LimitRange>>,
    /// What drivers publish of the space that is left.
    pub capacities: Option<Vec<CSIStorageCapacity>>,
    /// The claim, where one is the target and it exists.
    pub claim: Option<PersistentVolumeClaim>,
    /// What of [`RIGHTS`] this user does not have, in words.
    pub missing_rights: Vec<String>,
}

/// What follows for the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readiness {
    /// The image to use.
    pub image: String,
    /// What the user should know before anything is created.
    pub notes: Vec<String>,
    /// Labels of the result.
    pub labels: BTreeMap<String, String>,
    /// How many pods.
    pub pods: u32,
}

/// Asks the cluster.
///
/// # Errors
/// When it cannot be reached.
pub(crate) async fn look(cluster: &Cluster, options: &ClusterOptions) -> Result<Facts, RunError> {
    let client = &cluster.client;
    let missing_rights = missing_rights(cluster, options).await?;
    let all = ListParams::default();
    let classes: Api<StorageClass> = Api::all(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), &cluster.namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &cluster.namespace);
    let limits: Api<LimitRange> = Api::namespaced(client.clone(), &cluster.namespace);
    let capacities: Api<CSIStorageCapacity> = Api::all(client.clone());
    let (classes, nodes, namespace, quotas, limits, capacities) = futures::join!(
        classes.list(&all),
        nodes.list(&all),
        namespaces.get_opt(&cluster.namespace),
        quotas.list(&all),
        limits.list(&all),
        capacities.list(&all),
    );
    if let Ok(None) = &namespace {
        return Err(RunError::Unsupported {
            problem: format!("the namespace {} does not exist", cluster.namespace),
            remedy: format!(
                "choose another with -n, or make it: kubectl create namespace {}",
                cluster.namespace
            ),
        });
    }
    let claim = match &options.target {
        Target::Claim { name, .. } => claims
            .get_opt(name)
            .await
            .map_err(|error| api::failed(&format!("reading the claim {name}"), &error))?,
        _ => None,
    };
    Ok(Facts {
        classes: classes.ok().map(|list| list.items),
        nodes: nodes.ok().map(|list| list.items),
        namespace: namespace.ok().flatten(),
        quotas: quotas.ok().map(|list| list.items),
        limits: limits.ok().map(|list| list.items),
        capacities: capacities.ok().map(|list| list.items),
        claim,
        missing_rights,
    })
}

async fn missing_rights(
    cluster: &Cluster,
    options: &ClusterOptions,
) -> Result<Vec<String>, RunError> {
    let mut rights = RIGHTS.to_vec();
    if options.pods.is_some_and(|pods| pods.shared) {
        rights.push(RIGHT_TO_CLAIM);
    }
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let questions: Vec<_> = rights
        .iter()
        .map(|right| review(&cluster.namespace, *right))
        .collect();
    let post = PostParams::default();
    let asked = questions
        .iter()
        .map(|question| reviews.create(&post, question));
    let mut missing = Vec::new();
    for (answer, (verb, _, resource, sub)) in
        futures::future::join_all(asked).await.iter().zip(rights)
    {
        let answer = answer
            .as_ref()
            .map_err(|error| api::failed("asking for this user's rights", error))?;
        if !answer.status.as_ref().is_some_and(|status| status.allowed) {
            let slash = if sub.is_empty() { "" } else { "/" };
            missing.push(format!("{verb} {resource}{slash}{sub}"));
        }
    }
    Ok(missing)
}

fn review(
    namespace: &str,
    (verb, group, resource, sub): (&str, &str, &str, &str),
) -> SelfSubjectAccessReview {
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
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
    /// Decides whether the run may begin, and how.
    ///
    /// # Errors
    /// When it cannot succeed, with the cause and a remedy.
    pub fn judge(&self, options: &ClusterOptions, arch: &str) -> Result<Readiness, RunError> {
        self.judge_rights()?;
        let mut ready = Readiness {
            pods: self.pods(options, arch)?,
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
            }
            Target::Claim { name, .. } => self.judge_claim(name, options, &mut ready)?,
            Target::HostPath(path) => self.judge_level(path)?,
            _ => {}
        }
        judge_mode(options)?;
        self.judge_root(options)?;
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

    fn judge_class(
        &self,
        name: &str,
        options: &ClusterOptions,
        ready: &mut Readiness,
    ) -> Result<(), RunError> {
        ready
            .labels
            .insert("storage_class".to_owned(), name.to_owned());
        let Some(classes) = &self.classes else {
            return Ok(());
        };
        let named = |class: &&StorageClass| class.metadata.name.as_deref() == Some(name);
        let Some(class) = classes.iter().find(named) else {
            let names: Vec<&str> = classes
                .iter()
                .filter_map(|c| c.metadata.name.as_deref())
                .collect();
            return Err(no_class(name, &names));
        };
        ready
            .labels
            .insert("provisioner".to_owned(), class.provisioner.clone());
        if class.provisioner == "kubernetes.io/no-provisioner" {
            ready.notes.push(format!(
                "the class {name} makes no volumes itself: one that was made by hand must be free"
            ));
        }
        let binds_late = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
        let is_placed = !options.node_selector.is_empty() || !options.pod.node_affinity.is_empty();
        if is_placed && !binds_late {
            ready.notes.push(format!(
                "the class {name} binds volumes before the pod has a node: where volumes belong to nodes or zones, it may be one \
                 that the labels exclude"
            ));
        }
        if class.reclaim_policy.as_deref() == Some("Retain") {
            ready.notes.push(format!(
                "the class {name} retains volumes: the one of this run stays when its claim is gone; \
                 `kubectl get pv` shows it"
            ));
        }
        Ok(())
    }

    fn judge_claim(
        &self,
        name: &str,
        options: &ClusterOptions,
        ready: &mut Readiness,
    ) -> Result<(), RunError> {
        let refuse = |problem: String, remedy: &str| {
            Err(RunError::Target {
                path: options.target.to_string(),
                problem,
                remedy: remedy.to_owned(),
            })
        };
        let Some(claim) = &self.claim else {
            return refuse(
                format!("there is no claim {name} in this namespace"),
                "see `kubectl get pvc`, or choose another namespace with -n",
            );
        };
        let spec = claim.spec.clone().unwrap_or_default();
        let is_block = spec.volume_mode.as_deref() == Some("Block");
        if is_block {
            return refuse(
                "this claim is a block device, and what is on it may be somebody's".to_owned(),
                "measure a claim of your own: sc://CLASS with --volume-mode block",
            );
        }
        if options.volume_mode == VolumeMode::Block {
            return refuse(
                "this claim is a file system, not a block device".to_owned(),
                "leave out --volume-mode",
            );
        }
        let only_read = |mode: &String| mode == "ReadOnlyMany";
        if spec.access_modes.iter().flatten().all(only_read) && spec.access_modes.is_some() {
            return refuse(
                "this claim can only be read".to_owned(),
                "use a claim that can be written: a file is made in it and removed",
            );
        }
        if let Some(class) = spec.storage_class_name {
            ready.labels.insert("storage_class".to_owned(), class);
        }
        Ok(())
    }

    /// The Pod Security Standard that the namespace enforces.
    fn level(&self) -> Option<&str> {
        let labels = self.namespace.as_ref()?.metadata.labels.as_ref()?;
        let level = labels.get("pod-security.kubernetes.io/enforce")?;
        Some(level.as_str())
    }

    /// Block devices belong to root.
    fn judge_root(&self, options: &ClusterOptions) -> Result<(), RunError> {
        let is_block = options.volume_mode == VolumeMode::Block;
        // A directory of a node is root's, and was judged before.
        let is_root = options.run_as.map_or(is_block, |user| user == 0);
        if !is_root || self.level() != Some("restricted") {
            return Ok(());
        }
        Err(RunError::Target {
            path: options.target.to_string(),
            problem: "the namespace's Pod Security level `restricted` forbids pods that run as root, as this one would"
                .to_owned(),
            remedy: match is_block {
                true => "choose a namespace with the level `baseline` with -n, or name the user that the node gives \
                         devices to with --run-as"
                    .to_owned(),
                false => "leave out --run-as 0".to_owned(),
            },
        })
    }

    fn judge_level(&self, path: &str) -> Result<(), RunError> {
        match self.level() {
            Some(level @ ("restricted" | "baseline")) => Err(RunError::Target {
                path: format!("hostpath://{path}"),
                problem: format!(
                    "the namespace's Pod Security level `{level}` forbids hostPath volumes"
                ),
                remedy: "choose a namespace with the level `privileged` with -n".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn judge_limits(&self, claim_bytes: u64) -> Result<(), RunError> {
        for limit in self.limits.iter().flatten() {
            let name = limit.metadata.name.as_deref().unwrap_or_default();
            let items = limit.spec.iter().flat_map(|spec| &spec.limits);
            for item in items.filter(|item| item.type_ == "PersistentVolumeClaim") {
                let bound = |bounds: &Option<BTreeMap<String, Quantity>>| {
                    let quantity = bounds.as_ref()?.get("storage")?;
                    quantity_bytes(quantity)
                };
                let (least, most) = (bound(&item.min), bound(&item.max));
                let problem = match (least, most) {
                    (_, Some(most)) if claim_bytes > most => {
                        format!("a claim may have {} at most", in_words(most))
                    }
                    (Some(least), _) if claim_bytes < least => {
                        format!("a claim must have {} at least", in_words(least))
                    }
                    _ => continue,
                };
                return Err(RunError::Unsupported {
                    problem: format!(
                        "the limit range {name} does not allow it: {problem}, and {} is asked for",
                        in_words(claim_bytes)
                    ),
                    remedy: "use another --claim-size, or a namespace with other limits".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Where drivers publish how much is left, and it is too little everywhere.
    fn judge_capacity(&self, class: &str, claim_bytes: u64) -> Result<(), RunError> {
        let published = self.capacities.iter().flatten();
        let of_class = published.filter(|capacity| capacity.storage_class_name == class);
        let left = of_class.filter_map(|capacity| {
            let largest = capacity.maximum_volume_size.as_ref();
            quantity_bytes(largest.or(capacity.capacity.as_ref())?)
        });
        match left.max() {
            Some(most) if most < claim_bytes => Err(RunError::Target {
                path: format!("sc://{class}"),
                problem: format!(
                    "its driver has room for volumes of {} at most, and {} is asked for",
                    in_words(most),
                    in_words(claim_bytes)
                ),
                remedy: "use a smaller --claim-size, or remove what is not needed".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn judge_quotas(&self, class: &str, claim_bytes: u64, claims: u64) -> Result<(), RunError> {
        let bytes = claim_bytes.saturating_mul(claims);
        let of_class = format!("{class}.storageclass.storage.k8s.io/requests.storage");
        let claims_of_class = format!("{class}.storageclass.storage.k8s.io/persistentvolumeclaims");
        for quota in self.quotas.iter().flatten() {
            let name = quota.metadata.name.as_deref().unwrap_or_default();
            let left = |resource: &str| {
                let status = quota.status.as_ref()?;
                let hard = quantity_bytes(status.hard.as_ref()?.get(resource)?)?;
                let used = status.used.as_ref().and_then(|used| used.get(resource));
                let used = used.and_then(quantity_bytes).unwrap_or(0);
                Some(hard.saturating_sub(used))
            };
            for resource in ["requests.storage", &of_class] {
                if let Some(left) = left(resource).filter(|left| *left < bytes) {
                    return Err(over_quota(
                        name,
                        resource,
                        &format!(
                            "{} is asked for, but {} is left",
                            in_words(bytes),
                            in_words(left),
                        ),
                    ));
                }
            }
            for resource in ["persistentvolumeclaims", &claims_of_class] {
                if left(resource).is_some_and(|left| left < claims) {
                    return Err(over_quota(name, resource, "no further claim is allowed"));
                }
            }
        }
        Ok(())
    }

    fn judge_nodes(&self, options: &ClusterOptions, arch: &str) -> Result<(), RunError> {
        let Some(nodes) = &self.nodes else {
            return Ok(());
        };
        let selected: Vec<&Node> = nodes.iter().filter(|n| is_selected(n, options)).collect();
        let refuse = |problem: String, remedy: &str| {
            Err(RunError::Unsupported {
                problem,
                remedy: remedy.to_owned(),
            })
        };
        if selected.is_empty() {
            let selector = options.node_selector.iter();
            let affinity = options.pod.node_affinity.iter();
            let wanted: Vec<String> = selector
                .map(|(k, v)| format!("{k}={v}"))
                .chain(affinity.map(pod::in_words))
                .collect();
            return refuse(
                format!("no node has the labels {}", wanted.join(",")),
                "see `kubectl get nodes --show-labels`; nodes that an autoscaler has yet to make are chosen with --pod-patch",
            );
        }
        let fitting: Vec<&&Node> = selected
            .iter()
            .filter(|node| node_arch(node) == arch)
            .collect();
        if fitting.is_empty() {
            let mut found: Vec<&str> = selected.iter().map(|node| node_arch(node)).collect();
            found.sort_unstable();
            found.dedup();
            return refuse(
                format!(
                    "the nodes are {}, but the agent at hand runs on {arch}",
                    found.join(" and ")
                ),
                "use an iosonde that was built for these nodes",
            );
        }
        if !fitting.iter().any(|node| is_usable(node)) {
            return refuse(
                "no node can take a pod: all are not ready, or closed to new pods".to_owned(),
                "see `kubectl get nodes`",
            );
        }
        Ok(())
    }

    /// An image with a shell that is on a node already, so that nothing need be pulled.
    fn image(&self, options: &ClusterOptions, arch: &str) -> String {
        let nodes = self.nodes.iter().flatten();
        let fitting = nodes.filter(|node| count::takes_a_pod(node, options, arch));
        let names: Vec<&String> = fitting
            .filter_map(|node| node.status.as_ref()?.images.as_ref())
            .flatten()
            .filter_map(|image| image.names.as_ref())
            .flatten()
            // A name with a digest alone is as good, but says nothing to a reader.
            .filter(|name| !name.contains('@'))
            .collect();
        let of = |shell: &&str| {
            names.iter().find(|name| {
                let last = name.rsplit('/').next().unwrap_or_default();
                last.split(':').next() == Some(shell)
            })
        };
        let found = SHELLS.iter().find_map(of);
        found.map_or_else(|| FALLBACK_IMAGE.to_owned(), |name| (*name).clone())
    }
}

/// A directory of the node is no block device.
pub(crate) fn judge_mode(options: &ClusterOptions) -> Result<(), RunError> {
    let is_directory = matches!(options.target, Target::EmptyDir | Target::HostPath(_));
    if !is_directory || options.volume_mode == VolumeMode::Filesystem {
        return Ok(());
    }
    Err(RunError::Target {
        path: options.target.to_string(),
        problem: "this is a directory, and cannot be had as a block device".to_owned(),
        remedy: "leave out --volume-mode, or measure a claim: sc://CLASS".to_owned(),
    })
}

fn no_class(name: &str, names: &[&str]) -> RunError {
    let remedy = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean sc://{meant}?"),
        None if names.is_empty() => "this cluster has no storage classes".to_owned(),
        None => format!("there are {}", names.join(", ")),
    };
    RunError::Target {
        path: format!("sc://{name}"),
        problem: "there is no such storage class".to_owned(),
        remedy,
    }
}

fn over_quota(quota: &str, resource: &str, why: &str) -> RunError {
    RunError::Unsupported {
        problem: format!("the quota {quota} ({resource}) does not allow it: {why}"),
        remedy: "use a smaller --claim-size, remove what is not needed, or ask for more quota"
            .to_owned(),
    }
}

fn in_words(bytes: u64) -> String {
    crate::manifest::quantity(bytes).0
}

pub(crate) fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn is_selected(node: &Node, options: &ClusterOptions) -> bool {
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let mut selector = options.node_selector.iter();
    let mut affinity = options.pod.node_affinity.iter();
    selector.all(|(key, value)| label(node, key) == Some(value))
        && affinity.all(|requirement| pod::holds(requirement, labels))
}

fn node_arch(node: &Node) -> &str {
    label(node, "kubernetes.io/arch").unwrap_or("of an unknown kind")
}

pub(crate) fn is_usable(node: &Node) -> bool {
    let is_closed = node
        .spec
        .as_ref()
        .is_some_and(|spec| spec.unschedulable == Some(true));
    is_ready(node) && !is_closed
}

/// Whether the node says that it is well.
pub(crate) fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Labels of a result that the node of its pod tells.
pub(crate) fn node_labels(node: &Node) -> BTreeMap<String, String> {
    let known = [
        ("topology.kubernetes.io/region", "region"),
        ("topology.kubernetes.io/zone", "zone"),
        ("node.kubernetes.io/instance-type", "instance_type"),
    ];
    known
        .iter()
        .filter_map(|(key, ours)| Some(((*ours).to_owned(), label(node, key)?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests;
