//! Models that identify a device better than its bus: volumes of clouds, disks of hypervisors.
//!
//! A network volume of a cloud appears as a local NVMe or SCSI disk. Only its model identifies it.

use super::DeviceClass;
use crate::host::{DeviceInfo, DeviceKind};

/// Vendor (empty: any), and prefix of the model.
struct Model(&'static str, &'static str, DeviceClass);

use DeviceClass::{Memory, NetworkVolume, NvmeSsd, Ssd, VirtualDisk};

/// Known models. The first match decides.
const MODELS: &[Model] = &[
    // Volumes and local disks of clouds.
    Model("", "Amazon Elastic Block Store", NetworkVolume),
    Model("", "Amazon EC2 NVMe Instance Storage", NvmeSsd),
    Model("", "nvme_card-pd", NetworkVolume),
    Model("", "nvme_card", NvmeSsd),
    Model("Google", "PersistentDisk", NetworkVolume),
    Model("Google", "EphemeralDisk", Ssd),
    Model("", "MSFT NVMe Accelerator", NetworkVolume),
    Model("", "Microsoft NVMe Direct Disk", NvmeSsd),
    Model("", "Alibaba Cloud Elastic Block Storage", NetworkVolume),
    Model("ORACLE", "BlockVolume", NetworkVolume),
    Model("DO", "Volume", NetworkVolume),
    Model("HC", "Volume", NetworkVolume),
    Model("Linode", "Volume", NetworkVolume),
    // Disks provided by hypervisors.
    Model("QEMU", "", VirtualDisk),
    Model("", "QEMU", VirtualDisk),
    Model("Msft", "Virtual Disk", VirtualDisk),
    Model("VMware", "", VirtualDisk),
    Model("", "VMware Virtual", VirtualDisk),
    Model("VBOX", "", VirtualDisk),
    Model("", "VBOX", VirtualDisk),
    Model("", "ORCL-VBOX", VirtualDisk),
    // The kernel's SCSI disk in memory (scsi_debug).
    Model("Linux", "scsi_debug", Memory),
];

/// Returns the class that the model of a device implies.
pub(super) fn class_of(device: &DeviceInfo) -> Option<DeviceClass> {
    let is_named = matches!(
        device.kind,
        DeviceKind::Nvme | DeviceKind::Scsi | DeviceKind::Ata
    );
    if !is_named {
        return None;
    }
    let text = |value: &Option<String>| value.as_deref().unwrap_or_default().trim().to_owned();
    let (vendor, model) = (text(&device.vendor), text(&device.model));
    let is_meant = |known: &&Model| {
        // SCSI truncates a vendor to 8 characters: `VMware, `.
        (known.0.is_empty() || vendor.trim_end_matches(',') == known.0)
            && model.starts_with(known.1)
    };
    MODELS.iter().find(is_meant).map(|known| known.2)
}
