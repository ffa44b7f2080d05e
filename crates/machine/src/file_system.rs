//! Properties of the file system of a path, from statfs(2) and statvfs(2).

use iosonde_result::host::FileSystemUsage;
use std::io;
use std::path::{Path, PathBuf};

/// Unit of `st_blocks`. It does not depend on the block size of the file system.
pub(super) const STAT_BLOCK_BYTES: u64 = 512;
/// Magic numbers of memory file systems, from statfs(2).
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// Splits a path into its existing part and its missing part.
pub(super) fn nearest_existing(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let absolute = std::path::absolute(path)?;
    for existing in absolute.ancestors() {
        match std::fs::metadata(existing) {
            Ok(_) => {
                let missing = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
                return Ok((existing.to_owned(), missing.to_owned()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Whether a path is on a memory file system.
pub fn is_memory(path: &Path) -> bool {
    matches!(magic(path), Some(TMPFS | RAMFS))
}

/// Whether the file system of a path has no size limit: ramfs grows until memory is full.
pub fn is_boundless(path: &Path) -> bool {
    magic(path) == Some(RAMFS)
}

fn magic(path: &Path) -> Option<u64> {
    let (existing, _) = nearest_existing(path).ok()?;
    Some(rustix::fs::statfs(&existing).ok()?.f_type as u64)
}

/// The space at a path, in the form of results.
pub(super) fn file_system_usage(path: &Path) -> io::Result<FileSystemUsage> {
    let (existing, _) = nearest_existing(path)?;
    let stat = rustix::fs::statvfs(&existing)?;
    if is_boundless(&existing) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(FileSystemUsage {
        total_bytes: bytes(stat.f_blocks),
        used_bytes: Some(bytes(stat.f_blocks.saturating_sub(stat.f_bfree))),
        available_bytes: Some(bytes(stat.f_bavail)),
    })
}
