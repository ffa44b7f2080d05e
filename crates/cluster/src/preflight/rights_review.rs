//! Reads the rules for this user in one request, instead of one review per right.

use crate::connect::KubeCluster;
use crate::rights_role::Right;
use k8s_openapi::api::authorization::v1::{
    ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::api::{Api, PostParams};

/// Returns the rules in the namespace. They may be incomplete, so a right that they lack may still
/// be granted. A cluster that refuses the request tells none.
///
/// # Errors
/// If the cluster does not answer.
pub(super) async fn read_rules(cluster: &KubeCluster) -> Result<Vec<ResourceRule>, kube::Error> {
    let reviews: Api<SelfSubjectRulesReview> = Api::all(cluster.client.clone());
    let question = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(cluster.namespace.clone()),
        },
        ..SelfSubjectRulesReview::default()
    };
    match reviews.create(&PostParams::default(), &question).await {
        Ok(answer) => Ok(answer
            .status
            .map_or_else(Vec::new, |status| status.resource_rules)),
        Err(kube::Error::Api(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Resources outside of namespaces. The rules of a namespace include those of its RoleBindings,
/// which do not grant them. Rights on namespaces also depend on names.
pub(super) const CLUSTER_RESOURCES: [&str; 6] = [
    "namespaces",
    "nodes",
    "persistentvolumes",
    "storageclasses",
    "volumeattachments",
    "volumesnapshotclasses",
];

/// Whether a rule grants the right. Rights on resources outside of namespaces are reviewed.
pub(super) fn is_allowed(rules: &[ResourceRule], (verb, group, resource, sub): Right) -> bool {
    if CLUSTER_RESOURCES.contains(&resource) {
        return false;
    }
    let name = match sub {
        "" => resource.to_owned(),
        sub => format!("{resource}/{sub}"),
    };
    let of_any = format!("*/{sub}");
    let has = |list: Option<&Vec<String>>, wanted: &str| {
        list.is_some_and(|list| list.iter().any(|one| one == wanted || one == "*"))
    };
    rules.iter().any(|rule| {
        let is_general = rule.resource_names.as_ref().is_none_or(Vec::is_empty);
        let resources = rule.resources.as_ref();
        let is_meant = has(resources, &name) || (!sub.is_empty() && has(resources, &of_any));
        is_general
            && is_meant
            && has(rule.api_groups.as_ref(), group)
            && has(Some(&rule.verbs), verb)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn rules(rules: Value) -> Vec<ResourceRule> {
        from_value(rules).unwrap()
    }

    #[test]
    fn right_is_granted_by_its_own_or_a_wildcard_rule() {
        let exec = ("create", "", "pods", "exec");
        let jobs = ("create", "batch", "jobs", "");
        let all = rules(json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]));
        assert!(is_allowed(&all, exec) && is_allowed(&all, jobs));
        assert!(
            !is_allowed(&all, ("create", "", "namespaces", "")),
            "reviewed by name"
        );
        assert!(
            !is_allowed(&all, ("patch", "", "persistentvolumes", "")),
            "a RoleBinding does not grant it"
        );
        let own = rules(json!([
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"],
             "verbs": ["get"]},
        ]));
        assert!(is_allowed(&own, jobs));
        assert!(!is_allowed(&own, ("delete", "batch", "jobs", "")));
        assert!(
            !is_allowed(&own, exec),
            "a subresource has a rule of its own"
        );
        assert!(
            !is_allowed(&own, ("get", "", "secrets", "")),
            "of one name only"
        );
        let sub = rules(json!([{"apiGroups": [""], "resources": ["*/exec"], "verbs": ["*"]}]));
        assert!(is_allowed(&sub, exec));
        assert!(!is_allowed(&[], jobs));
    }
}
