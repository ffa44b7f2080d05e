//! [`PathInfo`]: what an agent finds at a path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Properties of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathInfo {
    /// A writable directory.
    Directory {
        /// Bytes available in its file system.
        free_bytes: u64,
    },
    /// A file or a block device.
    Existing {
        /// Length in bytes.
        bytes: u64,
        /// Whether it is a block device.
        device: bool,
        /// Data that a block device carries, in words with an article, such as a file system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carries: Option<String>,
        /// Current use in words: mounted, part of another device, or opened with `O_EXCL`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<String>,
    },
}
