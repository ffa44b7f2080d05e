//! Properties of a target path: its mount, and the block devices that hold its data.

use super::{DeviceInfo, DeviceKind, DeviceNumber, IoLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Properties of a target path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TargetInfo {
    /// Path with symbolic links resolved, also for a path that does not exist yet.
    pub path: PathBuf,
    /// Kind of the path.
    pub kind: PathKind,
    /// Size of a file or device in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes allocated to the file. A file with holes has fewer than its size.
    pub allocated_bytes: Option<u64>,
    /// Space in the file system.
    pub space: Option<FileSystemUsage>,
    /// Mount that holds a file or directory. `None` for a block device.
    pub mount: Option<Mount>,
    /// Block devices that hold the data. Empty for memory and network file systems.
    pub devices: Vec<DeviceInfo>,
    /// I/O limits on those devices from the control groups of this process.
    pub limits: Vec<IoLimit>,
    /// Reason why the devices are unknown, in one sentence.
    pub note: Option<String>,
}

impl TargetInfo {
    /// Returns every device under the target once, from the top down.
    pub fn all_devices(&self) -> Vec<&DeviceInfo> {
        let mut found: Vec<&DeviceInfo> = Vec::new();
        let mut waiting: Vec<&DeviceInfo> = self.devices.iter().rev().collect();
        while let Some(device) = waiting.pop() {
            if !found.iter().any(|known| known.number == device.number) {
                found.push(device);
            }
            waiting.extend(device.below.iter().rev());
        }
        found
    }

    /// Returns the size of the only volume with the data: for a partition, of the disk.
    pub fn volume_bytes(&self) -> Option<u64> {
        let [only] = &self.devices[..] else {
            return None;
        };
        let mut device = only;
        // The device below a loop device holds its file, and is larger than the loop device.
        while device.kind != DeviceKind::Loop && !device.below.is_empty() {
            let [below] = &device.below[..] else {
                return None;
            };
            device = below;
        }
        Some(device.size_bytes)
    }

    /// Returns the devices at the bottom, which have no underlying devices.
    pub fn bottom_devices(&self) -> Vec<&DeviceInfo> {
        self.all_devices()
            .into_iter()
            .filter(|device| device.below.is_empty())
            .collect()
    }
}

/// Space in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct FileSystemUsage {
    /// Size of the file system in bytes.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: Option<u64>,
    /// Bytes that this user may write.
    pub available_bytes: Option<u64>,
}

/// Kinds of path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// The path does not exist yet.
    #[default]
    Missing,
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/null`.
    CharacterDevice,
    /// A pipe or socket.
    Other,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Mount {
    /// Directory where the file system is mounted.
    pub mount_point: PathBuf,
    /// Directory within the file system that is mounted; not `/` for bind mounts and subvolumes.
    pub root: String,
    /// Type of the file system, e.g. `ext4`.
    pub fs_type: String,
    /// Source of the mount: a device, an export of a server, or a name.
    pub source: String,
    /// Options of the mount and of the file system, e.g. `rw`, `relatime`, `discard`.
    pub options: Vec<String>,
    /// Device number of the file system. Major number 0 means that there is no single block device.
    pub device: DeviceNumber,
    /// Location of the data.
    pub locality: Locality,
    /// Service behind the mount, for NFS and CephFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<MountService>,
}

/// Server side of an NFS or CephFS mount. Unknown fields are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MountService {
    /// Client that talks to the servers.
    pub client: ServiceClient,
    /// Version of the NFS protocol.
    pub version: Option<String>,
    /// NFS: the server as named, and its address if that differs. CephFS: the monitors.
    pub servers: Vec<String>,
    /// Directory on the server that is mounted: the export, or the path within the file system.
    pub path: Option<String>,
    /// Name of the Ceph file system, if the mount names it.
    pub file_system: Option<String>,
    /// fsid of the Ceph cluster.
    pub fsid: Option<String>,
    /// Ceph user, without `client.`.
    pub user: Option<String>,
}

/// Client that talks to the servers of a network file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum ServiceClient {
    /// NFS client of the kernel.
    #[default]
    Nfs,
    /// CephFS client of the kernel.
    CephKernel,
    /// ceph-fuse, a process.
    CephFuse,
}

impl ServiceClient {
    /// Returns the name of the client for people.
    pub fn words(self) -> &'static str {
        match self {
            ServiceClient::Nfs => "NFS",
            ServiceClient::CephKernel => "CephFS (kernel client)",
            ServiceClient::CephFuse => "CephFS (ceph-fuse)",
        }
    }
}

/// Location of the data of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// On block devices of this machine, which may be remote themselves.
    #[default]
    Block,
    /// In memory: tmpfs, ramfs.
    Memory,
    /// On another machine, or on the host of this virtual machine.
    Remote,
    /// In another file system: overlayfs and similar.
    Stacked,
    /// Behind a user-space process (FUSE).
    UserSpace,
    /// No data: procfs and similar.
    Pseudo,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, minor: u32, below: Vec<DeviceInfo>) -> DeviceInfo {
        let number = DeviceNumber { major: 8, minor };
        DeviceInfo {
            name: name.into(),
            number,
            below,
            ..Default::default()
        }
    }

    #[test]
    fn devices_are_listed_from_the_top_each_once() {
        let disk = device("sda", 0, vec![]);
        let first = device("sda1", 1, vec![disk.clone()]);
        let second = device("sda2", 2, vec![disk]);
        let target = TargetInfo {
            devices: vec![device("md0", 9, vec![first, second])],
            ..Default::default()
        };
        let names =
            |list: Vec<&DeviceInfo>| list.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(target.all_devices()), ["md0", "sda1", "sda", "sda2"]);
        assert_eq!(names(target.bottom_devices()), ["sda"]);
    }
}
