//! Description of one block device from sysfs.

use super::disk_controller::{numa_node, pcie_link};
use super::mapped_images::{RBD_DEVICES, read_image};
use super::proc_root::System;
use iosonde_result::host::{DeviceInfo, DeviceKind, DeviceNumber, MappedImage, Queue, Transport};
use std::path::{Path, PathBuf};

/// Size of the kernel's sectors. It does not depend on the block size of the device.
pub const SECTOR_BYTES: u64 = 512;

/// A block device in sysfs.
#[derive(Debug, Clone)]
pub struct BlockDevice {
    /// Directory under `/sys/devices`.
    pub dir: PathBuf,
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
}

impl BlockDevice {
    /// The device with a number; `None` if sysfs has none, as in a container without `/sys`.
    pub fn from_number(system: &System, number: DeviceNumber) -> Option<Self> {
        Self::from_dir(system, system.follow(format!("/sys/dev/block/{number}"))?)
    }

    /// The device with a kernel name.
    pub fn from_name(system: &System, name: &str) -> Option<Self> {
        Self::from_dir(system, system.follow(format!("/sys/class/block/{name}"))?)
    }

    fn from_dir(system: &System, dir: PathBuf) -> Option<Self> {
        let name = dir.file_name()?.to_str()?.to_owned();
        let number = system.value(dir.join("dev"))?;
        Some(Self { dir, name, number })
    }

    /// All devices, including partitions and devices without a medium.
    pub fn list_all(system: &System) -> Vec<Self> {
        system
            .names("/sys/class/block")
            .iter()
            .filter_map(|name| Self::from_name(system, name))
            .collect()
    }

    /// Whether the device is a partition.
    pub(crate) fn is_partition(&self, system: &System) -> bool {
        system.exists(self.dir.join("partition"))
    }

    /// The disk of a partition.
    pub fn disk(&self, system: &System) -> Option<Self> {
        if !self.is_partition(system) {
            return None;
        }
        Self::from_dir(system, self.dir.parent()?.to_owned())
    }

    /// The partitions of a disk.
    pub(crate) fn partitions(&self, system: &System) -> Vec<Self> {
        let names = system
            .names(&self.dir)
            .into_iter()
            .filter(|name| name.starts_with(self.name.as_str()));
        names
            .filter_map(|name| Self::from_dir(system, self.dir.join(name)))
            .filter(|node| node.is_partition(system))
            .collect()
    }

    /// Devices below this one (device mapper, md, bcache).
    pub(crate) fn slaves(&self, system: &System) -> Vec<Self> {
        self.linked(system, "slaves")
    }

    /// Devices made of this one.
    pub fn holders(&self, system: &System) -> Vec<Self> {
        self.linked(system, "holders")
    }

    fn linked(&self, system: &System, kind: &str) -> Vec<Self> {
        let dir = self.dir.join(kind);
        system
            .names(&dir)
            .iter()
            .filter_map(|name| Self::from_dir(system, system.follow(dir.join(name))?))
            .collect()
    }

    /// The backing file of a loop device in use.
    pub fn backing_file(&self, system: &System) -> Option<PathBuf> {
        system
            .text(self.dir.join("loop/backing_file"))
            .map(PathBuf::from)
    }

    /// The device node in `/dev` that udev or devtmpfs creates.
    pub(crate) fn dev_path(&self, system: &System) -> PathBuf {
        match system.text(self.dir.join("dm/name")) {
            Some(name) => Path::new("/dev/mapper").join(name),
            None => Path::new("/dev").join(self.name.replace('!', "/")),
        }
    }
}

