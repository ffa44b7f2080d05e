//! Nodes for the pods of a run: node affinity, and placement relative to each other.

use super::RunSpec;
use crate::options::ARCH_LABEL;
use crate::options::PodPlacement;
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinity,
    PodAffinityTerm, PodAntiAffinity, TopologySpreadConstraint,
};

/// Label with the name of the node.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

impl RunSpec<'_> {
    /// Returns the affinity to nodes, and to the other pods of the run.
    pub(super) fn affinity(&self, placement: PodPlacement) -> Option<Affinity> {
        let to_pods = self.affinity_to_pods(placement);
        let Some(to_nodes) = self.node_affinity() else {
            return to_pods;
        };
        Some(Affinity {
            node_affinity: Some(to_nodes),
            ..to_pods.unwrap_or_default()
        })
    }

    fn node_affinity(&self) -> Option<NodeAffinity> {
        let mut wanted = self.options.pod.node_affinity.clone();
        if self.archs.len() > 1 {
            wanted.push(NodeSelectorRequirement {
                key: ARCH_LABEL.to_owned(),
                operator: "In".to_owned(),
                values: Some(self.archs.iter().map(|arch| (*arch).to_owned()).collect()),
            });
        }
        let by_name = |node: &String| NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.clone()]),
        };
        let named = self.options.pod.node.as_ref().map(by_name);
        (named.is_some() || !wanted.is_empty()).then(|| NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm {
                    match_expressions: (!wanted.is_empty()).then_some(wanted),
                    match_fields: named.map(|named| vec![named]),
                }],
            }),
            ..NodeAffinity::default()
        })
    }

    fn affinity_to_pods(&self, placement: PodPlacement) -> Option<Affinity> {
        let same_node = vec![PodAffinityTerm {
            label_selector: Some(self.selector()),
            topology_key: HOSTNAME.to_owned(),
            ..PodAffinityTerm::default()
        }];
        match placement {
            PodPlacement::Any | PodPlacement::Spread => None,
            PodPlacement::Pack => Some(Affinity {
                pod_affinity: Some(PodAffinity {
                    required_during_scheduling_ignored_during_execution: Some(same_node),
                    ..PodAffinity::default()
                }),
                ..Affinity::default()
            }),
            PodPlacement::PerNode => Some(Affinity {
                pod_anti_affinity: Some(PodAntiAffinity {
                    required_during_scheduling_ignored_during_execution: Some(same_node),
                    ..PodAntiAffinity::default()
                }),
                ..Affinity::default()
            }),
        }
    }

    /// Returns the constraint that spreads the pods over the nodes.
    pub(super) fn spread(&self, placement: PodPlacement) -> Option<Vec<TopologySpreadConstraint>> {
        (placement == PodPlacement::Spread).then(|| {
            vec![TopologySpreadConstraint {
                label_selector: Some(self.selector()),
                max_skew: 1,
                topology_key: HOSTNAME.to_owned(),
                when_unsatisfiable: "DoNotSchedule".to_owned(),
                // Nodes with taints that keep the pods away do not count.
                node_taints_policy: Some("Honor".to_owned()),
                ..TopologySpreadConstraint::default()
            }]
        })
    }
}
