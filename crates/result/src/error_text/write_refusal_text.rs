//! Words of a [`WriteRefusal`].

use crate::run_error::{IdentityChange, ImageContent, ImageUser, WriteObstacle, WriteRefusal};
use iosonde_job::quote_shell_word;
use std::fmt;
use std::path::Path;

/// Text for consent that was given for another disk.
fn describe_other_disk(change: &IdentityChange) -> String {
    format!("this may not be the disk for which --allow-overwrite was given: {change}")
}

impl fmt::Display for WriteRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteRefusal::Obstacles { obstacles, .. } => {
                let obstacles: Vec<String> =
                    obstacles.iter().map(WriteObstacle::to_string).collect();
                formatter.write_str(&obstacles.join("; "))
            }
            WriteRefusal::UnreadableContents { failure, .. } => write!(
                formatter,
                "the device cannot be read to check whether it carries data: {failure}"
            ),
            WriteRefusal::OtherDisk { change, .. }
            | WriteRefusal::ResumedOnOtherDisk { change, .. } => {
                formatter.write_str(&describe_other_disk(change))
            }
            WriteRefusal::ImageInUse {
                users, contents, ..
            } => {
                let users = users.iter().map(ImageUser::to_string);
                let found: Vec<String> = users
                    .chain(contents.iter().map(ImageContent::to_string))
                    .collect();
                formatter.write_str(&found.join("; "))
            }
            WriteRefusal::ObjectExists { .. } => {
                formatter.write_str("an object of this name already exists")
            }
            WriteRefusal::DeviceRenamed => {
                formatter.write_str("the name refers to another device than when it was checked")
            }
            WriteRefusal::NoConsent { rw, .. } => {
                write!(formatter, "{rw} would overwrite its data")
            }
            WriteRefusal::PodDevice { found, .. } => formatter.write_str(found),
            WriteRefusal::RootPod { reason } => {
                write!(formatter, "its pod would run as root: {reason}")
            }
        }
    }
}

impl WriteRefusal {
    /// Returns the action to take. It never proposes consent to write to a target in use.
    pub fn remedy(&self) -> String {
        match self {
            WriteRefusal::Obstacles {
                obstacles,
                consent_name,
            } => {
                let first = obstacles.iter().find(|found| found.is_below_root());
                let mut each = first.into_iter().chain(obstacles);
                each.find_map(WriteObstacle::remedy)
                    .unwrap_or_else(|| propose_consent(consent_name))
            }
            WriteRefusal::UnreadableContents { consent_name, .. } => propose_consent(consent_name),
            WriteRefusal::OtherDisk { consent_name, .. } => format!(
                "make sure that this is the right disk, then start again with {}",
                consent_option(consent_name)
            ),
            WriteRefusal::ResumedOnOtherDisk { study, .. } => format!(
                "check that this is the right disk, then start the {study} without --resume"
            ),
            WriteRefusal::ImageInUse {
                image,
                users,
                consent_name,
                ..
            } => match users.is_empty() {
                true => format!(
                    "{} (in a job: allow_mounted_write=1)",
                    propose_consent(consent_name)
                ),
                false => format!(
                    "stop the clients of the image: `rbd status {image}` lists them, `rbd lock ls \
                     {image}` lists locks; a killed client is listed for 30 s",
                    image = quote_shell_word(image)
                ),
            },
            WriteRefusal::ObjectExists { consent_name } => format!(
                "use another name, or consent to overwriting it: {} (in a job: \
                 allow_mounted_write=1)",
                consent_option(consent_name)
            ),
            WriteRefusal::DeviceRenamed => {
                "find the program that renames devices, then run the job again".to_owned()
            }
            WriteRefusal::NoConsent { consent_name, .. } => format!(
                "name a directory, or permit overwriting its data with --allow-overwrite {}",
                quote_shell_word(consent_name)
            ),
            WriteRefusal::PodDevice {
                volume,
                consent_name,
                ..
            } => match consent_name {
                None => volume.use_remedy().to_owned(),
                Some(consent_name) => volume.data_remedy(consent_name),
            },
            WriteRefusal::RootPod { .. } => {
                "answer y, permit root with --run-as 0, or name another user with --run-as UID"
                    .to_owned()
            }
        }
    }
}

