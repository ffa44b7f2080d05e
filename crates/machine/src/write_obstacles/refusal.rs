//! Obstacles to writing to a target, with their texts and remedies.

use crate::consent::{Agreement, CONSENT_OPTION};
use crate::disk_identity::{IdentityChange, name_by_id};
use crate::identify::PathFacts;
use crate::proc_root::System;
use crate::signature::Signature;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An obstacle to writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A file system on the target is mounted.
    Mounted {
        /// The mounted device: the target, a partition of it, or a device made of it.
        device: String,
        /// Mount point.
        mount_point: PathBuf,
    },
    /// The target is swap space in use.
    Swap {
        /// The device or file used as swap space.
        device: String,
    },
    /// Another device is made of the target.
    Held {
        /// The device, a partition of it, or the file.
        device: String,
        /// The other device, e.g. `dm-0`.
        holder: String,
    },
    /// A program or the kernel holds the target exclusively (opening it with `O_EXCL` fails).
    Busy,
    /// The target carries data.
    Carries(Signature),
    /// The target is a character device, which may be memory, a flash chip or I/O ports.
    CharacterDevice {
        /// Kernel name, e.g. `mem`.
        name: Option<String>,
    },
    /// The kernel marks the target as read-only.
    ReadOnly,
}

impl Obstacle {
    /// Whether the target is in use now.
    pub fn is_use(&self) -> bool {
        match self {
            Self::Mounted { .. } | Self::Swap { .. } | Self::Held { .. } | Self::Busy => true,
            Self::Carries(_) | Self::CharacterDevice { .. } | Self::ReadOnly => false,
        }
    }

    /// Whether the running system is on the target.
    fn is_below_root(&self) -> bool {
        matches!(self, Self::Mounted { mount_point, .. } if mount_point == Path::new("/"))
    }

    /// The scope of consent that overrides the obstacle; `None` if no consent does.
    pub(super) fn needs(&self) -> Option<Agreement> {
        match self {
            Self::ReadOnly => None,
            Self::Carries(_) | Self::CharacterDevice { .. } => Some(Agreement::Overwrite),
            found if found.is_below_root() => Some(Agreement::Mounted),
            Self::Mounted { .. } | Self::Swap { .. } | Self::Held { .. } | Self::Busy => {
                Some(Agreement::InUse)
            }
        }
    }

    /// The remedy for an obstacle that consent should not override.
    fn remedy(&self) -> Option<String> {
        match self {
            Self::Carries(_) | Self::CharacterDevice { .. } => None,
            Self::ReadOnly => Some("name a target that can be written".to_owned()),
            found if found.is_below_root() => {
                Some("the running system is on this device: name another one".to_owned())
            }
            Self::Mounted { mount_point, .. } => Some(format!(
                "make sure that nobody needs it, then unmount it: umount {}",
                mount_point.display()
            )),
            Self::Swap { device } => Some(format!(
                "make sure that nobody needs it, then stop using it: swapoff {device}"
            )),
            Self::Held { holder, .. } => Some(format!(
                "make sure that nobody needs {holder}, then remove it; lsblk shows what is made of which device"
            )),
            Self::Busy => Some(
                "end what uses it: `fuser -v DEVICE` lists programs, and lsblk what is made of it"
                    .to_owned(),
            ),
        }
    }
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
            Self::CharacterDevice { name: Some(name) } => {
                write!(f, "it is the character device {name:?}, not a disk")
            }
            Self::CharacterDevice { name: None } => {
                write!(f, "it is a character device, not a disk")
            }
            Self::ReadOnly => write!(f, "it is read-only"),
        }
    }
}

/// The reason why a target is not written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Data would be lost or a user of the target would break.
    #[error("refusing to write {}: {}", .path.display(), sentence(.obstacles))]
    Obstacles {
        /// The target as given.
        path: PathBuf,
        /// The obstacles found, at least one.
        obstacles: Vec<Obstacle>,
    },
    /// The target could not be read, so it is unknown whether data would be lost.
    #[error("refusing to write {}: it cannot be read to see whether it carries data: {source}", .path.display())]
    Unreadable {
        /// The target as given.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Consent was given for another disk.
    #[error("refusing to write {}: {}", .path.display(), other_disk(.change))]
    OtherDisk {
        /// The target as given.
        path: PathBuf,
        /// The difference to the disk that consent was given for.
        change: IdentityChange,
    },
}

