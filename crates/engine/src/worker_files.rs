//! The files of a worker, their sizes and the regions that it uses.

use iosonde_workload::{FileLayout, FileRegion};
use std::path::PathBuf;

/// Type of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file, or a missing one. Only regular files are created, extended and removed.
    Regular,
    /// A block device.
    BlockDevice,
    /// A character device or a pipe, which has no size.
    Stream,
}

/// One file as one worker uses it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileUse {
    /// Path as it will be opened.
    pub path: PathBuf,
    /// Type of the file.
    pub kind: FileKind,
    /// Current size in bytes. `None` if the file does not exist.
    pub size_now: Option<u64>,
    /// Required size in bytes.
    pub size_needed: u64,
    /// Region in use.
    pub region: FileRegion,
}

/// All files of one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerFiles {
    /// Files, in the order in which I/Os number them.
    pub files: Vec<FileUse>,
    /// Bytes of one pass: `size` if given.
    pub size_bytes: u64,
    /// `io_size` in bytes, if given.
    pub io_bytes: Option<u64>,
}

impl WorkerFiles {
    /// No files, for a job whose trace has not been read yet.
    pub const NONE: WorkerFiles = WorkerFiles {
        files: Vec::new(),
        size_bytes: 0,
        io_bytes: None,
    };

    /// File layout, as the workload needs it.
    pub fn layout(&self) -> FileLayout {
        FileLayout {
            files: self.files.iter().map(|file| file.region).collect(),
            size_bytes: self.size_bytes,
            io_bytes: self.io_bytes,
        }
    }
}
