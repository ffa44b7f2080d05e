//! Checks whether the volume is possible: class or claim, size and mode.

use super::claim_users::in_use;
use super::{Facts, Readiness};
use crate::manifest::{Quantity, quantity, quantity_bytes};
use crate::options::{ClusterOptions, VolumeMode};
use iosonde_job::Target;
use iosonde_job::diagnostic::nearest;
use iosonde_result::session::RunError;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, StorageClass};
use std::collections::BTreeMap;

impl Facts {
    pub(super) fn judge_class(
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
        if self.is_nowhere(&class.provisioner) {
            ready.notes.push(format!(
                "the class {name} needs the driver {}, which runs on no node: its pods may be down, and the claim stay without a \
                 volume",
                class.provisioner
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

    /// Whether the provisioner is a CSI driver that no node has.
    fn is_nowhere(&self, provisioner: &str) -> bool {
        let (Some(drivers), Some(nodes)) = (&self.drivers, &self.driver_nodes) else {
            return false;
        };
        let is_it = |driver: &CSIDriver| driver.metadata.name.as_deref() == Some(provisioner);
        let has_it = |node: &CSINode| {
            let mut known = node.spec.drivers.iter();
            known.any(|driver| driver.name == provisioner)
        };
        drivers.iter().any(is_it) && !nodes.iter().any(has_it)
    }

    pub(super) fn judge_claim(
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
        let bound = claim.status.as_ref();
        let capacity = bound.and_then(|bound| bound.capacity.as_ref()?.get("storage"));
        ready.volume_bytes = capacity.and_then(quantity_bytes);
        let spec = claim.spec.clone().unwrap_or_default();
        let is_block = spec.volume_mode.as_deref() == Some("Block");
        if is_block && options.volume_mode != VolumeMode::Block {
            return refuse(
                "this claim is a block device, not a file system".to_owned(),
                "add --volume-mode block: the device is then written, unless it carries something",
            );
        }
        if let (true, Some(user)) = (is_block, self.claim_users.first()) {
            return Err(in_use(&options.target, user));
        }
        if !is_block && options.volume_mode == VolumeMode::Block {
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

    pub(super) fn judge_limits(&self, claim_bytes: u64) -> Result<(), RunError> {
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

    /// Fails if the drivers publish their free space, and it is too little everywhere.
    pub(super) fn judge_capacity(&self, class: &str, claim_bytes: u64) -> Result<(), RunError> {
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

    pub(super) fn judge_quotas(
        &self,
        class: &str,
        claim_bytes: u64,
        claims: u64,
    ) -> Result<(), RunError> {
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
}

/// Fails if a directory of a node is requested as a block device.
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
    quantity(bytes).0
}
