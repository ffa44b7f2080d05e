//! [`StudyTarget`]: the file, device or pool that a study uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The target of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyTarget {
    /// The target as the user wrote it.
    pub name: String,
    /// The file or device that I/O goes to.
    pub path: String,
    /// The kind of target.
    pub kind: StudyTargetKind,
}

impl StudyTarget {
    /// End of the name of a neighbour's file, after the path of the working file.
    pub const NEIGHBOUR_SUFFIX: &'static str = ".neighbour";

    /// Paths or URIs that runs may access: none on this machine if the target is simulated.
    pub fn permitted(&self) -> Vec<String> {
        match self.kind {
            StudyTargetKind::Simulated { .. } => Vec::new(),
            _ if self.kind.is_ours() => vec![self.path.clone(), self.neighbour_path()],
            _ => vec![self.path.clone()],
        }
    }

    /// The file or objects of a neighbour, if it has its own.
    pub(crate) fn neighbour_path(&self) -> String {
        format!("{}{}", self.path, StudyTarget::NEIGHBOUR_SUFFIX)
    }
}

/// The kinds of target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyTargetKind {
    /// A directory: the probe creates a working file in it and removes the file.
    Directory {
        /// Bytes that may be written to its file system.
        free_bytes: u64,
    },
    /// A pool: the probe creates objects in it and removes them.
    Pool {
        /// Bytes that may be written to it.
        free_bytes: u64,
    },
    /// An existing file or block device, which holds the user's data.
    Existing {
        /// Length in bytes.
        bytes: u64,
        /// Whether it is a block device.
        device: bool,
        /// Whether its contents may be overwritten.
        consent: bool,
    },
    /// A simulated device, with its options.
    Simulated {
        /// `key=value,...`
        options: String,
    },
}

impl StudyTargetKind {
    /// Whether the probe creates and removes the file or objects that it measures.
    pub fn is_ours(&self) -> bool {
        matches!(
            self,
            StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. }
        )
    }

    /// Whether the working set may be written.
    pub fn is_writable(&self) -> bool {
        !matches!(self, StudyTargetKind::Existing { consent: false, .. })
    }
}
