//! Block devices of a target: kind, transport, request queue and underlying devices.

use super::DeviceNumber;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A block device with its underlying devices.
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
    /// Whether the kernel rejects writes to the device.
    pub read_only: bool,
    /// Transport, if known.
    pub transport: Option<Transport>,
    /// Driver, e.g. `nvme`, `virtio_blk`, `sd`.
    pub driver: Option<String>,
    /// Version that the driver's module declares, e.g. `1.0` of nvme. Many modules declare none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Manufacturer.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Name within its kind: volume (`vg-lv`), RAID level (`raid1`), compression (`lzo`).
    pub detail: Option<String>,
    /// Start of a partition on the disk, in bytes.
    pub start_bytes: Option<u64>,
    /// Image behind a device mapped by krbd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rbd: Option<MappedImage>,
    /// File behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// Whether a loop device uses direct I/O, which bypasses the page cache.
    pub direct_io: Option<bool>,
    /// Whether blocks are allocated only when written (thin provisioning), if known.
    pub thin: Option<bool>,
    /// PCI Express link of the controller.
    pub link: Option<PcieLink>,
    /// NUMA node of the controller.
    pub numa_node: Option<u32>,
    /// Request queue. `None` for a partition, which uses the queue of its disk.
    pub queue: Option<Queue>,
    /// Underlying devices: a partition's disk, members of a volume or array, a loop file's device.
    pub below: Vec<DeviceInfo>,
}

/// A Ceph RBD image mapped as a block device by the kernel client (krbd).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MappedImage {
    /// Name of the pool.
    pub pool: String,
    /// Namespace within the pool.
    pub namespace: Option<String>,
    /// Name of the image.
    pub image: String,
    /// Name of the snapshot, if one is mapped.
    pub snapshot: Option<String>,
    /// fsid of the cluster.
    pub fsid: Option<String>,
    /// Name of this client in the cluster, e.g. `client4123`.
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
    /// A kind unknown to this program.
    #[default]
    Other,
    /// A partition of a disk.
    Partition,
    /// An NVMe namespace.
    Nvme,
    /// A disk of the SCSI subsystem: SCSI, SAS, SATA, USB, iSCSI, ...
    Scsi,
    /// A disk of the SCSI subsystem that uses the ATA command set.
    Ata,
    /// A virtio block device.
    Virtio,
    /// A Xen virtual disk.
    Xen,
    /// An SD card or eMMC.
    Mmc,
    /// A loop device, backed by a file.
    Loop,
    /// A zram device (compressed memory).
    Zram,
    /// A RAM disk (brd).
    Ram,
    /// Persistent memory.
    Pmem,
    /// A device mapper target other than those listed here.
    DeviceMapper,
    /// An LVM logical volume.
    Lvm,
    /// A dm-crypt device (encrypted).
    Crypt,
    /// A dm-multipath device (several paths to one disk).
    Multipath,
    /// A software RAID array (md).
    Md,
    /// A bcache device.
    Bcache,
    /// A DRBD device (replicated over the network).
    Drbd,
    /// A Ceph RBD image mapped by krbd.
    Rbd,
    /// A network block device (nbd).
    Nbd,
    /// A ZFS volume (zvol).
    Zvol,
    /// A user-space block device (ublk).
    Ublk,
    /// A null block device (null_blk), which moves no data.
    Null,
}

/// Transport that connects a device.
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
    /// NVMe loop target on this machine.
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
    /// Virtio bus of a virtual machine.
    Virtio,
    /// Hyper-V VMBus of a virtual machine.
    HyperV,
    /// Xen bus of a virtual machine.
    Xen,
    /// Network, with another protocol.
    Network,
    /// Main memory.
    Memory,
}

impl Transport {
    /// Returns the name of the transport for people.
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

/// A PCI Express link. Speeds are in the words of sysfs: `8.0 GT/s PCIe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct PcieLink {
    /// Current speed of each lane.
    pub speed: String,
    /// Number of lanes in use.
    pub width: u32,
    /// Highest speed per lane that the controller supports.
    pub max_speed: Option<String>,
    /// Number of lanes that the controller supports.
    pub max_width: Option<u32>,
}

/// Request queue of a device: the kernel's limits and settings for its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Queue {
    /// Logical block size in bytes: smallest addressable unit.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size in bytes: smallest unit written without read-modify-write.
    pub physical_block_bytes: Option<u64>,
    /// Smallest preferred I/O size in bytes.
    pub minimum_io_bytes: Option<u64>,
    /// Preferred I/O size for sequential access in bytes. 0 if the device reports none.
    pub optimal_io_bytes: Option<u64>,
    /// Largest request in bytes. The kernel splits larger ones.
    pub max_request_bytes: Option<u64>,
    /// Read-ahead of buffered reads in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Whether the device reports rotating media.
    pub rotational: Option<bool>,
    /// I/O scheduler in use, or `none`.
    pub scheduler: Option<String>,
    /// Requests that the scheduler or driver queues per hardware queue (`nr_requests`).
    pub nr_requests: Option<u64>,
    /// Number of hardware queues.
    pub hardware_queues: Option<u32>,
    /// Commands that the device accepts at a time, if it reports them (SCSI and ATA).
    pub device_queue_depth: Option<u32>,
    /// Whether the device has a volatile write cache that needs flushes (`write back`).
    pub volatile_write_cache: Option<bool>,
    /// Whether the device supports FUA, which forces a single write to the medium.
    pub fua: Option<bool>,
    /// Largest discard in bytes. 0 if the device does not support discards.
    pub discard_max_bytes: Option<u64>,
    /// Zone model: `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// Target latency of writeback throttling in microseconds. 0 if throttling is off.
    pub wbt_latency_us: Option<u64>,
    /// Whether the queue supports polling for completions.
    pub polling: Option<bool>,
    /// Whether the kernel keeps I/O statistics. Without them the activity of the device is unknown.
    pub statistics: Option<bool>,
}
