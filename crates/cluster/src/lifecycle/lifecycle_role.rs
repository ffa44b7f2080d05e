//! Rights of a session of volumes, and the roles that have them.

use crate::options::ClusterOptions;
use crate::preflight::role_with_namespace;
use crate::rights_role::{CommandRights, Right, cluster_role_manifest, role_manifest};

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
pub(crate) const RETAINED_RIGHTS: [Right; 4] = [
    ("get", "", "persistentvolumes", ""),
    ("list", "", "persistentvolumes", ""),
    ("watch", "", "persistentvolumes", ""),
    ("patch", "", "persistentvolumes", ""),
];

/// Returns all rights of a session. `retains`: a class retains volumes.
pub(crate) fn lifecycle_rights(retains: bool) -> CommandRights {
    let of_retained = RETAINED_RIGHTS.into_iter().filter(|_| retains);
    let needed: Vec<Right> = LIFECYCLE_RIGHTS.into_iter().chain(of_retained).collect();
    CommandRights {
        role_name: "iosonde-lifecycle",
        used: needed.clone(),
        needed,
    }
}

/// Returns the manifests of roles with all rights that are needed.
pub(super) fn lifecycle_roles(namespace: &str, options: &ClusterOptions, retains: bool) -> String {
    let command = lifecycle_rights(retains);
    if options.create_namespace {
        return role_with_namespace(&command);
    }
    let mut roles = role_manifest(namespace, command.role_name, &LIFECYCLE_RIGHTS);
    if retains {
        roles.push_str("---\n");
        let of_volumes = cluster_role_manifest(command.role_name, &RETAINED_RIGHTS);
        roles.push_str(&of_volumes);
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_for_a_created_namespace_is_one_cluster_role_without_exec() {
        let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
        let of_one = lifecycle_roles("lab", &options, true);
        let name = "metadata: {name: iosonde-lifecycle, namespace: lab}\n";
        assert!(of_one.contains(name), "{of_one}");
        assert_eq!(of_one.matches("kind:").count(), 2, "{of_one}");
        options.create_namespace = true;
        let of_new = lifecycle_roles("lab", &options, true);
        for words in [
            "kind: ClusterRole\nmetadata: {name: iosonde-lifecycle-namespaces}\n",
            "resources: [namespaces], verbs: [create, get, patch, delete]",
            "resources: [jobs], verbs: [create, get, patch, delete, list]",
            "resources: [persistentvolumes], verbs: [get, list, watch, patch]",
        ] {
            assert!(of_new.contains(words), "{words}: {of_new}");
        }
        assert_eq!(of_new.matches("kind:").count(), 1, "{of_new}");
        assert!(!of_new.contains("exec"), "{of_new}");
        let of_deleted = lifecycle_roles("lab", &options, false);
        assert!(!of_deleted.contains("persistentvolumes]"), "{of_deleted}");
    }
}
