//! A run's specification and its owner, for tests of the objects that are made from it.

use crate::manifest::{AgentStart, RunSpec};
use crate::options::ClusterOptions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::collections::BTreeMap;

/// Checks the specification of a run with these options.
pub(crate) fn with_spec(options: &ClusterOptions, check: impl FnOnce(&RunSpec<'_>)) {
    check(&RunSpec {
        id: "3f2a9c00",
        namespace: "lab",
        image: "busybox",
        archs: &["amd64"],
        pods: 1,
        may_claim: true,
        start: AgentStart::Streamed,
        labels: &BTreeMap::new(),
        options,
    });
}

/// Returns the reference to the Job that owns the objects.
pub(crate) fn owner() -> OwnerReference {
    OwnerReference {
        uid: "u-1".to_owned(),
        ..OwnerReference::default()
    }
}