/// Describes one device, without the devices below.
pub fn describe(system: &System, node: &BlockDevice) -> DeviceInfo {
    let dir = &node.dir;
    let partition = node.is_partition(system);
    let kind = if partition {
        DeviceKind::Partition
    } else {
        device_kind(system, node)
    };
    let sectors = |file: &str| {
        system
            .value::<u64>(dir.join(file))
            .map(|count| count * SECTOR_BYTES)
    };
    let identity = if partition {
        Identity::default()
    } else {
        identity(system, node, kind)
    };
    DeviceInfo {
        name: node.name.clone(),
        number: node.number,
        kind,
        size_bytes: sectors("size").unwrap_or(0),
        read_only: system.flag(dir.join("ro")).unwrap_or(false),
        transport: if partition {
            None
        } else {
            transport(system, node, kind)
        },
        driver: if partition {
            None
        } else {
            driver(system, node)
        },
        driver_version: if partition {
            None
        } else {
            driver_version(system, node)
        },
        vendor: identity.vendor,
        model: identity.model,
        firmware: identity.firmware,
        detail: detail(system, node, kind),
        start_bytes: if partition { sectors("start") } else { None },
        rbd: mapped_image(system, node, kind),
        backing_file: node.backing_file(system),
        direct_io: system.flag(dir.join("loop/dio")),
        thin: is_thin_provisioned(system, node, kind),
        link: pcie_link(system, dir, kind),
        numa_node: numa_node(system, dir, kind),
        queue: if partition {
            None
        } else {
            Some(queue(system, dir))
        },
        below: Vec::new(),
    }
}

pub(super) fn device_kind(system: &System, node: &BlockDevice) -> DeviceKind {
    let stem = node.name.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem {
        _ if node.name.starts_with("nvme") => DeviceKind::Nvme,
        _ if node.name.starts_with("mmcblk") => DeviceKind::Mmc,
        _ if node.name.starts_with("xvd") => DeviceKind::Xen,
        _ if node.name.starts_with("vd") => DeviceKind::Virtio,
        _ if node.name.starts_with("sd") || stem == "sr" => {
            let vendor = system.text(node.dir.join("device/vendor"));
            if vendor.as_deref() == Some("ATA") {
                DeviceKind::Ata
            } else {
                DeviceKind::Scsi
            }
        }
        "loop" => DeviceKind::Loop,
        "zram" => DeviceKind::Zram,
        "ram" => DeviceKind::Ram,
        "pmem" => DeviceKind::Pmem,
        "dm-" => mapper_kind(&system.text(node.dir.join("dm/uuid")).unwrap_or_default()),
        "md" | "md_d" => DeviceKind::Md,
        "bcache" => DeviceKind::Bcache,
        "drbd" => DeviceKind::Drbd,
        "rbd" => DeviceKind::Rbd,
        "nbd" => DeviceKind::Nbd,
        "zd" => DeviceKind::Zvol,
        "ublkb" => DeviceKind::Ublk,
        "nullb" => DeviceKind::Null,
        _ if system.exists(node.dir.join("md/level")) => DeviceKind::Md,
        _ => DeviceKind::Other,
    }
}

// The tools that create device mapper targets mark them with a prefix of their uuid.
fn mapper_kind(uuid: &str) -> DeviceKind {
    match uuid.split('-').next().unwrap_or("") {
        "LVM" => DeviceKind::Lvm,
        "CRYPT" => DeviceKind::Crypt,
        "mpath" => DeviceKind::Multipath,
        _ => DeviceKind::DeviceMapper,
    }
}

fn transport(system: &System, node: &BlockDevice, kind: DeviceKind) -> Option<Transport> {
    match kind {
        DeviceKind::Nvme => nvme_transport(system, node),
        DeviceKind::Virtio => Some(Transport::Virtio),
        DeviceKind::Xen => Some(Transport::Xen),
        DeviceKind::Zram | DeviceKind::Ram | DeviceKind::Pmem | DeviceKind::Null => {
            Some(Transport::Memory)
        }
        DeviceKind::Rbd | DeviceKind::Nbd => Some(Transport::Network),
        DeviceKind::Scsi | DeviceKind::Ata => scsi_transport(&node.dir),
        _ => None,
    }
}

fn nvme_transport(system: &System, node: &BlockDevice) -> Option<Transport> {
    // With multipathing the namespace belongs to a subsystem, which contains the controllers.
    let device = node.dir.join("device");
    let controllers = system
        .names(&device)
        .into_iter()
        .filter(|name| name.starts_with("nvme"));
    let of_controller = || {
        controllers
            .into_iter()
            .find_map(|name| system.text(device.join(name).join("transport")))
    };
    match system
        .text(device.join("transport"))
        .or_else(of_controller)?
        .as_str()
    {
        "pcie" => Some(Transport::Pcie),
        "tcp" => Some(Transport::NvmeTcp),
        "rdma" => Some(Transport::NvmeRdma),
        "fc" => Some(Transport::NvmeFc),
        "loop" => Some(Transport::NvmeLoop),
        _ => None,
    }
}

