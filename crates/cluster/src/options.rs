//! What a run in a cluster needs to know beyond its plan.

pub mod pod;

use iosonde_job::Target;
pub use k8s_openapi::api::core::v1::Toleration;
pub use pod::PodOptions;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster, which volume, and what the pod is like.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterOptions {
    /// The kubeconfig file; `None` is what kubectl would take.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; `None` is the current one.
    pub context: Option<String>,
    /// The namespace; `None` is the context's.
    pub namespace: Option<String>,
    /// Whether the namespace is made where there is none, for as long as runs are in it.
    pub create_namespace: bool,
    /// Where to measure.
    pub target: Target,
    /// Size of the claim in bytes.
    pub claim_bytes: u64,
    /// Whether the volume is a file system or a block device.
    pub volume_mode: VolumeMode,
    /// The image of the pod; `None` looks for one that is on a node already.
    pub image: Option<String>,
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pod puts up with.
    pub tolerations: Vec<Toleration>,
    /// How the claim is mounted, as Kubernetes names it, such as `ReadWriteOnce`.
    pub access_mode: String,
    /// Whether an emptyDir is in the node's memory.
    pub in_memory: bool,
    /// The rest of what the pod is like.
    pub pod: PodOptions,
    /// Merged into the pod's template, with `metadata` and `spec`.
    pub pod_patch: Option<serde_json::Value>,
    /// User and group in the pod; `None` is nobody, or root where the volume needs it.
    pub run_as: Option<i64>,
    /// How long may pass until the pod runs.
    pub timeout: Duration,
    /// When the cluster ends the run by itself.
    pub deadline: Duration,
    /// Nodes to watch besides; `None` is the one that serves the volume, where it can be found.
    pub watch_nodes: Option<Vec<String>>,
    /// Whether the user agreed to lose what the block device of an existing claim carries.
    pub allow_overwrite: bool,
    /// Several pods, which start together; `None` is one pod.
    pub pods: Option<Pods>,
}

/// Pods that run a plan at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pods {
    /// How many; `None` is one on each node that can take one.
    pub count: Option<u32>,
    /// On which nodes.
    pub placement: Placement,
    /// Whether all have one claim, each a directory of its own in it, instead of a claim each.
    pub shared: bool,
}

/// How pods are spread over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// As the scheduler likes.
    Any,
    /// Evenly.
    Spread,
    /// All on one node.
    Pack,
    /// At most one on a node.
    PerNode,
}

impl ClusterOptions {
    /// Size of a claim when nothing is said.
    pub const CLAIM_BYTES: u64 = 5 << 30;

    /// The usual for a target.
    pub fn new(target: Target) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: None,
            context: None,
            namespace: None,
            create_namespace: false,
            target,
            claim_bytes: Self::CLAIM_BYTES,
            volume_mode: VolumeMode::Filesystem,
            image: None,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            access_mode: "ReadWriteOnce".to_owned(),
            in_memory: false,
            pod: PodOptions::default(),
            pod_patch: None,
            run_as: None,
            timeout: Duration::from_secs(300),
            deadline: Duration::from_secs(24 * 3600),
            watch_nodes: None,
            allow_overwrite: false,
            pods: None,
        }
    }
}

impl ClusterOptions {
    /// Whether the volume is a block device.
    pub fn is_block(&self) -> bool {
        let takes_mode = matches!(
            self.target,
            Target::StorageClass(_) | Target::Ephemeral(_) | Target::Claim { .. }
        );
        takes_mode && self.volume_mode == VolumeMode::Block
    }

    /// Whether all pods write into the same volume.
    pub fn is_one_volume(&self) -> bool {
        let is_shared = self.pods.is_some_and(|pods| pods.shared);
        is_shared || matches!(self.target, Target::Claim { .. } | Target::HostPath(_))
    }

    /// Why the pod runs as root, where nobody has said who it is to run as.
    pub fn why_root(&self) -> Option<&'static str> {
        match (self.run_as, &self.target) {
            (Some(_), _) => None,
            (None, Target::HostPath(_)) => Some("directories of nodes belong to root"),
            (None, _) => self.is_block().then_some("block devices belong to root"),
        }
    }
}

/// A taint to put up with, as kubectl writes taints: `KEY[=VALUE][:EFFECT]`; `*` is every one.
pub fn toleration(text: &str) -> Option<Toleration> {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let (rest, effect) = match text.rsplit_once(':') {
        Some((rest, effect)) if EFFECTS.contains(&effect) => (rest, Some(effect.to_owned())),
        Some(_) => return None,
        None => (text, None),
    };
    let (key, value) = match rest.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (rest, None),
    };
    let operator = if value.is_some() { "Equal" } else { "Exists" };
    (!key.is_empty()).then(|| Toleration {
        key: (key != "*").then(|| key.to_owned()),
        operator: Some(operator.to_owned()),
        value,
        effect,
        toleration_seconds: None,
    })
}

/// What a claim gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeMode {
    /// A mounted file system.
    Filesystem,
    /// A block device.
    Block,
}

/// The program that is sent into pods.
#[derive(Debug, Clone, Copy)]
pub struct AgentProgram<'a> {
    /// The static executable.
    pub bytes: &'a [u8],
    /// What it runs on, as nodes name it: `amd64`, `arm64`.
    pub arch: &'a str,
}

/// The architecture that this program was built for, as nodes name it.
pub fn own_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_written_as_taints() {
        let read = |text| serde_json::to_value(toleration(text).unwrap()).unwrap();
        let full = read("disk=ssd:NoSchedule");
        assert_eq!(full["key"], "disk");
        assert_eq!(full["operator"], "Equal");
        assert_eq!(full["value"], "ssd");
        assert_eq!(full["effect"], "NoSchedule");
        let key = read("node-role.kubernetes.io/control-plane");
        assert_eq!(key["operator"], "Exists");
        assert!(key.get("effect").is_none());
        assert!(read("*").get("key").is_none());
        assert!(toleration("disk:Never").is_none() && toleration("").is_none());
    }
}
