//! Identity of a disk. Device names and numbers do not identify it: after a reboot or a
//! replacement, another disk may have them.

use super::block_device::{BlockDevice, SECTOR_BYTES, device_kind, mapped_image};
use super::identify::PathFacts;
use super::proc_root::System;
use iosonde_result::host::DeviceNumber;
pub use iosonde_result::run_error::IdentityChange;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Length of the header before the serial number in a VPD page of a SCSI disk.
const VPD_HEADER_BYTES: usize = 4;

/// The properties that distinguish a disk, or a partition of it, from others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskIdentity {
    /// Serial number of the disk.
    pub serial: Option<String>,
    /// World-wide name of the disk; UUID of a mapped device; cluster and name of a mapped image.
    pub wwid: Option<String>,
    /// Start of a partition on its disk.
    pub start_bytes: Option<u64>,
    /// Size of the device.
    pub size_bytes: u64,
    /// The kernel's sequence number of the disk (`diskseq`). It is unique until the next boot.
    pub diskseq: Option<u64>,
    /// Boot ID at that time, because `diskseq` is valid for one boot.
    pub boot_id: Option<String>,
}

impl DiskIdentity {
    /// The identity of the device at a path of this machine; `None` if it is no block device.
    pub(crate) fn from_path(path: &Path) -> Option<DiskIdentity> {
        let number = PathFacts::query(path).ok()?.is?;
        Some(DiskIdentity::from_number(&System::live(), number))
    }

    /// The identity of a block device. Without `/sys` only the boot ID is known.
    pub fn from_number(system: &System, number: DeviceNumber) -> DiskIdentity {
        let boot_id = system.text("/proc/sys/kernel/random/boot_id");
        let Some(node) = BlockDevice::from_number(system, number) else {
            return DiskIdentity {
                boot_id,
                ..DiskIdentity::default()
            };
        };
        let bytes = |file: &str| {
            let sectors: Option<u64> = system.value(node.dir.join(file));
            sectors.map(|count| count.saturating_mul(SECTOR_BYTES))
        };
        let is_partition = node.is_partition(system);
        let disk = node.disk(system);
        let disk = disk.as_ref().unwrap_or(&node);
        DiskIdentity {
            serial: serial(system, disk),
            wwid: disk_wwid(system, disk),
            start_bytes: is_partition.then(|| bytes("start")).flatten(),
            size_bytes: bytes("size").unwrap_or(0),
            diskseq: system.value(disk.dir.join("diskseq")),
            boot_id,
        }
    }

    /// The reason why `now` is not, or may not be, this disk; `None` if it is the same disk.
    pub fn change(&self, now: &DiskIdentity) -> Option<IdentityChange> {
        let is_same_boot = self.boot_id == now.boot_id;
        if let Some(was) = self.wwid.clone().filter(|_| self.wwid != now.wwid) {
            let now = now.wwid.clone();
            return Some(IdentityChange::Wwid { was, now });
        }
        if let Some(was) = self.serial.clone().filter(|_| self.serial != now.serial) {
            let now = now.serial.clone();
            return Some(IdentityChange::Serial { was, now });
        }
        if is_same_boot && self.diskseq != now.diskseq {
            return Some(IdentityChange::Replaced);
        }
        if self.start_bytes != now.start_bytes {
            return Some(IdentityChange::Start);
        }
        if self.size_bytes != now.size_bytes {
            let (was, now) = (self.size_bytes, now.size_bytes);
            return Some(IdentityChange::Size { was, now });
        }
        let is_recognised = self.wwid.is_some() || self.serial.is_some();
        (!is_same_boot && !is_recognised).then_some(IdentityChange::Rebooted)
    }
}

