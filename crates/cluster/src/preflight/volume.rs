//! Checks whether the volume is possible: class or claim, size and mode.

use super::claim_users::in_use;
use super::{Facts, Readiness};
use crate::free_room::{ShareFacts, is_shared_by_nodes};
use crate::manifest::{Quantity, quantity_bytes};
use crate::options::{ClusterOptions, VolumeMode};
use crate::refusal::{refuse, refuse_target};
use iosonde_job::TargetUri;
use iosonde_job::diagnostic::nearest;
use iosonde_result::run_error::{
    ClaimBound, ClusterObstacle, QuotaShortage, RunError, SharedFileProblem, VolumeProblem,
};
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
        judge_shared_file(class, classes, options)?;
        if class.provisioner == "kubernetes.io/no-provisioner" {
            ready.notes.push(format!(
                "the class {name} makes no volumes itself: one that was made by hand must be free"
            ));
        }
        if self.is_nowhere(&class.provisioner) {
            ready.notes.push(format!(
                "the class {name} needs the driver {}, which runs on no node: its pods may be \
                 down, and the claim stay without a volume",
                class.provisioner
            ));
        }
        let binds_late = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
        let is_placed = !options.node_selector.is_empty() || !options.pod.node_affinity.is_empty();
        if is_placed && !binds_late {
            ready.notes.push(format!(
                "the class {name} binds volumes before the pod has a node: where volumes belong \
                 to nodes or zones, it may be one that the labels exclude"
            ));
        }
        if class.reclaim_policy.as_deref() == Some("Retain") && !options.removes_retained {
            ready.notes.push(format!(
                "the class {name} retains volumes: the one of this run stays when its claim is \
                 gone; `kubectl get pv` shows it"
            ));
        }
        ready.share = ShareFacts::of_class(class);
        ready.notes.extend(ready.share.remainder.clone());
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
        let target = &options.target;
        let Some(claim) = &self.claim else {
            let name = name.to_owned();
            return refuse_target(target, VolumeProblem::NoClaim { name });
        };
        let bound = claim.status.as_ref();
        let capacity = bound.and_then(|bound| bound.capacity.as_ref()?.get("storage"));
        ready.volume_bytes = capacity.and_then(quantity_bytes);
        let spec = claim.spec.clone().unwrap_or_default();
        let is_block = spec.volume_mode.as_deref() == Some("Block");
        if is_block && options.volume_mode != VolumeMode::Block {
            return refuse_target(target, VolumeProblem::ClaimIsBlock);
        }
        if let (true, Some(user)) = (is_block, self.claim_users.first()) {
            return Err(in_use(&options.target, user));
        }
        if !is_block && options.volume_mode == VolumeMode::Block {
            return refuse_target(target, VolumeProblem::ClaimIsFileSystem);
        }
        let only_read = |mode: &String| mode == "ReadOnlyMany";
        if spec.access_modes.iter().flatten().all(only_read) && spec.access_modes.is_some() {
            return refuse_target(target, VolumeProblem::ClaimIsReadOnly);
        }
        let is_for_many = |mode: &String| mode == "ReadWriteMany";
        ready.share.is_share = !is_block && spec.access_modes.iter().flatten().any(is_for_many);
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
                let bound = match (least, most) {
                    (_, Some(most)) if claim_bytes > most => ClaimBound::MaximumBytes(most),
                    (Some(least), _) if claim_bytes < least => ClaimBound::MinimumBytes(least),
                    _ => continue,
                };
                return refuse(ClusterObstacle::ClaimOutsideLimits {
                    limit_range: name.to_owned(),
                    bound,
                    claim_bytes,
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
            Some(most) if most < claim_bytes => {
                let cause = VolumeProblem::DriverFull {
                    available_bytes: most,
                    claim_bytes,
                };
                Err(RunError::unusable_target(
                    format!("sc://{class}"),
                    cause.into(),
                ))
            }
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
                    let shortage = QuotaShortage::Bytes {
                        needed_bytes: bytes,
                        left_bytes: left,
                    };
                    return over_quota(name, resource, shortage);
                }
            }
            for resource in ["persistentvolumeclaims", &claims_of_class] {
                if let Some(left) = left(resource).filter(|left| *left < claims) {
                    let needed = claims;
                    return over_quota(name, resource, QuotaShortage::ClaimCount { needed, left });
                }
            }
        }
        Ok(())
    }
}

