//! Detects whether the node of a pod is not ready.

use crate::lifecycle::{Objects, Stranded};
use std::time::{Duration, Instant};

/// Time for a node that is not ready to recover.
const NODE_NOT_READY_TIMEOUT: Duration = Duration::from_secs(15);

/// Polls the node of a pod while the pod does not answer.
#[derive(Debug, Default)]
pub(crate) struct NodeWatch {
    dead_since: Option<Instant>,
}

impl NodeWatch {
    /// Returns pod and node if the node was not ready at each poll, for longer than the timeout.
    pub(crate) async fn find_dead_node(
        &mut self,
        objects: &Objects,
        pod: &str,
    ) -> Option<Stranded> {
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

/// Returns cause and remedy of a failure because a node is not ready.
pub(crate) fn node_cause_and_remedy(dead: &Stranded) -> (String, String) {
    let node = &dead.node;
    (
        format!("its node {node} is not ready"),
        format!("see `kubectl describe node {node}`, and run it again on another node"),
    )
}
