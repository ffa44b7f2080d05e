//! What a path is: its mount, and the block devices that hold its data.

use super::{DeviceInfo, DeviceKind, DeviceNumber, IoLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a path is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TargetInfo {
    /// The path with its links followed. For a path that does not exist yet, what it will be.
    pub path: PathBuf,
    /// Kind of the path.
    pub kind: TargetKind,
    /// Size of a file or device in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes of the file that have blocks; fewer than its size in a file with holes.
    pub allocated_bytes: Option<u64>,
    /// Room in the file system.
    pub space: Option<Space>,
    /// The mount that holds a file or directory; the mounts of a block device are not its own property.
    pub mount: Option<Mount>,
    /// The block devices that hold the data, each with what is below it. Empty for memory and network file systems.
    pub devices: Vec<DeviceInfo>,
    /// I/O bounds on those devices by this process's control groups.
    pub limits: Vec<IoLimit>,
    /// Why the devices are not known, where they are not, in one sentence.
    pub note: Option<String>,
}

impl TargetInfo {
    /// Every device under the target, from the top down, each once.
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

    /// Size of the one volume that holds the data: of the disk, where it is a part of one. `None` where several do, or none is known.
    pub fn volume_bytes(&self) -> Option<u64> {
        let [only] = &self.devices[..] else {
            return None;
        };
        let mut device = only;
        // What a loop device is made of is a file on some disk, which is larger than it.
        while device.kind != DeviceKind::Loop && !device.below.is_empty() {
            let [below] = &device.below[..] else {
                return None;
            };
            device = below;
        }
        Some(device.size_bytes)
    }

    /// The devices at the bottom: those that nothing lies below.
    pub fn bottom_devices(&self) -> Vec<&DeviceInfo> {
        self.all_devices()
            .into_iter()
            .filter(|device| device.below.is_empty())
            .collect()
    }
}

/// Room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Space {
    /// Size of the file system in bytes.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: Option<u64>,
    /// Bytes that this user may still write.
    pub available_bytes: Option<u64>,
}

/// Kinds of path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Nothing is there yet.
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
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Which directory of the file system is mounted there; not `/` for bind mounts and subvolumes.
    pub root: String,
    /// Type of the file system, e.g. `ext4`.
    pub fs_type: String,
    /// What is mounted: a device, a server's export, or a name.
    pub source: String,
    /// Options of the mount and of the file system, e.g. `rw`, `relatime`, `discard`.
    pub options: Vec<String>,
    /// The file system's device number; major 0 means that no single block device is behind it.
    pub device: DeviceNumber,
    /// Where the data is.
    pub locality: Locality,
    /// Who serves it, for NFS and CephFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
}

/// Who serves a mounted file system, and what of it. What could not be learnt is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Service {
    /// What speaks to the servers.
    pub client: ServiceClient,
    /// Version of the protocol, of NFS.
    pub version: Option<String>,
    /// NFS: the server as it was named, and its address if that is another. CephFS: the monitors.
    pub servers: Vec<String>,
    /// Which directory of theirs is mounted: the export, or the path in the file system.
    pub path: Option<String>,
    /// Name of the Ceph file system, where it was named.
    pub file_system: Option<String>,
    /// Identity of the Ceph cluster.
    pub fsid: Option<String>,
    /// The Ceph user, without `client.`.
    pub user: Option<String>,
}

/// What speaks to the servers of a mounted file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum ServiceClient {
    /// The kernel's NFS.
    #[default]
    Nfs,
    /// The kernel's CephFS.
    CephKernel,
    /// CephFS by a process of its own.
    CephFuse,
}

impl ServiceClient {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            ServiceClient::Nfs => "NFS",
            ServiceClient::CephKernel => "CephFS (kernel client)",
            ServiceClient::CephFuse => "CephFS (ceph-fuse)",
        }
    }
}

/// Where the data of a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// On block devices of this machine (which may themselves be remote).
    #[default]
    Block,
    /// In memory: tmpfs, ramfs.
    Memory,
    /// On another machine, or on the host of this virtual machine.
    Remote,
    /// In another file system: overlayfs and its kind.
    Stacked,
    /// Behind a user-space process (FUSE).
    UserSpace,
    /// Not a place for data: procfs and its kind.
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