/// Fails if the files of the jobs cannot fit into the volume. A new volume that is a plain
/// directory may grow beyond the size of its claim: the free room of its file system is read in
/// the pod.
pub(super) fn judge_space(options: &ClusterOptions, ready: &Readiness) -> Result<(), RunError> {
    let (Some(needed), Some(volume_bytes)) = (options.needed, ready.volume_bytes) else {
        return Ok(());
    };
    let is_claim = matches!(options.target, TargetUri::Claim { .. });
    if ready.share.ignores_claim_size && !is_claim {
        return Ok(());
    }
    let users = match options.is_one_volume() {
        true => u64::from(ready.pods),
        false => 1,
    };
    let needed_bytes = needed.bytes.saturating_mul(users);
    if needed_bytes <= volume_bytes {
        return Ok(());
    }
    refuse(ClusterObstacle::VolumeTooSmall {
        option: (!is_claim).then(|| {
            let gib = sufficient_claim_gib(needed_bytes);
            format!("{} {gib}{}", needed.option, needed.gib_suffix)
        }),
        volume_bytes,
        needed_bytes,
    })
}

/// Returns the size in GiB of a claim whose file system has room for these files.
fn sufficient_claim_gib(needed_bytes: u64) -> u64 {
    let with_metadata = needed_bytes.saturating_add(needed_bytes / 8);
    with_metadata.div_ceil(1 << 30)
}

/// Fails if a directory of a node is requested as a block device.
pub(crate) fn judge_mode(options: &ClusterOptions) -> Result<(), RunError> {
    let is_directory = matches!(options.target, TargetUri::EmptyDir | TargetUri::HostPath(_));
    if !is_directory || options.volume_mode == VolumeMode::Filesystem {
        return Ok(());
    }
    refuse_target(&options.target, VolumeProblem::DirectoryAsBlock)
}

/// Fails if pods on several nodes are to share a file of a class that has no such volumes.
fn judge_shared_file(
    class: &StorageClass,
    classes: &[StorageClass],
    options: &ClusterOptions,
) -> Result<(), RunError> {
    let is_for_many = options.access_mode == "ReadWriteMany";
    // With `sharedFileSystemPath`, this provisioner has volumes that several nodes write.
    let is_one_node = is_shared_by_nodes(&class.provisioner) == Some(false)
        && class.provisioner != "rancher.io/local-path";
    if !options.checks_shared_file() || !is_for_many || !is_one_node {
        return Ok(());
    }
    let drivers = classes.iter().map(|class| class.provisioner.clone());
    let problem = SharedFileProblem::OneNodeDriver {
        driver: class.provisioner.clone(),
        drivers: drivers.collect(),
    };
    Err(problem.into_run_error(&options.target.to_string()))
}

fn no_class(name: &str, names: &[&str]) -> RunError {
    let cause = VolumeProblem::NoStorageClass {
        similar: nearest(name, names.iter().copied()).map(str::to_owned),
        known: names.iter().copied().map(str::to_owned).collect(),
    };
    RunError::unusable_target(format!("sc://{name}"), cause.into())
}

fn over_quota(quota: &str, resource: &str, shortage: QuotaShortage) -> Result<(), RunError> {
    refuse(ClusterObstacle::QuotaExceeded {
        quota: quota.to_owned(),
        resource: resource.to_owned(),
        shortage,
    })
}
