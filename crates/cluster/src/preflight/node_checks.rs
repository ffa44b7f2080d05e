//! Selects suitable nodes, the number of pods, and an image that a node already has.

use super::Facts;
use crate::options::{ClusterOptions, Toleration, pod};
use crate::refusal::refuse;
use iosonde_job::diagnostic::nearest;
use iosonde_result::run_error::{ClusterObstacle, RunError, UnusableNodes};
use k8s_openapi::api::core::v1::{Node, Taint};
use std::collections::BTreeMap;

/// Images with a shell, smallest first, by the last part of their name.
const SHELLS: [&str; 5] = ["busybox", "alpine", "debian", "ubuntu", "bash"];
/// Image that is used if no node has one of these.
pub(super) const FALLBACK_IMAGE: &str = "busybox";

impl Facts {
    /// Returns the requested number of pods, or one for each suitable node.
    pub(super) fn pods(&self, options: &ClusterOptions, archs: &[&str]) -> Result<u32, RunError> {
        let Some(pods) = options.pods else {
            return Ok(1);
        };
        if let Some(count) = pods.count {
            return Ok(count);
        }
        let Some(nodes) = &self.nodes else {
            return refuse(ClusterObstacle::NodesNotListed);
        };
        let fitting = nodes
            .iter()
            .filter(|node| takes_a_pod(node, options, archs));
        // `judge_nodes` explains it if no node is suitable.
        Ok(fitting.count().max(1) as u32)
    }

    pub(super) fn judge_nodes(
        &self,
        options: &ClusterOptions,
        archs: &[&str],
    ) -> Result<(), RunError> {
        let Some(nodes) = &self.nodes else {
            return Ok(());
        };
        let selected: Vec<&Node> = nodes.iter().filter(|n| is_selected(n, options)).collect();
        judge_named_nodes(nodes, options)?;
        if selected.is_empty() {
            let selector = options.node_selector.iter();
            let affinity = options.pod.node_affinity.iter();
            let labels = selector
                .map(|(k, v)| format!("{k}={v}"))
                .chain(affinity.map(pod::in_words))
                .collect();
            return refuse(ClusterObstacle::NoLabelledNode { labels });
        }
        let fitting: Vec<&&Node> = selected
            .iter()
            .filter(|node| has_agent_for(node, archs))
            .collect();
        if fitting.is_empty() {
            let mut found: Vec<&str> = selected.iter().map(|node| node_arch(node)).collect();
            found.sort_unstable();
            found.dedup();
            return refuse(ClusterObstacle::OtherArchitecture {
                nodes: found.into_iter().map(str::to_owned).collect(),
                agent: archs.join(" and "),
            });
        }
        // A pod that tolerates every taint is also admitted to a cordoned node.
        let takes = |node: &Node| match options.pod.node.is_some() {
            true => is_ready(node),
            false => is_usable(node),
        };
        if !fitting.iter().any(|node| takes(node)) {
            return refuse(ClusterObstacle::NoUsableNode(unusable_nodes(&fitting)));
        }
        Ok(())
    }

    /// Returns an image with a shell that a node already has, which saves the pull.
    pub(super) fn image(&self, options: &ClusterOptions, archs: &[&str]) -> String {
        let nodes = self.nodes.iter().flatten();
        let fitting = nodes.filter(|node| takes_a_pod(node, options, archs));
        let names: Vec<&String> = fitting
            .filter_map(|node| node.status.as_ref()?.images.as_ref())
            .flatten()
            .filter_map(|image| image.names.as_ref())
            .flatten()
            // A name with a digest would work, but is not readable.
            .filter(|name| !name.contains('@'))
            .collect();
        let of = |shell: &&str| {
            names.iter().find(|name| {
                let last = name.rsplit('/').next().unwrap_or_default();
                last.split(':').next() == Some(shell)
            })
        };
        let found = SHELLS.iter().find_map(of);
        found.map_or_else(|| FALLBACK_IMAGE.to_owned(), |name| (*name).clone())
    }
}

/// Nodes that take no pod, by the reason.
fn unusable_nodes(nodes: &[&&Node]) -> UnusableNodes {
    debug_assert!(!nodes.is_empty(), "another error names missing nodes");
    let names = |is_wanted: fn(&Node) -> bool| -> Vec<String> {
        let wanted = nodes.iter().filter(|node| is_wanted(node));
        wanted
            .filter_map(|node| node.metadata.name.clone())
            .collect()
    };
    UnusableNodes {
        cordoned: names(is_ready),
        not_ready: names(|node| !is_ready(node)),
    }
}

pub(crate) fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn is_selected(node: &Node, options: &ClusterOptions) -> bool {
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let mut selector = options.node_selector.iter();
    let mut affinity = options.pod.node_affinity.iter();
    let named = options.pod.node.as_ref();
    selector.all(|(key, value)| label(node, key) == Some(value))
        && affinity.all(|requirement| pod::holds(requirement, labels))
        && named.is_none_or(|named| node.metadata.name.as_ref() == Some(named))
}

/// Whether one of the agents runs on the node. Without agents, any node will do.
fn has_agent_for(node: &Node, archs: &[&str]) -> bool {
    archs.is_empty() || archs.contains(&node_arch(node))
}

