//! Detects whether the node of a pod is not ready.

use crate::run_objects::RunObjects;
use iosonde_result::run_error::pod_failure::{FailureCondition, PodOnNode};
use std::time::{Duration, Instant};

/// Time for a node that is not ready to recover.
pub(crate) const NODE_NOT_READY_TIMEOUT: Duration = Duration::from_secs(15);

/// Polls the node of a pod while the pod does not answer.
#[derive(Debug, Default)]
pub(crate) struct NodeReadiness {
    dead_since: Option<Instant>,
}

impl NodeReadiness {
    /// Returns pod and node if the node was not ready at each poll, for longer than the timeout.
    pub(crate) async fn find_dead_node(
        &mut self,
        objects: &RunObjects,
        pod: &str,
    ) -> Option<PodOnNode> {
        let dead = objects.dead_node(pod).await;
        self.dead_since = match dead {
            Some(_) => self.dead_since.or_else(|| Some(Instant::now())),
            None => None,
        };
        dead.filter(|_| {
            self.dead_since
                .is_some_and(|since| since.elapsed() > NODE_NOT_READY_TIMEOUT)
        })
    }
}

/// Returns the condition of a pod whose node is not ready.
pub(crate) fn node_not_ready(dead: PodOnNode) -> FailureCondition {
    FailureCondition::NodeNotReady { node: dead.node }
}
