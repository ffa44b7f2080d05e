//! Class of a target's device, from facts: transport, driver, model, rotational flag, file system.
//!
//! No measured figure decides the class, because two measurements of one virtual disk on a busy
//! machine may differ. If the facts do not identify a device, it is virtual or unknown.

mod models;

use crate::host::{DeviceInfo, DeviceKind, Locality, Mount, TargetInfo, Transport};
use crate::run::RunResult;
use crate::storage::{StorageUsed, name_of};
use iosonde_job::plan::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Classes of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// Memory presented as a file system or disk: tmpfs, brd, zram.
    Memory,
    /// Persistent memory.
    PersistentMemory,
    /// A rotating disk.
    HardDisk,
    /// Flash attached by SATA.
    SataSsd,
    /// Flash attached by PCI Express.
    NvmeSsd,
    /// Flash attached by another bus, such as SAS.
    Ssd,
    /// A disk attached by USB. Its adapter often does not report rotation.
    UsbDisk,
    /// An SD card or eMMC.
    FlashCard,
    /// A disk provided by a hypervisor. The hardware behind it is unknown.
    VirtualDisk,
    /// A block device or pool accessed over a network.
    NetworkVolume,
    /// A file system served by another machine, or by the host of this virtual machine.
    NetworkFileSystem,
    /// A file system served by a process of this machine (FUSE), with unknown storage.
    UserSpaceFileSystem,
    /// Devices of different classes.
    Several,
    /// A device that moves no data.
    Null,
    /// A simulated device.
    Simulated,
    /// The facts do not identify the device. Aliases are old classes, derived from figures.
    #[serde(
        alias = "unclear",
        alias = "cached",
        alias = "faster_than_flash",
        alias = "limited_volume"
    )]
    Unknown,
}

impl DeviceClass {
    /// Returns the class in words, for one device.
    pub fn words(self) -> &'static str {
        match self {
            DeviceClass::Memory => "memory",
            DeviceClass::PersistentMemory => "persistent memory",
            DeviceClass::HardDisk => "a rotating disk",
            DeviceClass::SataSsd => "a SATA SSD",
            DeviceClass::NvmeSsd => "an NVMe SSD",
            DeviceClass::Ssd => "an SSD",
            DeviceClass::UsbDisk => "a USB disk",
            DeviceClass::FlashCard => "an SD card or eMMC",
            DeviceClass::VirtualDisk => "a virtual disk",
            DeviceClass::NetworkVolume => "a network volume",
            DeviceClass::NetworkFileSystem => "a network file system",
            DeviceClass::UserSpaceFileSystem => "a user-space file system",
            DeviceClass::Several => "devices of several kinds",
            DeviceClass::Null => "a null device, which moves no data",
            DeviceClass::Simulated => "a simulated device",
            DeviceClass::Unknown => "an unknown device",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            DeviceClass::Memory => "memory devices",
            DeviceClass::PersistentMemory => "persistent memory devices",
            DeviceClass::HardDisk => "rotating disks",
            DeviceClass::SataSsd => "SATA SSDs",
            DeviceClass::NvmeSsd => "NVMe SSDs",
            DeviceClass::Ssd => "SSDs",
            DeviceClass::UsbDisk => "USB disks",
            DeviceClass::FlashCard => "SD cards or eMMCs",
            DeviceClass::VirtualDisk => "virtual disks",
            DeviceClass::NetworkVolume => "network volumes",
            DeviceClass::NetworkFileSystem => "network file systems",
            DeviceClass::UserSpaceFileSystem => "user-space file systems",
            DeviceClass::Null => "null devices",
            DeviceClass::Simulated => "simulated devices",
            DeviceClass::Several | DeviceClass::Unknown => "unknown devices",
        }
    }
}

/// The caution on a target in memory, after "its" or "the".
pub const MEMORY_DATA_LOSS: &str = "data does not survive a restart";

/// Returns the caution on a target in memory. `device` describes it, as `memory (tmpfs)`.
#[must_use]
pub fn memory_caution(device: &str) -> String {
    format!("This is {device}: its {MEMORY_DATA_LOSS}.")
}

/// Class of a target's device, and the facts that determine it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Class of the device.
    pub class: DeviceClass,
    /// Number of devices of the class.
    pub count: usize,
    /// Facts, each in a few words: name, transport, model, layers above.
    pub facts: Vec<String>,
}

impl Default for DeviceDescription {
    fn default() -> Self {
        Self::without_devices(DeviceClass::Unknown, Vec::new())
    }
}

