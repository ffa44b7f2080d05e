//! Histories that hosts share: on a network or FUSE file system each host writes its own file, and
//! readers merge all files.
//!
//! Such file systems may not pass locks to other hosts. So no file has writers on two hosts, and
//! readers copy each file: that needs no lock, and rolls back no writer's transaction.

use super::connect::{connect, quick_check, refuse_other_databases};
use super::history_path::with_suffix;
use super::host_file::file_stem;
use super::{HistoryPath, Store, StoreError, id, schema};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time that a reader waits for a file to stay unchanged.
const COPY_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two attempts to copy it.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of damaged copies of an unchanged file after which the file itself counts as damaged.
const DAMAGED_COPIES: u32 = 3;
/// Suffixes of a history's files. The main file is copied first: a later journal has what it lacks.
const FILES: [&str; 3] = ["", "-journal", "-wal"];
/// Length of the file header, which holds SQLite's change counter.
const HEADER_BYTES: u64 = 100;

/// The table of studies that were copied, with the files that they come from.
pub(super) const ORIGIN: &str =
    "CREATE TEMP TABLE IF NOT EXISTS origin (study TEXT PRIMARY KEY, file TEXT NOT NULL)";

/// Returns the existing files: the one without a host, of older versions, and those of all hosts.
fn files_of_all_hosts(shared: &Path) -> io::Result<Vec<PathBuf>> {
    let directory = match shared.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let start = file_stem(shared) + ".";
    let mut files = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let host = name
            .strip_prefix(&*start)
            .and_then(|rest| rest.strip_suffix(".db"));
        let is_host = |host: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            !host.is_empty() && host.chars().all(is_plain)
        };
        if host.is_some_and(is_host) {
            files.push(shared.with_file_name(&*name));
        }
    }
    files.sort();
    if shared.exists() {
        files.insert(0, shared.to_owned());
    }
    Ok(files)
}