fn propose_consent(consent_name: &str) -> String {
    let option = consent_option(consent_name);
    format!("to overwrite its data, use {option}")
}

/// The option that consents to overwrite a target, as a word of a shell.
pub(super) fn consent_option(consent_name: &str) -> String {
    quote_shell_word(&format!("--allow-overwrite={consent_name}"))
}

impl fmt::Display for ImageUser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageUser::Client { address } => write!(
                formatter,
                "the client at {address} has the image open for writing"
            ),
            ImageUser::Lock { client, id } => {
                write!(formatter, "{client} holds the lock {id:?} on the image")
            }
        }
    }
}

impl fmt::Display for ImageContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageContent::Signature { description } => {
                write!(formatter, "the image carries {description}")
            }
            ImageContent::Unreadable { error } => write!(
                formatter,
                "the image cannot be read to check whether it carries data: {error}"
            ),
        }
    }
}

impl WriteObstacle {
    /// Returns whether the running system is on the target.
    fn is_below_root(&self) -> bool {
        matches!(
            self,
            WriteObstacle::Mounted { mount_point, .. } if Path::new(mount_point) == Path::new("/")
        )
    }

    /// Returns the action for an obstacle that consent should not override.
    fn remedy(&self) -> Option<String> {
        match self {
            WriteObstacle::Carries { .. } | WriteObstacle::CharacterDevice { .. } => None,
            WriteObstacle::ReadOnly => Some("choose a writable target".to_owned()),
            found if found.is_below_root() => {
                Some("choose another device: the running system is on this one".to_owned())
            }
            WriteObstacle::Mounted { mount_point, .. } => Some(format!(
                "if the file system is not needed, unmount it: umount {}",
                quote_shell_word(mount_point)
            )),
            WriteObstacle::Swap { device } => Some(format!(
                "if the swap space is not needed, disable it: swapoff {device}"
            )),
            WriteObstacle::Held { holder, .. } => Some(format!(
                "if {holder} is not needed, remove it; `lsblk` shows the devices built on each \
                 device"
            )),
            WriteObstacle::Busy => Some(
                "stop the programs that use the device: `fuser -v DEVICE` lists them; `lsblk` \
                 shows the devices built on it"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for WriteObstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteObstacle::Mounted {
                device,
                mount_point,
            } => write!(formatter, "{device} is mounted at {mount_point}"),
            WriteObstacle::Swap { device } => {
                write!(formatter, "{device} is in use as swap space")
            }
            WriteObstacle::Held { device, holder } => {
                write!(formatter, "{device} is part of {holder}")
            }
            WriteObstacle::Busy => {
                formatter.write_str("another program or the kernel holds the device exclusively")
            }
            WriteObstacle::Carries { content } => {
                write!(formatter, "the device carries {content}")
            }
            WriteObstacle::CharacterDevice { name: Some(name) } => write!(
                formatter,
                "the target is the character device {name:?}, not a disk"
            ),
            WriteObstacle::CharacterDevice { name: None } => {
                formatter.write_str("the target is a character device, not a disk")
            }
            WriteObstacle::ReadOnly => formatter.write_str("the device is read-only"),
        }
    }
}

impl fmt::Display for IdentityChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |now: &Option<String>| match now {
            Some(now) => format!("{now:?}"),
            None => "none".to_owned(),
        };
        match self {
            IdentityChange::Wwid { was, now } => write!(
                formatter,
                "its world-wide name was {was:?}, now {}",
                value(now)
            ),
            IdentityChange::Serial { was, now } => write!(
                formatter,
                "its serial number was {was:?}, now {}",
                value(now)
            ),
            IdentityChange::Size { was, now } => {
                write!(formatter, "its size was {was} bytes, now {now}")
            }
            IdentityChange::Start => {
                formatter.write_str("the partition starts at another offset of its disk")
            }
            IdentityChange::Replaced => {
                formatter.write_str("the disk was detached, and a disk was attached since then")
            }
            IdentityChange::Rebooted => formatter.write_str(
                "the machine was rebooted since then, and the device has neither a serial number \
                 nor a world-wide name that identifies it",
            ),
            IdentityChange::Unknown => {
                formatter.write_str("the device did not exist, or was not recorded")
            }
        }
    }
}
