//! Images of Ceph that the kernel maps to block devices (krbd): `/sys/bus/rbd`.

use super::mounts::mounts;
use super::proc_root::System;
use iosonde_result::host::{DeviceNumber, MappedImage};
use std::path::{Path, PathBuf};

/// Directory of the kernel's rbd module. It exists while the module is loaded.
const RBD_BUS: &str = "/sys/bus/rbd";
/// Directory with a subdirectory for each mapped image.
pub(crate) const RBD_DEVICES: &str = "/sys/bus/rbd/devices";

/// A block device of the kernel and its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedDevice {
    /// The device, e.g. `/dev/rbd0`.
    pub device: PathBuf,
    /// The image.
    pub image: MappedImage,
    /// Directories where the device is mounted, in the kernel's order.
    pub mount_points: Vec<PathBuf>,
}

/// Whether the kernel's rbd module is loaded.
#[must_use]
pub fn has_rbd_module(system: &System) -> bool {
    system.exists(RBD_BUS)
}

/// All images that are mapped on this machine.
#[must_use]
pub fn mapped_images(system: &System) -> Vec<MappedDevice> {
    let mounts = mounts(system);
    let numbers = system.names(RBD_DEVICES).into_iter();
    let mapped = numbers.filter_map(|number| {
        let directory = Path::new(RBD_DEVICES).join(&number);
        let image = read_image(|file| system.text(directory.join(file)))?;
        let name = format!("rbd{number}");
        let device: Option<DeviceNumber> = system.value(format!("/sys/class/block/{name}/dev"));
        let mounted = mounts.iter().filter(|mount| Some(mount.device) == device);
        Some(MappedDevice {
            device: Path::new("/dev").join(name),
            image,
            mount_points: mounted.map(|mount| mount.mount_point.clone()).collect(),
        })
    });
    mapped.collect()
}

/// Reads an image from the files of its device. `config_info` is not read: it may contain the
/// client's key.
pub(crate) fn read_image(read: impl Fn(&str) -> Option<String>) -> Option<MappedImage> {
    Some(MappedImage {
        pool: read("pool")?,
        namespace: read("pool_ns"),
        image: read("name")?,
        // A mapped image without a snapshot has the snapshot name `-`.
        snapshot: read("current_snap").filter(|snapshot| snapshot != "-"),
        fsid: read("cluster_fsid"),
        client: read("client_id"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured_machine::CapturedMachine;

    #[test]
    fn mapped_images_have_device_and_mount_points() {
        let machine = CapturedMachine::unpack("krbd");
        let system = machine.system();
        assert!(has_rbd_module(&system));
        let mapped = mapped_images(&system);
        let names: Vec<(&Path, String)> = mapped
            .iter()
            .map(|each| (each.device.as_path(), each.image.to_string()))
            .collect();
        assert_eq!(
            names,
            [
                (Path::new("/dev/rbd0"), "fast/team/disk1".to_owned()),
                (
                    Path::new("/dev/rbd1"),
                    "fast/disk2@before-upgrade".to_owned()
                ),
            ]
        );
        assert!(mapped[0].mount_points.is_empty());
        assert_eq!(mapped[1].mount_points, [PathBuf::from("/mnt/snap")]);
        let fsid = "b7c4ad3e-0000-4000-8000-c2f1f6d0b7a1";
        assert!(
            mapped
                .iter()
                .all(|each| each.image.fsid.as_deref() == Some(fsid))
        );
    }

    #[test]
    fn machine_without_rbd_module_has_no_mapped_images() {
        let root = tempfile::tempdir().unwrap();
        let system = System::captured(root.path());
        assert!(!has_rbd_module(&system));
        assert!(mapped_images(&system).is_empty());
    }
}