impl DeviceDescription {
    /// Describes the device of a run. For a run in several pods, their targets are combined.
    pub fn from_run(result: &RunResult) -> Self {
        let has_engine = |engine| {
            let mut workers = result.workers.iter();
            workers.any(|worker| worker.backend.engine == engine)
        };
        if has_engine(Engine::Sim) {
            let mut jobs = result.plan.jobs.iter();
            let model = jobs.find_map(|job| job.io.sim.clone());
            return Self::without_devices(DeviceClass::Simulated, Vec::from_iter(model));
        }
        if has_engine(Engine::Rados) || has_engine(Engine::Rbd) {
            let used = StorageUsed::from_run(result).map(|used| used.name);
            return Self::without_devices(DeviceClass::NetworkVolume, Vec::from_iter(used));
        }
        let is_guest = result.host.platform.virtual_machine == Some(true);
        let of_target = |target| Self::from_target(target, is_guest);
        let mut each: Vec<Self> = result.targets.iter().map(of_target).collect();
        each.dedup();
        match &each[..] {
            [] => Self::default(),
            [only] => only.clone(),
            [first, others @ ..] if others.iter().all(|other| other.class == first.class) => {
                first.clone()
            }
            several => {
                let facts = several.iter().map(Self::words).collect();
                Self::without_devices(DeviceClass::Several, facts)
            }
        }
    }

    /// Returns the words of a run's device if its data does not survive a restart, as
    /// `memory (tmpfs)`.
    #[must_use]
    pub fn memory_of_run(result: &RunResult) -> Option<String> {
        let device = Self::from_run(result);
        (device.class == DeviceClass::Memory).then(|| device.words())
    }

    /// Describes the device of a target. `is_guest`: the machine is virtual.
    pub fn from_target(target: &TargetInfo, is_guest: bool) -> Self {
        if let Some(found) = target.mount.as_ref().and_then(of_mount) {
            return found;
        }
        let leaves = leaves(&target.devices);
        let classes = leaves.iter().map(|leaf| class_of(leaf, is_guest));
        let classes: Vec<DeviceClass> = classes.collect();
        let Some(class) = classes.first().copied() else {
            return Self::without_devices(
                DeviceClass::Unknown,
                Vec::from_iter(target.note.clone()),
            );
        };
        let above = layers(target);
        if classes.iter().any(|other| *other != class) {
            let said = leaves.iter().zip(&classes);
            let said = said.map(|(leaf, class)| format!("{} is {}", leaf.name, class.words()));
            return Self::without_devices(DeviceClass::Several, said.chain(above).collect());
        }
        Self {
            class,
            count: leaves.len(),
            facts: facts_of(&leaves, class).into_iter().chain(above).collect(),
        }
    }

    fn without_devices(class: DeviceClass, facts: Vec<String>) -> Self {
        Self {
            class,
            count: 1,
            facts,
        }
    }

    /// Returns words: `a virtual disk (vda, virtio_blk)`, `2 rotating disks (sda and sdb, SAS)`.
    pub fn words(&self) -> String {
        let noun = match self.count {
            0 | 1 => self.class.words().to_owned(),
            count => format!("{count} {}", self.class.plural()),
        };
        match self.facts.is_empty() {
            true => noun,
            false => format!("{noun} ({})", self.facts.join(", ")),
        }
    }
}

/// Describes a mount whose file system has no block devices on this machine.
fn of_mount(mount: &Mount) -> Option<DeviceDescription> {
    let said = |class, fact: String| DeviceDescription::without_devices(class, vec![fact]);
    match mount.locality {
        Locality::Memory => Some(said(DeviceClass::Memory, mount.fs_type.clone())),
        Locality::Remote => {
            let served = mount.service.as_ref().map(name_of);
            let name = served.unwrap_or_else(|| format!("{} {}", mount.fs_type, mount.source));
            Some(said(DeviceClass::NetworkFileSystem, name))
        }
        Locality::UserSpace => Some(said(
            DeviceClass::UserSpaceFileSystem,
            mount.fs_type.clone(),
        )),
        Locality::Block | Locality::Stacked | Locality::Pseudo => None,
    }
}

/// Returns the devices that hold the data, once each. Paths of a multipath device are one disk.
fn leaves(devices: &[DeviceInfo]) -> Vec<&DeviceInfo> {
    let mut found: Vec<&DeviceInfo> = Vec::new();
    for device in devices {
        let below = match (device.kind, &device.below[..]) {
            (_, []) => vec![device],
            (DeviceKind::Multipath, [path, ..]) => leaves(std::slice::from_ref(path)),
            (_, below) => leaves(below),
        };
        for leaf in below {
            if !found.iter().any(|known| known.number == leaf.number) {
                found.push(leaf);
            }
        }
    }
    found
}

fn class_of(device: &DeviceInfo, is_guest: bool) -> DeviceClass {
    if let Some(class) = models::class_of(device) {
        return class;
    }
    match device.kind {
        DeviceKind::Zram | DeviceKind::Ram => DeviceClass::Memory,
        DeviceKind::Pmem => DeviceClass::PersistentMemory,
        DeviceKind::Null => DeviceClass::Null,
        DeviceKind::Mmc => DeviceClass::FlashCard,
        DeviceKind::Virtio | DeviceKind::Xen => DeviceClass::VirtualDisk,
        DeviceKind::Rbd | DeviceKind::Nbd => DeviceClass::NetworkVolume,
        DeviceKind::Nvme => nvme_class(device, is_guest),
        DeviceKind::Scsi | DeviceKind::Ata => scsi_class(device, is_guest),
        _ => DeviceClass::Unknown,
    }
}

