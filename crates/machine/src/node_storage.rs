//! Disks and mounts of a node, as a pod lists them that has the node's root directory as a volume.

use super::block_device::{BlockDevice, describe};
use super::mounts::mounts;
use super::proc_root::System;
use iosonde_result::host::{DeviceInfo, DeviceKind, Locality, Mount};
use iosonde_result::node_storage::{NodeDisk, NodeMount, NodeStorage};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Most mounts that are listed.
const MOUNTS_MAX: usize = 256;
/// Most directories that are listed.
const DIRECTORIES_MAX: usize = 16;
/// Directories of the kernel and of running programs.
const SYSTEM_DIRECTORIES: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];
/// Directories in which each pod and each container has mounts of its own.
const POD_DIRECTORIES: [&str; 5] = [
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/snap",
];

/// Lists disks and mounts. `root` is the node's root directory. With `near`, an absolute path on
/// the node, the directories in its nearest existing parent are listed too.
pub fn node_storage(system: &System, root: &Path, near: Option<&Path>) -> NodeStorage {
    let disks = BlockDevice::list_all(system)
        .iter()
        .filter(|device| !device.is_partition(system))
        .filter_map(|device| node_disk(&describe(system, device)))
        .collect();
    NodeStorage {
        disks,
        mounts: node_mounts(system, root),
        directories: near.map_or(Vec::new(), |near| nearest_directories(system, root, near)),
    }
}

/// Returns the disk. `None`: the device has no medium, or is none of the node's own.
fn node_disk(device: &DeviceInfo) -> Option<NodeDisk> {
    let is_memory = matches!(
        device.kind,
        DeviceKind::Loop | DeviceKind::Ram | DeviceKind::Zram | DeviceKind::Null
    );
    if is_memory || device.size_bytes == 0 {
        return None;
    }
    let queue = device.queue.as_ref();
    Some(NodeDisk {
        name: device.name.clone(),
        size_bytes: device.size_bytes,
        model: device.model.clone(),
        logical_sector_bytes: queue.and_then(|queue| queue.logical_block_bytes),
        physical_sector_bytes: queue.and_then(|queue| queue.physical_block_bytes),
    })
}

fn node_mounts(system: &System, root: &Path) -> Vec<NodeMount> {
    let mut found = BTreeMap::new();
    for mount in mounts(system) {
        let Ok(inside) = mount.mount_point.strip_prefix(root) else {
            continue;
        };
        let path = Path::new("/").join(inside);
        // A later mount covers an earlier one.
        match is_usable(system, &mount, &path) {
            true => found.insert(path, mount),
            false => found.remove(&path),
        };
    }
    let listed = found.into_iter().take(MOUNTS_MAX);
    listed
        .map(|(path, mount)| node_mount(system, &path, mount))
        .collect()
}

/// Whether a hostPath can name the mount to reach storage.
fn is_usable(system: &System, mount: &Mount, path: &Path) -> bool {
    if path == Path::new("/") {
        return true;
    }
    let is_below = |directory: &&str| path.starts_with(directory) && path != Path::new(directory);
    let is_internal = SYSTEM_DIRECTORIES.iter().any(|top| path.starts_with(top))
        || POD_DIRECTORIES.iter().any(is_below);
    let is_storage = !matches!(mount.locality, Locality::Pseudo | Locality::Memory);
    // Single files are mounted, too.
    let is_directory = !system.is_live() || mount.mount_point.is_dir();
    is_storage && !is_internal && is_directory
}

fn node_mount(system: &System, path: &Path, mount: Mount) -> NodeMount {
    let space = match system.is_live() {
        true => rustix::fs::statvfs(&mount.mount_point).ok(),
        false => None,
    };
    let space = space.as_ref().filter(|space| space.f_blocks > 0);
    let bytes = |blocks: u64, size: u64| blocks.saturating_mul(size);
    NodeMount {
        path: path.display().to_string(),
        fs_type: mount.fs_type,
        source: mount.source,
        total_bytes: space.map(|space| bytes(space.f_blocks, space.f_frsize)),
        available_bytes: space.map(|space| bytes(space.f_bavail, space.f_frsize)),
    }
}

