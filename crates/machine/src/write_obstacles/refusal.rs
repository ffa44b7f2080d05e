//! Obstacles to writing to a target, with their texts and remedies.

use crate::consent::Agreement;
use crate::disk_identity::{IdentityChange, name_by_id};
use crate::identify::PathFacts;
use crate::proc_root::System;
use crate::signature::Signature;
use iosonde_result::run_error::{WriteObstacle, WriteRefusal};
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
}

impl From<&Obstacle> for WriteObstacle {
    fn from(found: &Obstacle) -> WriteObstacle {
        match found {
            Obstacle::Mounted {
                device,
                mount_point,
            } => WriteObstacle::Mounted {
                device: device.clone(),
                mount_point: mount_point.display().to_string(),
            },
            Obstacle::Swap { device } => WriteObstacle::Swap {
                device: device.clone(),
            },
            Obstacle::Held { device, holder } => WriteObstacle::Held {
                device: device.clone(),
                holder: holder.clone(),
            },
            Obstacle::Busy => WriteObstacle::Busy,
            Obstacle::Carries(signature) => WriteObstacle::Carries {
                content: signature.to_string(),
            },
            Obstacle::CharacterDevice { name } => {
                WriteObstacle::CharacterDevice { name: name.clone() }
            }
            Obstacle::ReadOnly => WriteObstacle::ReadOnly,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WriteObstacle::from(self), f)
    }
}

/// The reason why a target is not written.
#[derive(Debug)]
pub enum Refusal {
    /// Data would be lost or a user of the target would break.
    Obstacles {
        /// The target as given.
        path: PathBuf,
        /// The obstacles found, at least one.
        obstacles: Vec<Obstacle>,
    },
    /// The target could not be read, so it is unknown whether data would be lost.
    Unreadable {
        /// The target as given.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Consent was given for another disk.
    OtherDisk {
        /// The target as given.
        path: PathBuf,
        /// The difference to the disk that consent was given for.
        change: IdentityChange,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Obstacles { path, .. }
        | Self::Unreadable { path, .. }
        | Self::OtherDisk { path, .. }) = self;
        write!(f, "refusing to write {}: {}", path.display(), self.cause())
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Obstacles { .. } | Self::OtherDisk { .. } => None,
        }
    }
}

impl Refusal {
    /// The reason as data, without the target's name.
    pub fn cause(&self) -> WriteRefusal {
        let consent_name = |path: &Path| lasting_name(path).display().to_string();
        match self {
            Self::Obstacles { path, obstacles } => WriteRefusal::Obstacles {
                obstacles: obstacles.iter().map(WriteObstacle::from).collect(),
                consent_name: consent_name(path),
            },
            Self::Unreadable { path, source } => WriteRefusal::UnreadableContents {
                failure: source.into(),
                consent_name: consent_name(path),
            },
            Self::OtherDisk { path, change } => WriteRefusal::OtherDisk {
                change: change.clone(),
                consent_name: consent_name(path),
            },
        }
    }

    /// The finding, without the target's name.
    pub fn found(&self) -> String {
        self.cause().to_string()
    }

    /// The remedy for the user. It never proposes consent to write to a target in use.
    pub fn remedy(&self) -> String {
        self.cause().remedy()
    }
}

/// The lasting path of a block device, as in `/dev/disk/by-id`; other paths are unchanged.
pub fn lasting_name(path: &Path) -> PathBuf {
    let number = PathFacts::query(path).ok().and_then(|facts| facts.is);
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
    fn refusal_names_device_obstacles_and_consent() {
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
            "refusing to write /dev/sdb: /dev/sdb1 is mounted at /data; the device carries an ext4 \
             file system (label \"X\", at byte 1080)"
        );
        // Consent to write to a target in use is not proposed.
        let remedy = refusal.remedy();
        assert_eq!(
            remedy,
            "if the file system is not needed, unmount it: umount /data"
        );
        assert!(refusal.to_string().ends_with(&refusal.found()));
        let refusal = Refusal::Obstacles {
            path: "/dev/sdb".into(),
            obstacles: vec![Obstacle::Carries(signature())],
        };
        assert_eq!(
            refusal.remedy(),
            "to overwrite its data, use --allow-overwrite=/dev/sdb"
        );
    }

    #[test]
    fn overwrite_consent_excludes_targets_in_use() {
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
            let refusal = Refusal::Obstacles {
                path: "/dev/sdb".into(),
                obstacles: vec![used],
            };
            let remedy = refusal.remedy();
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
