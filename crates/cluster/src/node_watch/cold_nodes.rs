//! [`ColdNodes`]: drops the caches of nodes, through a privileged pod on each.

use super::{NodeWatcher, Nodes, watcher};
use crate::connection::{AgentEvent, Connection};
use crate::manifest::CONTAINER;
use crate::options::ClusterOptions;
use crate::pod_set::{ClusterRunner, PodSet};
use crate::serving_nodes::WatchedNode;
use crate::setup_observer::{ANSWER_TIMEOUT, SetupEvent, SetupObserver, TICK};
use iosonde_result::cache_state::CacheLayer;
use iosonde_result::run_error::{RunError, SystemFailure, UnsupportedFeature};
use iosonde_result::wire::{AgentMessage, AgentRequest};
use serde_json::{Value, json};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Timeout for a node to write its dirty data back and drop its caches.
const DROP_TIMEOUT: Duration = Duration::from_secs(300);

const _: () = assert!(ANSWER_TIMEOUT.as_secs() < DROP_TIMEOUT.as_secs());

/// Nodes whose caches are dropped.
#[derive(Default)]
pub(crate) struct ColdNodes(Nodes);

impl ColdNodes {
    /// Starts a privileged pod on each of these nodes.
    ///
    /// # Errors
    /// If a pod does not start, for example because the namespace admits no privileged pods.
    pub(crate) fn open(
        names: Vec<String>,
        like: &ClusterRunner<'_>,
        namespace: &str,
        watch: &mut SetupObserver<'_>,
    ) -> Result<ColdNodes, RunError> {
        let mut nodes = Nodes::default();
        for node in names {
            (watch.tell)(SetupEvent::Waiting(&format!(
                "a privileged pod that drops the caches of the node {node}"
            )));
            let made = make_privileged(&node, like, namespace, watch);
            (watch.tell)(SetupEvent::Over);
            match made {
                Ok(made) => {
                    let wanted = WatchedNode::asked_for(node);
                    nodes.all.push(NodeWatcher::new(wanted, made, false));
                }
                Err(error) => {
                    nodes.close((watch.interrupts)(), watch);
                    return Err(error);
                }
            }
        }
        Ok(ColdNodes(nodes))
    }

    /// Drops the caches of all nodes at the same time. Returns the number of nodes.
    ///
    /// # Errors
    /// If a node refuses or does not answer, or on an interrupt.
    pub(crate) fn drop_caches(&mut self, interrupts: &dyn Fn() -> u32) -> Result<u32, RunError> {
        for node in &self.0.all {
            node.connection.ask(&AgentRequest::DropCaches);
        }
        for node in &mut self.0.all {
            let outcome = match await_drop(node, interrupts)? {
                Some(outcome) => outcome,
                // The connection may have broken between two runs.
                None => {
                    reopen(node)?;
                    node.connection.ask(&AgentRequest::DropCaches);
                    await_drop(node, interrupts)?.unwrap_or_else(|| Err(no_answer()))
                }
            };
            outcome.map_err(|failure| not_dropped(&node.wanted.node, failure))?;
        }
        Ok(self.0.all.len() as u32)
    }

    /// Requests the removal of the pods without waiting for it.
    pub(crate) fn request_removal(&self) {
        self.0.request_removal();
    }

    /// Removes the pods, noting leftovers. One more interrupt than `before` ends the wait.
    pub(crate) fn close(&mut self, before: u32, watch: &mut SetupObserver<'_>) {
        self.0.close(before, watch);
    }
}

/// Returns the error of a node whose caches are not dropped.
pub(crate) fn not_dropped(place: &str, failure: SystemFailure) -> RunError {
    UnsupportedFeature::CachesNotDropped {
        layer: CacheLayer::Node,
        place: place.to_owned(),
        failure,
    }
    .into()
}

fn no_answer() -> SystemFailure {
    SystemFailure::Text("its pod does not answer".to_owned())
}

fn make_privileged(
    node: &str,
    like: &ClusterRunner<'_>,
    namespace: &str,
    watch: &mut SetupObserver<'_>,
) -> Result<PodSet, RunError> {
    let runner = ClusterRunner {
        options: privileged(watcher(&like.options, node, Some(namespace))),
        agents: like.agents,
    };
    let tell = &mut *watch.tell;
    // The waiting text already names the node.
    let mut notes = |event: SetupEvent<'_>| {
        if let SetupEvent::Note(_) = event {
            tell(event);
        }
    };
    runner.make(&mut SetupObserver {
        tell: &mut notes,
        interrupts: watch.interrupts,
    })
}

/// Returns the options of a pod that may change settings of the node's kernel.
fn privileged(options: ClusterOptions) -> ClusterOptions {
    ClusterOptions {
        run_as: Some(0),
        pod_patch: Some(privileged_patch()),
        ..options
    }
}

/// A privileged container has all capabilities, and the API server refuses one that forbids them.
fn privileged_patch() -> Value {
    json!({"spec": {"containers": [{
        "name": CONTAINER,
        "securityContext": {
            "privileged": true,
            "allowPrivilegeEscalation": null,
            "capabilities": null,
        },
    }]}})
}

/// Waits for the answer of a node. `None` if the connection has ended.
fn await_drop(
    node: &NodeWatcher,
    interrupts: &dyn Fn() -> u32,
) -> Result<Option<Result<(), SystemFailure>>, RunError> {
    let begun = Instant::now();
    loop {
        match node.connection.events.recv_timeout(TICK) {
            Ok(AgentEvent::Message(AgentMessage::CachesDropped(outcome))) => {
                return Ok(Some(outcome));
            }
            _ if interrupts() > 0 => return Err(RunError::Interrupted),
            Ok(AgentEvent::Message(_)) => {}
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < DROP_TIMEOUT => {}
            Err(RecvTimeoutError::Timeout) => return Ok(Some(Err(no_answer()))),
            _ => return Ok(None),
        }
    }
}

fn reopen(node: &mut NodeWatcher) -> Result<(), RunError> {
    let (objects, pod) = (&node.objects, &node.pod);
    let opened = async { timeout(ANSWER_TIMEOUT, Connection::open(objects, pod)).await };
    match node.runtime.block_on(opened) {
        Ok(connection) => {
            node.connection = connection?;
            Ok(())
        }
        Err(_) => Err(not_dropped(&node.wanted.node, no_answer())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::patched;
    use k8s_openapi::api::core::v1::{
        Capabilities, Container, PodSpec, PodTemplateSpec, SecurityContext,
    };

    #[test]
    fn container_that_drops_caches_is_privileged() {
        let restricted = SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                add: None,
            }),
            ..SecurityContext::default()
        };
        let template = PodTemplateSpec {
            metadata: None,
            spec: Some(PodSpec {
                containers: vec![Container {
                    name: CONTAINER.to_owned(),
                    security_context: Some(restricted),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
        };
        let patched = patched(template, &privileged_patch()).unwrap();
        let container = patched.spec.unwrap().containers.swap_remove(0);
        let expected = SecurityContext {
            privileged: Some(true),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        };
        assert_eq!(container.security_context, Some(expected));
    }

    #[test]
    fn refusal_names_the_node() {
        let error = not_dropped("n1", no_answer());
        let expected = UnsupportedFeature::CachesNotDropped {
            layer: CacheLayer::Node,
            place: "n1".to_owned(),
            failure: SystemFailure::Text("its pod does not answer".to_owned()),
        };
        assert_eq!(error, RunError::from(expected));
    }
}