fn node_arch(node: &Node) -> &str {
    label(node, "kubernetes.io/arch").unwrap_or("of an unknown kind")
}

pub(crate) fn is_usable(node: &Node) -> bool {
    let is_closed = node
        .spec
        .as_ref()
        .is_some_and(|spec| spec.unschedulable == Some(true));
    is_ready(node) && !is_closed
}

/// Whether the node has the condition `Ready`.
pub(crate) fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the labels of a result that are derived from the node of its pod.
pub(crate) fn node_labels(node: &Node) -> BTreeMap<String, String> {
    let known = [
        ("topology.kubernetes.io/region", "region"),
        ("topology.kubernetes.io/zone", "zone"),
        ("node.kubernetes.io/instance-type", "instance_type"),
    ];
    let labelled = known
        .iter()
        .filter_map(|(key, ours)| Some(((*ours).to_owned(), label(node, key)?.to_owned())));
    // A pod sees the system of its image, not that of the node.
    let info = node
        .status
        .as_ref()
        .and_then(|status| status.node_info.as_ref());
    let system = info.map(|info| ("node_os".to_owned(), info.os_image.clone()));
    labelled
        .chain(system.filter(|(_, name)| !name.is_empty()))
        .collect()
}

/// Whether a pod of the run could be placed on this node.
pub(super) fn takes_a_pod(node: &Node, options: &ClusterOptions, archs: &[&str]) -> bool {
    is_selected(node, options)
        && has_agent_for(node, archs)
        && is_usable(node)
        && untolerated_taints(node, &options.tolerations).is_empty()
}

/// Returns the taints that keep away pods with these tolerations.
pub(crate) fn untolerated_taints<'n>(node: &'n Node, tolerations: &[Toleration]) -> Vec<&'n Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let keeps_away = |taint: &&Taint| taint.effect != "PreferNoSchedule";
    let taints = taints.into_iter().flatten().filter(keeps_away);
    let is_untolerated = |taint: &&Taint| {
        !tolerations.iter().any(|toleration| {
            let key = toleration.key.as_ref().is_none_or(|key| *key == taint.key);
            let is_any = toleration.operator.as_deref() == Some("Exists");
            // A server leaves out an empty value of a taint.
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let value = is_any || text(&toleration.value) == text(&taint.value);
            let effect = toleration.effect.as_ref();
            key && value && effect.is_none_or(|effect| *effect == taint.effect)
        })
    };
    taints.filter(is_untolerated).collect()
}

/// Refuses nodes that the user names and the cluster does not have.
fn judge_named_nodes(nodes: &[Node], options: &ClusterOptions) -> Result<(), RunError> {
    let watched = options.watch_nodes.iter().flatten();
    for named in options.pod.node.iter().chain(watched) {
        let mut known = nodes
            .iter()
            .filter_map(|node| node.metadata.name.as_deref());
        if known.clone().any(|name| name == named) {
            continue;
        }
        return refuse(ClusterObstacle::NoSuchNode {
            node: named.clone(),
            similar: nearest(named, &mut known).map(str::to_owned),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{PodPlacement, Pods, toleration};

    fn node(taint: Option<&str>) -> Node {
        let mut node = serde_json::json!({
            "metadata": {"labels": {"kubernetes.io/arch": "amd64"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": null,
                 "lastTransitionTime": null},
            ]},
        });
        if let Some(key) = taint {
            node["spec"] = serde_json::json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
        }
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn empty_value_of_a_toleration_equals_a_missing_value() {
        let dedicated = node(Some("dedicated"));
        let empty = Vec::from_iter(toleration("dedicated=:NoSchedule"));
        assert!(untolerated_taints(&dedicated, &empty).is_empty());
        let other = Vec::from_iter(toleration("dedicated=x:NoSchedule"));
        assert_eq!(untolerated_taints(&dedicated, &other).len(), 1);
    }

    #[test]
    fn pods_per_node_are_counted_by_usable_nodes() {
        let facts = Facts {
            nodes: Some(vec![node(None), node(Some("dedicated")), node(None)]),
            ..Facts::default()
        };
        let mut options = ClusterOptions::new("emptydir://".parse().unwrap());
        assert_eq!(
            facts.pods(&options, &["amd64"]),
            Ok(1),
            "one pod by default"
        );
        options.pods = Some(Pods {
            count: None,
            placement: PodPlacement::PerNode,
            shared: false,
            checks_shared_file: false,
        });
        assert_eq!(facts.pods(&options, &["amd64"]), Ok(2));
        options.tolerations = toleration("dedicated").into_iter().collect();
        assert_eq!(facts.pods(&options, &["amd64"]), Ok(3));
        options.pods.as_mut().unwrap().count = Some(7);
        assert_eq!(facts.pods(&options, &["amd64"]), Ok(7));
        options.pods.as_mut().unwrap().count = None;
        let unknown = Facts::default().pods(&options, &["amd64"]).unwrap_err();
        assert_eq!(unknown, RunError::from(ClusterObstacle::NodesNotListed));
    }
}
