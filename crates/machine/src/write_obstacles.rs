//! Decides whether a target may be written: its obstacles against its owner's consent.
//!
//! A block device is refused if it is mounted, in use as swap space, held by another device or
//! program, or carries a signature. A file is refused if it is swap space or the backing file of a
//! loop device. A character device is refused unless it discards written data.
//!
//! Only [consent](super::consent) that names this very device overrides that. Consent to a disk
//! does not apply to its partitions, nor the other way round. Consent to overwrite covers the loss
//! of stored data. Use needs separate consent: the file system or program would break too.

mod refusal;
#[cfg(test)]
mod write_obstacles_tests;

pub use refusal::{Obstacle, Refusal, lasting_name};

use super::block_device::BlockDevice;
use super::consent::{Agreement, Consent};
use super::identify::PathFacts;
use super::mounts;
use super::proc_root::{System, device_number};
use super::signature;
use crate::sys::linux;
use iosonde_result::host::{DeviceNumber, Mount, PathKind};
use refusal::sentence;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Major number of the memory devices (`mem` in the kernel's device list).
const MEMORY_MAJOR: u32 = 1;
/// Minor numbers of `/dev/null`, `/dev/zero` and `/dev/full`, which discard written data.
const DISCARDING_MINORS: [u32; 3] = [3, 5, 7];
/// Major number of MTD character devices, with two minor numbers per device.
const MTD_MAJOR: u32 = 90;
/// Major number of MTD block devices.
const MTD_BLOCK_MAJOR: u32 = 31;

/// The obstacles that consent to a target overrides, as text for the announcement. `None` if there
/// is no obstacle; then no known data is lost.
pub fn overridden(path: &Path) -> Option<String> {
    let obstacles = check_writable(path, &Consent::to_overwrite([path])).ok()?;
    (!obstacles.is_empty()).then(|| sentence(&obstacles))
}

/// Checks whether `path` may be written on this machine.
///
/// The answer is valid only at this moment. The caller must check immediately before it opens the
/// target for writing, or use [`check`], which keeps the device open. `Ok` holds the obstacles that
/// consent overrides, for a warning. A missing path has no obstacles.
///
/// # Errors
///
/// Returns a [`Refusal`] with its reason, such as all obstacles found.
pub fn check_writable(path: &Path, consent: &Consent) -> Result<Vec<Obstacle>, Refusal> {
    let terms = WriteTerms {
        consent,
        is_mounted_allowed: false,
        is_claimed: false,
    };
    check(path, &terms).map(|checked| checked.overridden)
}

/// The terms of a check.
#[derive(Debug, Clone, Copy)]
pub struct WriteTerms<'a> {
    /// The consent given.
    pub consent: &'a Consent,
    /// Whether the job has fio's `allow_mounted_write=1`. It needs [`Consent::by_jobs`].
    pub is_mounted_allowed: bool,
    /// Whether this run has claimed the disk of the target or a partition of it. Then no other
    /// program has claimed it, and it cannot be claimed again.
    pub is_claimed: bool,
}

/// A target that may be written.
#[derive(Debug)]
pub struct WritableTarget {
    /// The obstacles that consent overrides.
    pub overridden: Vec<Obstacle>,
    /// The device, if the target is a block device.
    pub device: Option<CheckedDevice>,
}

/// A block device that was checked.
#[derive(Debug)]
pub struct CheckedDevice {
    /// Device number.
    pub number: DeviceNumber,
    /// Opened for reading, so that the number stays with this disk. It is opened with `O_EXCL`,
    /// which prevents mounts, unless consent is to write to a device in use. `None` if the device
    /// cannot be read and consent overrides that.
    pub file: Option<File>,
}

