//! Histories that cannot be written, because of their file system or the user: they can be read all the same.

use super::{Place, StoreError, schema};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why nothing can be written there; `None` where the reason is another one.
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

/// What SQLite needs beside the file for one who only reads, and a little more.
const NEEDED_BYTES: u64 = 64 << 10;

/// Whether its file system has no room left.
pub(super) fn is_full(path: &Path) -> bool {
    let facts = rustix::fs::statvfs(path);
    // File systems without an end have no blocks.
    facts.is_ok_and(|facts| facts.f_blocks > 0 && facts.f_bavail * facts.f_frsize < NEEDED_BYTES)
}

/// Opens a history that SQLite could not open the usual way, which takes writing beside it even to read.
pub(super) fn open(place: &Place, error: &rusqlite::Error) -> Result<Connection, StoreError> {
    let path = &place.path;
    let opened = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => alone(path),
        Some(ErrorCode::SystemIoFailure) if is_full(path) => alone(path),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) if reason(path).is_some() => {
            if has_log(path) {
                return Err(StoreError::Unfinished(path.clone()));
            }
            frozen(path)
        }
        _ => return Err(StoreError::sqlite(path, error)),
    };
    opened.map_err(|error| StoreError::sqlite(path, &error))
}

/// With a lock of the whole file, SQLite keeps in memory what programs otherwise share in a file.
fn alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = super::open::connect(path, OpenFlags::empty())?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    schema::version(&connection)?;
    Ok(connection)
}

/// As a file that nobody changes.
fn frozen(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path), flags)?;
    schema::version(&connection)?;
    Ok(connection)
}

/// Whether the write-ahead log holds what is not yet in the file.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(PathBuf::from(log)).is_ok_and(|facts| facts.len() > 0)
}

fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            // Writing to a string does not fail.
            byte => drop(write!(uri, "%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_a_uri() {
        let path = Path::new("/a b/50%?x#/h.db");
        assert_eq!(uri(path), "file:/a%20b/50%25%3fx%23/h.db?immutable=1");
    }

    #[test]
    fn a_place_that_can_be_written_has_no_reason() {
        let directory = std::env::temp_dir();
        assert!(reason(&directory.join("iosonde-none.db")).is_none());
        let below_none = reason(&directory.join("iosonde-none/h.db")).unwrap();
        assert_eq!(below_none.kind(), io::ErrorKind::NotFound);
    }
}
