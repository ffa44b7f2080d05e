//! Rights that this user lacks. One request reads the rules for this user; a right that they do not
//! grant is reviewed by itself.

use crate::api;
use crate::bounded_requests::await_bounded;
use crate::connect::KubeCluster;
use crate::rights_role::Right;
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::api::{Api, PostParams};

/// Returns those permissions that this user lacks.
///
/// # Errors
/// If the cluster does not answer.
pub(crate) async fn missing(
    cluster: &KubeCluster,
    wanted: impl Iterator<Item = Right>,
) -> Result<Vec<Right>, RunError> {
    let wanted: Vec<(Right, Option<&str>)> = wanted.map(|right| (right, None)).collect();
    missing_on_objects(cluster, &wanted).await
}

/// Returns those permissions that this user lacks, each once. With the name of an object, the
/// permission may be granted for this object only (`resourceNames`).
///
/// # Errors
/// If the cluster does not answer.
pub(super) async fn missing_on_objects(
    cluster: &KubeCluster,
    wanted: &[(Right, Option<&str>)],
) -> Result<Vec<Right>, RunError> {
    let failed =
        |error: &kube::Error| api::failed_at(&cluster.server, ClusterRequest::CheckRights, error);
    let rules = read_rules(cluster).await;
    let rules = rules.map_err(|error| failed(&error))?;
    let unclear = wanted
        .iter()
        .filter(|(right, name)| !is_allowed(&rules, *right, *name));
    let unclear: Vec<(Right, Option<&str>)> = unclear.copied().collect();
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let questions: Vec<_> = unclear
        .iter()
        .map(|(right, name)| review(&cluster.namespace, *right, *name))
        .collect();
    let post = PostParams::default();
    let asked = questions
        .iter()
        .map(|question| reviews.create(&post, question));
    let answers = await_bounded(asked).await;
    let mut missing = Vec::new();
    for (answer, (right, _)) in answers.iter().zip(unclear) {
        let answer = answer.as_ref().map_err(failed)?;
        let is_granted = answer.status.as_ref().is_some_and(|status| status.allowed);
        if !is_granted && !missing.contains(&right) {
            missing.push(right);
        }
    }
    Ok(missing)
}

/// Describes a permission: `create pods/exec`.
pub(crate) fn in_words((verb, _, resource, sub): Right) -> String {
    let slash = if sub.is_empty() { "" } else { "/" };
    format!("{verb} {resource}{slash}{sub}")
}

fn review(
    namespace: &str,
    (verb, group, resource, sub): Right,
    name: Option<&str>,
) -> SelfSubjectAccessReview {
    // All verbs on namespaces but `create` are checked for the name.
    let is_of_namespace = resource == "namespaces" && verb != "create";
    let name = name.or(is_of_namespace.then_some(namespace));
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: (!CLUSTER_RESOURCES.contains(&resource)).then(|| namespace.to_owned()),
                name: name.map(str::to_owned),
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

/// Returns the rules in the namespace. They may be incomplete, so a right that they lack may still
/// be granted. A cluster that refuses the request tells none.
///
/// # Errors
/// If the cluster does not answer.
async fn read_rules(cluster: &KubeCluster) -> Result<Vec<ResourceRule>, kube::Error> {
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
const CLUSTER_RESOURCES: [&str; 6] = [
    "namespaces",
    "nodes",
    "persistentvolumes",
    "storageclasses",
    "volumeattachments",
    "volumesnapshotclasses",
];

/// Whether the right is on a resource outside of namespaces.
pub(super) fn is_cluster_wide((_, _, resource, _): &Right) -> bool {
    CLUSTER_RESOURCES.contains(resource)
}

/// Whether a rule grants the right, for all objects or for the named one. Rights on resources
/// outside of namespaces are reviewed.
fn is_allowed(
    rules: &[ResourceRule],
    (verb, group, resource, sub): Right,
    object: Option<&str>,
) -> bool {
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
        let is_for_object = rule.resource_names.as_ref().is_none_or(|names| {
            names.is_empty() || names.iter().any(|name| Some(name.as_str()) == object)
        });
        let resources = rule.resources.as_ref();
        let is_meant = has(resources, &name) || (!sub.is_empty() && has(resources, &of_any));
        is_for_object
            && is_meant
            && has(rule.api_groups.as_ref(), group)
            && has(Some(&rule.verbs), verb)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, serve};
    use serde_json::{Value, from_value, json};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    fn is_granted(rules: &[ResourceRule], right: Right) -> bool {
        is_allowed(rules, right, None)
    }

    fn rules(rules: Value) -> Vec<ResourceRule> {
        from_value(rules).unwrap()
    }

    #[test]
    fn right_is_granted_by_its_own_or_a_wildcard_rule() {
        let exec = ("create", "", "pods", "exec");
        let jobs = ("create", "batch", "jobs", "");
        let all = rules(json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]));
        assert!(is_granted(&all, exec) && is_granted(&all, jobs));
        assert!(
            !is_granted(&all, ("create", "", "namespaces", "")),
            "reviewed by name"
        );
        assert!(
            !is_granted(&all, ("patch", "", "persistentvolumes", "")),
            "a RoleBinding does not grant it"
        );
        let own = rules(json!([
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"],
             "verbs": ["get"]},
        ]));
        assert!(is_granted(&own, jobs));
        assert!(!is_granted(&own, ("delete", "batch", "jobs", "")));
        assert!(
            !is_granted(&own, exec),
            "a subresource has a rule of its own"
        );
        assert!(
            !is_granted(&own, ("get", "", "secrets", "")),
            "of one name only"
        );
        let sub = rules(json!([{"apiGroups": [""], "resources": ["*/exec"], "verbs": ["*"]}]));
        assert!(is_granted(&sub, exec));
        assert!(!is_granted(&[], jobs));
    }

    #[test]
    fn reviews_for_many_pods_are_bounded_at_once() {
        let runtime = crate::connect::runtime().unwrap();
        let (active, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        let (objects, requests) = serve(&runtime, move |_, _| {
            seen.fetch_max(active.fetch_add(1, Relaxed) + 1, Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            active.fetch_sub(1, Relaxed);
            ApiAnswer::Document(
                json!({"metadata": {}, "spec": {}, "status": {"allowed": true,
                "incomplete": false, "nonResourceRules": [], "resourceRules": []}}),
            )
        });
        let pods: Vec<String> = (0..100).map(|number| format!("fio-{number}")).collect();
        let exec = ("create", "", "pods", "exec");
        let wanted: Vec<(Right, Option<&str>)> =
            pods.iter().map(|pod| (exec, Some(pod.as_str()))).collect();
        let missing = runtime.block_on(missing_on_objects(&objects.cluster, &wanted));
        assert_eq!(missing, Ok(Vec::new()));
        assert_eq!(requests.count(&["selfsubjectaccessreviews"]), pods.len());
        let most = most.load(Relaxed);
        assert!(most > 1 && most <= 16, "{most}");
    }

    #[test]
    fn right_on_one_object_is_granted_for_its_name_only() {
        let exec = ("create", "", "pods", "exec");
        let of_pod = rules(json!([{"apiGroups": [""], "resources": ["pods/exec"],
            "resourceNames": ["fio-0"], "verbs": ["create"]}]));
        assert!(is_allowed(&of_pod, exec, Some("fio-0")));
        assert!(!is_allowed(&of_pod, exec, Some("fio-1")));
        assert!(!is_allowed(&of_pod, exec, None));
        let asked = review("lab", exec, Some("fio-0")).spec.resource_attributes;
        assert_eq!(asked.unwrap().name.as_deref(), Some("fio-0"));
    }
}
