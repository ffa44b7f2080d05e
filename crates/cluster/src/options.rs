//! Options of a run in a cluster, besides its plan.

pub mod pod;

use iosonde_job::TargetUri;
use iosonde_result::cache_state::ColdLayers;
pub use k8s_openapi::api::core::v1::Toleration;
use pod::NodeSelectorRequirement;
pub use pod::PodOptions;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Label of a node with the architecture of its processors.
pub(crate) const ARCH_LABEL: &str = "kubernetes.io/arch";

/// Cluster, volume and properties of the pods.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterOptions {
    /// The kubeconfig file. `None` selects it like kubectl.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. `None` is the current one.
    pub context: Option<String>,
    /// The namespace. `None` is that of the context.
    pub namespace: Option<String>,
    /// Whether to create a missing namespace, which is removed after the last run in it.
    pub create_namespace: bool,
    /// The target.
    pub target: TargetUri,
    /// Size of the claim in bytes.
    pub claim_bytes: u64,
    /// Whether the volume is a file system or a block device.
    pub volume_mode: VolumeMode,
    /// Image of the pod. `None` selects one that a node already has.
    pub image: Option<String>,
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pod tolerates.
    pub tolerations: Vec<Toleration>,
    /// Access mode of the claim, such as `ReadWriteOnce`.
    pub access_mode: String,
    /// Whether an emptyDir is in the node's memory.
    pub in_memory: bool,
    /// Further properties of the pod.
    pub pod: PodOptions,
    /// Patch merged into the pod template, with `metadata` and `spec`.
    pub pod_patch: Option<serde_json::Value>,
    /// User and group of the pod. `None` is unprivileged, or root if the volume needs it.
    pub run_as: Option<i64>,
    /// Timeout for the start of the pod.
    pub timeout: Duration,
    /// Time after which the cluster ends the run.
    pub deadline: Duration,
    /// Further nodes to sample. `None` samples the server of the volume, if known.
    pub watch_nodes: Option<Vec<String>>,
    /// Whether the user accepts the loss of data on the block device of an existing claim.
    pub allow_overwrite: bool,
    /// Several pods with a common start. `None` is one pod.
    pub pods: Option<Pods>,
    /// Whether the objects of a run whose pod fails are kept.
    pub keep_failed: KeepOption,
    /// Whether volumes that their class retains are removed, too. A run then needs the rights on
    /// volumes, and itself removes those of pods that do not start.
    pub removes_retained: bool,
    /// Space that the jobs of each pod need. `None` is not known.
    pub needed: Option<NeededSpace>,
    /// Layers whose caches are dropped before the jobs start.
    pub cold: ColdLayers,
    /// Whether the pods only list disks and mounts: the volume is read-only, and nothing is created
    /// in it.
    pub inspects_node: bool,
}

/// The option `--keep`, which keeps the objects of a run whose pod fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepOption {
    /// The command does not take it for these pods. No remedy names it.
    Unavailable,
    /// The command takes it, but the user did not give it. Remedies name it.
    NotGiven,
    /// The objects are kept for an inspection.
    Given,
}

/// Space that the jobs of a pod need in its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededSpace {
    /// Sum of the files.
    pub bytes: u64,
    /// Option that sets the size of the claim.
    pub option: &'static str,
    /// Suffix with which the option reads GiB.
    pub gib_suffix: &'static str,
}

/// Pods that run a plan at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pods {
    /// Number of pods. `None` is one on each suitable node.
    pub count: Option<u32>,
    /// Placement on the nodes.
    pub placement: PodPlacement,
    /// Whether all pods share one claim, with a directory each, instead of a claim each.
    pub shared: bool,
    /// Whether the pods first check a file of their shared claim.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub checks_shared_file: bool,
}

/// Distribution of pods over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PodPlacement {
    /// Left to the scheduler.
    Any,
    /// Evenly spread.
    Spread,
    /// All on one node.
    Pack,
    /// At most one per node.
    PerNode,
}

impl ClusterOptions {
    /// Default size of a claim in bytes.
    pub const CLAIM_BYTES: u64 = 5 << 30;

