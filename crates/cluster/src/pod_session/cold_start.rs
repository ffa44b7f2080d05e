//! Caches that are dropped when the pods have prepared their files, before the jobs start.

use super::PodSession;
use crate::node_watch::{ColdNodes, not_dropped};
use crate::pod_client::PodClient;
use crate::pod_set::ClusterRunner;
use crate::serving_nodes::WatchedNode;
use crate::setup_observer::SetupObserver;
use iosonde_job::Plan;
use iosonde_result::cache_state::{CacheEvidence, CacheLayer, ColdLayers, LayerCache};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{RunError, SystemFailure};

/// Drops the caches of OSDs and returns their number. Only the caller can reach a Ceph cluster.
pub type OsdCacheDrop = Box<dyn FnMut() -> Result<u32, RunError>>;

/// Caches to drop, and those that were dropped before the latest run.
#[derive(Default)]
pub(super) struct ColdStart {
    layers: ColdLayers,
    nodes: ColdNodes,
    drop_osd_caches: Option<OsdCacheDrop>,
    nodes_dropped: Option<u32>,
    osds_dropped: Option<u32>,
}

impl ColdStart {
    /// Whether the jobs must wait for this client, which drops caches.
    pub(super) fn is_before_start(&self) -> bool {
        self.layers.node || self.drop_osd_caches.is_some()
    }

    /// Forgets what was dropped before an earlier run.
    pub(super) fn begin_run(&mut self) {
        (self.nodes_dropped, self.osds_dropped) = (None, None);
    }

    /// Whether each agent drops the caches of its own kernel.
    pub(super) fn drops_client(&self) -> bool {
        self.layers.client
    }

    /// Adds the state of nodes and OSDs to a result.
    pub(super) fn add_states(&self, plan: &Plan, result: &mut RunResult) {
        // Simulated jobs have no caches.
        if result.caches.is_empty() {
            return;
        }
        let at_start = |layer, count| LayerCache::dropped_at_start(layer, count, plan);
        let nodes = match self.nodes_dropped {
            Some(count) => at_start(CacheLayer::Node, count),
            None => LayerCache::new(CacheLayer::Node, CacheEvidence::NotDropped),
        };
        if let CacheEvidence::Dropped { .. } = nodes.evidence {
            // The pods share the kernels of their nodes, and read their files before they are
            // ready for the start.
            let is_dropped = |cache: &&mut LayerCache| {
                let is_client = cache.layer == CacheLayer::Client;
                let evidence = cache.evidence;
                is_client && matches!(evidence, CacheEvidence::NotDropped | CacheEvidence::PreRead)
            };
            let clients = result.caches.iter_mut().filter(is_dropped);
            let dropped = CacheEvidence::Dropped { count: 1 };
            clients.for_each(|cache| *cache = LayerCache::new(CacheLayer::Client, dropped));
        }
        result.caches.push(nodes);
        if let Some(count) = self.osds_dropped {
            let is_other = |cache: &LayerCache| cache.layer != CacheLayer::Osd;
            result.caches.retain(is_other);
            result.caches.push(at_start(CacheLayer::Osd, count));
        }
        result.caches.sort_by_key(|cache| cache.layer);
    }

    /// Requests the removal of the pods on the nodes.
    pub(super) fn request_removal(&self) {
        self.nodes.request_removal();
    }

    /// Removes the pods on the nodes.
    pub(super) fn close(&mut self, before: u32, watch: &mut SetupObserver<'_>) {
        self.nodes.close(before, watch);
    }
}

