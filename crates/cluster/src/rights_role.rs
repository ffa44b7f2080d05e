//! A Role or a ClusterRole that has given rights, as a manifest to apply.
//!
//! Each command has a role of its own name: applying a role replaces the rules of another one that
//! has the same name.

/// Verb, API group, resource, subresource.
pub(crate) type Right = (&'static str, &'static str, &'static str, &'static str);

/// Rights of a command in its namespace and in the cluster, and the name of the role that has them.
#[derive(Debug, Clone)]
pub(crate) struct CommandRights {
    /// Name of the role.
    pub(crate) role_name: &'static str,
    /// Rights without which the command fails.
    pub(crate) needed: Vec<Right>,
    /// All rights that the command uses.
    pub(crate) used: Vec<Right>,
}

/// Returns the manifest of a Role with these rights.
pub(crate) fn role_manifest(namespace: &str, name: &str, rights: &[Right]) -> String {
    let metadata = format!("{{name: {name}, namespace: {namespace}}}");
    let binding = format!(
        "# Binds it: kubectl -n {namespace} create rolebinding {name} --role={name} --user=USER\n"
    );
    binding + &manifest("Role", &metadata, rights)
}

/// Returns the manifest of a ClusterRole with these rights on resources outside of namespaces, or
/// in all namespaces.
pub(crate) fn cluster_role_manifest(name: &str, rights: &[Right]) -> String {
    let binding = format!(
        "# Binds it: kubectl create clusterrolebinding {name} --clusterrole={name} --user=USER\n"
    );
    binding + &manifest("ClusterRole", &format!("{{name: {name}}}"), rights)
}

/// Returns a manifest with one rule for each resource. A right may be given several times.
fn manifest(kind: &str, metadata: &str, rights: &[Right]) -> String {
    let mut rules: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for &(verb, group, resource, sub) in rights {
        let resource = match sub {
            "" => resource.to_owned(),
            sub => format!("{resource}/{sub}"),
        };
        let of_resource = rules.iter_mut().find(|(_, known, _)| *known == resource);
        match of_resource {
            Some((_, _, verbs)) if verbs.contains(&verb) => {}
            Some((_, _, verbs)) => verbs.push(verb),
            None => rules.push((group, resource, vec![verb])),
        }
    }
    let mut text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {metadata}\nrules:\n"
    );
    for (group, resource, verbs) in rules {
        let verbs = verbs.join(", ");
        text.push_str(&format!(
            "- {{apiGroups: [\"{group}\"], resources: [{resource}], verbs: [{verbs}]}}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_has_one_rule_for_each_resource() {
        let rights: [Right; 4] = [
            ("create", "batch", "jobs", ""),
            ("list", "", "pods", ""),
            ("delete", "batch", "jobs", ""),
            ("create", "batch", "jobs", ""),
        ];
        let role = role_manifest("lab", "iosonde", &rights);
        let rules: Vec<&str> = role.lines().filter(|line| line.starts_with('-')).collect();
        let expected = [
            "- {apiGroups: [\"batch\"], resources: [jobs], verbs: [create, delete]}",
            "- {apiGroups: [\"\"], resources: [pods], verbs: [list]}",
        ];
        assert_eq!(rules, expected);
        let of_exec = role_manifest("lab", "iosonde", &[("create", "", "pods", "exec")]);
        assert!(of_exec.contains("resources: [pods/exec]"), "{of_exec}");
        let of_cluster =
            cluster_role_manifest("iosonde-volumes", &[("patch", "", "persistentvolumes", "")]);
        assert!(of_cluster.contains("kind: ClusterRole\n"), "{of_cluster}");
        assert!(!of_cluster.contains("namespace:"), "{of_cluster}");
    }

    #[test]
    fn role_and_its_binding_have_the_name_of_the_command() {
        let role = role_manifest("lab", "iosonde-attach", &[("list", "", "pods", "")]);
        let binding = "# Binds it: kubectl -n lab create rolebinding iosonde-attach \
                       --role=iosonde-attach --user=USER\n";
        assert!(role.starts_with(binding), "{role}");
        let metadata = "metadata: {name: iosonde-attach, namespace: lab}\n";
        assert!(role.contains(metadata), "{role}");
    }
}
