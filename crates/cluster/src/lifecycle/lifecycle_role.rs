//! Rights of a session of volumes, and the roles that have them.

use crate::class_retention::ClassRetention;
use crate::options::ClusterOptions;
use crate::preflight::role_with_namespace;
use crate::rights_role::{CommandRights, Right, cluster_role_manifest, role_manifest};

/// Name of the roles: of the Role with the rights in the namespace, and of the ClusterRole with
/// those on volumes that a class retains.
const ROLE_NAME: &str = "iosonde-lifecycle";

/// Permissions that the run needs in its namespace.
const LIFECYCLE_RIGHTS: [Right; 15] = [
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("patch", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("create", "", "pods", ""),
    ("list", "", "pods", ""),
    ("watch", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("create", "", "persistentvolumeclaims", ""),
    ("list", "", "persistentvolumeclaims", ""),
    ("watch", "", "persistentvolumeclaims", ""),
    ("patch", "", "persistentvolumeclaims", ""),
    ("delete", "", "persistentvolumeclaims", ""),
    ("list", "", "events", ""),
    ("watch", "", "events", ""),
];

/// Additional permissions for a class that retains volumes, whose policy is changed to remove them.
const RETAINED_RIGHTS: [Right; 4] = [
    ("get", "", "persistentvolumes", ""),
    ("list", "", "persistentvolumes", ""),
    ("watch", "", "persistentvolumes", ""),
    ("patch", "", "persistentvolumes", ""),
];

/// Returns all rights of a session. Those on retained volumes are needed only if a class is known
/// to retain volumes.
pub(crate) fn lifecycle_rights(retention: ClassRetention) -> CommandRights {
    let with_volumes = |is_with: bool| -> Vec<Right> {
        let of_volumes = RETAINED_RIGHTS.into_iter().filter(|_| is_with);
        LIFECYCLE_RIGHTS.into_iter().chain(of_volumes).collect()
    };
    CommandRights {
        role_name: match retention.may_retain() {
            true => "iosonde-lifecycle-volumes",
            false => ROLE_NAME,
        },
        needed: with_volumes(retention.retains()),
        used: with_volumes(retention.may_retain()),
    }
}

/// Returns the manifests of roles with all rights that are used.
pub(super) fn lifecycle_roles(
    namespace: &str,
    options: &ClusterOptions,
    retention: ClassRetention,
) -> String {
    if options.create_namespace {
        return role_with_namespace(&lifecycle_rights(retention));
    }
    let mut roles = role_manifest(namespace, ROLE_NAME, &LIFECYCLE_RIGHTS);
    if retention.may_retain() {
        roles.push_str("---\n");
        roles.push_str(&cluster_role_manifest(ROLE_NAME, &RETAINED_RIGHTS));
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_for_a_created_namespace_is_one_cluster_role_without_exec() {
        let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
        let of_one = lifecycle_roles("lab", &options, ClassRetention::Retains);
        let name = "metadata: {name: iosonde-lifecycle, namespace: lab}\n";
        assert!(of_one.contains(name), "{of_one}");
        assert_eq!(of_one.matches("kind:").count(), 2, "{of_one}");
        options.create_namespace = true;
        let of_new = lifecycle_roles("lab", &options, ClassRetention::Retains);
        for words in [
            "kind: ClusterRole\nmetadata: {name: iosonde-lifecycle-volumes-namespaces}\n",
            "resources: [namespaces], verbs: [create, get, patch, delete]",
            "resources: [jobs], verbs: [create, get, patch, delete, list]",
            "resources: [persistentvolumes], verbs: [get, list, watch, patch]",
        ] {
            assert!(of_new.contains(words), "{words}: {of_new}");
        }
        assert_eq!(of_new.matches("kind:").count(), 1, "{of_new}");
        assert!(!of_new.contains("exec"), "{of_new}");
        let of_deleted = lifecycle_roles("lab", &options, ClassRetention::Deletes);
        assert!(!of_deleted.contains("persistentvolumes]"), "{of_deleted}");
        let name = "metadata: {name: iosonde-lifecycle-namespaces}\n";
        assert!(of_deleted.contains(name), "{of_deleted}");
    }

    #[test]
    fn role_of_unreadable_classes_has_rights_on_volumes_that_are_not_needed() {
        let rights = lifecycle_rights(ClassRetention::Unknown);
        assert_eq!(rights.needed, LIFECYCLE_RIGHTS);
        let is_used = |right: &Right| rights.used.contains(right);
        assert!(RETAINED_RIGHTS.iter().all(is_used), "{rights:?}");
        let options = ClusterOptions::new("sc://fast".parse().unwrap());
        let roles = lifecycle_roles("lab", &options, ClassRetention::Unknown);
        assert!(roles.contains("resources: [persistentvolumes]"), "{roles}");
    }
}
