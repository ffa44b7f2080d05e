//! PCIe link and NUMA node of a disk's controller, from sysfs.

use super::proc_root::System;
use iosonde_result::host::{DeviceKind, PcieLink};
use std::path::Path;

/// Whether the kind has a controller of its own. The PCIe links of virtual devices mean nothing.
fn has_controller(kind: DeviceKind) -> bool {
    matches!(kind, DeviceKind::Nvme | DeviceKind::Scsi | DeviceKind::Ata)
}

/// The value of this file for the nearest ancestor in sysfs that has it: a controller or bridge.
fn upwards<T: std::str::FromStr>(system: &System, dir: &Path, file: &str) -> Option<T> {
    dir.ancestors()
        .take_while(|above| above.starts_with("/sys/devices"))
        .find_map(|above| system.value(above.join(file)))
}

/// The PCIe link of a disk's controller. Virtual functions have no link and report a width of 0.
pub(crate) fn pcie_link(system: &System, dir: &Path, kind: DeviceKind) -> Option<PcieLink> {
    if !has_controller(kind) {
        return None;
    }
    let controller = dir.ancestors().find(|above| {
        above.starts_with("/sys/devices") && system.exists(above.join("current_link_width"))
    })?;
    let speed = system.text(controller.join("current_link_speed"))?;
    let width = system.value(controller.join("current_link_width"))?;
    (width > 0 && !speed.starts_with("Unknown")).then(|| PcieLink {
        speed,
        width,
        max_speed: system.text(controller.join("max_link_speed")),
        max_width: system.value(controller.join("max_link_width")),
    })
}

/// The NUMA node of a disk's controller. -1 means none, or not reported.
pub(crate) fn numa_node(system: &System, dir: &Path, kind: DeviceKind) -> Option<u32> {
    if !has_controller(kind) {
        return None;
    }
    upwards::<i64>(system, dir, "numa_node").and_then(|node| u32::try_from(node).ok())
}
