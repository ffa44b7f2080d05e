//! Histories that several hosts share: on a network or FUSE file system each host writes a file of its own, and reading merges
//! the files of all.
//!
//! SQLite's locks hold among the processes of one host only, where the file system passes them on to no other. So no file has
//! writers on two hosts, and a reader opens a copy: it trusts no lock, and never rolls back what a writer is doing.

use super::open::{connect, quick_check, refuse_other_databases};
use super::{Place, Store, StoreError, id, schema};
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// File systems that other hosts may write to as well, or of which the kernel does not know: `f_type` of statfs(2).
const SHARED_FILE_SYSTEMS: [u64; 17] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x6573_5546, // FUSE, and virtiofs
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x5346_414f, // AFS
    0x0102_1997, // 9p
    0x7461_636f, // OCFS2
    0x0116_1970, // GFS2
    0x1983_0326, // BeeGFS
    0xaad7_aaea, // PanFS
    0x7375_7245, // Coda
    0x2003_0528, // OrangeFS
    0x786f_4256, // shared folders of VirtualBox
];
/// How long a reader waits for a file to be at rest.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks at it.
const PAUSE: Duration = Duration::from_millis(50);
/// So many copies of a file that nobody changes are damaged before it is.
const DAMAGED_COPIES: u32 = 3;
/// What belongs to a file of SQLite. The main file comes first: all that a copy of it lacks is in a journal copied later.
const FILES: [&str; 3] = ["", "-journal", "-wal"];
/// The first bytes of a file, which count its changes.
const HEADER_BYTES: u64 = 100;

/// Whether the file system of a file, which need not be there yet, is one that several hosts may write to.
pub(super) fn is_on_shared_file_system(path: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut directories = absolute.ancestors().skip(1);
    let found = directories.find_map(|directory| rustix::fs::statfs(directory).ok());
    found.is_some_and(|facts| is_shared(facts.f_type as u64))
}

/// The kernel gives the type as a number with a sign, which some machines extend.
fn is_shared(file_system_type: u64) -> bool {
    SHARED_FILE_SYSTEMS.contains(&(file_system_type & 0xffff_ffff))
}

/// The name of this host, for a file: its node name, and a digest of its machine id, as node names alone may be alike.
pub(super) fn this_host() -> String {
    let uname = rustix::system::uname();
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    host_name(&uname.nodename().to_string_lossy(), machine.trim())
}

fn host_name(node: &str, machine: &str) -> String {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '-',
    };
    let node: String = node.chars().map(plain).collect();
    if machine.is_empty() {
        return node;
    }
    let digest = Sha256::digest(format!("iosonde {machine}"));
    format!("{node}-{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2])
}

/// The file that a host writes: `history.HOST.db` beside `history.db`.
pub(super) fn file_of_host(shared: &Path, host: &str) -> PathBuf {
    shared.with_file_name(format!("{}.{host}.db", stem(shared)))
}

/// The name without `.db`.
fn stem(shared: &Path) -> String {
    let name = shared.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".db").unwrap_or(&name).to_owned()
}

