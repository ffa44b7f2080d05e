//! Nodes that take no pod, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The nodes that a run could use, none of which takes a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnusableNodes {
    /// Names of the ready nodes that are closed to new pods (`kubectl cordon`).
    pub cordoned: Vec<String>,
    /// Names of the nodes that are not ready.
    pub not_ready: Vec<String>,
}
