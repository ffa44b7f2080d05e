//! Reasons why an image of Ceph cannot be mapped through the kernel (`--map`), as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why an image of Ceph cannot be mapped, formatted or mounted, or why this is not undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MapProblem {
    /// The user is not root.
    NotRoot,
    /// The kernel has no rbd module.
    NoKernelModule {
        /// Ending of `modprobe rbd`.
        ending: ProgramEnding,
        /// Its message, or empty.
        said: String,
    },
    /// A program is not installed.
    NoProgram {
        /// Name of the program.
        program: String,
        /// Package that contains it on Debian and Ubuntu.
        package: String,
    },
    /// The image is mapped on this machine already.
    AlreadyMapped {
        /// The device, e.g. `/dev/rbd0`.
        device: String,
    },
    /// The target is a snapshot, which is read-only.
    Snapshot,
    /// The image holds data in an unknown format.
    UnknownContents {
        /// Argument of `--allow-overwrite` that gives consent.
        consent_name: String,
    },
    /// `rbd map` succeeded, but the kernel maps no device to the image.
    NoDevice {
        /// Output of `rbd map`.
        said: String,
    },
    /// A program that maps, formats or mounts the image failed.
    StepFailed {
        /// The command line.
        command: String,
        /// Ending of the program.
        ending: ProgramEnding,
        /// Its message, or empty.
        said: String,
    },
    /// A program that unmounts or unmaps the image failed.
    NotUndone {
        /// The command line.
        command: String,
        /// Ending of the program.
        ending: ProgramEnding,
        /// Its message, or empty.
        said: String,
        /// Commands that undo the rest, in their order.
        remaining: Vec<String>,
    },
}

/// Unsuccessful ending of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnding {
    /// The program could not be started.
    NotStarted {
        /// errno of the start.
        errno: i32,
    },
    /// The program exited with this status.
    Status(i32),
    /// A signal with this number ended the program.
    Signal(i32),
    /// The program did not end in time.
    TimedOut {
        /// The limit in seconds.
        limit_s: u64,
    },
}
