//! [`NodeSession`]: samples nodes of a cluster without a run, for `iosonde watch node/NAME`.

use crate::node_watch::{NodeSample, Nodes};
use crate::pod_set::ClusterRunner;
use crate::serving_nodes::WatchedNode;
use crate::setup_observer::SetupObserver;
use iosonde_result::run_error::RunError;

/// Watched nodes, each with a pod that only reads counters. The pods are removed on drop.
pub struct NodeSession<'w> {
    nodes: Nodes,
    observer: SetupObserver<'w>,
}

impl ClusterRunner<'_> {
    /// Starts a pod on each node of the option `watch_nodes`, and begins sampling.
    ///
    /// # Errors
    /// If a node does not exist, its pod does not start, or on an interrupt.
    pub fn open_nodes<'w>(
        &self,
        mut observer: SetupObserver<'w>,
    ) -> Result<NodeSession<'w>, RunError> {
        let mut named = self.options.watch_nodes.clone().unwrap_or_default();
        debug_assert!(!named.is_empty(), "the caller names nodes");
        named.sort_unstable();
        named.dedup();
        let wanted = named.into_iter().map(WatchedNode::asked_for).collect();
        let namespace = self.options.namespace.as_deref();
        let mut nodes = Nodes::open(wanted, self, namespace, &mut observer)?;
        // The first answer of an agent is empty.
        nodes.sample_all();
        Ok(NodeSession { nodes, observer })
    }
}

impl NodeSession<'_> {
    /// Returns the activity of each node since the previous call, in the order of names.
    pub fn sample(&mut self) -> Vec<NodeSample> {
        self.nodes.sample_all()
    }
}

/// Removes the pods. Notes report leftovers.
impl Drop for NodeSession<'_> {
    fn drop(&mut self) {
        self.nodes.request_removal();
        let before = (self.observer.interrupts)();
        self.nodes.close(before, &mut self.observer);
    }
}
