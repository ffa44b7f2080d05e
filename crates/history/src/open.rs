//! Opens the history: checks what kind of file it is, and renames a damaged one.

use super::connect::{BUSY_TIMEOUT, connect, quick_check, refuse_other_databases};
use super::error::is_damage;
use super::{HistoryPath, Store, StoreError, aside, hosts, schema, unwritable};
use rusqlite::{Connection, OpenFlags};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A larger history is not checked before it is written to.
const CHECKED_BYTES: u64 = 64 << 20;
/// The first bytes of every SQLite file.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A history to write to, and the new name of a damaged one that it replaces.
pub struct OpenedHistory {
    pub store: Store,
    pub put_aside: Option<PathBuf>,
}

impl Store {
    /// Opens the history for writing, or creates it. A damaged one is renamed.
    pub fn open_or_make(place: &HistoryPath) -> Result<OpenedHistory, StoreError> {
        place.make_directory()?;
        let put_aside = match Store::open_to_write(place) {
            Ok(store) => {
                return Ok(OpenedHistory {
                    store,
                    put_aside: None,
                });
            }
            Err(StoreError::Damaged { .. }) => aside::put_aside(place, || {
                matches!(Store::open_to_write(place), Err(StoreError::Damaged { .. }))
            })?,
            Err(error) => return Err(error),
        };
        Ok(OpenedHistory {
            store: Store::open_to_write(place)?,
            put_aside,
        })
    }

    /// Opens an intact history for writing.
    pub(super) fn open_to_write(place: &HistoryPath) -> Result<Store, StoreError> {
        let path = &place.path;
        refuse_other_files(place)?;
        let wrong = |error: rusqlite::Error| StoreError::sqlite(path, &error);
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE).map_err(wrong)?;
        refuse_other_databases(&connection, path)?;
        if file_size_bytes(path) <= CHECKED_BYTES {
            quick_check(&connection, path)?;
        }
        // Write-ahead logging needs shared memory, which hosts do not have.
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
            warnings: Vec::new(),
        })
    }

    /// Opens a second connection to a history that this process has opened for writing.
    pub(super) fn open_beside(place: &HistoryPath) -> Result<Store, StoreError> {
        let wrong = |error: rusqlite::Error| StoreError::sqlite(&place.path, &error);
        let connection = connect(&place.path, OpenFlags::empty()).map_err(wrong)?;
        commit_durably(&connection).map_err(wrong)?;
        Ok(Store {
            connection,
            place: place.clone(),
            is_merged: false,
            warnings: Vec::new(),
        })
    }

    /// Opens the history for reading or for removing studies.
    pub fn open(place: &HistoryPath) -> Result<Store, StoreError> {
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
            Err(error) => unwritable::open_unwritable(place, &error)?,
        };
        refuse_other_databases(&connection, path)?;
        // Removing a study then removes its children.
        connection
            .pragma_update(None, "foreign_keys", true)
            .map_err(wrong)?;
        schema::migrate_to_read(&mut connection).map_err(wrong)?;
        Ok(Store {
            connection,
            place: place.clone(),
            is_merged: false,
            warnings: Vec::new(),
        })
    }

    /// Converts an error of SQLite, and adds the file's path.
    pub(super) fn wrong(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.place.path, error)
    }
}

/// Rejects files without SQLite's header. A file that the user named is then no history; the
/// default file is damaged.
fn refuse_other_files(place: &HistoryPath) -> Result<(), StoreError> {
    let path = &place.path;
    let mut start = [0; MAGIC.len()];
    let read = match std::fs::File::open(path) {
        Ok(mut file) => file.read(&mut start),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    match read {
        // Created, but not yet written.
        Ok(0) => Ok(()),
        Ok(_) if &start == MAGIC => Ok(()),
        Ok(_) if place.is_named => Err(StoreError::NotAStore(path.clone())),
        Ok(_) => Err(StoreError::Damaged {
            path: path.clone(),
            problem: "the header is not that of an SQLite file".to_owned(),
        }),
        Err(error) => Err(StoreError::Io(path.clone(), error)),
    }
}

fn file_size_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}

/// Makes every commit wait for the disk.
fn commit_durably(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

fn prepare(connection: &Connection, journal_mode: &str) -> rusqlite::Result<()> {
    commit_durably(connection)?;
    let begun = Instant::now();
    loop {
        // Without shared memory the rollback journal stays, which is as safe. The change needs
        // exclusive access, for which SQLite's busy timeout does not wait.
        let changed =
            connection.pragma_update_and_check(None, "journal_mode", journal_mode, |row| {
                row.get::<_, String>(0)
            });
        match changed {
            Ok(_) => return Ok(()),
            Err(error) if is_damage(&error) || begun.elapsed() > BUSY_TIMEOUT => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