/// Like [`check_writable`]; also returns the checked device, which stays open.
///
/// # Errors
///
/// Fails as [`check_writable`] does.
pub fn check(path: &Path, terms: &WriteTerms<'_>) -> Result<WritableTarget, Refusal> {
    let unreadable = |source| Refusal::Unreadable {
        path: path.to_owned(),
        source,
    };
    let facts = PathFacts::query(path).map_err(unreadable)?;
    let system = System::live();
    let mut obstacles = match facts.kind {
        PathKind::BlockDevice => facts
            .is
            .map_or_else(Vec::new, |number| device_in_use(&system, number)),
        PathKind::File => file_in_use(&system, &facts.path),
        PathKind::CharacterDevice => character_device(&system, &facts.path).map_err(unreadable)?,
        _ => Vec::new(),
    };
    let agreement = terms
        .consent
        .agreement(&facts)
        .map_err(|change| Refusal::OtherDisk {
            path: path.to_owned(),
            change,
        })?;
    let agreement = match terms.is_mounted_allowed && terms.consent.by_jobs {
        true => Agreement::Mounted,
        false => agreement,
    };
    let mut device = None;
    if facts.kind == PathKind::BlockDevice {
        match contents(&facts.path, terms.is_claimed, &mut obstacles) {
            Ok(found) => device = Some(found),
            Err(source) if agreement == Agreement::None => return Err(unreadable(source)),
            Err(_) => {
                let unread = |number| CheckedDevice { number, file: None };
                device = facts.is.map(unread);
            }
        }
    }
    let is_overridden =
        |obstacle: &Obstacle| obstacle.needs().is_some_and(|needed| agreement >= needed);
    if !obstacles.iter().all(is_overridden) {
        return Err(Refusal::Obstacles {
            path: path.to_owned(),
            obstacles,
        });
    }
    if let Some(device) = &mut device
        && agreement >= Agreement::InUse
    {
        // Other programs may continue or start to use the device.
        device.file = File::open(&facts.path).ok();
    }
    Ok(WritableTarget {
        overridden: obstacles,
        device,
    })
}

/// The obstacles to writing to a character device. Devices that discard written data have none. A
/// flash chip is in use if its block device is.
fn character_device(system: &System, path: &Path) -> io::Result<Vec<Obstacle>> {
    let number = device_number(rustix::fs::stat(path)?.st_rdev);
    if number.major == MEMORY_MAJOR && DISCARDING_MINORS.contains(&number.minor) {
        return Ok(Vec::new());
    }
    let mut obstacles = Vec::new();
    if number.major == MTD_MAJOR {
        let block = DeviceNumber {
            major: MTD_BLOCK_MAJOR,
            minor: number.minor / 2,
        };
        obstacles = device_in_use(system, block);
    }
    let name = system.link_name(format!("/sys/dev/char/{number}"));
    obstacles.push(Obstacle::CharacterDevice { name });
    Ok(obstacles)
}

/// Maximum time that a program may hold a device exclusively which only probes it. A device that is
/// held for longer is in use.
const EXCLUSIVE_HOLD_MAX: Duration = Duration::from_millis(500);

/// Probes a block device for exclusive holders and signatures.
fn contents(
    path: &Path,
    is_claimed: bool,
    obstacles: &mut Vec<Obstacle>,
) -> io::Result<CheckedDevice> {
    use rustix::fs::{Mode, OFlags};
    // Clones that start together check the same device: while one holds it, the others wait.
    static PROBE_LOCK: Mutex<()> = Mutex::new(());
    let _alone = PROBE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let open = |flags| {
        rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::CLOEXEC | flags,
            Mode::empty(),
        )
    };
    let exclusively = match is_claimed {
        true => OFlags::empty(),
        false => OFlags::EXCL,
    };
    let mut alone = open(exclusively);
    // A program that only probes the device closes it soon. The same holds for a child of this
    // process between fork(2) and execve(2).
    let deadline = Instant::now() + EXCLUSIVE_HOLD_MAX;
    while obstacles.is_empty() && matches!(alone, Err(Errno::BUSY)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
        alone = open(exclusively);
    }
    let device: File = match alone {
        Ok(device) => device.into(),
        Err(Errno::BUSY) => {
            // The other checks name the holder if they know it. This one also detects holders they
            // cannot see, for example in another namespace.
            if obstacles.is_empty() {
                obstacles.push(Obstacle::Busy);
            }
            open(OFlags::empty())?.into()
        }
        Err(error) => return Err(error.into()),
    };
    let number = device_number(rustix::fs::fstat(&device)?.st_rdev);
    let size = io::Seek::seek(&mut &device, io::SeekFrom::End(0))?;
    // Disables read-ahead, which is never used and takes seconds on a throttled device (100 kB/s).
    linux::disable_read_ahead(&device, size);
    obstacles.extend(
        signature::probe(&device, size)?
            .into_iter()
            .map(Obstacle::Carries),
    );
    Ok(CheckedDevice {
        number,
        file: Some(device),
    })
}

/// The uses of a block device, from the files of a system: mounts, swap space and other devices.
/// The search covers the device, its partitions, its disk, and all devices made of these.
fn device_in_use(system: &System, number: DeviceNumber) -> Vec<Obstacle> {
    let Some(node) = BlockDevice::from_number(system, number) else {
        return Vec::new();
    };
    let mut users = Users {
        system,
        mounts: mounts::mounts(system),
        obstacles: Vec::new(),
        seen: Vec::new(),
    };
    if system.flag(node.dir.join("ro")) == Some(true) {
        users.obstacles.push(Obstacle::ReadOnly);
    }
    users.add_uses(&node);
    if let Some(disk) = node.disk(system) {
        // The whole disk may be in use, regardless of its partition table.
        users.add_own_uses(&disk);
    }
    users.obstacles
}