    /// Returns the default options for a target.
    pub fn new(target: TargetUri) -> ClusterOptions {
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
            keep_failed: KeepOption::Unavailable,
            removes_retained: false,
            needed: None,
            cold: ColdLayers::default(),
            inspects_node: false,
        }
    }

    /// Limits pods without an agent to nodes of these architectures, like the pods with one: their
    /// image may exist for no other.
    pub(crate) fn limited_to_archs(mut self, archs: &[&str]) -> ClusterOptions {
        debug_assert!(
            archs.iter().all(|arch| !arch.is_empty()),
            "each agent is for an architecture"
        );
        let key = ARCH_LABEL.to_owned();
        match archs {
            [] => {}
            [arch] => {
                self.node_selector.insert(key, (*arch).to_owned());
            }
            several => self.pod.node_affinity.push(NodeSelectorRequirement {
                key,
                operator: "In".to_owned(),
                values: Some(several.iter().map(|arch| (*arch).to_owned()).collect()),
            }),
        }
        self
    }

    /// Returns the options of pods that list disks and mounts of their nodes: the root directory of
    /// the node, read-only, is their volume. Their cluster, placement and image are kept.
    pub fn for_node_inspection(&self, pods: Option<Pods>) -> ClusterOptions {
        let mut pod = self.pod.clone();
        // A test volume may request space, but these pods need none.
        pod.requests.remove("ephemeral-storage");
        pod.limits.remove("ephemeral-storage");
        ClusterOptions {
            target: TargetUri::HostPath("/".to_owned()),
            volume_mode: VolumeMode::Filesystem,
            in_memory: false,
            pod,
            watch_nodes: Some(Vec::new()),
            allow_overwrite: false,
            pods,
            keep_failed: KeepOption::Unavailable,
            needed: None,
            cold: ColdLayers::default(),
            inspects_node: true,
            ..self.clone()
        }
    }
}

impl ClusterOptions {
    /// Whether the volume is a block device.
    pub fn is_block(&self) -> bool {
        let takes_mode = matches!(
            self.target,
            TargetUri::StorageClass(_) | TargetUri::Ephemeral(_) | TargetUri::Claim { .. }
        );
        takes_mode && self.volume_mode == VolumeMode::Block
    }

    /// Whether all pods write to the same volume.
    pub fn is_one_volume(&self) -> bool {
        let is_shared = self.pods.is_some_and(|pods| pods.shared);
        is_shared
            || matches!(
                self.target,
                TargetUri::Claim { .. } | TargetUri::HostPath(_)
            )
    }

    /// Whether the pods first check a file of the volume that they share.
    pub(crate) fn checks_shared_file(&self) -> bool {
        self.pods
            .is_some_and(|pods| pods.shared && pods.checks_shared_file)
    }

    /// Returns why the pod runs as root, if the user gave no user id.
    pub fn why_root(&self) -> Option<&'static str> {
        match (self.run_as, &self.target) {
            (Some(_), _) => None,
            (None, TargetUri::HostPath(_)) => Some("directories of nodes belong to root"),
            (None, _) => self.is_block().then_some("block devices belong to root"),
        }
    }
}

/// Parses a toleration in kubectl's notation of taints: `KEY[=VALUE][:EFFECT]`, or `*` for all.
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

/// Kind of volume that a claim provides.
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
    /// Its architecture, as node labels name it: `amd64`, `arm64`.
    pub arch: &'a str,
}

impl<'a> AgentProgram<'a> {
    /// Describes this executable, by the header that each ELF file has. A file of another format is
    /// taken for a program of this machine.
    pub fn from_bytes(bytes: &'a [u8]) -> AgentProgram<'a> {
        AgentProgram {
            bytes,
            arch: elf_arch(bytes).unwrap_or_else(own_arch),
        }
    }
}

/// Returns the architecture of an ELF executable, if the agent is built for it.
fn elf_arch(bytes: &[u8]) -> Option<&'static str> {
    const MACHINE_OFFSET: usize = 18;
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    match bytes.get(MACHINE_OFFSET..MACHINE_OFFSET + 2)? {
        [62, 0] => Some("amd64"),
        [183, 0] => Some("arm64"),
        _ => None,
    }
}

/// Returns the architecture that `uname -m` prints, as node labels name it.
pub(crate) fn arch_of_machine(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// Returns the architecture of this program, as node labels name it.
pub fn own_arch() -> &'static str {
    arch_of_machine(std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_architecture_is_read_from_its_header() {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        for (machine, arch) in [(62, "amd64"), (183, "arm64"), (243, own_arch())] {
            header[18] = machine;
            assert_eq!(AgentProgram::from_bytes(&header).arch, arch);
        }
        assert_eq!(AgentProgram::from_bytes(b"#!/bin/sh").arch, own_arch());
        assert_eq!(arch_of_machine("aarch64"), "arm64");
    }

    #[test]
    fn pods_without_an_agent_are_limited_to_the_architectures_of_agents() {
        let limited = |archs: &[&str]| {
            ClusterOptions::new("sc://fast".parse().unwrap()).limited_to_archs(archs)
        };
        let one = limited(&["amd64"]);
        assert_eq!(one.node_selector[ARCH_LABEL], "amd64");
        assert!(one.pod.node_affinity.is_empty());
        let several = limited(&["amd64", "arm64"]);
        assert!(several.node_selector.is_empty());
        let required = pod::requirement("kubernetes.io/arch in (amd64,arm64)").unwrap();
        assert_eq!(several.pod.node_affinity, [required]);
    }

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
