//! Taints that keep the pods of a run away from nodes, as arguments of `--toleration`.

use crate::connect::KubeCluster;
use crate::diagnose::{ObservedPod, names_untolerated_taint};
use crate::options::pod::holds;
use crate::preflight::{is_usable, label, untolerated_taints};
use iosonde_result::run_error::pod_failure::{FailureCondition, SchedulingObstacle};
use k8s_openapi::api::core::v1::{Node, NodeSelectorTerm, PodSpec, Taint};
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for the list of nodes. Without an answer, the failure is explained without them.
const NODES_TIMEOUT: Duration = Duration::from_secs(10);

/// Prefixes of taints that describe the state of a node. A toleration does not improve that state.
const STATE_PREFIXES: [&str; 7] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
    "ebs.csi.aws.com/",
    "node.cilium.io/",
];

/// Taints of nodes with the control plane, on which a measurement disturbs the cluster.
const CONTROL_PLANE_TAINTS: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// Adds the tolerations that are missing if taints keep the pods away: the message of newer
/// schedulers names no taint. Adds none if this user may not list nodes, or the list takes too
/// long.
pub(crate) async fn with_tolerations(
    cluster: &KubeCluster,
    mut condition: FailureCondition,
    observed_pods: &[ObservedPod],
) -> FailureCondition {
    if let FailureCondition::Unschedulable {
        reason,
        is_node_coming: false,
        message,
        tolerations,
    } = &mut condition
        && has_tainted_node(*reason, message)
    {
        let mut pods = observed_pods.iter().filter_map(|one| one.pod.as_ref());
        if let Some(pod) = pods.find_map(|pod| pod.spec.as_ref()) {
            let nodes = list_nodes(cluster, NODES_TIMEOUT).await;
            *tolerations = missing_tolerations(pod, &nodes);
        }
    }
    condition
}

/// Whether taints keep the pod away from a node. The reason of the scheduler's message is the
/// selector or the affinity if they exclude another node.
fn has_tainted_node(reason: SchedulingObstacle, message: &str) -> bool {
    match reason {
        SchedulingObstacle::Taint => true,
        SchedulingObstacle::NodeSelector => names_untolerated_taint(message),
        _ => false,
    }
}

/// Returns the nodes, or none if the cluster does not list them within `limit`.
async fn list_nodes(cluster: &KubeCluster, limit: Duration) -> Vec<Node> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    match timeout(limit, nodes.list(&ListParams::default())).await {
        Ok(Ok(listed)) => listed.items,
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

/// Returns arguments of `--toleration`, each of which admits the pod to a node that its selector
/// and affinity permit. Those with the fewest taints are first, those of the control plane last.
fn missing_tolerations(pod: &PodSpec, nodes: &[Node]) -> Vec<String> {
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let candidates = nodes.iter().filter(|node| is_permitted(node, pod));
    let candidates = candidates.filter(|node| is_usable(node));
    let mut missing: Vec<(bool, usize, Vec<String>)> = candidates
        .map(|node| untolerated_taints(node, tolerations))
        .filter(|taints| !taints.is_empty() && !taints.iter().any(|taint| is_of_state(taint)))
        .map(|taints| {
            let is_last = taints.iter().any(|taint| is_of_control_plane(taint));
            let notations: Vec<String> = taints.into_iter().map(in_notation).collect();
            (is_last, notations.len(), notations)
        })
        .collect();
    missing.sort_unstable();
    missing.dedup();
    let each = missing.iter();
    each.map(|(_, _, notations)| notations.join(",")).collect()
}

/// Whether the pod's selector and required affinity permit the node. They contain the options of
/// the run: its labels, the name of a node, and the architectures of the agents.
fn is_permitted(node: &Node, pod: &PodSpec) -> bool {
    let mut selector = pod.node_selector.iter().flatten();
    let affinity = pod.affinity.as_ref();
    let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| {
        let required = &affinity.required_during_scheduling_ignored_during_execution;
        required.as_ref()
    });
    selector.all(|(key, value)| label(node, key) == Some(value.as_str()))
        && required.is_none_or(|required| {
            let mut terms = required.node_selector_terms.iter();
            terms.any(|term| meets_term(node, term))
        })
}

