//! Faults of a shared file: the broken promise with its wrong byte, or the failed step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Promise of a file system to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileConsistency {
    /// A file that is opened after its writer has closed it has the written data.
    CloseToOpen,
    /// A read after a completed write returns the written data. Files stay open, with O_DIRECT.
    Immediate,
}

/// Operation of a step that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedFileAction {
    /// Creating the file.
    Create,
    /// Opening the file.
    Open,
    /// Writing to the file, or fsync(2).
    Write,
    /// Reading from the file.
    Read,
    /// Taking or releasing a lock.
    Lock,
    /// Removing the file.
    Remove,
}

/// A byte that differs from what a pod wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrongByte {
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Number of the pod that wrote the byte last.
    pub writer: u16,
    /// Number of that write.
    pub generation: u16,
    /// Byte that was written.
    pub expected: u8,
    /// Byte that was read. `None`: the file ends before it.
    pub found: Option<u8>,
    /// Origin of the byte that was read.
    pub origin: WrongByteOrigin,
}

/// Origin of a wrong byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrongByteOrigin {
    /// The file ends before the byte.
    EndOfFile,
    /// Zeros, as before the first write.
    Unwritten,
    /// An earlier write to this place.
    EarlierWrite {
        /// Number of the pod that wrote it.
        writer: u16,
        /// Number of that write.
        generation: u16,
    },
    /// No write of a pod to this place.
    Unknown,
}
