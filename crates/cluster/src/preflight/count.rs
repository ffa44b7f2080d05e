//! How many pods a run has: as many as asked for, or as many as there are nodes for them.

use super::{Facts, is_selected, is_usable, node_arch};
use crate::options::ClusterOptions;
use iosonde_result::session::RunError;
use k8s_openapi::api::core::v1::{Node, Taint};

impl Facts {
    /// As many as asked for, or one for each node that can take one.
    pub(super) fn pods(&self, options: &ClusterOptions, arch: &str) -> Result<u32, RunError> {
        let Some(pods) = options.pods else {
            return Ok(1);
        };
        if let Some(count) = pods.count {
            return Ok(count);
        }
        let Some(nodes) = &self.nodes else {
            return Err(RunError::Unsupported {
                problem: "how many nodes there are may not be seen by this user".to_owned(),
                remedy: "say how many pods with --pods".to_owned(),
            });
        };
        let fitting = nodes.iter().filter(|node| takes_a_pod(node, options, arch));
        // Where none fits, what follows says why.
        Ok(fitting.count().max(1) as u32)
    }
}

/// Whether a pod of the run could be on this node.
pub(super) fn takes_a_pod(node: &Node, options: &ClusterOptions, arch: &str) -> bool {
    is_selected(node, options)
        && node_arch(node) == arch
        && is_usable(node)
        && is_tolerated(node, options)
}

/// Whether all taints that keep pods away are put up with.
fn is_tolerated(node: &Node, options: &ClusterOptions) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let keeps_away = |taint: &&Taint| taint.effect != "PreferNoSchedule";
    let mut taints = taints.into_iter().flatten().filter(keeps_away);
    taints.all(|taint| {
        let mut tolerations = options.tolerations.iter();
        tolerations.any(|toleration| {
            let key = toleration.key.as_ref().is_none_or(|key| *key == taint.key);
            let is_any = toleration.operator.as_deref() == Some("Exists");
            let value = is_any || toleration.value == taint.value;
            let effect = toleration.effect.as_ref();
            key && value && effect.is_none_or(|effect| *effect == taint.effect)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Placement, Pods, toleration};

    fn node(taint: Option<&str>) -> Node {
        let mut node = serde_json::json!({
            "metadata": {"labels": {"kubernetes.io/arch": "amd64"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null},
            ]},
        });
        if let Some(key) = taint {
            node["spec"] = serde_json::json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
        }
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn one_pod_for_each_node_that_can_take_one() {
        let facts = Facts {
            nodes: Some(vec![node(None), node(Some("dedicated")), node(None)]),
            ..Facts::default()
        };
        let mut options = ClusterOptions::new("emptydir://".parse().unwrap());
        assert_eq!(
            facts.pods(&options, "amd64"),
            Ok(1),
            "one, where nothing is said"
        );
        options.pods = Some(Pods {
            count: None,
            placement: Placement::PerNode,
            shared: false,
        });
        assert_eq!(facts.pods(&options, "amd64"), Ok(2));
        options.tolerations = toleration("dedicated").into_iter().collect();
        assert_eq!(facts.pods(&options, "amd64"), Ok(3));
        options.pods.as_mut().unwrap().count = Some(7);
        assert_eq!(facts.pods(&options, "amd64"), Ok(7));
        options.pods.as_mut().unwrap().count = None;
        let unknown = Facts::default().pods(&options, "amd64").unwrap_err();
        assert!(unknown.remedy().contains("--pods"));
    }
}
