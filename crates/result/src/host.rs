//! Where a run took place: the machine, and what its targets are.
//!
//! Everything here is a fact that was read from the system. What could not be read is `None` (or an empty list) and
//! never a guess. Serial numbers and other marks of one particular machine are left out, so that a result can be shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Host {
    /// Its name.
    pub hostname: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Operating system: `PRETTY_NAME` of os-release.
    pub os: Option<String>,
    /// Processor architecture that this program was built for, e.g. `x86_64`.
    pub architecture: String,
    /// The processors.
    pub cpu: Cpu,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that could be had without swapping when the run began, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// What the machine is made of: metal, a virtual machine, a cloud's instance.
    pub platform: Platform,
    /// Bounds that control groups put on this process.
    pub cgroup: CgroupLimits,
}

/// The processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Logical processors that are online.
    pub online: Option<u32>,
}

/// What a machine is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Platform {
    /// Manufacturer, as the firmware says.
    pub vendor: Option<String>,
    /// Product, as the firmware says; on some clouds the instance type.
    pub product: Option<String>,
    /// Whether a hypervisor is underneath; `None` where the processor does not tell.
    pub virtual_machine: Option<bool>,
    /// Whether this process runs in a container.
    pub container: bool,
    /// The cloud, where the firmware names one: `aws`, `gcp`, `azure`, ...
    pub cloud: Option<String>,
    /// The cloud's name of the machine type, where the firmware gives it.
    pub instance_type: Option<String>,
}

/// Bounds that control groups put on this process; the tightest of its group and all groups above.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CgroupLimits {
    /// Processors' worth of time that may be used, e.g. 1.5.
    pub cpu_quota: Option<f64>,
    /// Processors that this process may run on.
    pub cpuset: Option<u32>,
    /// Memory bound in bytes.
    pub memory_bytes: Option<u64>,
    /// Bounds on I/O, one for each device and group that sets any.
    pub io: Vec<IoLimit>,
}

/// Bounds on the I/O of this process to one device (`io.max`, or blkio.throttle of version 1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IoLimit {
    /// The whole disk.
    pub device: DeviceNumber,
    /// The group that sets the bound, within its hierarchy.
    pub cgroup: String,
    /// Bytes per second read.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes per second written.
    pub write_bytes_per_s: Option<u64>,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
}

/// Major and minor number of a block device.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Default,
)]
#[serde(into = "String", try_from = "String")]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of the driver's devices.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl std::str::FromStr for DeviceNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |part: &str| part.parse::<u32>().ok();
        text.trim()
            .split_once(':')
            .and_then(|(major, minor)| {
                Some(Self {
                    major: parse(major)?,
                    minor: parse(minor)?,
                })
            })
            .ok_or_else(|| format!("{text:?} is not a device number (major:minor)"))
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> Self {
        number.to_string()
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TargetInfo {
    /// The path with its links followed. For a path that does not exist yet, what it will be.
    pub path: PathBuf,
    /// Kind of the path.
    pub kind: TargetKind,
    /// Size of a file or device in bytes.
    pub size_bytes: Option<u64>,
    /// The mount that holds a file or directory; the mounts of a block device are not its own property.
    pub mount: Option<Mount>,
    /// The block devices that hold the data, each with what is below it. Empty for memory and network file systems.
    pub devices: Vec<DeviceInfo>,
    /// I/O bounds on those devices by this process's control groups.
    pub limits: Vec<IoLimit>,
    /// Why the devices are not known, where they are not, in one sentence.
    pub note: Option<String>,
}

impl TargetInfo {
    /// Every device under the target, from the top down, each once.
    pub fn all_devices(&self) -> Vec<&DeviceInfo> {
        let mut found: Vec<&DeviceInfo> = Vec::new();
        let mut waiting: Vec<&DeviceInfo> = self.devices.iter().rev().collect();
        while let Some(device) = waiting.pop() {
            if !found.iter().any(|known| known.number == device.number) {
                found.push(device);
            }
            waiting.extend(device.below.iter().rev());
        }
        found
    }

    /// The devices at the bottom: those that nothing lies below.
    pub fn bottom_devices(&self) -> Vec<&DeviceInfo> {
        self.all_devices()
            .into_iter()
            .filter(|device| device.below.is_empty())
            .collect()
    }
}

/// Kinds of path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Nothing is there yet.
    #[default]
    Missing,
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/null`.
    CharacterDevice,
    /// A pipe or socket.
    Other,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Mount {
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Which directory of the file system is mounted there; not `/` for bind mounts and subvolumes.
    pub root: String,
    /// Type of the file system, e.g. `ext4`.
    pub fs_type: String,
    /// What is mounted: a device, a server's export, or a name.
    pub source: String,
    /// Options of the mount and of the file system, e.g. `rw`, `relatime`, `discard`.
    pub options: Vec<String>,
    /// The file system's device number; major 0 means that no single block device is behind it.
    pub device: DeviceNumber,
    /// Where the data is.
    pub locality: Locality,
}

/// Where the data of a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// On block devices of this machine (which may themselves be remote).
    #[default]
    Block,
    /// In memory: tmpfs, ramfs.
    Memory,
    /// On another machine, or on the host of this virtual machine.
    Remote,
    /// In another file system: overlayfs and its kind.
    Stacked,
    /// Behind a user-space process (FUSE).
    UserSpace,
    /// Not a place for data: procfs and its kind.
    Pseudo,
}

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
    /// The file behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// Whether a loop device reads and writes its file directly, past the page cache.
    pub direct_io: Option<bool>,
    /// The request queue; a partition has none of its own.
    pub queue: Option<Queue>,
    /// The devices that it is made of: a partition's disk, a volume's or an array's members, the device of a loop's file.
    pub below: Vec<DeviceInfo>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, minor: u32, below: Vec<DeviceInfo>) -> DeviceInfo {
        let number = DeviceNumber { major: 8, minor };
        DeviceInfo {
            name: name.into(),
            number,
            below,
            ..Default::default()
        }
    }

    #[test]
    fn devices_are_listed_from_the_top_each_once() {
        let disk = device("sda", 0, vec![]);
        let first = device("sda1", 1, vec![disk.clone()]);
        let second = device("sda2", 2, vec![disk]);
        let target = TargetInfo {
            devices: vec![device("md0", 9, vec![first, second])],
            ..Default::default()
        };
        let names =
            |list: Vec<&DeviceInfo>| list.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(target.all_devices()), ["md0", "sda1", "sda", "sda2"]);
        assert_eq!(names(target.bottom_devices()), ["sda"]);
    }

    #[test]
    fn device_numbers_are_text_in_json() {
        let number = DeviceNumber {
            major: 259,
            minor: 3,
        };
        assert_eq!(serde_json::to_string(&number).unwrap(), "\"259:3\"");
        assert_eq!(
            serde_json::from_str::<DeviceNumber>("\"259:3\"").unwrap(),
            number
        );
        assert!(serde_json::from_str::<DeviceNumber>("\"259\"").is_err());
    }
}
