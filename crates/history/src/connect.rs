//! Connections to SQLite files, and checks of what they hold.

use super::{StoreError, schema};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Time that a writer waits for others.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout of the history at [`SHORT_TIMEOUT_PATH`].
#[cfg(test)]
pub(super) const SHORT_BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// Path of a history whose writers time out soon.
#[cfg(test)]
pub(super) static SHORT_TIMEOUT_PATH: std::sync::OnceLock<std::path::PathBuf> =
    std::sync::OnceLock::new();

#[cfg(test)]
thread_local! {
    /// Whether file locks have no effect, as between hosts on some file systems.
    pub(super) static WITHOUT_LOCKS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

pub(super) fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    #[cfg(test)]
    let connection = match WITHOUT_LOCKS.get() {
        true => Connection::open_with_flags_and_vfs(path, flags, "unix-none")?,
        false => Connection::open_with_flags(path, flags)?,
    };
    #[cfg(not(test))]
    let connection = Connection::open_with_flags(path, flags)?;
    #[cfg(test)]
    let timeout = match SHORT_TIMEOUT_PATH.get() {
        Some(short) if short == path => SHORT_BUSY_TIMEOUT,
        _ => BUSY_TIMEOUT,
    };
    #[cfg(not(test))]
    let timeout = BUSY_TIMEOUT;
    connection.busy_timeout(timeout)?;
    Ok(connection)
}

/// Rejects SQLite files of other programs, and histories of newer versions.
pub(super) fn refuse_other_databases(
    connection: &Connection,
    path: &Path,
) -> Result<(), StoreError> {
    let (id, found, is_empty) =
        identity(connection).map_err(|error| StoreError::sqlite(path, &error))?;
    if id != schema::APPLICATION_ID && !(id == 0 && found == 0 && is_empty) {
        return Err(StoreError::NotAStore(path.to_owned()));
    }
    if found > schema::VERSION {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: schema::VERSION,
        });
    }
    Ok(())
}

/// Returns application id, version, and whether there are no tables. One transaction reads all
/// three, because another program may be creating the tables.
fn identity(connection: &Connection) -> rusqlite::Result<(i64, i64, bool)> {
    let transaction = connection.unchecked_transaction()?;
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    // Reading the tables first starts the transaction in the file.
    let count = "SELECT count(*) = 0 FROM sqlite_schema";
    let is_empty = transaction.query_row(count, [], |row| row.get(0))?;
    Ok((pragma("application_id")?, pragma("user_version")?, is_empty))
}

/// Reads and checks the whole file.
pub(super) fn quick_check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let first = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match first {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(StoreError::Damaged {
            path: path.to_owned(),
            problem: found.lines().last().unwrap_or_default().to_owned(),
        }),
        Err(error) => Err(StoreError::sqlite(path, &error)),
    }
}
