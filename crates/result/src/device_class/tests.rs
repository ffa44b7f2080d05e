use super::*;
use crate::host::{DeviceNumber, PcieLink, Queue};

fn disk(name: &str, kind: DeviceKind, transport: Option<Transport>) -> DeviceInfo {
    let minor = name.bytes().map(u32::from).sum();
    DeviceInfo {
        name: name.to_owned(),
        number: DeviceNumber { major: 8, minor },
        kind,
        transport,
        ..DeviceInfo::default()
    }
}

fn turns(rotational: bool, device: DeviceInfo) -> DeviceInfo {
    let queue = Some(Queue {
        rotational: Some(rotational),
        ..Queue::default()
    });
    DeviceInfo { queue, ..device }
}

fn named(vendor: &str, model: &str, device: DeviceInfo) -> DeviceInfo {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    DeviceInfo {
        vendor: text(vendor),
        model: text(model),
        ..device
    }
}

fn class(device: DeviceInfo, is_guest: bool) -> DeviceClass {
    described(vec![device], is_guest).class
}

fn described(devices: Vec<DeviceInfo>, is_guest: bool) -> DeviceDescription {
    let target = TargetInfo {
        devices,
        ..TargetInfo::default()
    };
    DeviceDescription::from_target(&target, is_guest)
}

#[test]
fn transport_and_rotation_decide_for_disks_of_this_machine() {
    let sata = |rotational| {
        turns(
            rotational,
            disk("sda", DeviceKind::Ata, Some(Transport::Sata)),
        )
    };
    assert_eq!(class(sata(true), false), DeviceClass::HardDisk);
    assert_eq!(class(sata(false), false), DeviceClass::SataSsd);
    let sas = turns(false, disk("sda", DeviceKind::Scsi, Some(Transport::Sas)));
    assert_eq!(class(sas, false), DeviceClass::Ssd);
    let nvme = disk("nvme0n1", DeviceKind::Nvme, Some(Transport::Pcie));
    assert_eq!(class(nvme, false), DeviceClass::NvmeSsd);
    let silent = disk("sda", DeviceKind::Ata, Some(Transport::Sata));
    assert_eq!(class(silent, false), DeviceClass::Unknown);
    // A RAID controller: the rotational flag of its disks is not reliable.
    let array = disk("sda", DeviceKind::Scsi, None);
    let array = named("DELL", "PERC H730 Mini", turns(true, array));
    let found = described(vec![array], false);
    assert_eq!(
        found.words(),
        "an unknown device (sda, DELL PERC H730 Mini, reported as rotational)"
    );
}

#[test]
fn virtual_disks_are_called_so_whatever_they_report() {
    let virtio = turns(
        true,
        disk("vda", DeviceKind::Virtio, Some(Transport::Virtio)),
    );
    let virtio = DeviceInfo {
        driver: Some("virtio_blk".into()),
        ..virtio
    };
    assert_eq!(
        described(vec![virtio], true).words(),
        "a virtual disk (vda, virtio_blk)"
    );
    let emulated = turns(true, disk("sda", DeviceKind::Ata, Some(Transport::Sata)));
    let emulated = named("", "QEMU HARDDISK", emulated);
    assert_eq!(class(emulated, true), DeviceClass::VirtualDisk);
    let nvme = disk("nvme0n1", DeviceKind::Nvme, Some(Transport::Pcie));
    assert_eq!(class(nvme.clone(), true), DeviceClass::VirtualDisk);
    let handed_through = DeviceInfo {
        link: Some(PcieLink::default()),
        ..nvme
    };
    assert_eq!(class(handed_through, true), DeviceClass::NvmeSsd);
}

#[test]
fn models_of_clouds_tell_volumes_from_local_disks() {
    let nvme = |model: &str| {
        let device = disk("nvme1n1", DeviceKind::Nvme, Some(Transport::Pcie));
        class(named("", model, device), true)
    };
    assert_eq!(
        nvme("Amazon Elastic Block Store              "),
        DeviceClass::NetworkVolume
    );
    assert_eq!(
        nvme("Amazon EC2 NVMe Instance Storage"),
        DeviceClass::NvmeSsd
    );
    assert_eq!(nvme("nvme_card-pd"), DeviceClass::NetworkVolume);
    assert_eq!(nvme("nvme_card0"), DeviceClass::NvmeSsd);
    let scsi = |vendor: &str, model: &str| {
        let device = disk("sda", DeviceKind::Scsi, Some(Transport::Virtio));
        class(named(vendor, model, turns(true, device)), true)
    };
    assert_eq!(scsi("Google", "PersistentDisk"), DeviceClass::NetworkVolume);
    assert_eq!(scsi("HC", "Volume"), DeviceClass::NetworkVolume);
    assert_eq!(
        scsi("VMware,", "VMware Virtual S"),
        DeviceClass::VirtualDisk
    );
    assert_eq!(scsi("Linux", "scsi_debug"), DeviceClass::Memory);
}

#[test]
fn devices_of_several_kinds_are_each_named() {
    let slow = turns(true, disk("sdb", DeviceKind::Ata, Some(Transport::Sata)));
    let fast = disk("nvme0n1", DeviceKind::Nvme, Some(Transport::Pcie));
    let cache = DeviceInfo {
        below: vec![slow, fast],
        ..disk("bcache0", DeviceKind::Bcache, None)
    };
    assert_eq!(
        described(vec![cache], false).words(),
        "devices of several kinds (sdb is a rotating disk, nvme0n1 is an NVMe SSD, under bcache)"
    );
}

#[test]
fn kinds_of_older_results_are_read_as_unknown() {
    for old in [
        "unclear",
        "cached",
        "faster_than_flash",
        "limited_volume",
        "unknown",
    ] {
        let read: DeviceClass = serde_json::from_value(old.into()).unwrap();
        assert_eq!(read, DeviceClass::Unknown, "{old}");
    }
    let kept: DeviceClass = serde_json::from_value("hard_disk".into()).unwrap();
    assert_eq!(kept, DeviceClass::HardDisk);
}