/// Whether labels and name of the node meet all requirements of a term. A term without
/// requirements matches no node.
fn meets_term(node: &Node, term: &NodeSelectorTerm) -> bool {
    let mut requirements = term.match_expressions.iter().chain(&term.match_fields);
    if requirements.all(Vec::is_empty) {
        return false;
    }
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let name = node.metadata.name.clone().unwrap_or_default();
    let fields = BTreeMap::from([("metadata.name".to_owned(), name)]);
    let mut of_labels = term.match_expressions.iter().flatten();
    let mut of_fields = term.match_fields.iter().flatten();
    of_labels.all(|requirement| holds(requirement, labels))
        && of_fields.all(|requirement| holds(requirement, &fields))
}

fn is_of_state(taint: &Taint) -> bool {
    let mut prefixes = STATE_PREFIXES.iter();
    prefixes.any(|prefix| taint.key.starts_with(prefix))
}

fn is_of_control_plane(taint: &Taint) -> bool {
    CONTROL_PLANE_TAINTS.contains(&taint.key.as_str())
}

/// Writes a taint in kubectl's notation, which `--toleration` reads.
fn in_notation(taint: &Taint) -> String {
    let (key, effect) = (&taint.key, &taint.effect);
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{key}:{effect}"),
        value => format!("{key}={value}:{effect}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, list, serve};
    use crate::manifest::RunSpec;
    use crate::options::{ClusterOptions, pod::requirement};
    use crate::sample_spec::with_spec;
    use serde_json::{Value, json};
    use std::time::Instant;

    /// A ready node with taints in kubectl's notation, each with a value.
    fn node(name: &str, taints: &[&str]) -> Node {
        let taints: Vec<Value> = taints
            .iter()
            .map(|taint| {
                let (key, rest) = taint.split_once('=').unwrap();
                let (value, effect) = rest.split_once(':').unwrap();
                json!({"key": key, "value": value, "effect": effect})
            })
            .collect();
        let node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        serde_json::from_value(node).unwrap()
    }

    fn missing(mut pod: Value, nodes: &[Node]) -> Vec<String> {
        pod["containers"] = json!([]);
        missing_tolerations(&serde_json::from_value(pod).unwrap(), nodes)
    }

    /// A ready Linux node with these labels, and a taint of its name.
    fn labelled_node(name: &str, arch: &str, zone: &str) -> Node {
        let taint = format!("{name}=x:NoSchedule");
        let mut node = node(name, &[taint.as_str()]);
        let labels = node.metadata.labels.get_or_insert_default();
        for (key, value) in [
            ("kubernetes.io/arch", arch),
            ("kubernetes.io/os", "linux"),
            ("zone", zone),
        ] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        node
    }

    /// The tolerations that the pods of a run with these options and agents lack.
    fn missing_in_run(archs: &[&str], options: &ClusterOptions, nodes: &[Node]) -> Vec<String> {
        let mut found = Vec::new();
        with_spec(options, |spec| {
            let spec = RunSpec { archs, ..*spec };
            let pod = spec.template().unwrap().spec.unwrap();
            found = missing_tolerations(&pod, nodes);
        });
        found
    }

    /// The tolerations that are added to this failure of a pod on a server with this answer.
    fn added(
        (reason, message): (SchedulingObstacle, &str),
        mut pod: Value,
        answer: fn() -> ApiAnswer,
    ) -> Vec<String> {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, move |_, _| answer());
        let condition = FailureCondition::Unschedulable {
            reason,
            is_node_coming: false,
            message: message.to_owned(),
            tolerations: Vec::new(),
        };
        pod["containers"] = json!([]);
        let pod = json!({"metadata": {}, "spec": pod});
        let observed = ObservedPod {
            pod: Some(serde_json::from_value(pod).unwrap()),
            ..ObservedPod::default()
        };
        match runtime.block_on(with_tolerations(&objects.cluster, condition, &[observed])) {
            FailureCondition::Unschedulable { tolerations, .. } => tolerations,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unschedulable_pod_gets_the_tolerations_of_listed_nodes() {
        let tainted = || {
            let node = node("n1", &["bench=alone:NoSchedule"]);
            list(&[serde_json::to_value(node).unwrap()])
        };
        let taint = (
            SchedulingObstacle::Taint,
            "1 node(s) had untolerated taint(s)",
        );
        assert_eq!(added(taint, json!({}), tainted), ["bench=alone:NoSchedule"]);
        assert!(added(taint, json!({}), || ApiAnswer::Status(403)).is_empty());
    }

    #[test]
    fn pod_with_affinity_gets_the_tolerations_of_nodes_that_the_affinity_admits() {
        let nodes = || {
            let nodes = [
                node("n1", &[]),
                node("n2", &["bench=alone:NoSchedule"]),
                node("n3", &["other=x:NoSchedule"]),
            ];
            list(&nodes.map(|node| serde_json::to_value(node).unwrap()))
        };
        let selecting = json!({"nodeSelector": {"kubernetes.io/hostname": "n2"}});
        let both = "0/3 nodes are available: 1 node(s) didn't match Pod's node \
                    affinity/selector, 2 node(s) had untolerated taint(s).";
        let selector = (SchedulingObstacle::NodeSelector, both);
        let found = added(selector, selecting.clone(), nodes);
        assert_eq!(found, ["bench=alone:NoSchedule"]);
        let elsewhere = json!({"nodeSelector": {"kubernetes.io/hostname": "n4"}});
        assert!(added(selector, elsewhere, nodes).is_empty());
        let other = (SchedulingObstacle::VolumeAffinity, both);
        assert!(added(other, selecting, nodes).is_empty());
    }

    #[test]
    fn selector_term_without_requirements_matches_no_node() {
        let nodes = [node("n1", &["bench=alone:NoSchedule"])];
        let with_terms = |terms: Value| {
            let required = json!({"nodeSelectorTerms": terms});
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
            }}})
        };
        let missing = |terms: Value| missing(with_terms(terms), &nodes);
        let by_label = json!({"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "Exists"},
        ]});
        let by_name = json!({"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n1"]},
        ]});
        let empty = json!({"matchExpressions": [], "matchFields": []});
        assert!(missing(json!([{}, empty])).is_empty());
        assert_eq!(missing(json!([by_label])), ["bench=alone:NoSchedule"]);
        assert_eq!(missing(json!([{}, by_name])), ["bench=alone:NoSchedule"]);
    }

    #[test]
    fn nodes_are_unknown_without_an_answer_in_time() {
        let runtime = crate::connect::runtime().unwrap();
        // The answer begins, but does not end.
        let (objects, _) = serve(&runtime, |_, _| {
            ApiAnswer::Watch(Duration::ZERO, Vec::new())
        });
        let begun = Instant::now();
        let limit = Duration::from_millis(100);
        let nodes = runtime.block_on(list_nodes(&objects.cluster, limit));
        assert!(nodes.is_empty());
        assert!(begun.elapsed() < NODES_TIMEOUT, "{:?}", begun.elapsed());
    }

    #[test]
    fn nodes_that_the_run_excludes_offer_no_toleration() {
        let nodes = [
            labelled_node("n1", "amd64", "a"),
            labelled_node("n2", "amd64", "b"),
            labelled_node("n3", "arm64", "b"),
            labelled_node("n4", "s390x", "b"),
        ];
        let of = |names: &[&str]| -> Vec<String> {
            let taint = |name: &&str| format!("{name}=x:NoSchedule");
            names.iter().map(taint).collect()
        };
        let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
        let one = missing_in_run(&["amd64"], &options, &nodes);
        assert_eq!(one, of(&["n1", "n2"]));
        let two = ["amd64", "arm64"];
        let several = missing_in_run(&two, &options, &nodes);
        assert_eq!(several, of(&["n1", "n2", "n3"]));
        options.pod.node_affinity.extend(requirement("zone!=a"));
        let by_label = missing_in_run(&two, &options, &nodes);
        assert_eq!(by_label, of(&["n2", "n3"]));
        options.pod.node = Some("n3".to_owned());
        let by_name = missing_in_run(&two, &options, &nodes);
        assert_eq!(by_name, of(&["n3"]));
    }

    #[test]
    fn taints_of_a_state_are_not_to_be_tolerated() {
        for key in [
            "node.kubernetes.io/disk-pressure",
            "node.cloudprovider.kubernetes.io/uninitialized",
            "ToBeDeletedByClusterAutoscaler",
            "DeletionCandidateOfClusterAutoscaler",
            "karpenter.sh/disrupted",
            "ebs.csi.aws.com/agent-not-ready",
            "node.cilium.io/agent-not-ready",
        ] {
            let taint = format!("{key}=:NoSchedule");
            let nodes = [node("n1", &[taint.as_str()])];
            assert!(missing(json!({}), &nodes).is_empty(), "{key}");
        }
    }

    #[test]
    fn control_plane_is_offered_last() {
        let nodes = [
            node("n1", &["node-role.kubernetes.io/control-plane=:NoSchedule"]),
            node("n2", &["node-role.kubernetes.io/master=:NoSchedule"]),
            node("n3", &["other=x:NoSchedule", "disk=:NoExecute"]),
            node("n4", &["zone=a:NoSchedule"]),
        ];
        let expected = [
            "zone=a:NoSchedule",
            "other=x:NoSchedule,disk:NoExecute",
            "node-role.kubernetes.io/control-plane:NoSchedule",
            "node-role.kubernetes.io/master:NoSchedule",
        ];
        assert_eq!(missing(json!({}), &nodes), expected);
    }

    #[test]
    fn missing_tolerations_are_those_of_each_usable_node_once() {
        let mut cordoned = node("n5", &["other=x:NoSchedule"]);
        cordoned.spec.as_mut().unwrap().unschedulable = Some(true);
        let nodes = [
            node("n1", &["bench=alone:NoSchedule", "disk=:NoExecute"]),
            node("n2", &["bench=alone:NoSchedule", "soft=x:PreferNoSchedule"]),
            node("n3", &["bench=alone:NoSchedule"]),
            node("n4", &["node.kubernetes.io/disk-pressure=:NoSchedule"]),
            cordoned,
        ];
        let all = [
            "bench=alone:NoSchedule",
            "bench=alone:NoSchedule,disk:NoExecute",
        ];
        assert_eq!(missing(json!({}), &nodes), all);
        for argument in all.iter().flat_map(|all| all.split(',')) {
            assert!(crate::options::toleration(argument).is_some(), "{argument}");
        }
    }

    #[test]
    fn missing_tolerations_respect_selector_and_tolerations_of_the_pod() {
        let nodes = [
            node("n1", &["bench=alone:NoSchedule"]),
            node("n2", &["bench=alone:NoSchedule", "disk=:NoExecute"]),
        ];
        let tolerations = json!([{"key": "bench", "operator": "Exists"}]);
        let tolerant = json!({"tolerations": tolerations});
        assert_eq!(missing(tolerant, &nodes), ["disk:NoExecute"]);
        let selecting = json!({"nodeSelector": {"kubernetes.io/hostname": "n2"}});
        let both = ["bench=alone:NoSchedule,disk:NoExecute"];
        assert_eq!(missing(selecting, &nodes), both);
        assert!(missing(json!({}), &[]).is_empty());
    }
}