/// Returns the directories in the nearest existing parent of a path of the node.
fn nearest_directories(system: &System, root: &Path, near: &Path) -> Vec<String> {
    let in_pod = |path: &Path| {
        let inside = path.strip_prefix("/").unwrap_or(path);
        system.at(root.join(inside))
    };
    // The path itself may be a file.
    let parents = near.ancestors().skip(1);
    let existing = parents.filter(|parent| in_pod(parent).is_dir());
    for parent in existing {
        let named = directories_in(&in_pod(parent)).into_iter();
        let paths = named.map(|name| parent.join(name));
        let is_system = |path: &PathBuf| {
            let mut tops = SYSTEM_DIRECTORIES.iter();
            tops.any(|top| path.starts_with(top))
        };
        let paths = paths.filter(|path| !is_system(path)).take(DIRECTORIES_MAX);
        let found: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Returns the names of the directories in a directory, sorted. Symbolic links are left out.
fn directories_in(path: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    let entries = entries.filter_map(Result::ok);
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
1 0 0:50 / / rw - overlay overlay rw
2 1 8:1 / /data ro,relatime - ext4 /dev/sda1 rw
3 2 259:0 / /data/mnt/stateful_partition/kube-ephemeral-ssd rw - ext4 /dev/nvme0n1 rw
4 2 0:21 / /data/proc rw - proc proc rw
5 2 0:22 / /data/run rw - tmpfs tmpfs rw
6 2 0:23 / /data/tmp rw - tmpfs tmpfs rw
7 2 8:16 / /data/var/lib/kubelet/pods/x/volumes/y rw - ext4 /dev/sdb rw
8 2 0:24 / /data/mnt/share rw - nfs4 nas:/share rw
9 2 8:16 / /data/mnt/disk rw - ext4 /dev/sdb rw
10 2 0:25 / /data/mnt/disk rw - tmpfs tmpfs rw
";

    fn machine() -> (tempfile::TempDir, System) {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/mountinfo", MOUNTINFO);
        let disks = [
            ("nvme0n1", "259:0", "786432000", "nvme_card"),
            ("loop0", "7:0", "2048", ""),
            ("sr0", "11:0", "0", "DVD"),
        ];
        for (name, number, sectors, model) in disks {
            let base = format!("sys/class/block/{name}");
            write(&format!("{base}/dev"), number);
            write(&format!("{base}/size"), sectors);
            write(&format!("{base}/device/model"), model);
            write(&format!("{base}/queue/logical_block_size"), "4096");
            write(&format!("{base}/queue/physical_block_size"), "4096");
        }
        for path in [
            "data/mnt/disks/ssd0",
            "data/mnt/disks/ssd1",
            "data/proc",
            "data/srv",
        ] {
            fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        let system = System::captured(directory.path());
        (directory, system)
    }

    #[test]
    fn disks_and_mounts_of_a_node_are_listed_without_those_of_pods() {
        let (_directory, system) = machine();
        let found = node_storage(&system, Path::new("/data"), None);
        let disk = NodeDisk {
            name: "nvme0n1".to_owned(),
            size_bytes: 402_653_184_000,
            model: Some("nvme_card".to_owned()),
            logical_sector_bytes: Some(4096),
            physical_sector_bytes: Some(4096),
        };
        assert_eq!(found.disks, [disk]);
        let mounts: Vec<(&str, &str)> = found
            .mounts
            .iter()
            .map(|mount| (mount.path.as_str(), mount.source.as_str()))
            .collect();
        let expected = [
            ("/", "/dev/sda1"),
            ("/mnt/share", "nas:/share"),
            ("/mnt/stateful_partition/kube-ephemeral-ssd", "/dev/nvme0n1"),
        ];
        assert_eq!(mounts, expected);
        assert!(found.directories.is_empty());
    }

    #[test]
    fn directories_near_a_missing_path_are_listed() {
        let (_directory, system) = machine();
        let near = |path: &str| {
            let found = node_storage(&system, Path::new("/data"), Some(Path::new(path)));
            found.directories
        };
        let disks = ["/mnt/disks/ssd0", "/mnt/disks/ssd1"];
        assert_eq!(near("/mnt/disks/ssd7"), disks);
        assert_eq!(near("/mnt/disks/ssd7/data"), disks);
        assert_eq!(near("/nowhere"), ["/mnt", "/srv"]);
    }
}
