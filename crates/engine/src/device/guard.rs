//! Whether a target may be written: what would be lost, who is using it, and whether its owner agreed.
//!
//! A block device is refused when it is mounted, swapped to, held by another device or program, or carries a
//! signature; a file, when it is swap space or the store of a loop device. Only consent that names the very device
//! changes that: consent to a disk is none to its partitions, nor the other way round.

use super::blockdev::Node;
use super::identify::PathFacts;
use super::mounts;
use super::signature::{self, Signature};
use super::system::System;
use crate::sys::block;
use iosonde_result::host::{DeviceNumber, Mount, TargetKind};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The option by which consent is given.
pub const CONSENT_OPTION: &str = "--allow-overwrite";

/// A reason not to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A file system on it is in use.
    Mounted {
        /// The device that is mounted: the target, a partition of it, or a device made of it.
        device: String,
        /// Where.
        mount_point: PathBuf,
    },
    /// It is swap space in use.
    Swap {
        /// The device or file that is swapped to.
        device: String,
    },
    /// Another device is made of it.
    Held {
        /// The device, a partition of it, or the file.
        device: String,
        /// The other device, e.g. `dm-0`.
        holder: String,
    },
    /// A program or the kernel has it for itself alone (opening it with `O_EXCL` fails).
    Busy,
    /// It carries data.
    Carries(Signature),
    /// The kernel does not let it be written.
    ReadOnly,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted {
                device,
                mount_point,
            } => write!(f, "{device} is mounted at {}", mount_point.display()),
            Self::Swap { device } => write!(f, "{device} is in use as swap space"),
            Self::Held { device, holder } => write!(f, "{device} is part of {holder}"),
            Self::Busy => write!(f, "another program, or the kernel, is using it exclusively"),
            Self::Carries(signature) => write!(f, "it carries {signature}"),
            Self::ReadOnly => write!(f, "it is read-only"),
        }
    }
}

/// Why a target is not written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Something would be lost or broken.
    #[error("refusing to write {}: {}", .path.display(), sentence(.obstacles))]
    Obstacles {
        /// The target as it was named.
        path: PathBuf,
        /// What was found; at least one.
        obstacles: Vec<Obstacle>,
    },
    /// It could not be found out whether something would be lost.
    #[error("refusing to write {}: it cannot be read to see whether it carries data: {source}", .path.display())]
    Unreadable {
        /// The target as it was named.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Refusal {
    /// What was found, without the target's name.
    pub fn found(&self) -> String {
        match self {
            Self::Obstacles { obstacles, .. } => sentence(obstacles),
            Self::Unreadable { source, .. } => {
                format!("it cannot be read to see whether it carries data: {source}")
            }
        }
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        let (Self::Obstacles { path, .. } | Self::Unreadable { path, .. }) = self;
        format!(
            "to destroy what is on it, say so: {CONSENT_OPTION}={}",
            path.display()
        )
    }
}

/// What consent to a target overrides, in words, for the announcement of what will be overwritten. `None` where nothing is in the
/// way: then nothing is lost but what nobody knows of.
pub fn overridden(path: &Path) -> Option<String> {
    let obstacles = check_writable(path, &[path.to_owned()]).ok()?;
    (!obstacles.is_empty()).then(|| sentence(&obstacles))
}

fn sentence(obstacles: &[Obstacle]) -> String {
    obstacles
        .iter()
        .map(Obstacle::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Whether `path` may be written on this machine. `consent` lists the targets whose owner agreed.
///
/// The answer holds for this moment: the caller asks immediately before it opens the target for writing. `Ok` holds the
/// obstacles that consent overrides, to be shown as a warning; it is empty where there are none. A path that does not
/// exist yet has none.
///
/// # Errors
///
/// [`Refusal`] with all that was found.
pub fn check_writable(path: &Path, consent: &[PathBuf]) -> Result<Vec<Obstacle>, Refusal> {
    let unreadable = |source| Refusal::Unreadable {
        path: path.to_owned(),
        source,
    };
    let facts = PathFacts::of(path).map_err(unreadable)?;
    let agreed = consent.iter().any(|other| same_target(&facts, other));
    let system = System::live();
    let mut obstacles = match facts.kind {
        TargetKind::BlockDevice => facts
            .is
            .map_or_else(Vec::new, |number| device_in_use(&system, number)),
        TargetKind::File => file_in_use(&system, &facts.path),
        _ => return Ok(Vec::new()),
    };
    if facts.kind == TargetKind::BlockDevice {
        match contents(&facts.path, &mut obstacles) {
            Err(source) if !agreed => return Err(unreadable(source)),
            _ => {}
        }
    }
    // Nobody can consent to what the kernel forbids.
    if obstacles.is_empty() || (agreed && !obstacles.contains(&Obstacle::ReadOnly)) {
        Ok(obstacles)
    } else {
        Err(Refusal::Obstacles {
            path: path.to_owned(),
            obstacles,
        })
    }
}

/// Whether consent to `other` is consent to the target: the same device by its number, or the same file.
fn same_target(facts: &PathFacts, other: &Path) -> bool {
    PathFacts::of(other).is_ok_and(|other| match (facts.is, other.is) {
        (Some(one), Some(another)) => one == another,
        (None, None) => facts.path == other.path,
        _ => false,
    })
}

/// Who has a device for itself for longer than this, is using it.
const MOMENT: Duration = Duration::from_millis(500);

/// Looks at a device as a user of it would.
fn contents(path: &Path, obstacles: &mut Vec<Obstacle>) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    // Clones that start together look at the same device: while one has it for itself, the others wait.
    static LOOKING: Mutex<()> = Mutex::new(());
    let _alone = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let open = |flags| {
        rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::CLOEXEC | flags,
            Mode::empty(),
        )
    };
    let mut alone = open(OFlags::EXCL);
    // A program that only looks soon lets go, and so does a child of this process that has not yet begun its own program.
    let deadline = Instant::now() + MOMENT;
    while obstacles.is_empty() && matches!(alone, Err(Errno::BUSY)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
        alone = open(OFlags::EXCL);
    }
    let device: File = match alone {
        Ok(device) => device.into(),
        Err(Errno::BUSY) => {
            // The others say why where they know; this one catches what they cannot see, as in another namespace.
            if obstacles.is_empty() {
                obstacles.push(Obstacle::Busy);
            }
            open(OFlags::empty())?.into()
        }
        Err(error) => return Err(error.into()),
    };
    let size = io::Seek::seek(&mut &device, io::SeekFrom::End(0))?;
    // What is read ahead of a mark is never looked at, and takes seconds where a throttle lets 100 kB/s through.
    block::advise_order(device.as_raw_fd(), 0, size, true);
    obstacles.extend(
        signature::probe(&device, size)?
            .into_iter()
            .map(Obstacle::Carries),
    );
    Ok(())
}

