//! Whether the node of a pod is dead, as the cluster sees it.

use crate::lifecycle::{Objects, Stranded};
use std::time::{Duration, Instant};

/// How long a node that the cluster takes for dead has to come back.
const NODE_NOT_READY_TIMEOUT: Duration = Duration::from_secs(15);

/// Looks at the node of a pod while the pod does not answer.
#[derive(Debug, Default)]
pub(crate) struct NodeWatch {
    dead_since: Option<Instant>,
}

impl NodeWatch {
    /// The pod with its node, if that was dead each time for long enough.
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

/// Cause and remedy of what fails because a node is dead.
pub(crate) fn node_cause_and_remedy(dead: &Stranded) -> (String, String) {
    let node = &dead.node;
    (
        format!("its node {node} is not ready"),
        format!("see `kubectl describe node {node}`, and run it again on another node"),
    )
}
