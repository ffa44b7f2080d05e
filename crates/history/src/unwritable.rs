//! Opens histories that cannot be written, because of permissions or the file system, for reading.

use super::connect::connect;
use super::write_obstacle::{is_full, reason};
use super::{HistoryPath, StoreError, schema};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Opens a history after a usual open failed: SQLite writes files beside the history even to read.
pub(super) fn open_unwritable(
    place: &HistoryPath,
    error: &rusqlite::Error,
) -> Result<Connection, StoreError> {
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

/// Locks the whole file, so that SQLite keeps its index of the log in memory, not in a file.
fn alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::empty())?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    schema::version(&connection)?;
    Ok(connection)
}

/// Opens the file as immutable: SQLite then takes no locks and writes nothing.
fn frozen(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable_database_uri(path), flags)?;
    schema::version(&connection)?;
    Ok(connection)
}

/// Whether the write-ahead log holds data, which may not be in the file yet.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(PathBuf::from(log)).is_ok_and(|facts| facts.len() > 0)
}

fn immutable_database_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            // Writing to a string never fails.
            byte => drop(write!(uri, "%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_escapes_special_characters_of_path() {
        let path = Path::new("/a b/50%?x#/h.db");
        assert_eq!(
            immutable_database_uri(path),
            "file:/a%20b/50%25%3fx%23/h.db?immutable=1"
        );
    }
}
