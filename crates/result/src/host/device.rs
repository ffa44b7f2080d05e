//! Block devices.

use super::DeviceNumber;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A block device, and what it is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceInfo {
    /// Kernel name, e.g. `nvme0n1`.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether the kernel refuses to write to it.
    pub read_only: bool,
    /// How it is attached, where that can be told.
    pub transport: Option<Transport>,
    /// Driver, e.g. `nvme`, `virtio_blk`, `sd`.
    pub driver: Option<String>,
    /// Manufacturer.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Its own name where the kernel has one: of a volume (`vg-lv`), an array's level (`raid1`), a compression (`lzo`).
    pub detail: Option<String>,
    /// Start on the disk in bytes, for a partition.
    pub start_bytes: Option<u64>,
    /// The image that a mapped Ceph device is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rbd: Option<MappedImage>,
    /// The file behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// Whether a loop device reads and writes its file directly, past the page cache.
    pub direct_io: Option<bool>,
    /// Whether its blocks get their place only when they are written (thin provisioning), where that can be told.
    pub thin: Option<bool>,
    /// The PCI Express link of its controller.
    pub link: Option<PcieLink>,
    /// NUMA node of its controller.
    pub numa_node: Option<u32>,
    /// The request queue; a partition has none of its own.
    pub queue: Option<Queue>,
    /// The devices that it is made of: a partition's disk, a volume's or an array's members, the device of a loop's file.
    pub below: Vec<DeviceInfo>,
}

/// A Ceph image that the kernel's own client (krbd) makes a block device of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MappedImage {
    /// The pool.
    pub pool: String,
    /// The namespace in it.
    pub namespace: Option<String>,
    /// The image.
    pub image: String,
    /// The snapshot, where one is mapped.
    pub snapshot: Option<String>,
    /// Identity of the cluster.
    pub fsid: Option<String>,
    /// What the cluster calls this client, e.g. `client4123`.
    pub client: Option<String>,
}

impl std::fmt::Display for MappedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/", self.pool)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.image)?;
        match &self.snapshot {
            Some(snapshot) => write!(f, "@{snapshot}"),
            None => Ok(()),
        }
    }
}

/// Kinds of block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A kind that this program does not know.
    #[default]
    Other,
    /// A part of a disk.
    Partition,
    /// An NVMe namespace.
    Nvme,
    /// A disk of the SCSI layer: SCSI, SAS, SATA, USB, iSCSI, ...
    Scsi,
    /// A disk of the SCSI layer that speaks ATA.
    Ata,
    /// A virtio block device.
    Virtio,
    /// A Xen virtual disk.
    Xen,
    /// An SD card or eMMC.
    Mmc,
    /// A file as a device.
    Loop,
    /// Compressed memory.
    Zram,
    /// Memory (brd).
    Ram,
    /// Persistent memory.
    Pmem,
    /// A device mapper target of no kind below.
    DeviceMapper,
    /// An LVM logical volume.
    Lvm,
    /// An encrypted volume (dm-crypt).
    Crypt,
    /// Several paths to one disk (dm-multipath).
    Multipath,
    /// A software RAID array (md).
    Md,
    /// A cached device (bcache).
    Bcache,
    /// A mirrored device (DRBD).
    Drbd,
    /// A Ceph image, mapped by the kernel.
    Rbd,
    /// A network block device.
    Nbd,
    /// A ZFS volume.
    Zvol,
    /// A user-space block device (ublk).
    Ublk,
    /// A null device, which moves no data.
    Null,
}

/// How a device is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// PCI Express.
    Pcie,
    /// NVMe over TCP.
    NvmeTcp,
    /// NVMe over RDMA.
    NvmeRdma,
    /// NVMe over Fibre Channel.
    NvmeFc,
    /// NVMe to a target on this machine.
    NvmeLoop,
    /// Serial ATA.
    Sata,
    /// Serial attached SCSI.
    Sas,
    /// USB.
    Usb,
    /// iSCSI.
    Iscsi,
    /// Fibre Channel.
    FibreChannel,
    /// A virtual machine's virtio bus.
    Virtio,
    /// A virtual machine's Hyper-V bus.
    HyperV,
    /// A virtual machine's Xen bus.
    Xen,
    /// The network, by other protocols.
    Network,
    /// Memory.
    Memory,
}

impl Transport {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Transport::Pcie => "PCIe",
            Transport::NvmeTcp => "NVMe over TCP",
            Transport::NvmeRdma => "NVMe over RDMA",
            Transport::NvmeFc => "NVMe over Fibre Channel",
            Transport::NvmeLoop => "NVMe to this machine itself",
            Transport::Sata => "SATA",
            Transport::Sas => "SAS",
            Transport::Usb => "USB",
            Transport::Iscsi => "iSCSI",
            Transport::FibreChannel => "Fibre Channel",
            Transport::Virtio => "virtio",
            Transport::HyperV => "Hyper-V",
            Transport::Xen => "Xen",
            Transport::Network => "network",
            Transport::Memory => "memory",
        }
    }
}

/// A PCI Express link, as sysfs words it: `8.0 GT/s PCIe`, and lanes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct PcieLink {
    /// Speed of each lane now.
    pub speed: String,
    /// Lanes in use.
    pub width: u32,
    /// Speed of each lane that the controller could have.
    pub max_speed: Option<String>,
    /// Lanes that the controller could use.
    pub max_width: Option<u32>,
}

/// A device's request queue: what the kernel will do with requests to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Queue {
    /// Smallest unit that can be addressed, in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Smallest unit that is written without reading first, in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Smallest preferred request in bytes.
    pub minimum_io_bytes: Option<u64>,
    /// Preferred request for streaming in bytes; 0: none stated.
    pub optimal_io_bytes: Option<u64>,
    /// Largest request that the kernel sends, in bytes. Larger ones are split.
    pub max_request_bytes: Option<u64>,
    /// Read-ahead of buffered reads in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Whether the device says that it turns.
    pub rotational: Option<bool>,
    /// The scheduler in use, `none` included.
    pub scheduler: Option<String>,
    /// Requests that may be queued in each hardware queue.
    pub nr_requests: Option<u64>,
    /// Hardware queues.
    pub hardware_queues: Option<u32>,
    /// Commands that the device itself takes at a time, where it says so (SCSI and ATA).
    pub device_queue_depth: Option<u32>,
    /// Whether the device has a volatile write cache that must be flushed (`write back`).
    pub volatile_write_cache: Option<bool>,
    /// Whether single writes can be forced to the medium.
    pub fua: Option<bool>,
    /// Largest discard in bytes; 0: discards are not supported.
    pub discard_max_bytes: Option<u64>,
    /// Zone model: `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// Latency in microseconds that writeback throttling aims at; 0: off.
    pub wbt_latency_us: Option<u64>,
    /// Whether completions can be polled for.
    pub polling: Option<bool>,
    /// Whether the kernel counts its I/O; without, nothing can be said of what the device did.
    pub statistics: Option<bool>,
}
