//! Words of [`UnusableNodes`].

use crate::run_error::UnusableNodes;
use std::fmt;

/// Maximum number of nodes that a text names for each state.
const NAMED_NODES_MAX: usize = 5;

impl fmt::Display for UnusableNodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = [
            describe_state(&self.cordoned, "cordoned"),
            describe_state(&self.not_ready, "not ready"),
        ];
        let states: Vec<String> = states.into_iter().flatten().collect();
        formatter.write_str("no node can take a pod")?;
        match states.as_slice() {
            [] => Ok(()),
            states => write!(formatter, ": {}", states.join("; ")),
        }
    }
}

/// Nodes with their state. `None` without nodes.
fn describe_state(nodes: &[String], state: &str) -> Option<String> {
    let named: Vec<&str> = nodes
        .iter()
        .take(NAMED_NODES_MAX)
        .map(String::as_str)
        .collect();
    match (
        named.as_slice(),
        nodes.len().saturating_sub(NAMED_NODES_MAX),
    ) {
        ([], _) => None,
        ([node], _) => Some(format!("node {node} is {state}")),
        (_, 0) => Some(format!("nodes {} are {state}", named.join(", "))),
        (_, more) => Some(format!(
            "nodes {} and {more} more are {state}",
            named.join(", ")
        )),
    }
}

impl UnusableNodes {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        let named: Vec<&str> = self
            .cordoned
            .iter()
            .take(NAMED_NODES_MAX)
            .map(String::as_str)
            .collect();
        match named.as_slice() {
            [] => "see `kubectl get nodes`".to_owned(),
            [node] => format!("permit new pods on it: kubectl uncordon {node}"),
            named => format!(
                "permit new pods on them: kubectl uncordon {}",
                named.join(" ")
            ),
        }
    }
}