// The transport of a SCSI disk. Its path in sysfs contains the names of its buses.
fn scsi_transport(dir: &Path) -> Option<Transport> {
    let parts: Vec<String> = dir
        .components()
        .map(|part| part.as_os_str().to_string_lossy().to_ascii_lowercase())
        .collect();
    let any = |test: &dyn Fn(&str) -> bool| parts.iter().any(|part| test(part));
    let numbered = |part: &str, prefix: &str| {
        part.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let found = [
        (any(&|part| numbered(part, "usb")), Transport::Usb),
        (any(&|part| numbered(part, "session")), Transport::Iscsi),
        (
            any(&|part| part.starts_with("rport-")),
            Transport::FibreChannel,
        ),
        (any(&|part| part.starts_with("end_device-")), Transport::Sas),
        (any(&|part| numbered(part, "ata")), Transport::Sata),
        (any(&|part| part.starts_with("vmbus")), Transport::HyperV),
        (any(&|part| numbered(part, "virtio")), Transport::Virtio),
    ];
    found
        .into_iter()
        .find(|(matches, _)| *matches)
        .map(|(_, transport)| transport)
}

fn driver(system: &System, node: &BlockDevice) -> Option<String> {
    let device = node.dir.join("device");
    // The driver of an NVMe disk belongs to its controller, one level down.
    ["driver", "device/driver"]
        .iter()
        .find_map(|path| system.link_name(device.join(path)))
}

/// The version that the driver's module declares.
fn driver_version(system: &System, node: &BlockDevice) -> Option<String> {
    let device = node.dir.join("device");
    // A module may have another name than its driver: `sd_mod` has the driver `sd`.
    let module = ["driver/module", "device/driver/module"]
        .iter()
        .find_map(|path| system.link_name(device.join(path)));
    let module = module.or_else(|| driver(system, node))?;
    system.text(format!("/sys/module/{module}/version"))
}

#[derive(Default)]
struct Identity {
    vendor: Option<String>,
    model: Option<String>,
    firmware: Option<String>,
}

fn identity(system: &System, node: &BlockDevice, kind: DeviceKind) -> Identity {
    let read = |file: &str| system.text(node.dir.join("device").join(file));
    // Bus numbers such as virtio's 0x1af4 are no vendor names.
    let vendor = read("vendor").filter(|vendor| !vendor.starts_with("0x") && vendor != "ATA");
    match kind {
        DeviceKind::Mmc => Identity {
            vendor: None,
            model: read("name"),
            firmware: read("fwrev"),
        },
        _ => Identity {
            vendor,
            model: read("model"),
            firmware: read("firmware_rev").or_else(|| read("rev")),
        },
    }
}

fn detail(system: &System, node: &BlockDevice, kind: DeviceKind) -> Option<String> {
    let read = |file: &str| system.text(node.dir.join(file));
    match kind {
        DeviceKind::Md => read("md/level"),
        DeviceKind::Zram => read("comp_algorithm").map(|list| chosen(&list)),
        DeviceKind::Rbd => mapped_image(system, node, kind).map(|image| image.to_string()),
        _ => read("dm/name"),
    }
}

/// The image of a krbd device.
pub(super) fn mapped_image(
    system: &System,
    node: &BlockDevice,
    kind: DeviceKind,
) -> Option<MappedImage> {
    if kind != DeviceKind::Rbd {
        return None;
    }
    let bus = Path::new(RBD_DEVICES).join(node.name.strip_prefix("rbd")?);
    // In a container `/sys` may show only the device itself.
    let device = node.dir.join("device");
    read_image(|file| {
        let of_bus = system.text(bus.join(file));
        of_bus.or_else(|| system.text(device.join(file)))
    })
}

/// Whether a device is thinly provisioned. SCSI disks report it; LVM's volumes have a pool.
fn is_thin_provisioned(system: &System, node: &BlockDevice, kind: DeviceKind) -> Option<bool> {
    match kind {
        DeviceKind::Lvm => {
            let uuids = node.slaves(system).into_iter();
            let mut uuids = uuids.filter_map(|slave| system.text(slave.dir.join("dm/uuid")));
            Some(uuids.any(|uuid| uuid.starts_with("LVM-") && uuid.ends_with("-tpool")))
        }
        DeviceKind::Scsi | DeviceKind::Ata => {
            let disks = node.dir.join("device/scsi_disk");
            let disk = system.names(&disks).into_iter().next()?;
            system.flag(disks.join(disk).join("thin_provisioning"))
        }
        _ => None,
    }
}

/// The choice in brackets of a list such as `none [mq-deadline] bfq`, or the whole list.
fn chosen(list: &str) -> String {
    let bracketed = list
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(list, |(choice, _)| choice).to_owned()
}

fn queue(system: &System, dir: &Path) -> Queue {
    let queue = dir.join("queue");
    let number = |file: &str| system.value::<u64>(queue.join(file));
    let kibibytes = |file: &str| number(file).map(|count| count * 1024);
    let hardware_queues = system.names(dir.join("mq")).len() as u32;
    Queue {
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        minimum_io_bytes: number("minimum_io_size"),
        optimal_io_bytes: number("optimal_io_size"),
        max_request_bytes: kibibytes("max_sectors_kb"),
        read_ahead_bytes: kibibytes("read_ahead_kb"),
        rotational: system.flag(queue.join("rotational")),
        scheduler: system
            .text(queue.join("scheduler"))
            .map(|list| chosen(&list)),
        nr_requests: number("nr_requests"),
        device_queue_depth: system.value(dir.join("device/queue_depth")),
        statistics: system.flag(queue.join("iostats")),
        hardware_queues: (hardware_queues > 0).then_some(hardware_queues),
        volatile_write_cache: system
            .text(queue.join("write_cache"))
            .map(|mode| mode == "write back"),
        fua: system.flag(queue.join("fua")),
        discard_max_bytes: number("discard_max_bytes"),
        zoned: system.text(queue.join("zoned")),
        wbt_latency_us: number("wbt_lat_usec"),
        polling: system.flag(queue.join("io_poll")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysfs_choice_in_brackets_is_chosen() {
        assert_eq!(chosen("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen("[none]"), "none");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn scsi_buses_are_read_from_the_path() {
        let of = |path: &str| scsi_transport(Path::new(path));
        assert_eq!(
            of("/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda"),
            Some(Transport::Sata)
        );
        assert_eq!(
            of("/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host4/block/sdb"),
            Some(Transport::Usb)
        );
        assert_eq!(
            of("/sys/devices/platform/host5/session1/target5:0:0/5:0:0:1/block/sdc"),
            Some(Transport::Iscsi)
        );
        assert_eq!(
            of("/sys/devices/pci0000:00/host1/port-1:0/end_device-1:0/target1:0:0/block/sdd"),
            Some(Transport::Sas)
        );
        assert_eq!(
            of("/sys/devices/pci0000:00/host7/rport-7:0-1/target7:0:1/block/sde"),
            Some(Transport::FibreChannel)
        );
        assert_eq!(
            of("/sys/devices/pci0000:00/0000:00:05.0/virtio2/host2/block/sdf"),
            Some(Transport::Virtio)
        );
        assert_eq!(
            of("/sys/devices/LNXSYSTM:00/VMBUS:00/host0/block/sdg"),
            Some(Transport::HyperV)
        );
        assert_eq!(of("/sys/devices/platform/vhci/data/block/sdh"), None);
    }

    #[test]
    fn mapper_kind_follows_the_uuid_prefix() {
        assert_eq!(mapper_kind("LVM-abc"), DeviceKind::Lvm);
        assert_eq!(mapper_kind("CRYPT-LUKS2-abc-name"), DeviceKind::Crypt);
        assert_eq!(mapper_kind("mpath-3600"), DeviceKind::Multipath);
        assert_eq!(mapper_kind(""), DeviceKind::DeviceMapper);
    }
}