/// Who uses a block device, by the files of a system: mounts, swap space and other devices, of it, of its partitions,
/// of its disk, and of whatever is made of these.
pub fn device_in_use(system: &System, number: DeviceNumber) -> Vec<Obstacle> {
    let Some(node) = Node::of_number(system, number) else {
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
    users.look_at(&node);
    if let Some(disk) = node.disk(system) {
        // The disk may be in use as a whole, past its partition table.
        users.look_at_one(&disk);
    }
    users.obstacles
}

/// Who uses a file as a device.
pub fn file_in_use(system: &System, path: &Path) -> Vec<Obstacle> {
    let name = path.display().to_string();
    let mut obstacles = Vec::new();
    if mounts::swaps(system).iter().any(|swap| swap == path) {
        obstacles.push(Obstacle::Swap {
            device: name.clone(),
        });
    }
    let loops = Node::all(system)
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
    /// A device with its partitions and all that is made of them.
    fn look_at(&mut self, node: &Node) {
        if self.seen.contains(&node.number) {
            return;
        }
        self.seen.push(node.number);
        self.look_at_one(node);
        for holder in self.holders(node) {
            self.look_at(&holder);
        }
        for partition in node.partitions(self.system) {
            self.look_at(&partition);
        }
    }

    fn look_at_one(&mut self, node: &Node) {
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

    /// Whether a mount is of this device: by number, or by name for file systems with numbers of their own.
    fn is_source(&self, mount: &Mount, node: &Node) -> bool {
        let by_name = || mount.device.major == 0 && mount.source.starts_with("/dev/");
        mount.device == node.number
            || (by_name()
                && self.system.device_of_node(Path::new(&mount.source)) == Some(node.number))
    }

    /// Devices made of this one; loop devices over it are not among the holders that the kernel lists.
    fn holders(&self, node: &Node) -> Vec<Node> {
        let mut holders = node.holders(self.system);
        for other in Node::all(self.system) {
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

    fn signature() -> Signature {
        Signature {
            kind: "ext4",
            what: "an ext4 file system",
            offset: 1080,
            label: Some("X".into()),
            uuid: None,
        }
    }

    #[test]
    fn a_refusal_names_the_device_what_was_found_and_the_consent() {
        let mounted = Obstacle::Mounted {
            device: "/dev/sdb1".into(),
            mount_point: "/data".into(),
        };
        let refusal = Refusal::Obstacles {
            path: "/dev/sdb".into(),
            obstacles: vec![mounted, Obstacle::Carries(signature())],
        };
        assert_eq!(
            refusal.to_string(),
            "refusing to write /dev/sdb: /dev/sdb1 is mounted at /data; it carries an ext4 file system (label \"X\", at byte 1080)"
        );
        assert_eq!(
            refusal.remedy(),
            "to destroy what is on it, say so: --allow-overwrite=/dev/sdb"
        );
        assert!(refusal.to_string().ends_with(&refusal.found()));
    }

    #[test]
    fn ordinary_files_and_missing_ones_may_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "data").unwrap();
        assert_eq!(check_writable(&file, &[]).unwrap(), []);
        assert_eq!(check_writable(&dir.path().join("new"), &[]).unwrap(), []);
        assert_eq!(check_writable(dir.path(), &[]).unwrap(), []);
        assert_eq!(check_writable(Path::new("/dev/null"), &[]).unwrap(), []);
    }

    #[test]
    fn consent_is_to_the_very_target() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other, link) = (
            dir.path().join("one"),
            dir.path().join("other"),
            dir.path().join("link"),
        );
        std::fs::write(&one, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let facts = PathFacts::of(&one).unwrap();
        assert!(same_target(&facts, &one) && same_target(&facts, &link));
        assert!(!same_target(&facts, &other) && !same_target(&facts, dir.path()));
        assert!(!same_target(&facts, &dir.path().join("gone")));
    }
}
