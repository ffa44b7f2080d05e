//! Taints that keep the pods of a run away from all nodes, as arguments of `--toleration`.

use crate::diagnose::ObservedPod;
use crate::preflight::{is_usable, label, untolerated_taints};
use crate::run_objects::RunObjects;
use iosonde_result::run_error::pod_failure::{FailureCondition, SchedulingObstacle};
use k8s_openapi::api::core::v1::{Node, PodSpec, Taint};
use kube::api::{Api, ListParams};

/// Prefixes of taints that describe the state of a node. A toleration does not improve that state.
const STATE_PREFIXES: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

impl RunObjects {
    /// Adds the tolerations that are missing if taints keep the pods away: the message of newer
    /// schedulers names no taint. Adds none if this user may not list nodes.
    pub(crate) async fn with_tolerations(
        &self,
        mut condition: FailureCondition,
        observed_pods: &[ObservedPod],
    ) -> FailureCondition {
        if let FailureCondition::Unschedulable {
            reason: SchedulingObstacle::Taint,
            is_node_coming: false,
            tolerations,
            ..
        } = &mut condition
        {
            let mut pods = observed_pods.iter().filter_map(|one| one.pod.as_ref());
            if let Some(pod) = pods.find_map(|pod| pod.spec.as_ref()) {
                let nodes: Api<Node> = Api::all(self.cluster.client.clone());
                let nodes = nodes.list(&ListParams::default()).await;
                let nodes = nodes.map(|list| list.items).unwrap_or_default();
                *tolerations = missing_tolerations(pod, &nodes);
            }
        }
        condition
    }
}

/// Returns arguments of `--toleration`, each of which admits the pod to a node that its selector
/// permits. Those with the fewest taints are first.
fn missing_tolerations(pod: &PodSpec, nodes: &[Node]) -> Vec<String> {
    let is_selected = |node: &&Node| {
        let mut selector = pod.node_selector.iter().flatten();
        selector.all(|(key, value)| label(node, key) == Some(value.as_str()))
    };
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let candidates = nodes.iter().filter(is_selected);
    let candidates = candidates.filter(|node| is_usable(node));
    let mut missing: Vec<Vec<String>> = candidates
        .map(|node| untolerated_taints(node, tolerations))
        .filter(|taints| !taints.is_empty() && !taints.iter().any(|taint| is_of_state(taint)))
        .map(|taints| taints.into_iter().map(in_notation).collect())
        .collect();
    missing.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    missing.dedup();
    missing.iter().map(|taints| taints.join(",")).collect()
}

fn is_of_state(taint: &Taint) -> bool {
    let mut prefixes = STATE_PREFIXES.iter();
    prefixes.any(|prefix| taint.key.starts_with(prefix))
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
    use serde_json::{Value, json};

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

    /// The tolerations that are added on a server with this answer.
    fn added(answer: fn() -> ApiAnswer) -> Vec<String> {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, move |_, _| answer());
        let condition = FailureCondition::Unschedulable {
            reason: SchedulingObstacle::Taint,
            is_node_coming: false,
            message: "1 node(s) had untolerated taint(s)".to_owned(),
            tolerations: Vec::new(),
        };
        let pod = json!({"metadata": {}, "spec": {"containers": []}});
        let observed = ObservedPod {
            pod: Some(serde_json::from_value(pod).unwrap()),
            ..ObservedPod::default()
        };
        match runtime.block_on(objects.with_tolerations(condition, &[observed])) {
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
        assert_eq!(added(tainted), ["bench=alone:NoSchedule"]);
        assert!(added(|| ApiAnswer::Status(403)).is_empty());
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