fn serial(system: &System, disk: &BlockDevice) -> Option<String> {
    // The order is virtio; NVMe and MMC; SCSI and ATA.
    let of_file = || system.text(disk.dir.join("serial"));
    let of_device = || system.text(disk.dir.join("device/serial"));
    let of_page = || {
        let page = std::fs::read(system.at(disk.dir.join("device/vpd_pg80"))).ok()?;
        let serial = String::from_utf8_lossy(page.get(VPD_HEADER_BYTES..)?).into_owned();
        let serial = serial.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!serial.is_empty()).then(|| serial.to_owned())
    };
    of_file().or_else(of_device).or_else(of_page)
}

fn disk_wwid(system: &System, disk: &BlockDevice) -> Option<String> {
    // The order is NVMe; SCSI and ATA; MMC; device mapper; md.
    let files = ["wwid", "device/wwid", "device/cid", "dm/uuid", "md/uuid"];
    let of_file = |file: &&str| system.text(disk.dir.join(file));
    files.iter().find_map(of_file).or_else(|| {
        let image = mapped_image(system, disk, device_kind(system, disk))?;
        let fsid = image.fsid.clone()?;
        Some(format!("{fsid}/{image}"))
    })
}

/// The path of a device in `/dev/disk/by-id`, which stays with the disk; `None` without one.
pub(crate) fn name_by_id(system: &System, number: DeviceNumber) -> Option<PathBuf> {
    let by_id = Path::new("/dev/disk/by-id");
    let is_it = |name: &String| {
        let path = by_id.join(name);
        // In a captured tree the link leads to a name in `/dev`.
        system.device_of_node(&path) == Some(number)
    };
    let mut names: Vec<String> = system.names(by_id).into_iter().filter(is_it).collect();
    // Names with model and serial number come first: they tell a reader more than digits.
    let is_number = |name: &str| {
        let prefixes = [
            "wwn-",
            "nvme-eui.",
            "nvme-nvme.",
            "nvme-uuid.",
            "dm-uuid-",
            "lvm-pv-",
        ];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    names.sort_by_key(|name| (is_number(name), name.clone()));
    names.into_iter().next().map(|name| by_id.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted() -> DiskIdentity {
        DiskIdentity {
            serial: Some("S1".into()),
            wwid: Some("eui.1".into()),
            start_bytes: None,
            size_bytes: 1 << 30,
            diskseq: Some(7),
            boot_id: Some("boot".into()),
        }
    }

    #[test]
    fn disk_is_recognised_after_a_reboot_by_its_serial_or_wwid() {
        assert_eq!(noted().change(&noted()), None);
        let rebooted = DiskIdentity {
            diskseq: Some(9),
            boot_id: Some("next".into()),
            ..noted()
        };
        assert_eq!(noted().change(&rebooted), None);
        let nameless = |identity: DiskIdentity| DiskIdentity {
            serial: None,
            wwid: None,
            ..identity
        };
        let (was, now) = (nameless(noted()), nameless(rebooted));
        assert_eq!(was.change(&now), Some(IdentityChange::Rebooted));
        assert_eq!(was.change(&was), None);
    }

    #[test]
    fn identity_change_names_the_differing_field() {
        let other = |change: &dyn Fn(&mut DiskIdentity)| {
            let mut now = noted();
            change(&mut now);
            noted().change(&now)
        };
        let wwid = other(&|now| now.wwid = None);
        assert!(matches!(wwid, Some(IdentityChange::Wwid { now: None, .. })));
        let serial = other(&|now| now.serial = Some("S2".into()));
        let text = serial.unwrap().to_string();
        assert_eq!(text, "its serial number was \"S1\", now \"S2\"");
        let replaced = other(&|now| now.diskseq = Some(8));
        assert_eq!(replaced, Some(IdentityChange::Replaced));
        let start = other(&|now| now.start_bytes = Some(1 << 20));
        assert_eq!(start, Some(IdentityChange::Start));
        let size = other(&|now| now.size_bytes = 1 << 31);
        assert!(matches!(size, Some(IdentityChange::Size { .. })));
    }
}
