//! Reasons why a device or target is not written, as data.

use super::{DeviceVolume, SystemFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a device or target is not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteRefusal {
    /// Data would be lost, or a user of the target would break.
    Obstacles {
        /// The obstacles, at least one.
        obstacles: Vec<WriteObstacle>,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// The target could not be read, so it is unknown whether data would be lost.
    UnreadableContents {
        /// The error of the system.
        failure: SystemFailure,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// Consent was given for another disk.
    OtherDisk {
        /// Difference to the disk of the consent.
        change: IdentityChange,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// A study is resumed on another disk than that of its consent.
    ResumedOnOtherDisk {
        /// Difference to the disk of the consent.
        change: IdentityChange,
        /// The study, such as `sweep`.
        study: String,
    },
    /// A Ceph image is in use, or carries data.
    ImageInUse {
        /// The image as `rbd` names it: `pool/image`.
        image: String,
        /// Other users of the image.
        users: Vec<ImageUser>,
        /// Data on the image.
        contents: Vec<ImageContent>,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// An object of this name already exists.
    ObjectExists {
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// The name refers to another device than at its check.
    DeviceRenamed,
    /// The job would overwrite a target without consent.
    NoConsent {
        /// `rw` of the job.
        rw: String,
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// The agent in a pod refuses to write the block device of a volume.
    PodDevice {
        /// Data or use found on the device, as the agent describes it.
        found: String,
        /// The volume of the device.
        volume: DeviceVolume,
        /// Argument of `--allow-overwrite` that gives consent. `None`: consent was given, and only
        /// use of the device is refused.
        consent_name: Option<String>,
    },
    /// The user refused that the pod of the target runs as root.
    RootPod {
        /// Why it would run as root.
        reason: String,
    },
}

/// Another user of a Ceph image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageUser {
    /// A client that has the image open for writing.
    Client {
        /// Address of the client.
        address: String,
    },
    /// A lock set by a user.
    Lock {
        /// Owner, e.g. `client.4123`.
        client: String,
        /// Name of the lock.
        id: String,
    },
}

/// Data on a Ceph image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageContent {
    /// The image carries a signature, such as that of a file system.
    Signature {
        /// The data in words with an article.
        description: String,
    },
    /// The image could not be read, so it is unknown whether it carries data.
    Unreadable {
        /// The error.
        error: String,
    },
}

/// An obstacle to writing to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteObstacle {
    /// A file system on the target is mounted.
    Mounted {
        /// The mounted device: the target, a partition of it, or a device made of it.
        device: String,
        /// Mount point.
        mount_point: String,
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
    /// A program or the kernel holds the target exclusively.
    Busy,
    /// The target carries data.
    Carries {
        /// The data in words with an article, such as a file system.
        content: String,
    },
    /// The target is a character device, which may be memory, a flash chip or I/O ports.
    CharacterDevice {
        /// Kernel name, e.g. `mem`.
        name: Option<String>,
    },
    /// The kernel marks the target as read-only.
    ReadOnly,
}

/// Reason why a device is not, or may not be, the recorded disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdentityChange {
    /// The world-wide name differs.
    Wwid {
        /// The recorded name.
        was: String,
        /// The name now.
        now: Option<String>,
    },
    /// The serial number differs.
    Serial {
        /// The recorded number.
        was: String,
        /// The number now.
        now: Option<String>,
    },
    /// The size differs.
    Size {
        /// Recorded size in bytes.
        was: u64,
        /// Size in bytes now.
        now: u64,
    },
    /// The start of the partition differs.
    Start,
    /// The disk was detached, and a disk was attached in its place.
    Replaced,
    /// The machine was rebooted, and the disk has neither a serial number nor a world-wide name.
    Rebooted,
    /// The target was missing or no block device when it was recorded.
    Unknown,
}