/// The files that are there: the one without a host, which older programs wrote, and those of all hosts.
fn files_of_all_hosts(shared: &Path) -> io::Result<Vec<PathBuf>> {
    let directory = match shared.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let start = stem(shared) + ".";
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

/// Opens what all hosts have kept, as one history that nothing can be written to.
pub(super) fn open_merged(place: &Place, shared: &Path) -> Result<Store, StoreError> {
    let io = |error| StoreError::Io(shared.to_owned(), error);
    let files = files_of_all_hosts(shared).map_err(io)?;
    if files.is_empty() {
        return Err(StoreError::Empty(place.path.clone()));
    }
    let copies = CopyDirectory::create().map_err(io)?;
    let wrong = |error: rusqlite::Error| StoreError::sqlite(shared, &error);
    // Without a name SQLite makes a file that it removes when the connection ends.
    let mut merged = Connection::open("").map_err(wrong)?;
    schema::migrate(&mut merged).map_err(wrong)?;
    merged
        .execute_batch("CREATE TEMP TABLE origin (study TEXT PRIMARY KEY, file TEXT NOT NULL)")
        .map_err(wrong)?;
    for file in &files {
        match copies.copy(file) {
            Ok(copy) => merge(&merged, &copy, file).map_err(wrong)?,
            Err(StoreError::NotAStore(_)) if file != shared => {}
            // The other hosts' results can be read all the same.
            Err(error @ StoreError::Damaged { .. }) if files.len() > 1 => {
                eprintln!("warning: {error}; its results are missing here");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Store {
        connection: merged,
        place: place.clone(),
        is_merged: true,
    })
}

/// Adds the studies of a file that are not there yet, by id or by what was measured.
fn merge(merged: &Connection, copy: &Path, file: &Path) -> rusqlite::Result<()> {
    let copy = copy.to_string_lossy();
    let file = file.to_string_lossy();
    merged.execute("ATTACH ?1 AS host", [&copy])?;
    let transaction = merged.unchecked_transaction()?;
    transaction.execute(
        "INSERT INTO temp.origin SELECT id, ?1 FROM host.study AS theirs WHERE NOT EXISTS \
         (SELECT 1 FROM main.study AS ours WHERE ours.id = theirs.id OR ours.digest = theirs.digest)",
        [&file],
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
    // The column that numbers runs is not the same in two files.
    for (table, condition, run) in [
        ("study", of_study("id"), ""),
        ("label", of_study("study"), ""),
        ("run", of_study("study"), "id"),
        ("part", of_run.clone(), "run"),
        ("figure", of_run.clone(), "run"),
        ("interval_block", of_run.clone(), "run"),
        ("open_run", of_run, "run"),
    ] {
        let columns = columns(&transaction, table)?;
        let values = columns.iter().map(|column| match column == run {
            true => format!("{column} + {last_run}"),
            false => column.clone(),
        });
        let values: Vec<String> = values.collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        transaction.execute(
            &format!(
                "INSERT INTO main.{table} ({columns}) SELECT {values} FROM host.{table} WHERE {condition}"
            ),
            [&file],
        )?;
    }
    transaction.commit()?;
    merged.execute("DETACH host", [])?;
    Ok(())
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut select =
        connection.prepare("SELECT name FROM pragma_table_info(?1, 'main') ORDER BY cid")?;
    select.query_map([table], |row| row.get(0))?.collect()
}

impl Store {
    /// Opens the file that this host writes, to remove studies of a merged history from it. Fails if another host keeps one.
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

/// A directory for copies, removed at the end.
struct CopyDirectory(PathBuf);

impl CopyDirectory {
    fn create() -> io::Result<CopyDirectory> {
        let name = format!("iosonde-history-{}", id::new()?);
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(CopyDirectory(path))
    }

    /// A copy of a file between two changes of it, brought up to date.
    fn copy(&self, file: &Path) -> Result<PathBuf, StoreError> {
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
            if begun.elapsed() > PATIENCE {
                return Err(StoreError::Sqlite {
                    path: file.to_owned(),
                    problem: "its host did not stop writing to it".to_owned(),
                });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for CopyDirectory {
    fn drop(&mut self) {
        // A temporary file that stays harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Rolls back or takes in what its journal holds, and migrates it.
fn check(copy: &Path, file: &Path) -> Result<(), StoreError> {
    let wrong = |error: rusqlite::Error| StoreError::sqlite(file, &error);
    let mut connection = connect(copy, OpenFlags::empty()).map_err(wrong)?;
    refuse_other_databases(&connection, file)?;
    quick_check(&connection, file)?;
    schema::migrate(&mut connection).map_err(wrong)?;
    // Nothing is left in a log beside it.
    let delete = connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()));
    delete.map_err(wrong)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
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

/// What tells whether a file was changed meanwhile.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    header: Vec<u8>,
}

/// Of all that belong to it; `None` for those that are not there. Opening a file asks the server for its attributes.
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
