//! Opening the history: what kind of file it is, and what is done about a damaged one.

use super::error::is_damage;
use super::{Place, Store, StoreError, aside, hosts, schema, unwritable};
use rusqlite::{Connection, OpenFlags};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits for others.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// A history that is larger is not read through before it is written to.
const CHECKED_BYTES: u64 = 64 << 20;
/// How every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A history to write to, and what became of a damaged one that was in its place.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) put_aside: Option<PathBuf>,
}

impl Store {
    /// Opens the history to write to it; makes it if there is none. A damaged one is put aside.
    pub(crate) fn open_or_make(place: &Place) -> Result<Opened, StoreError> {
        place.make_directory()?;
        let put_aside = match Store::open_to_write(place) {
            Ok(store) => {
                return Ok(Opened {
                    store,
                    put_aside: None,
                });
            }
            Err(StoreError::Damaged { .. }) => aside::put_aside(place, || {
                matches!(Store::open_to_write(place), Err(StoreError::Damaged { .. }))
            })?,
            Err(error) => return Err(error),
        };
        Ok(Opened {
            store: Store::open_to_write(place)?,
            put_aside,
        })
    }

    /// Opens a healthy history to write to it.
    pub(super) fn open_to_write(place: &Place) -> Result<Store, StoreError> {
        let path = &place.path;
        refuse_other_files(place)?;
        let wrong = |error: rusqlite::Error| StoreError::sqlite(path, &error);
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE).map_err(wrong)?;
        refuse_other_databases(&connection, path)?;
        if size(path) <= CHECKED_BYTES {
            quick_check(&connection, path)?;
        }
        // Where hosts share the file system, they share no memory, which the write-ahead log takes.
        let journal_mode = match place.shared {
            Some(_) => "DELETE",
            None => "WAL",
        };
        prepare(&connection, journal_mode).map_err(wrong)?;
        schema::migrate(&mut connection).map_err(wrong)?;
        Ok(Store {
            connection,
            place: place.clone(),
            is_merged: false,
        })
    }

    /// Opens a history once more that this process has opened to write to it.
    pub(super) fn open_beside(place: &Place) -> Result<Store, StoreError> {
        let wrong = |error: rusqlite::Error| StoreError::sqlite(&place.path, &error);
        let connection = connect(&place.path, OpenFlags::empty()).map_err(wrong)?;
        commit_durably(&connection).map_err(wrong)?;
        Ok(Store {
            connection,
            place: place.clone(),
            is_merged: false,
        })
    }

    /// Opens the history to read from it, or to remove from it.
    pub(crate) fn open(place: &Place) -> Result<Store, StoreError> {
        if let Some(shared) = &place.shared {
            return hosts::open_merged(place, shared);
        }
        let path = &place.path;
        if !path.exists() {
            return Err(StoreError::Empty(path.clone()));
        }
        refuse_other_files(place)?;
        let wrong = |error: rusqlite::Error| StoreError::sqlite(path, &error);
        let usual = connect(path, OpenFlags::empty()).and_then(|connection| {
            schema::version(&connection)?;
            Ok(connection)
        });
        let mut connection = match usual {
            Ok(connection) => connection,
            Err(error) => unwritable::open(place, &error)?,
        };
        refuse_other_databases(&connection, path)?;
        // Removing a study removes its children.
        connection
            .pragma_update(None, "foreign_keys", true)
            .map_err(wrong)?;
        schema::migrate_to_read(&mut connection).map_err(wrong)?;
        Ok(Store {
            connection,
            place: place.clone(),
            is_merged: false,
        })
    }

    /// An error of SQLite with the file's path.
    pub(super) fn wrong(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.place.path, error)
    }
}

#[cfg(test)]
thread_local! {
    /// Whether locks of files have no effect, as on file systems that do not pass them on to other hosts.
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
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// A file that has another beginning than SQLite's: where the user named it, it is something else; in the default place it
/// can only be damaged.
fn refuse_other_files(place: &Place) -> Result<(), StoreError> {
    let path = &place.path;
    let mut start = [0; MAGIC.len()];
    let read = match std::fs::File::open(path) {
        Ok(mut file) => file.read(&mut start),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    match read {
        // Made, but not yet written.
        Ok(0) => Ok(()),
        Ok(_) if &start == MAGIC => Ok(()),
        Ok(_) if place.is_named => Err(StoreError::NotAStore(path.clone())),
        Ok(_) => Err(StoreError::Damaged {
            path: path.clone(),
            problem: "it does not begin as an SQLite file does".to_owned(),
        }),
        Err(error) => Err(StoreError::Io(path.clone(), error)),
    }
}

/// SQLite files of other programs, and histories of newer ones.
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

/// What a file says it is: its application, its version, whether it has no tables. In one transaction, for another program
/// may be making the tables right now.
fn identity(connection: &Connection) -> rusqlite::Result<(i64, i64, bool)> {
    let transaction = connection.unchecked_transaction()?;
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    // The tables first: reading them begins the transaction in the file.
    let count = "SELECT count(*) = 0 FROM sqlite_schema";
    let is_empty = transaction.query_row(count, [], |row| row.get(0))?;
    Ok((pragma("application_id")?, pragma("user_version")?, is_empty))
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}

/// Reads the file through.
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

/// Every commit is on the disk before it counts.
fn commit_durably(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

fn prepare(connection: &Connection, journal_mode: &str) -> rusqlite::Result<()> {
    commit_durably(connection)?;
    let begun = Instant::now();
    loop {
        // Where the file system has no memory to share, the old journal stays, which is as safe. The change needs the file for
        // itself, and SQLite does not wait for that.
        let changed =
            connection.pragma_update_and_check(None, "journal_mode", journal_mode, |row| {
                row.get::<_, String>(0)
            });
        match changed {
            Ok(_) => return Ok(()),
            Err(error) if is_damage(&error) || begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
