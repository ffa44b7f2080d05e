//! The mount and the block devices of a path.

#[cfg(test)]
mod device_class_tests;
#[cfg(test)]
mod fast_device_tests;
#[cfg(test)]
mod identify_tests;

use super::block_device::{BlockDevice, describe};
use super::cgroup;
use super::file_service::service;
use super::file_system::{STAT_BLOCK_BYTES, file_system_usage, nearest_existing};
use super::mounts::{self, mount_of};
use super::proc_root::{System, device_number};
use iosonde_result::host::{
    DeviceInfo, DeviceNumber, Locality, Mount, PathKind, ServiceClient, TargetInfo,
};
use std::io;
use std::path::{Path, PathBuf};

/// Depth limit for stacks of devices, beyond any real stack. It stops at circles in captured trees.
const MAX_DEPTH: usize = 16;

/// Facts of a path from stat(2); captured trees provide their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFacts {
    /// The absolute path without symbolic links.
    pub path: PathBuf,
    /// Kind of the path.
    pub kind: PathKind,
    /// Size in bytes of a file.
    pub size_bytes: Option<u64>,
    /// Bytes of a file with allocated blocks.
    pub allocated_bytes: Option<u64>,
    /// Device number of the file system of the path (`st_dev`).
    pub on: Option<DeviceNumber>,
    /// Device number of the block device (`st_rdev`).
    pub is: Option<DeviceNumber>,
}

impl PathFacts {
    /// Queries the running system. A missing path is described by its nearest existing ancestor.
    pub fn query(path: &Path) -> io::Result<Self> {
        let (existing, missing) = nearest_existing(path)?;
        let real = std::fs::canonicalize(&existing)?;
        let stat = rustix::fs::stat(&real)?;
        let raw_kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        let on = Some(device_number(stat.st_dev));
        if !missing.as_os_str().is_empty() {
            return Ok(Self {
                path: real.join(missing),
                kind: PathKind::Missing,
                size_bytes: None,
                allocated_bytes: None,
                on,
                is: None,
            });
        }
        let kind = target_kind(raw_kind);
        Ok(Self {
            path: real,
            kind,
            size_bytes: (kind == PathKind::File).then_some(stat.st_size.max(0) as u64),
            allocated_bytes: (kind == PathKind::File)
                .then(|| (stat.st_blocks.max(0) as u64).saturating_mul(STAT_BLOCK_BYTES)),
            on,
            is: (kind == PathKind::BlockDevice).then(|| device_number(stat.st_rdev)),
        })
    }
}

fn target_kind(raw: rustix::fs::FileType) -> PathKind {
    use rustix::fs::FileType;
    match raw {
        FileType::RegularFile => PathKind::File,
        FileType::Directory => PathKind::Directory,
        FileType::BlockDevice => PathKind::BlockDevice,
        FileType::CharacterDevice => PathKind::CharacterDevice,
        _ => PathKind::Other,
    }
}

/// Describes a path of this machine.
pub fn identify(path: &Path) -> io::Result<TargetInfo> {
    let facts = PathFacts::query(path)?;
    let mut info = identify_in(&System::live(), &facts);
    if info.mount.is_some() {
        info.space = file_system_usage(&facts.path).ok();
    }
    Ok(info)
}

/// Describes a path with the files of a system.
fn identify_in(system: &System, facts: &PathFacts) -> TargetInfo {
    let mounts = mounts::mounts(system);
    let stack = Stack {
        system,
        mounts: &mounts,
    };
    let mut info = TargetInfo {
        path: facts.path.clone(),
        kind: facts.kind,
        size_bytes: facts.size_bytes,
        allocated_bytes: facts.allocated_bytes,
        ..TargetInfo::default()
    };
    let devices = match facts.is {
        Some(number) => stack
            .device(number, 0)
            .map(|device| vec![device])
            .ok_or_else(|| unknown_device(number)),
        None => {
            info.mount = mount_of(&mounts, &facts.path, facts.on).cloned();
            if let Some(mount) = &mut info.mount {
                mount.service = service(system, mount);
            }
            info.mount.as_ref().map_or_else(
                || Err("/proc/self/mountinfo has no mount for this path".to_owned()),
                |mount| stack.devices_of_mount(mount, 0),
            )
        }
    };
    match devices {
        Ok(devices) => info.devices = devices,
        Err(note) => info.note = Some(note),
    }
    if facts.is.is_some() {
        info.size_bytes = info.devices.first().map(|device| device.size_bytes);
    }
    info.limits = cgroup::limits_of(system, &mounts, &info);
    info
}