fn nvme_class(device: &DeviceInfo, is_guest: bool) -> DeviceClass {
    match device.transport {
        Some(Transport::NvmeTcp | Transport::NvmeRdma | Transport::NvmeFc) => {
            DeviceClass::NetworkVolume
        }
        Some(Transport::Pcie) if is_rotational(device) == Some(true) => DeviceClass::HardDisk,
        // A device passed through to a guest has a PCIe link, unlike an emulated one.
        Some(Transport::Pcie) if is_guest && device.link.is_none() => DeviceClass::VirtualDisk,
        Some(Transport::Pcie) => DeviceClass::NvmeSsd,
        _ => DeviceClass::Unknown,
    }
}

fn scsi_class(device: &DeviceInfo, is_guest: bool) -> DeviceClass {
    match (device.transport, is_rotational(device)) {
        (Some(Transport::Iscsi | Transport::FibreChannel), _) => DeviceClass::NetworkVolume,
        (Some(Transport::Virtio | Transport::HyperV | Transport::Xen), _) => {
            DeviceClass::VirtualDisk
        }
        (Some(Transport::Usb), _) => DeviceClass::UsbDisk,
        (Some(Transport::Sata | Transport::Sas), _) if is_guest && device.link.is_none() => {
            DeviceClass::VirtualDisk
        }
        (Some(Transport::Sata | Transport::Sas), Some(true)) => DeviceClass::HardDisk,
        (Some(Transport::Sata), Some(false)) => DeviceClass::SataSsd,
        (Some(Transport::Sas), Some(false)) => DeviceClass::Ssd,
        // The logical disks of a RAID controller may report a wrong rotational flag.
        _ => DeviceClass::Unknown,
    }
}

fn is_rotational(device: &DeviceInfo) -> Option<bool> {
    device.queue.as_ref()?.rotational
}

/// Returns names, transport and model of devices of one class, if they share them.
fn facts_of(leaves: &[&DeviceInfo], class: DeviceClass) -> Vec<String> {
    /// Longer lists of names are shortened to the first and the last.
    const NAMES_MAX: usize = 4;
    let names: Vec<&str> = leaves.iter().map(|leaf| leaf.name.as_str()).collect();
    let names = match &names[..] {
        [others @ .., last] if !others.is_empty() && names.len() <= NAMES_MAX => {
            format!("{} and {last}", others.join(", "))
        }
        [first, .., last] if names.len() > NAMES_MAX => format!("{first} to {last}"),
        _ => names.join(""),
    };
    let shared = |of: &dyn Fn(&DeviceInfo) -> Option<String>| {
        let mut each = leaves.iter().map(|leaf| of(leaf));
        let first = each.next().flatten()?;
        each.all(|other| other.as_ref() == Some(&first))
            .then_some(first)
    };
    let driver = |leaf: &DeviceInfo| match class {
        DeviceClass::VirtualDisk | DeviceClass::Unknown => leaf.driver.clone(),
        _ => None,
    };
    let rotational = |leaf: &DeviceInfo| match class {
        DeviceClass::Unknown if is_rotational(leaf) == Some(true) => {
            Some("reported as rotational".to_owned())
        }
        _ => None,
    };
    let image = |leaf: &DeviceInfo| {
        let image = leaf.rbd.as_ref()?;
        Some(format!("Ceph image {image} (krbd)"))
    };
    let facts = [
        Some(names),
        shared(&|leaf| unimplied_transport(leaf).map(str::to_owned)),
        shared(&model),
        shared(&image),
        shared(&driver),
        shared(&rotational),
    ];
    facts.into_iter().flatten().collect()
}

/// Returns the transport, unless the driver or class already implies it.
fn unimplied_transport(device: &DeviceInfo) -> Option<&'static str> {
    if device.kind == DeviceKind::Nbd {
        return Some("NBD");
    }
    match device.transport? {
        Transport::Virtio if device.kind != DeviceKind::Virtio => Some("virtio-scsi"),
        Transport::Usb | Transport::Virtio | Transport::Network | Transport::Memory => None,
        transport => Some(transport.words()),
    }
}

fn model(device: &DeviceInfo) -> Option<String> {
    let parts = [device.vendor.as_deref(), device.model.as_deref()];
    let words = parts.into_iter().flatten().map(str::trim);
    let words: Vec<&str> = words.filter(|part| !part.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the layers between the target and the devices: `under LVM, dm-crypt, md raid1`.
fn layers(target: &TargetInfo) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for device in target.all_devices() {
        let name = match device.kind {
            DeviceKind::Lvm => "LVM".to_owned(),
            DeviceKind::Crypt => "dm-crypt".to_owned(),
            DeviceKind::Md => match &device.detail {
                Some(level) => format!("md {level}"),
                None => "md".to_owned(),
            },
            DeviceKind::Multipath => "multipath".to_owned(),
            DeviceKind::Bcache => "bcache".to_owned(),
            DeviceKind::Drbd => "DRBD".to_owned(),
            DeviceKind::DeviceMapper => "device mapper".to_owned(),
            DeviceKind::Loop => "a loop device".to_owned(),
            _ => continue,
        };
        if !device.below.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| format!("under {}", names.join(", ")))
}

#[cfg(test)]
mod tests;