/// The text for consent that was given for another disk.
pub fn other_disk(change: &IdentityChange) -> String {
    format!("this may not be the disk that {CONSENT_OPTION} was given for: {change}")
}

impl Refusal {
    /// The finding, without the target's name.
    pub fn found(&self) -> String {
        match self {
            Self::Obstacles { obstacles, .. } => sentence(obstacles),
            Self::Unreadable { source, .. } => {
                format!("it cannot be read to see whether it carries data: {source}")
            }
            Self::OtherDisk { change, .. } => other_disk(change),
        }
    }

    /// The remedy for the user. It never proposes consent to write to a target in use.
    pub fn remedy(&self) -> String {
        let path = match self {
            Self::Obstacles { path, obstacles } => {
                let is_below_root = |found: &&Obstacle| found.is_below_root();
                let first = obstacles.iter().find(is_below_root);
                let mut remedies = first.into_iter().chain(obstacles);
                if let Some(remedy) = remedies.find_map(Obstacle::remedy) {
                    return remedy;
                }
                path
            }
            Self::Unreadable { path, .. } => path,
            Self::OtherDisk { path, .. } => {
                return format!(
                    "make sure that it is the right disk, then start anew with {}",
                    consent_to(path)
                );
            }
        };
        format!("to destroy what is on it, say so: {}", consent_to(path))
    }
}

/// The option that consents to overwrite a target.
fn consent_to(path: &Path) -> String {
    format!("{CONSENT_OPTION}={}", lasting_name(path).display())
}

/// The lasting path of a block device, as in `/dev/disk/by-id`; other paths are unchanged.
pub fn lasting_name(path: &Path) -> PathBuf {
    let number = PathFacts::of(path).ok().and_then(|facts| facts.is);
    let by_id = number.and_then(|number| name_by_id(&System::live(), number));
    by_id.unwrap_or_else(|| path.to_owned())
}

/// Joins several obstacles to one sentence.
pub(super) fn sentence(obstacles: &[Obstacle]) -> String {
    obstacles
        .iter()
        .map(Obstacle::to_string)
        .collect::<Vec<_>>()
        .join("; ")
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
        // Consent to write to a target in use is not proposed.
        let remedy = refusal.remedy();
        assert_eq!(
            remedy,
            "make sure that nobody needs it, then unmount it: umount /data"
        );
        assert!(refusal.to_string().ends_with(&refusal.found()));
        let refusal = Refusal::Obstacles {
            path: "/dev/sdb".into(),
            obstacles: vec![Obstacle::Carries(signature())],
        };
        assert_eq!(
            refusal.remedy(),
            "to destroy what is on it, say so: --allow-overwrite=/dev/sdb"
        );
    }

    #[test]
    fn consent_to_overwrite_does_not_reach_what_is_in_use() {
        let mounted = |mount_point: &str| Obstacle::Mounted {
            device: "/dev/sdb1".into(),
            mount_point: mount_point.into(),
        };
        let held = Obstacle::Held {
            device: "/dev/sdb".into(),
            holder: "dm-0".into(),
        };
        let swap = Obstacle::Swap {
            device: "/dev/sdb".into(),
        };
        for used in [mounted("/data"), held, swap, Obstacle::Busy] {
            assert_eq!(used.needs(), Some(Agreement::InUse), "{used}");
            let remedy = used.remedy().unwrap();
            assert!(!remedy.contains("--allow"), "{remedy}");
        }
        // Only fio's own option overrides a mount at `/`.
        assert_eq!(mounted("/").needs(), Some(Agreement::Mounted));
        assert!(Agreement::Mounted > Agreement::InUse);
        let carries = Obstacle::Carries(signature());
        assert_eq!(carries.needs(), Some(Agreement::Overwrite));
        assert_eq!(Obstacle::ReadOnly.needs(), None);
    }
}