/// The uses of a file as a device.
fn file_in_use(system: &System, path: &Path) -> Vec<Obstacle> {
    let name = path.display().to_string();
    let mut obstacles = Vec::new();
    if mounts::swaps(system).iter().any(|swap| swap == path) {
        obstacles.push(Obstacle::Swap {
            device: name.clone(),
        });
    }
    let loops = BlockDevice::list_all(system)
        .into_iter()
        .filter(|node| node.backing_file(system).as_deref() == Some(path));
    obstacles.extend(loops.map(|holder| Obstacle::Held {
        device: name.clone(),
        holder: holder.name,
    }));
    obstacles
}

/// Collects the uses of devices.
struct Users<'a> {
    system: &'a System,
    mounts: Vec<Mount>,
    obstacles: Vec<Obstacle>,
    seen: Vec<DeviceNumber>,
}

impl Users<'_> {
    /// Adds the uses of a device, of its partitions and of all devices made of them.
    fn add_uses(&mut self, node: &BlockDevice) {
        if self.seen.contains(&node.number) {
            return;
        }
        self.seen.push(node.number);
        self.add_own_uses(node);
        for holder in self.holders(node) {
            self.add_uses(&holder);
        }
        for partition in node.partitions(self.system) {
            self.add_uses(&partition);
        }
    }

    fn add_own_uses(&mut self, node: &BlockDevice) {
        let device = node.dev_path(self.system).display().to_string();
        for mount in &self.mounts {
            if self.is_source(mount, node) {
                let mount_point = mount.mount_point.clone();
                self.obstacles.push(Obstacle::Mounted {
                    device: device.clone(),
                    mount_point,
                });
            }
        }
        let swaps = mounts::swaps(self.system);
        if swaps
            .iter()
            .any(|swap| self.system.device_of_node(swap) == Some(node.number))
        {
            self.obstacles.push(Obstacle::Swap {
                device: device.clone(),
            });
        }
        for holder in self.holders(node) {
            self.obstacles.push(Obstacle::Held {
                device: device.clone(),
                holder: holder.name,
            });
        }
    }

    /// Whether a mount is of this device: by number, or by name if the file system has another one.
    fn is_source(&self, mount: &Mount, node: &BlockDevice) -> bool {
        let by_name = || mount.device.major == 0 && mount.source.starts_with("/dev/");
        mount.device == node.number
            || (by_name()
                && self.system.device_of_node(Path::new(&mount.source)) == Some(node.number))
    }

    /// Devices made of this one, with loop devices, which the kernel does not list as holders.
    fn holders(&self, node: &BlockDevice) -> Vec<BlockDevice> {
        let mut holders = node.holders(self.system);
        for other in BlockDevice::list_all(self.system) {
            let file = other.backing_file(self.system);
            if file.is_some_and(|file| self.system.device_of_node(&file) == Some(node.number)) {
                holders.push(other);
            }
        }
        holders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::is_same_target;

    #[test]
    fn ordinary_files_and_missing_ones_may_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "data").unwrap();
        let new = dir.path().join("new");
        for path in [&*file, &*new, dir.path()] {
            assert_eq!(check_writable(path, &Consent::default()).unwrap(), []);
        }
    }

    #[test]
    fn character_devices_are_refused_except_null_zero_and_full() {
        for name in ["/dev/null", "/dev/zero", "/dev/full"] {
            let checked = check_writable(Path::new(name), &Consent::default());
            assert_eq!(checked.unwrap(), []);
        }
        // A device that is harmless to write to, in case the check fails.
        let random = Path::new("/dev/random");
        let refusal = check_writable(random, &Consent::default()).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "refusing to write /dev/random: the target is the character device \"random\", not a \
             disk"
        );
        assert_eq!(
            refusal.remedy(),
            "to overwrite its data, use --allow-overwrite=/dev/random"
        );
        let agreed = check_writable(random, &Consent::to_overwrite([random])).unwrap();
        assert!(matches!(agreed[..], [Obstacle::CharacterDevice { .. }]));
    }

    #[test]
    fn same_target_follows_links_but_not_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other, link) = (
            dir.path().join("one"),
            dir.path().join("other"),
            dir.path().join("link"),
        );
        std::fs::write(&one, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let facts = PathFacts::query(&one).unwrap();
        assert!(is_same_target(&facts, &one) && is_same_target(&facts, &link));
        assert!(!is_same_target(&facts, &other) && !is_same_target(&facts, dir.path()));
        assert!(!is_same_target(&facts, &dir.path().join("gone")));
    }
}