/// Opens the files of all hosts as one read-only history.
pub(super) fn open_merged(place: &HistoryPath, shared: &Path) -> Result<Store, StoreError> {
    let io = |error| StoreError::Io(shared.to_owned(), error);
    let files = files_of_all_hosts(shared).map_err(io)?;
    if files.is_empty() {
        return Err(StoreError::Empty(place.path.clone()));
    }
    let copies = CopyDirectory::create().map_err(io)?;
    let wrong = |error: rusqlite::Error| StoreError::sqlite(shared, &error);
    // For an empty name SQLite uses a temporary file, which it removes on close.
    let mut merged = Connection::open("").map_err(wrong)?;
    schema::migrate(&mut merged).map_err(wrong)?;
    merged.execute_batch(ORIGIN).map_err(wrong)?;
    let mut warnings = Vec::new();
    for file in &files {
        match copies.copy(file) {
            Ok(copy) => merge(&merged, &copy, file).map_err(wrong)?,
            Err(StoreError::NotAStore(_)) if file != shared => {}
            // The results of the other hosts are still readable.
            Err(error @ StoreError::Damaged { .. }) if files.len() > 1 => {
                warnings.push(format!("{error}; its results are missing here"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Store {
        connection: merged,
        place: place.clone(),
        is_merged: true,
        warnings,
    })
}

/// Adds the studies of a file that are not there yet.
fn merge(merged: &Connection, copy: &Path, file: &Path) -> rusqlite::Result<()> {
    let copy = copy.to_string_lossy();
    merged.execute("ATTACH ?1 AS host", [&copy])?;
    let transaction = merged.unchecked_transaction()?;
    copy_new_studies(&transaction, &file.to_string_lossy())?;
    transaction.commit()?;
    merged.execute("DETACH host", [])?;
    Ok(())
}

/// Copies studies that are not there yet, compared by id and by digest, from the attached history
/// `host`. The table `temp.origin` gets their ids, with `file`.
pub(super) fn copy_new_studies(transaction: &Connection, file: &str) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO temp.origin SELECT id, ?1 FROM host.study AS theirs WHERE NOT EXISTS \
         (SELECT 1 FROM main.study AS ours \
          WHERE ours.id = theirs.id OR ours.digest = theirs.digest)",
        [file],
    )?;
    let last_run: i64 =
        transaction.query_row("SELECT coalesce(max(id), 0) FROM main.run", [], |row| {
            row.get(0)
        })?;
    let of_study =
        |column: &str| format!("{column} IN (SELECT study FROM temp.origin WHERE file = ?1)");
    let of_run = format!(
        "run IN (SELECT id FROM host.run WHERE {})",
        of_study("study")
    );
    // Row ids of runs repeat between files, so they are shifted.
    for (table, condition, run) in [
        ("study", of_study("id"), ""),
        ("label", of_study("study"), ""),
        ("fact_value", of_study("study"), ""),
        ("run", of_study("study"), "id"),
        ("part", of_run.clone(), "run"),
        ("figure", of_run.clone(), "run"),
        ("interval_block", of_run.clone(), "run"),
        ("open_run", of_run, "run"),
    ] {
        let columns = columns(transaction, table)?;
        let values = columns.iter().map(|column| match column == run {
            true => format!("{column} + {last_run}"),
            false => column.clone(),
        });
        let values: Vec<String> = values.collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        transaction.execute(
            &format!(
                "INSERT INTO main.{table} ({columns}) \
                 SELECT {values} FROM host.{table} WHERE {condition}"
            ),
            [file],
        )?;
    }
    Ok(())
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut select =
        connection.prepare("SELECT name FROM pragma_table_info(?1, 'main') ORDER BY cid")?;
    select.query_map([table], |row| row.get(0))?.collect()
}

impl Store {
    /// Opens this host's file to remove studies. Fails if a study is in the file of another host.
    pub(super) fn own_file_of(&self, ids: &[String]) -> Result<Store, StoreError> {
        let origin = "SELECT file FROM temp.origin WHERE study = ?1";
        for id in ids {
            let file = self
                .connection
                .query_row(origin, [id], |row| row.get::<_, String>(0))
                .map_err(|error| self.wrong(&error))?;
            if Path::new(&file) != self.place.path {
                return Err(StoreError::OtherHost {
                    id: id.clone(),
                    path: file.into(),
                });
            }
        }
        Store::open_to_write(&self.place)
    }
}

/// A directory for copies, removed on drop.
pub(super) struct CopyDirectory(PathBuf);

impl CopyDirectory {
    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn create() -> io::Result<CopyDirectory> {
        let name = format!("iosonde-history-{}", id::random_id()?);
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(CopyDirectory(path))
    }

    /// Copies a file while it does not change, and applies its journal.
    pub(super) fn copy(&self, file: &Path) -> Result<PathBuf, StoreError> {
        let io = |error| StoreError::Io(file.to_owned(), error);
        let copy = self.0.join(file.file_name().unwrap_or_default());
        let begun = Instant::now();
        let mut damaged_copies = 0;
        loop {
            let before = states(file).map_err(io)?;
            copy_files(file, &copy).map_err(io)?;
            let is_at_rest = states(file).map_err(io)? == before;
            match check(&copy, file) {
                Ok(()) if is_at_rest => return Ok(copy),
                Err(error @ StoreError::Damaged { .. }) if is_at_rest => {
                    damaged_copies += 1;
                    if damaged_copies == DAMAGED_COPIES {
                        return Err(error);
                    }
                }
                Err(error) if is_at_rest => return Err(error),
                _ => damaged_copies = 0,
            }
            if begun.elapsed() > COPY_TIMEOUT {
                return Err(StoreError::Sqlite {
                    path: file.to_owned(),
                    problem: "its host keeps writing to it".to_owned(),
                });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for CopyDirectory {
    fn drop(&mut self) {
        // A leftover temporary file is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Rolls back or applies the journal of a copy, checks the copy, and migrates it.
fn check(copy: &Path, file: &Path) -> Result<(), StoreError> {
    let wrong = |error: rusqlite::Error| StoreError::sqlite(file, &error);
    let mut connection = connect(copy, OpenFlags::empty()).map_err(wrong)?;
    refuse_other_databases(&connection, file)?;
    quick_check(&connection, file)?;
    schema::migrate(&mut connection).map_err(wrong)?;
    // Merges the log into the file.
    let delete = connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()));
    delete.map_err(wrong)
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for suffix in FILES.iter().chain(&["-shm"]) {
        match fs::remove_file(with_suffix(to, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for suffix in FILES {
        match fs::copy(with_suffix(from, suffix), with_suffix(to, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Attributes that reveal a change of a file.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    header: Vec<u8>,
}

/// Returns the states of a history's files. On NFS, opening a file refreshes its attributes.
fn states(path: &Path) -> io::Result<Vec<Option<FileState>>> {
    let state = |suffix: &&str| -> io::Result<Option<FileState>> {
        let file = match File::open(with_suffix(path, suffix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let facts = file.metadata()?;
        let mut header = Vec::new();
        file.take(HEADER_BYTES).read_to_end(&mut header)?;
        Ok(Some(FileState {
            inode: facts.ino(),
            bytes: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            header,
        }))
    };
    FILES.iter().map(state).collect()
}

#[cfg(test)]
mod tests;
