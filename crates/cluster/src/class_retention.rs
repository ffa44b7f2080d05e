//! [`ClassRetention`]: whether storage classes retain volumes. Their removal needs further rights.

use crate::connect::KubeCluster;
use crate::rights_role::Right;
use iosonde_job::TargetUri;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams};

/// Permissions without which volumes that their class retains are not removed: iosonde changes
/// their policy, and then only the provisioner deletes their data.
pub(crate) const RIGHTS_TO_REMOVE_VOLUMES: [Right; 2] = [
    ("list", "", "persistentvolumes", ""),
    ("patch", "", "persistentvolumes", ""),
];
/// Permissions for removing volumes that their class retains, and for waiting until they are gone.
pub(crate) const VOLUME_RIGHTS: [Right; 3] = [
    ("get", "", "persistentvolumes", ""),
    RIGHTS_TO_REMOVE_VOLUMES[0],
    RIGHTS_TO_REMOVE_VOLUMES[1],
];

/// Whether the classes of a command retain volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassRetention {
    /// All classes delete them.
    Deletes,
    /// A class retains them.
    Retains,
    /// This user may not read the classes.
    Unknown,
}

impl ClassRetention {
    /// Queries the reclaim policies of the classes of these targets.
    pub(crate) async fn query(cluster: &KubeCluster, targets: &[&TargetUri]) -> ClassRetention {
        let classes: Api<StorageClass> = Api::all(cluster.client.clone());
        let list = classes.list(&ListParams::default()).await;
        Self::from_classes(list.ok().map(|list| list.items).as_deref(), targets)
    }

    /// Decides by the classes of the cluster. `None`: this user may not read them.
    fn from_classes(classes: Option<&[StorageClass]>, targets: &[&TargetUri]) -> ClassRetention {
        let Some(classes) = classes else {
            return ClassRetention::Unknown;
        };
        let is_target = |class: &StorageClass| {
            let name = class.metadata.name.as_deref();
            targets.iter().any(|target| match target {
                TargetUri::StorageClass(target) => name == Some(target.as_str()),
                _ => false,
            })
        };
        let retains = |class: &StorageClass| class.reclaim_policy.as_deref() == Some("Retain");
        match classes
            .iter()
            .any(|class| is_target(class) && retains(class))
        {
            true => ClassRetention::Retains,
            false => ClassRetention::Deletes,
        }
    }

    /// Whether the command needs the rights to remove volumes that are retained.
    pub(crate) fn retains(self) -> bool {
        self == ClassRetention::Retains
    }

    /// Whether the command may need them, so that its roles have them.
    pub(crate) fn may_retain(self) -> bool {
        self != ClassRetention::Deletes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn retention_is_unknown_if_classes_may_not_be_read() {
        let class = |name: &str, policy: &str| -> StorageClass {
            let class = json!({"metadata": {"name": name}, "provisioner": "example.com/disk",
                "reclaimPolicy": policy});
            from_value(class).unwrap()
        };
        let classes = [class("fast", "Delete"), class("kept", "Retain")];
        let fast: TargetUri = "sc://fast".parse().unwrap();
        let kept: TargetUri = "sc://kept".parse().unwrap();
        let decide = |targets: &[&TargetUri]| ClassRetention::from_classes(Some(&classes), targets);
        assert_eq!(decide(&[&fast]), ClassRetention::Deletes);
        assert_eq!(decide(&[&fast, &kept]), ClassRetention::Retains);
        let unread = ClassRetention::from_classes(None, &[&fast]);
        assert_eq!(unread, ClassRetention::Unknown);
        assert!(unread.may_retain() && !unread.retains());
    }
}
