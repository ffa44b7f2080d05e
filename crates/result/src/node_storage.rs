//! Disks and mounts of a node of a cluster, as a pod on it lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node of a cluster, and its disks and mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedNode {
    /// Name of the node.
    pub node: String,
    /// Its disks and mounts.
    pub storage: NodeStorage,
}

/// Disks and mounts of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NodeStorage {
    /// Disks, without partitions, loop devices and memory disks.
    pub disks: Vec<NodeDisk>,
    /// Mounted file systems that a hostPath can name.
    pub mounts: Vec<NodeMount>,
    /// Directories beside the one that was asked for, or in its nearest existing parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
}

/// A disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeDisk {
    /// Kernel name, e.g. `nvme0n1`.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Model, if the device has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Size of a logical sector in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_sector_bytes: Option<u64>,
    /// Size of a physical sector in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_sector_bytes: Option<u64>,
}

/// A mounted file system of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeMount {
    /// Directory on the node.
    pub path: String,
    /// Type of the file system, e.g. `ext4`.
    pub fs_type: String,
    /// Source of the mount: a device or an export.
    pub source: String,
    /// Size of the file system in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Bytes that are available, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
}