impl PodSession<'_> {
    /// Drops the caches of OSDs by this function before each run.
    pub fn drop_osd_caches_with(&mut self, drop_osd_caches: OsdCacheDrop) {
        self.cold.drop_osd_caches = Some(drop_osd_caches);
    }

    /// Whether the jobs wait for a start of this client.
    pub(super) fn waits_for_start(&self) -> bool {
        self.has_common_start || self.cold.is_before_start()
    }

    /// Starts the pods that drop the caches of nodes: those of the pods, and `serving` ones.
    pub(super) fn open_cold_nodes(
        &mut self,
        serving: &[WatchedNode],
        like: &ClusterRunner<'_>,
    ) -> Result<(), RunError> {
        self.cold.layers = like.options.cold;
        if !self.cold.layers.node {
            return Ok(());
        }
        let mut names: Vec<String> = self.pods.iter().map(PodClient::node).collect();
        let are_known = names.iter().all(|name| !name.is_empty());
        names.extend(serving.iter().map(|serving| serving.node.clone()));
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        if !are_known {
            let failure = SystemFailure::Text("their names are not known".to_owned());
            return Err(not_dropped("the nodes of the pods", failure));
        }
        let namespace = self.objects.cluster.namespace.clone();
        self.cold.nodes = ColdNodes::open(names, like, &namespace, &mut self.watch)?;
        Ok(())
    }

    /// Drops the caches of nodes and OSDs. The files of all pods are prepared.
    pub(super) fn drop_caches(&mut self) -> Result<(), RunError> {
        let cold = &mut self.cold;
        if cold.layers.node {
            let dropped = cold.nodes.drop_caches(self.watch.interrupts)?;
            cold.nodes_dropped = Some(dropped);
        }
        if let Some(drop_osd_caches) = &mut cold.drop_osd_caches {
            cold.osds_dropped = Some(drop_osd_caches()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::cache_state::describe_caches;
    use iosonde_result::run::FORMAT;

    fn result(caches: Vec<LayerCache>) -> RunResult {
        RunResult {
            format: FORMAT,
            program: String::new(),
            started_at_ms: 0,
            elapsed_ns: 0,
            plan: Plan::default(),
            host: Default::default(),
            targets: Vec::new(),
            labels: Default::default(),
            workers: Vec::new(),
            neighbours: Vec::new(),
            disks: Vec::new(),
            intervals: Default::default(),
            series: Default::default(),
            pods: Vec::new(),
            shared_file: None,
            nodes: Vec::new(),
            ceph: None,
            nfs: Vec::new(),
            caches,
            events: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn words(cold: &ColdStart) -> Option<String> {
        let client = LayerCache::new(CacheLayer::Client, CacheEvidence::NotDropped);
        let mut result = result(vec![client]);
        cold.add_states(&Plan::default(), &mut result);
        describe_caches(&result.caches)
    }

    #[test]
    fn result_of_pods_names_the_state_of_their_nodes() {
        let mut cold = ColdStart::default();
        let unknown = "client unknown (not dropped); node unknown (not dropped)";
        assert_eq!(words(&cold).as_deref(), Some(unknown));
        cold.nodes_dropped = Some(2);
        cold.osds_dropped = Some(3);
        let dropped = "client cold (dropped); node cold (dropped on 2 nodes); osd cold (dropped \
                       on 3 OSDs)";
        assert_eq!(words(&cold).as_deref(), Some(dropped));
        let mut read = result(vec![LayerCache::new(
            CacheLayer::Client,
            CacheEvidence::PreRead,
        )]);
        cold.add_states(&Plan::default(), &mut read);
        assert_eq!(describe_caches(&read.caches).as_deref(), Some(dropped));
        cold.begin_run();
        assert_eq!(words(&cold).as_deref(), Some(unknown));
        let mut simulated = result(Vec::new());
        cold.add_states(&Plan::default(), &mut simulated);
        assert!(simulated.caches.is_empty());
    }

    #[test]
    fn jobs_wait_only_for_caches_that_the_client_drops() {
        let mut cold = ColdStart::default();
        cold.layers.client = true;
        assert!(cold.drops_client() && !cold.is_before_start());
        cold.drop_osd_caches = Some(Box::new(|| Ok(1)));
        assert!(cold.is_before_start());
    }
}
