//! Why a path cannot be written.

use std::io;
use std::path::Path;

/// Returns why the path cannot be written; `None`: the failure has another reason.
pub(super) fn reason(path: &Path) -> Option<io::Error> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let access = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
    let refused = access(directory).and_then(|()| match access(path) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        other => other,
    });
    refused.err().map(io::Error::from)
}

/// Space that SQLite needs beside the file to read it, and a margin.
const NEEDED_BYTES: u64 = 64 << 10;

/// Whether the file system of the path is full.
pub(super) fn is_full(path: &Path) -> bool {
    let facts = rustix::fs::statvfs(path);
    // File systems without a size limit report no blocks.
    facts.is_ok_and(|facts| facts.f_blocks > 0 && facts.f_bavail * facts.f_frsize < NEEDED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writable_path_has_no_reason() {
        let directory = std::env::temp_dir();
        assert!(reason(&directory.join("iosonde-none.db")).is_none());
        let below_none = reason(&directory.join("iosonde-none/h.db")).unwrap();
        assert_eq!(below_none.kind(), io::ErrorKind::NotFound);
    }
}
