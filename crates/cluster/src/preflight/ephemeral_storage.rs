//! Compares the ephemeral storage that a pod requests with the amounts that nodes allocate.

use super::Facts;
use super::node_checks::takes_a_pod;
use crate::manifest::quantity_bytes;
use crate::options::ClusterOptions;
use crate::refusal::refuse;
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError};
use k8s_openapi::api::core::v1::Node;

/// Name of the resource.
const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

impl Facts {
    /// Fails if a pod requests more ephemeral storage than each suitable node allocates. Requests
    /// of other pods on the node are left to the scheduler.
    pub(super) fn judge_ephemeral_storage(
        &self,
        options: &ClusterOptions,
        archs: &[&str],
    ) -> Result<(), RunError> {
        // A patch may change the request, or choose nodes that an autoscaler has yet to make.
        if options.pod_patch.is_some() {
            return Ok(());
        }
        let Some(requested_bytes) = requested_bytes(options) else {
            return Ok(());
        };
        let nodes = self.nodes.iter().flatten();
        let mut largest: Option<(u64, &Node)> = None;
        for node in nodes.filter(|node| takes_a_pod(node, options, archs)) {
            let Some(bytes) = allocatable_ephemeral_bytes(node) else {
                return Ok(());
            };
            if largest.is_none_or(|(most, _)| bytes > most) {
                largest = Some((bytes, node));
            }
        }
        match largest {
            Some((largest_bytes, node)) if largest_bytes < requested_bytes => {
                refuse(ClusterObstacle::EphemeralStorageTooSmall {
                    requested_bytes,
                    largest_bytes,
                    node: node.metadata.name.clone().unwrap_or_default(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the ephemeral storage that a node has for pods. `None`: it reports none.
pub(crate) fn allocatable_ephemeral_bytes(node: &Node) -> Option<u64> {
    let allocatable = node.status.as_ref()?.allocatable.as_ref()?;
    quantity_bytes(allocatable.get(EPHEMERAL_STORAGE)?)
}

/// Returns the request of each pod, as its manifest states it.
fn requested_bytes(options: &ClusterOptions) -> Option<u64> {
    let of_pod = &options.pod;
    let is_node_space = options.target == TargetUri::EmptyDir && !options.in_memory;
    match of_pod.requests.get(EPHEMERAL_STORAGE) {
        Some(stated) => quantity_bytes(stated),
        None if is_node_space => Some(options.claim_bytes),
        // A limit without a request is also the request.
        None => quantity_bytes(of_pod.limits.get(EPHEMERAL_STORAGE)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::pod::resource;
    use serde_json::{from_value, json};

    fn facts(amounts: &[Option<&str>]) -> Facts {
        let node = |(index, amount): (usize, &Option<&str>)| {
            let mut node = json!({
                "metadata": {"name": format!("n{index}"),
                 "labels": {"kubernetes.io/arch": "amd64"}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            });
            if let Some(amount) = amount {
                node["status"]["allocatable"] = json!({"ephemeral-storage": amount});
            }
            from_value(node).unwrap()
        };
        Facts {
            nodes: Some(amounts.iter().enumerate().map(node).collect()),
            ..Facts::default()
        }
    }

    fn emptydir(gib: u64) -> ClusterOptions {
        let mut options = ClusterOptions::new(TargetUri::EmptyDir);
        options.claim_bytes = gib << 30;
        options
    }

    #[test]
    fn request_above_the_allocatable_of_all_nodes_is_refused() {
        let small = facts(&[Some("40Gi"), Some("90Gi")]);
        let judge = |facts: &Facts, options: &ClusterOptions| {
            facts.judge_ephemeral_storage(options, &["amd64"])
        };
        assert_eq!(judge(&small, &emptydir(90)), Ok(()));
        let expected = refuse(ClusterObstacle::EphemeralStorageTooSmall {
            requested_bytes: 200 << 30,
            largest_bytes: 90 << 30,
            node: "n1".to_owned(),
        });
        assert_eq!(judge(&small, &emptydir(200)), expected);
        let mut claim = ClusterOptions::new("sc://fast".parse().unwrap());
        assert_eq!(judge(&small, &claim), Ok(()));
        claim.pod.requests = resource("ephemeral-storage=200Gi").into_iter().collect();
        assert_eq!(judge(&small, &claim), expected);
    }

    #[test]
    fn request_is_accepted_if_the_amount_of_a_node_is_unknown() {
        let judge = |facts: &Facts, options: &ClusterOptions| {
            facts.judge_ephemeral_storage(options, &["amd64"])
        };
        let unknown = facts(&[Some("40Gi"), None]);
        assert_eq!(judge(&unknown, &emptydir(200)), Ok(()));
        assert_eq!(judge(&Facts::default(), &emptydir(200)), Ok(()));
        let small = facts(&[Some("40Gi")]);
        let mut patched = emptydir(200);
        patched.pod_patch = Some(json!({"spec": {}}));
        assert_eq!(judge(&small, &patched), Ok(()));
        let mut in_memory = emptydir(200);
        in_memory.in_memory = true;
        assert_eq!(judge(&small, &in_memory), Ok(()));
    }
}
