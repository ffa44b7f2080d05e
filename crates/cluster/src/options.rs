//! What a run in a cluster needs to know beyond its plan.

use iosonde_job::Target;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster, which volume, and what the pod is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// The kubeconfig file; `None` is what kubectl would take.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; `None` is the current one.
    pub context: Option<String>,
    /// The namespace; `None` is the context's.
    pub namespace: Option<String>,
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
    /// User and group in the pod; `None` is nobody, or root where the volume needs it.
    pub run_as: Option<i64>,
    /// How long may pass until the pod runs.
    pub timeout: Duration,
    /// When the cluster ends the run by itself.
    pub deadline: Duration,
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
            target,
            claim_bytes: Self::CLAIM_BYTES,
            volume_mode: VolumeMode::Filesystem,
            image: None,
            node_selector: BTreeMap::new(),
            run_as: None,
            timeout: Duration::from_secs(300),
            deadline: Duration::from_secs(24 * 3600),
        }
    }
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
