//! Device classes of captured machines. The texts of `/sys` and `/proc` are those of
//! `tests/machines`. A test that changes one of them states it.

use super::{PathFacts, identify_in};
use crate::captured_machine::CapturedMachine;
use crate::host::describe_host;
use iosonde_result::device_class::{DeviceClass, DeviceDescription};
use iosonde_result::host::PathKind;
use std::path::{Path, PathBuf};

/// The description of the device under a directory.
fn described(machine: &CapturedMachine, path: &str) -> DeviceDescription {
    let facts = PathFacts {
        path: PathBuf::from(path),
        kind: PathKind::Directory,
        size_bytes: None,
        allocated_bytes: None,
        on: None,
        is: None,
    };
    let target = identify_in(&machine.system(), &facts);
    let platform = describe_host(&machine.system()).platform;
    DeviceDescription::from_target(&target, platform.virtual_machine == Some(true))
}

/// Captured machine, path, class of its device, and the words that describe it.
const CAPTURED_DEVICES: [(&str, &str, DeviceClass, &str); 15] = [
    (
        "nvme-partition",
        "/srv/data",
        DeviceClass::NetworkVolume,
        "a network volume (nvme0n1, PCIe, Amazon Elastic Block Store)",
    ),
    (
        "gcp",
        "/",
        DeviceClass::NetworkVolume,
        "a network volume (sda, virtio-scsi, Google PersistentDisk)",
    ),
    (
        "gcp",
        "/mnt/disks/ssd0",
        DeviceClass::NvmeSsd,
        "an NVMe SSD (nvme0n1, PCIe, nvme_card)",
    ),
    (
        "azure",
        "/",
        DeviceClass::VirtualDisk,
        "a virtual disk (sda, Hyper-V, Msft Virtual Disk)",
    ),
    (
        "laptop",
        "/",
        DeviceClass::NvmeSsd,
        "an NVMe SSD (nvme0n1, PCIe, WD PC SN740 SDDPNQD-512G, under LVM)",
    ),
    (
        "laptop",
        "/backup",
        DeviceClass::UsbDisk,
        "a USB disk (sda, WD Elements 25A2, under md raid1)",
    ),
    (
        "loop-on-ext4",
        "/mnt/loop",
        DeviceClass::SataSsd,
        "a SATA SSD (sda, SATA, SAMSUNG MZ7LN512, under a loop device)",
    ),
    (
        "lvm-on-crypt-on-md",
        "/",
        DeviceClass::HardDisk,
        "2 rotating disks (sda and sdb, SAS, SEAGATE ST1200MM0088, \
             under LVM, dm-crypt, md raid1)",
    ),
    (
        "overlay-on-btrfs",
        "/merged/dir",
        DeviceClass::VirtualDisk,
        "2 virtual disks (vda and vdb, virtio_blk)",
    ),
    (
        "san",
        "/srv/db",
        DeviceClass::NetworkVolume,
        "a network volume (sda, Fibre Channel, HITACHI OPEN-V, under multipath)",
    ),
    (
        "san",
        "/srv/log",
        DeviceClass::NetworkVolume,
        "a network volume (nvme0n1, NVMe over TCP, NetApp ONTAP Controller)",
    ),
    (
        "krbd",
        "/mnt/snap",
        DeviceClass::NetworkVolume,
        "a network volume (rbd1, Ceph image fast/disk2@before-upgrade (krbd))",
    ),
    (
        "krbd",
        "/mnt/nfs",
        DeviceClass::NetworkFileSystem,
        "a network file system (NFS 4.2 filer:/export)",
    ),
    (
        "container",
        "/scratch",
        DeviceClass::Memory,
        "memory (tmpfs)",
    ),
    (
        "container",
        "/model",
        DeviceClass::UserSpaceFileSystem,
        "a user-space file system (fuse.mountpoint-s3)",
    ),
];

#[test]
fn captured_devices_are_named_by_their_facts() {
    for (name, path, class, words) in CAPTURED_DEVICES {
        let found = described(&CapturedMachine::unpack(name), path);
        assert_eq!(
            (found.class, found.words().as_str()),
            (class, words),
            "{name} {path}"
        );
    }
}

#[test]
fn devices_that_are_not_visible_are_unknown() {
    let found = described(&CapturedMachine::unpack("container"), "/tmp");
    assert_eq!(found.class, DeviceClass::Unknown);
    assert!(found.words().contains("is not visible"), "{found:?}");
}

/// The captured SATA disk, with `rotational` set to 1.
#[test]
fn rotational_sata_disk_is_a_rotating_disk() {
    let machine = CapturedMachine::unpack("loop-on-ext4");
    machine.write(
        Path::new(
            "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda/\
             queue/rotational",
        ),
        "1\n",
    );
    let found = described(&machine, "/");
    assert_eq!(
        found.words(),
        "a rotating disk (sda, SATA, SAMSUNG MZ7LN512)"
    );
}