fn unknown_device(number: DeviceNumber) -> String {
    format!(
        "/sys/dev/block/{number} cannot be read, so the properties of the block device are unknown"
    )
}

fn unnamed_devices(mount: &Mount) -> String {
    let (fs_type, source) = (&mount.fs_type, &mount.source);
    match fs_type.as_str() {
        "zfs" => {
            let pool = source.split('/').next().unwrap_or_default();
            format!("ZFS does not report which devices store {source}: see `zpool status {pool}`")
        }
        _ => {
            format!(
                "the kernel does not report which devices store the {fs_type} file system {source}"
            )
        }
    }
}

/// Block devices and the mounts between them.
struct Stack<'a> {
    system: &'a System,
    mounts: &'a [Mount],
}

impl Stack<'_> {
    /// A device with all devices below it.
    fn device(&self, number: DeviceNumber, depth: usize) -> Option<DeviceInfo> {
        let node = BlockDevice::from_number(self.system, number)?;
        let mut info = describe(self.system, &node);
        if depth < MAX_DEPTH {
            info.below = self.below(&node, depth + 1);
        }
        Some(info)
    }

    fn below(&self, node: &BlockDevice, depth: usize) -> Vec<DeviceInfo> {
        if let Some(disk) = node.disk(self.system) {
            return self.device(disk.number, depth).into_iter().collect();
        }
        if let Some(file) = node.backing_file(self.system) {
            return self.devices_of_file(&file, depth);
        }
        let slaves = node.slaves(self.system);
        slaves
            .iter()
            .filter_map(|slave| self.device(slave.number, depth))
            .collect()
    }

    /// The devices of a file whose path comes from the kernel, possibly of another mount namespace.
    fn devices_of_file(&self, file: &Path, depth: usize) -> Vec<DeviceInfo> {
        let mut on = None;
        if self.system.is_live() {
            let Ok(stat) = rustix::fs::stat(file) else {
                return Vec::new();
            };
            if target_kind(rustix::fs::FileType::from_raw_mode(stat.st_mode))
                == PathKind::BlockDevice
            {
                return self
                    .device(device_number(stat.st_rdev), depth)
                    .into_iter()
                    .collect();
            }
            on = Some(device_number(stat.st_dev));
        } else if let Some(number) = self.system.device_of_node(file) {
            return self.device(number, depth).into_iter().collect();
        }
        let mount = mount_of(self.mounts, file, on);
        mount
            .and_then(|mount| self.devices_of_mount(mount, depth).ok())
            .unwrap_or_default()
    }

    /// The devices of a mounted file system, or the reason why they are unknown.
    fn devices_of_mount(&self, mount: &Mount, depth: usize) -> Result<Vec<DeviceInfo>, String> {
        match mount.locality {
            Locality::Block => self.devices_of_file_system(mount, depth),
            Locality::Stacked => self.devices_of_overlay(mount, depth),
            Locality::Memory => Err(format!("{} stores its data in memory", mount.fs_type)),
            Locality::Remote => Err(match &mount.service {
                // Ceph's mounts do not name the place of the data.
                Some(service) if service.client != ServiceClient::Nfs => {
                    format!(
                        "the data is in a Ceph cluster, accessed through {}",
                        service.client.words()
                    )
                }
                _ => format!(
                    "the data is on {}, accessed through {}",
                    mount.source, mount.fs_type
                ),
            }),
            Locality::UserSpace => Err(format!(
                "a user-space process serves this file system ({})",
                mount.fs_type
            )),
            Locality::Pseudo => Err(format!(
                "{} is a pseudo file system and stores no data",
                mount.fs_type
            )),
        }
    }

    fn devices_of_file_system(
        &self,
        mount: &Mount,
        depth: usize,
    ) -> Result<Vec<DeviceInfo>, String> {
        // btrfs and others have device numbers of their own. The source names one device, or all.
        let mut numbers: Vec<DeviceNumber> = match mount.device.major {
            0 => {
                let named = mount.source.split(':').map(Path::new);
                named
                    .filter_map(|node| self.system.device_of_node(node))
                    .collect()
            }
            _ => vec![mount.device],
        };
        let number = *numbers.first().ok_or_else(|| unnamed_devices(mount))?;
        if mount.fs_type == "btrfs" {
            numbers.extend(self.btrfs_companions(number));
        }
        let devices: Vec<DeviceInfo> = numbers
            .into_iter()
            .filter_map(|number| self.device(number, depth))
            .collect();
        if devices.is_empty() {
            Err(unknown_device(number))
        } else {
            Ok(devices)
        }
    }

    /// The other devices of a btrfs file system.
    fn btrfs_companions(&self, number: DeviceNumber) -> Vec<DeviceNumber> {
        for id in self.system.names("/sys/fs/btrfs") {
            let names = self.system.names(format!("/sys/fs/btrfs/{id}/devices"));
            let numbers = names
                .iter()
                .filter_map(|name| Some(BlockDevice::from_name(self.system, name)?.number));
            let numbers: Vec<DeviceNumber> = numbers.collect();
            if numbers.contains(&number) {
                return numbers
                    .into_iter()
                    .filter(|other| *other != number)
                    .collect();
            }
        }
        Vec::new()
    }

    /// The devices of an overlay's upper layer, which receives new data. The upper layer is visible
    /// only in the mount namespace where it was mounted.
    fn devices_of_overlay(&self, mount: &Mount, depth: usize) -> Result<Vec<DeviceInfo>, String> {
        let upper = mount
            .options
            .iter()
            .find_map(|option| option.strip_prefix("upperdir="));
        let upper = upper
            .ok_or_else(|| format!("the mount options of {} name no upper layer", mount.fs_type))?;
        if depth >= MAX_DEPTH || !upper.starts_with('/') || !self.system.exists(upper) {
            return Err(match upper.starts_with('/') {
                true => format!(
                    "the overlay's upper layer {upper} is not visible from this mount namespace"
                ),
                false => format!(
                    "the overlay's upper layer {upper} is a relative path, so its location is \
                     unknown"
                ),
            });
        }
        let on = self
            .system
            .is_live()
            .then(|| rustix::fs::stat(upper).ok())
            .flatten();
        let below = mount_of(
            self.mounts,
            Path::new(upper),
            on.map(|stat| device_number(stat.st_dev)),
        );
        let below =
            below.ok_or_else(|| format!("no mount contains the overlay's upper layer {upper}"))?;
        self.devices_of_mount(below, depth + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_described_by_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let facts = PathFacts::query(&dir.path().join("not/yet")).unwrap();
        assert_eq!(facts.kind, PathKind::Missing);
        assert_eq!(
            facts.path,
            dir.path().canonicalize().unwrap().join("not/yet")
        );
        assert_eq!(facts.on, PathFacts::query(dir.path()).unwrap().on);
    }

    #[test]
    fn path_facts_distinguish_files_directories_and_devices() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, [1; 77]).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let facts = PathFacts::query(&link).unwrap();
        assert_eq!((facts.kind, facts.size_bytes), (PathKind::File, Some(77)));
        assert!(facts.path.ends_with("file"));
        assert_eq!(
            PathFacts::query(dir.path()).unwrap().kind,
            PathKind::Directory
        );
        assert_eq!(
            PathFacts::query(Path::new("/dev/null")).unwrap().kind,
            PathKind::CharacterDevice
        );
    }

    #[test]
    fn path_below_a_file_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(PathFacts::query(&file.path().join("below")).is_err());
    }

    #[test]
    fn identify_describes_a_file_in_proc() {
        let target = identify(Path::new("/proc/self/status")).unwrap();
        assert_eq!(target.mount.unwrap().fs_type, "proc");
        assert_eq!(
            target.note.unwrap(),
            "proc is a pseudo file system and stores no data"
        );
        assert!(target.devices.is_empty());
    }
}
